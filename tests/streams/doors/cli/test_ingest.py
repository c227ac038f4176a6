"""What `siltstone ingest` says of a file, and how it waits for standard input."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import LifecycleSettings
from streams.doors.cli.ingest import _each
from streams.doors.cli.ingested import Done
from streams.doors.importing.formats import Format
from streams.doors.importing.found import Found, Given, LeftOut
from tests.support.making import START
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone

LIFECYCLE = LifecycleSettings(fresh_days=7)


@pytest.mark.parametrize(
    ("done", "lifecycle", "warned"),
    [
        (
            Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS),
            LIFECYCLE,
            "the newest entry is of 2025-12-24. Its memories decay",
        ),
        (
            Done(Format.OPENAI, 3, newest=START - 9 * DAY_MS),
            LIFECYCLE,
            "(the file's own date, because it has no times: touch",
        ),
        (Done(Format.OPENAI, 3, newest=START - 6 * DAY_MS), LIFECYCLE, None),
        (Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS), LifecycleSettings(fresh_days=10), None),
        (Done(Format.OPENAI, 3, newest=START - 8 * DAY_MS), LifecycleSettings(clock="event"), None),
        (Done(bad=3), LIFECYCLE, "nothing in x.json could be read"),
        (Done(), LIFECYCLE, None),
    ],
)
def test_a_file_that_will_not_be_found_is_warned_of(
    done: Done, lifecycle: LifecycleSettings, warned: str | None
) -> None:
    warnings = done.warnings("x.json", Given(START, undated=START - 9 * DAY_MS), lifecycle)
    assert len(warnings) == (warned is not None)
    assert all(str(warned) in one for one in warnings)


async def test_while_standard_input_says_nothing_what_it_said_is_sent() -> None:
    """Reading waits beside the event loop."""
    go_on = threading.Event()

    def said() -> Iterator[Found]:
        yield LeftOut(1)
        assert go_on.wait(10)
        yield LeftOut(2)

    found = []
    async for one in _each(said(), waits=True):
        found.append(one)
        go_on.set()
    assert found == [LeftOut(1), LeftOut(2)]


CHAT = """31/12/2025, 23:58 - Ann: Shall we meet at the lake?
31/12/2025, 23:59 - Bob: Yes, at ten
01/01/2026, 00:02 - Bob: <Media omitted>
"""


async def run(*words: str) -> subprocess.CompletedProcess[str]:
    """None of these asks a broker: there is none."""
    return await siltstone(*words, "--bootstrap-servers", f"127.0.0.1:{free_port()}")


@pytest.mark.parametrize("command", [("ingest",), ("import", "whatsapp")])
async def test_a_dry_run_shows_what_would_become_of_a_file(tmp_path: Path, command: Sequence[str]) -> None:
    file = tmp_path / "chat.txt"
    file.write_text(CHAT)
    shown = await run(*command, str(file), "--dry-run")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for word in ("a WhatsApp chat", "Ann 1, Bob 1", "2025-12-31", "2 messages in 1 sessions", "1 left out"):
        assert word in shown.stdout + shown.stderr
    told = await run(*command, str(file), "--dry-run", "--user", "ann", "--json")
    plan = orjson.loads(told.stdout)
    (session,) = plan["sessions"]
    assert (session["messages"], session["speakers"]) == (2, {"Ann": 1, "Bob": 1})
    assert (session["from"], session["to"]) == ("2025-12-31T23:58:00.000Z", "2025-12-31T23:59:00.000Z")
    assert (plan["format"], plan["left_out"], plan["bad"]) == ("whatsapp", 1, [])


async def test_a_dry_run_ends_as_the_run_would(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "hi"}, {"role": "robot", "content": "x"}] and so on')
    shown = await run("ingest", str(file), "--dry-run", "--format", "openai")
    assert shown.returncode == 1
    assert "role 'robot' is not one of" in shown.stdout + shown.stderr
    assert "element 3: the text after the end of a value is not JSON" in shown.stdout + shown.stderr
    assert "1 messages in 1 sessions; 2 bad" in shown.stdout + shown.stderr
    file.write_text('{"type": "memory", "text": "x"}\n')
    assert (await run("import", "jsonl", str(file), "--dry-run")).returncode == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--user", "u7"], "a chat between Ann, Bob: which of them is u7?"),
        (["--user", "u7", "--speaker", "Carl"], "none of them has the name 'Carl'"),
        (["--user", "ann", "--timezone", "Oslo"], "'Oslo' is not a time zone"),
        (["--user", "ann", "--timezone", "../x"], "is not a time zone"),
        ([], "no user is named in a WhatsApp chat: pass --user"),
        (["--format", "word"], "'word' is not one of"),
    ],
)
async def test_what_is_missing_is_told_before_anything_is_asked(
    tmp_path: Path, words: Sequence[str], why: str
) -> None:
    file = tmp_path / "chat.txt"
    file.write_text(CHAT)
    refused = await run("ingest", str(file), *words)
    assert (refused.returncode, why in " ".join(refused.stderr.split())) == (2, True), refused.stderr


@pytest.mark.parametrize("of", Format)
async def test_a_format_is_named_as_the_pages_write_it(tmp_path: Path, of: Format) -> None:
    file = tmp_path / "empty.json"
    file.write_text("")
    shown = await run("ingest", str(file), "--dry-run", "--format", of.value)
    assert shown.returncode == 0, shown.stdout + shown.stderr


async def test_of_a_file_that_says_nothing_no_broker_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("no json\n")
    refused = await run("ingest", str(file))
    assert refused.returncode == 1
    assert refused.stderr.startswith("x.json:1: it is not JSON")
    file.write_text("")
    assert (await run("ingest", str(file))).returncode == 0
