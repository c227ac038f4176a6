"""The README does not lie: its example is taken, its commands exist and work. Addresses of all pages are served."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import httpx
import orjson
import pytest
from click.testing import CliRunner

from schemas.conversations import ChatMessage, SessionEnded
from schemas.settings import Settings
from streams.doors.cli import COMMANDS, cli, running
from streams.doors.cli.ingest import said
from streams.doors.cli.process import run
from tests.docs.pages import OUTSIDE, PAGES
from tests.support.late_api import api_of
from tests.support.quick_commands import siltstone
from tests.support.waiting import CLIENT_SECONDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: What readers are told now: not the CHANGELOG.
EVERY = [*PAGES, *(path for path in OUTSIDE.values() if path.name != "CHANGELOG.md")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[list[str]]:
    lines = [text[2:] for block in blocks("console") for text in block.splitlines() if text.startswith("$ ")]
    return [shlex.split(text) for text in lines]


def test_the_example_message_is_valid() -> None:
    example, _ = blocks("json")
    message, end = (said(line.encode()) for line in example.splitlines())
    assert isinstance(message, ChatMessage)
    assert isinstance(end, SessionEnded)
    assert (message.user_id, message.session_id) == (end.user_id, end.session_id) == ("ann", "s1")


def test_an_assistants_configuration_names_a_command_that_there_is() -> None:
    """There as in docs/use.md."""
    use = (ROOT / "docs" / "use.md").read_text(encoding="utf-8")
    for block in (blocks("json")[1], *re.findall(r"```json\n(.*?)```", use, re.DOTALL)):
        (server,) = orjson.loads(block)["mcpServers"].values()
        assert Path(server["command"]).name == "siltstone"
        assert CliRunner().invoke(cli, [*server["args"], "--help"]).exit_code == 0


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [words[1] for words in commands() if words[0] == "make"]
    assert targets == ["demo", "test"]
    assert all(f"\n{target}: " in makefile for target in targets)


def test_every_command_that_pages_name_exists() -> None:
    """docs/cli.md has all of them."""
    named = {
        name
        for page in EVERY
        for name in re.findall(r"[`/]siltstone ([a-z][a-z-]+)(?=[ `\n])", page.read_text(encoding="utf-8"))
    }
    assert {"dev", "worker", "ingest", "search"} <= named & COMMANDS.keys()
    assert named - COMMANDS.keys() == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_explains(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert len(result.output.split("Options:")[0].splitlines()) >= 3


@pytest.mark.usefixtures("_like_a_command")
def test_every_address_that_pages_name_is_served(settings: Settings) -> None:
    """docs/api.md has all of them."""
    pattern = re.compile(r"`(?:(?:GET|POST|PUT|PATCH|DELETE)(?:, )?)+ (/(?:v\d|healthz|readyz|metrics)[^`?\s]*)")
    paths = {path for page in EVERY for path in pattern.findall(page.read_text(encoding="utf-8"))}

    async def served() -> set[str]:
        return set(api_of(settings).openapi()["paths"])

    assert len(paths) > 10
    assert unnamed(paths) - unnamed(run(served())) == set()


def unnamed(paths: set[str]) -> set[str]:
    """Whatever their parameters are called."""
    return {re.sub(r"\{\w+", "{id", path) for path in paths}


async def test_the_readmes_commands_answer(settings: Settings, tmp_path: Path) -> None:
    """Ingest the example, then ask for it as the README does: it is of today, and found without a flag."""
    from streams.app import Siltstone

    chats = tmp_path / "chats.jsonl"
    chats.write_text(blocks("json")[0])
    (tmp_path / "bad.jsonl").write_text(blocks("json")[0] + "not json\n")
    (asked,) = [words[1:] for words in commands() if words[1:2] == ["search"]]
    worker = Siltstone(settings)
    try:
        await worker.start()
        await running.until_ready(worker)
        url = f"http://127.0.0.1:{worker.api.port}"
        servers = settings.kafka.bootstrap_servers
        prefix = {"SILTSTONE_KAFKA__TOPIC_PREFIX": settings.kafka.topic_prefix}
        result = await siltstone("ingest", str(chats), "--bootstrap-servers", servers, **prefix)
        assert (result.returncode, result.stderr.strip()) == (0, "")
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=CLIENT_SECONDS) as client:
            for _ in range(100):
                if (await client.get("/v1/stats/states")).json()["total"]:
                    break
                await asyncio.sleep(0.1)
        result = await siltstone(*asked, "--url", url)
        assert (result.returncode, "I live in Oslo" in result.stdout) == (0, True), result.stdout
        result = await siltstone("ingest", "bad.jsonl", "--bootstrap-servers", servers, **prefix)
        assert (result.returncode, "bad.jsonl:3: " in result.stderr) == (1, True)
        for words in (
            ["context", "where does she live?", "--user", "ann", "--session", "s1"],
            ["explain", "--user", "ann", "--session", "s1"],
            ["summarize", "--user", "ann"],
            ["summaries", "--user", "ann", "--from", "2026-01-01"],
            ["stats"],
            ["snapshot"],
        ):
            result = await siltstone(*words, "--url", url)
            assert result.returncode == 0, result.stderr
        result = await siltstone("search", "Oslo", "--user", "ann", "--include-all", "--json", "--url", url)
        assert "Oslo" in orjson.loads(result.stdout)["results"][0]["memory"]
    finally:
        await worker.stop()


def as_users_do(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as it is started in a shell."""
    return subprocess.run(
        [sys.executable, "-c", "from streams.doors.cli import main; main()", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


def test_an_absent_worker_is_one_clear_line() -> None:
    result = as_users_do("search", "x", "--user", "u", "--url", "http://127.0.0.1:1")
    assert (result.returncode, len(result.stderr.strip().splitlines())) == (1, 1)
    assert "siltstone dev" in result.stderr


def test_an_unwritable_data_directory_is_one_clear_line(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    servers = settings.kafka.bootstrap_servers
    result = as_users_do(
        "worker", "--data", str(tmp_path / "file" / "x"), "--bootstrap-servers", servers, "--log-level", "ERROR"
    )
    assert (result.returncode, len(result.stderr.strip().splitlines())) == (1, 1)


@pytest.mark.slow
def test_the_demo_prints_one_json_object(tmp_path: Path) -> None:
    """With bad lines too: they become dead letters."""
    chats = tmp_path / "chats.jsonl"
    chats.write_text(blocks("json")[0] + "not json\n")
    result = as_users_do("demo", "--input", str(chats), "--data", str(tmp_path / "d"), "--json")
    assert result.returncode == 0, result.stderr
    summary = orjson.loads(result.stdout)
    assert summary == {
        "seconds": ANY,
        "messages": 1,
        "exchanges": 1,
        "promoted": 1,
        "dropped": 0,
        "dead_letters": 1,
        "memories": 1,
        "by_reason": {"judged_important": 1},
        "by_state": {"active": 1, "cold": 0, "deprecated": 0},
        "summaries": 1,
    }


@pytest.mark.slow
def test_the_demo_ends_with_one_of_its_daily_summaries(tmp_path: Path) -> None:
    """Of the bundled chats: days that are over, ten messages of one session, and the newest day on request."""
    result = as_users_do("demo", "--data", str(tmp_path / "d"), COLUMNS="120")
    assert result.returncode == 0, result.stderr
    told = re.search(r"(\d+) summaries were written\. One of the files, ", result.stdout)
    assert told is not None, result.stdout
    assert 16 <= int(told[1]) <= 20, "requests for a day that wait together become one summary"
    shown = result.stdout[told.end() :]
    file = Path(shown.partition(":\n")[0].replace("\n", ""))
    assert file.read_text(encoding="utf-8").startswith(f"# {file.stem} · ")
    runs = shown.count("Generated at") + shown.count("生成时间")
    assert [shown.count(section) for section in ("📌", "👤", "✅", "📋", "🔧", "💡")] == [runs] * 6
    assert runs
    assert len(list((tmp_path / "d" / "memory").glob("*/*.md"))) == 16
    client = shown.partition(">>> memory = Memory('http://127.0.0.1:")[2]
    assert re.search(r"memory\.search\(.*\)\s*\.results\[0\]\.memory\n['\"]", client, re.DOTALL), shown[-2000:]
