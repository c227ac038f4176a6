"""300,000 messages wait; a worker is killed while it reads and while it stores: the same memories as without."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import duckdb
import pytest

from schemas.settings import Settings
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from tests.crash.lives import living, of_its_own, stop, until_idle
from tests.support.committed import all_committed
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked

pytestmark = pytest.mark.soak

USERS, MESSAGES = 300, 1_000
#: Of a user's messages one in so many asks for it to be remembered; the others are small talk.
MEMORABLE = 50
#: The batch that it is killed before, of about a hundred, and the transaction that it is killed after.
BATCH, TRANSACTION = 20, 3
SMALL_TALK = ("ok", "thanks", "good morning", "haha", "see you", "sure", "fine by me", "what a day")
#: What is kept is decided as by default; the summaries are not what is compared.
AS_SHIPPED = {"SILTSTONE_MEMORY__SCORING__POLICY": "weighted", "NANOBOT_AUTO_SUMMARY": "false"}


async def test_kills_in_a_backlog_of_300_000_messages_change_no_memory(settings: Settings, tmp_path: Path) -> None:
    undisturbed, killed = of_its_own(settings, tmp_path / "undisturbed"), of_its_own(settings, tmp_path / "killed")
    for one in (undisturbed, killed):
        await ensure_topics(one.kafka)
        await say(one)
    await read_to_the_end(undisturbed)
    expected = memories(undisturbed)
    assert len(expected) >= USERS * MESSAGES // MEMORABLE // 2
    await killed_at(killed, tmp_path / "reading", "a batch is read", BATCH)
    assert (tmp_path / "reading").exists()
    assert not await all_committed(killed.kafka)
    found = len(memories(killed))
    await killed_at(killed, tmp_path / "storing", "rows are committed, the index knows nothing", TRANSACTION)
    assert (tmp_path / "storing").exists()
    assert found < len(memories(killed)) < len(expected)
    await read_to_the_end(killed)
    assert memories(killed) == expected


async def say(settings: Settings) -> None:
    chance = random.Random(17)
    async with producing(settings.kafka) as producer:
        for i in range(MESSAGES):
            for user in (f"user-{n}" for n in range(USERS)):
                said = chance.choice(SMALL_TALK)
                if i % 2 == 0 and chance.random() < 2 / MEMORABLE:
                    said = f"Please remember: I decided to keep {chance.randrange(10**9)} in drawer {i} of {user}."
                record = line(i, user, ("user", "assistant")[i % 2], 30 * i, content=said)
                await producer.send(user.encode(), record)
        for user in (f"user-{n}" for n in range(USERS)):
            await producer.send(user.encode(), line(0, user, "user", 30 * MESSAGES, type="session_end"))


async def killed_at(settings: Settings, mark: Path, point: str, nth: int) -> None:
    """Before or after the nth call of a function: it has done something by then, and not all."""
    program = [sys.executable, "-m", "tests.crash.points", point, str(nth), str(mark)]
    with living(settings, free_port(), program, AS_SHIPPED) as worker:
        await until(lambda: worker.poll() is not None, seconds=300)
        assert worker.returncode == -signal.SIGKILL


async def read_to_the_end(settings: Settings) -> None:
    port = free_port()
    with living(settings, port, environment=AS_SHIPPED) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        await until_idle(worker, settings.kafka)
        stop(worker)


def memories(settings: Settings) -> dict[str, str]:
    """The texts of all memories by their ids. A worker may have been killed before a shard had its tables."""
    found: dict[str, str] = {}
    for path in settings.data_dir.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            if db.execute("FROM duckdb_tables() WHERE table_name = 'memories'").fetchone():
                found.update(db.execute("SELECT id, text FROM main.memories").fetchall())
    return found
