"""`siltstone dev` is killed, interrupted, and has no room left: all that was acknowledged is there again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from schemas.settings import Settings
from tests.crash.chatter import Said, portions, produce
from tests.crash.holdings import summaries, tables, vectors, windows
from tests.crash.lives import ENVIRONMENT, Holdings, assert_equal, children_of, of_its_own, undisturbed, until_idle
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, until
from tests.support.workers import WITH_TOY, WorkerProcess, asked, sources, surely_asked

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PORTIONS, PORTION = 3, 200
#: Bytes for which the journal still finds room.
ROOM = 20_000


#: By which words of their commands the children are known.
KILLED = {"the broker is killed": "--storage-engine", "the journal is killed": "journal.process"}


@pytest.fixture(scope="module")
def said() -> list[list[Said]]:
    return portions(1_000, PORTIONS, PORTION)


@pytest.fixture
def dev(settings: Settings, tmp_path: Path) -> Settings:
    """The settings by which `siltstone dev` of a test is reached."""
    alone = of_its_own(settings, tmp_path / "dev")
    kafka = alone.kafka.model_copy(update={"bootstrap_servers": f"127.0.0.1:{free_port()}"})
    http = alone.http.model_copy(update={"port": free_port()})
    return alone.model_copy(update={"kafka": kafka, "http": http})


@contextlib.contextmanager
def living(dev: Settings) -> Iterator[WorkerProcess]:
    """The command, as a user starts it; killed at the end of the block if it still lives."""
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "SILTSTONE_MEMORY__SCORING__POLICY": "all",
        "SILTSTONE_LONG_TERM__NEAR_COPY": "1",
        "SILTSTONE_KAFKA__TOPIC_PREFIX": dev.kafka.topic_prefix,
        "SILTSTONE_KAFKA__GROUP_ID": dev.kafka.group_id,
    }
    kafka_port = dev.kafka.bootstrap_servers.rpartition(":")[2]
    ports = ["--port", str(dev.http.port), "--kafka-port", kafka_port]
    process = WorkerProcess([*WITH_TOY, "dev", "--data", str(dev.data_dir), *ports], dev.http.port, environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ready(dev: Settings) -> bool:
    return bool(asked(dev.http.port, "/readyz").get("ready"))


def child(process: subprocess.Popen[bytes], what: str) -> int:
    """The id of the child whose command has these words."""
    named = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children_of(process)}
    (found,) = (pid for pid, command in named.items() if what.encode() in command)
    return found


async def strike(process: subprocess.Popen[bytes], fault: str) -> int:
    """Do it, and wait for its end: the exit code."""
    if fault == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    elif fault == "everything is killed":
        process.kill()
    else:
        os.kill(child(process, KILLED[fault]), signal.SIGKILL)
    await until(lambda: process.poll() is not None)
    return process.returncode


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("everything is killed", -signal.SIGKILL),
        ("the broker is killed", 1),
        ("the journal is killed", 1),
        ("Ctrl-C", 0),
    ],
)
async def test_whatever_ends_it_the_next_start_goes_on(
    settings: Settings,
    dev: Settings,
    tmp_path: Path,
    said: list[list[Said]],
    capfd: pytest.CaptureFixture[str],
    fault: str,
    code: int,
) -> None:
    """Each time in the middle of a portion that was just acknowledged: windows, memories and rows as undisturbed."""
    expected = await undisturbed(of_its_own(settings, tmp_path / "undisturbed"), said)
    chance = random.Random(0)
    journal = dev.data_dir / "journal" / "broker.log"
    for records in said:
        with living(dev) as process:
            await until(lambda: ready(dev), alive=process)
            await produce(dev, records)
            await asyncio.sleep(chance.uniform(0, 0.4))
            assert await strike(process, fault) == code
        if fault == "everything is killed":
            tear(journal)
    with living(dev) as process:
        await until(lambda: ready(dev), alive=process)
        await until_idle(process, dev.kafka)
        shown = windows(dev.http.port, PORTIONS)
        assert await strike(process, "Ctrl-C") == 0
    assert set(sources(dev).values()) == {1}
    held = Holdings(tables(dev.data_dir), vectors(dev.data_dir), shown, summaries(dev.data_dir))
    assert_equal(held, expected)
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("siltstone: ")]
    assert len(told) == (PORTIONS if code == 1 else 0)
    assert all("no acknowledged record is lost" in line for line in told)


def tear(journal: Path) -> None:
    """As a write that a crash has cut."""
    with journal.open("ab") as file:
        file.write(journal.read_bytes()[-100:-1])


async def test_a_full_disk_takes_nothing_that_was_acknowledged(
    dev: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ends with one line that says why; with room again it goes on, and what was in windows is decided later."""
    acknowledged = []
    url = f"http://127.0.0.1:{dev.http.port}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=CLIENT_SECONDS) as client:
        with living(dev) as process:
            await until(lambda: ready(dev), alive=process)
            room = (dev.data_dir / "journal" / "broker.log").stat().st_size + ROOM
            resource.prlimit(child(process, KILLED["the journal is killed"]), resource.RLIMIT_FSIZE, (room, room))
            with contextlib.suppress(httpx.HTTPError):
                for i in range(1_000):
                    answer = await client.post("/v1/messages", json=message(i))
                    answer.raise_for_status()
                    acknowledged.append(f"m{i}")
            await until(lambda: process.poll() is not None)
            assert process.returncode == 1
        told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("siltstone: ")]
        assert len(told) == 1
        assert "File too large: make room, and start again" in told[0]
        assert acknowledged
        with living(dev) as process:
            await until(lambda: ready(dev), alive=process)
            await until_idle(process, dev.kafka)
            kept_in_window = await in_window(client)
            assert kept_in_window >= set(acknowledged)
            decided = surely_asked(dev.http.port, "/v1/stats/states")["total"]
            assert decided < len(kept_in_window) / 2, "all was decided on"
            (await client.post("/v1/sessions/s1/end", json={"user_id": "ann"})).raise_for_status()
            await until_idle(process, dev.kafka)
            assert await strike(process, "Ctrl-C") == 0
    kept = sources(dev)
    assert kept.keys() >= set(acknowledged)
    assert set(kept.values()) == {1}


def message(i: int) -> dict[str, str]:
    role = ("user", "assistant")[i % 2]
    return {"user_id": "ann", "session_id": "s1", "message_id": f"m{i}", "role": role, "content": f"This is fact {i}"}


async def in_window(client: httpx.AsyncClient) -> set[str]:
    answer = await client.get("/v1/sessions/s1/exchanges", params={"user_id": "ann", "limit": 1_000})
    return {said["message_id"] for exchange in answer.json()["exchanges"] for said in exchange["messages"]}
