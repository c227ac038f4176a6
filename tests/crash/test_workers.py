"""Several workers: what one does not hold, another answers; what one leaves behind, another takes over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import aiokafka
import httpx
import pytest

from schemas.settings import Settings
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.clients.log_reader import ends, records_between
from streams.kafka.commit.marks import MARK
from tables.windows.sessions import decode_session, session_key
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, PATIENCE, NoAnswer, until, until_it_is
from tests.support.workers import WorkerProcess, asked, sources, worker_process

pytestmark = pytest.mark.slow

USERS = [f"user-{n}" for n in range(24)]


async def say(settings: Settings, messages: range) -> set[str]:
    """Every user says these, and their sessions end; the ids of what was said."""
    async with producing(settings.kafka) as producer:
        for user in USERS:
            for i in messages:
                await producer.send(user.encode(), line(i, user, ("user", "assistant")[i % 2], i))
            await producer.send(user.encode(), line(0, user, "user", messages.stop, type="session_end"))
    return {f"{user}-{i}" for user in USERS for i in messages}


async def found(port: int, user: str) -> set[str]:
    """The messages whose memories a worker finds for a user. Raises `NoAnswer` where it does not say."""
    body = {"user_id": user, "query": "message", "top_k": 1000, "include_all": True, "include_short_term": False}
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        try:
            answer = (await client.post(f"http://127.0.0.1:{port}/v1/search", json=body)).raise_for_status()
        except httpx.HTTPError as exc:
            raise NoAnswer(repr(exc)) from exc
    return {message for hit in answer.json()["results"] for message in hit["message_ids"]}


async def all_found(workers: Sequence[WorkerProcess], expected: set[str]) -> None:
    """Ask each worker for each user until all is found; what is found meanwhile must be no one else's."""
    for worker, user in product(workers, USERS):
        own = {message for message in expected if message.startswith(f"{user}-")}
        await until_it_is(partial(finds, worker.port, user, own), alive=workers, pace=0.2)


async def finds(port: int, user: str, own: set[str]) -> bool:
    got = await found(port, user)
    assert got <= own
    return got == own


def ready(port: int) -> Any:
    return asked(port, "/readyz")["ready"]


def idle(port: int) -> bool:
    return set(asked(port, "/v1/stats/pipeline")["lag"].values()) == {0}


async def test_any_worker_answers_for_every_user_and_a_killed_ones_are_taken_over(settings: Settings) -> None:
    """On shared storage: shards move by their path."""
    one, two = free_port(), free_port()
    await ensure_topics(settings.kafka)
    with worker_process(settings, one) as first, worker_process(settings, two) as second:
        await until(lambda: ready(one) and ready(two), alive=(first, second))
        expected = await say(settings, range(8))
        await all_found([first, second], expected)
        first.send_signal(signal.SIGKILL)
        first.wait()
        expected |= await say(settings, range(8, 12))
        await all_found([second], expected)
        await until(lambda: idle(two), alive=second)
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
    counted = sources(settings)
    assert counted.keys() == expected
    assert set(counted.values()) == {1}


async def test_a_shard_on_another_disk_is_filled_from_the_log(settings: Settings, tmp_path: Path) -> None:
    """Before that is done, nobody gets an incomplete answer."""
    one, two, other_disk = free_port(), free_port(), tmp_path / "other"
    await ensure_topics(settings.kafka)
    with worker_process(settings, one) as first:
        await until(lambda: ready(one), alive=first)
        expected = await say(settings, range(8))
        await all_found([first], expected)
        await until(lambda: idle(one), alive=first)
        with worker_process(settings, two, other_disk) as second:
            await until(lambda: ready(one) and ready(two), alive=(first, second))
            await all_found([first, second], expected)
            first.send_signal(signal.SIGTERM)
            assert first.wait(PATIENCE) == 0
            await all_found([second], expected)
            await until(lambda: idle(two), alive=second)
            second.send_signal(signal.SIGTERM)
            assert second.wait(PATIENCE) == 0
    counted = sources(settings, other_disk)
    assert counted.keys() == expected
    assert set(counted.values()) == {1}


async def test_a_paused_worker_writes_nothing_over_the_next_owners_rows(settings: Settings, tmp_path: Path) -> None:
    """It has rows to write when it is stopped, and goes on when another has written newer ones."""
    one, two, other_disk = free_port(), free_port(), tmp_path / "other"
    seldom = {"SILTSTONE_KAFKA__COMMIT_SECONDS": "3"}
    await ensure_topics(settings.kafka)
    with worker_process(settings, one, environment_of_its_own=seldom) as first:
        await until(lambda: ready(one), alive=first)
        expected = await say(settings, range(4))
        await all_found([first], expected)
        with worker_process(settings, two, other_disk, environment_of_its_own=seldom) as second:
            await until(lambda: ready(one) and ready(two), alive=(first, second))
            expected |= await say(settings, range(4, 8))
            await all_found([first, second], expected)
            expected |= await say(settings, range(8, 12))
            await until(lambda: idle(one), alive=first)  # taken in; its changelog has it up to three seconds later
            first.send_signal(signal.SIGSTOP)
            await all_found([second], expected)
            expected |= await say(settings, range(12, 16))
            await all_found([second], expected)
            await until(lambda: idle(two), alive=second)
            first.send_signal(signal.SIGCONT)
            await asyncio.sleep(2 * settings.kafka.session_timeout_seconds)
            await until(lambda: ready(one) and ready(two), alive=(first, second))
            await all_found([first, second], expected | await say(settings, range(16, 20)))
            for worker in (first, second):
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(PATIENCE) == 0
    rows = await changelog(settings, "sessions")
    assert rows.keys() == {session_key(user, f"{user}-s") for user in USERS}
    assert {key: offsets for key, offsets in rows.items() if offsets != sorted(offsets)} == {}


async def changelog(settings: Settings, table: str) -> dict[bytes, list[int]]:
    """The source offsets of a table's rows in their changelog, by key, in its order.

    Where the group has committed nothing yet when a partition moves, its rows are dropped, and its log is read from
    the start: what follows a tombstone starts over.
    """
    kafka, rows = settings.kafka, dict[bytes, list[int]]()
    topic = f"{kafka.group_id}-{table}-changelog"
    consumer = aiokafka.AIOKafkaConsumer(**client_options(kafka), auto_offset_reset="earliest")
    async with consumer:
        partitions = [aiokafka.TopicPartition(topic, partition) for partition in range(kafka.partitions)]
        consumer.assign(partitions)
        last = await ends(consumer, partitions)
    for tp, end in last.items():
        async with aclosing(records_between(kafka, topic, tp.partition, 0, end)) as batches:
            async for records in batches:
                for record in records:
                    if record.key.startswith(MARK):
                        continue
                    offsets = rows.setdefault(record.key, [])
                    if record.value is None:
                        offsets.clear()
                    else:
                        offsets.append(decode_session(record.value).offset)
    return rows


async def test_any_worker_takes_requests_for_summaries_and_shows_them(settings: Settings) -> None:
    """The owner of the user's partition makes them, and has the files."""
    one, two = free_port(), free_port()
    await ensure_topics(settings.kafka)
    with worker_process(settings, one) as first, worker_process(settings, two) as second:
        both = (first, second)
        await until(lambda: ready(one) and ready(two), alive=both)
        await all_found(both, await say(settings, range(4)))
        async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
            for user in USERS[:8]:
                asked_here, shown_there = (one, two) if user[-1] in "0246" else (two, one)
                answer = await client.post(f"http://127.0.0.1:{asked_here}/v1/summaries", json={"user_id": user})
                assert (answer.status_code, answer.json()["messages"]) == (202, 4)
                await until(partial(summed_up, shown_there, user, answer.json()["run_id"]), alive=both)


def summed_up(port: int, user: str, run_id: str) -> bool:
    """Whether a worker shows that run."""
    days = asked(port, f"/v1/summaries?user_id={user}")["days"]
    return any(run_id in day["runs"] for day in days)
