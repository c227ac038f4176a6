"""300,000 messages wait; a worker is killed while it reads and while it stores: the same memories as without."""

from __future__ import annotations

import random
import re
from pathlib import Path

import duckdb
import httpx

from schemas.settings import Settings
from streams.cli.ingest import producing
from streams.clients.broker import ensure_topics
from tests.crash.lives import living, of_its_own, stop, until_idle
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked

USERS, MESSAGES = 300, 1_000
#: Of a user's messages one in so many asks for it to be remembered; the others are small talk.
MEMORABLE = 50
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
    await killed_while_it_reads(killed)
    await killed_while_it_stores(killed, len(expected))
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


async def killed_while_it_reads(settings: Settings) -> None:
    port = free_port()
    with living(settings, port, environment=AS_SHIPPED) as worker:
        await until(lambda: read(port) > USERS * MESSAGES // 4, alive=worker, seconds=180)
        assert read(port) < USERS * MESSAGES
        worker.kill()
        worker.wait()


async def killed_while_it_stores(settings: Settings, expected: int) -> None:
    """When it has stored more than it found, and not all."""
    port = free_port()
    with living(settings, port, environment=AS_SHIPPED) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        found = stored(port)
        await until(lambda: found < stored(port), alive=worker, seconds=180)
        assert stored(port) < expected
        worker.kill()
        worker.wait()


async def read_to_the_end(settings: Settings) -> None:
    port = free_port()
    with living(settings, port, environment=AS_SHIPPED) as worker:
        await until(lambda: asked(port, "/readyz").get("ready"), alive=worker)
        await until_idle(worker)
        stop(worker)


def read(port: int) -> int:
    """How many messages are in the windows; committed they are in larger steps."""
    try:
        told = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=5).text
    except httpx.HTTPError:
        return 0
    found = re.search(r"^siltstone_messages_total (\S+)$", told, re.MULTILINE)
    return int(float(found[1])) if found else 0


def stored(port: int) -> int:
    """How many memories there are."""
    return int(asked(port, "/v1/stats/states").get("total", 0))


def memories(settings: Settings) -> dict[str, str]:
    """The texts of all memories by their ids."""
    found: dict[str, str] = {}
    for path in settings.data_dir.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            found.update(db.execute("SELECT id, text FROM memories").fetchall())
    return found
