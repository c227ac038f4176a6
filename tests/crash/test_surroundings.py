"""What a worker depends on fails: broker, disk, files, clock, embedding process. Afterwards all is as without it."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import httpx
import orjson
import pytest

from schemas.settings import KafkaSettings, Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import EmbeddedBroker, embedded_broker, ensure_topics, missing_topics
from tests.crash.chatter import Said, portions, produce
from tests.crash.lives import (
    Holdings,
    assert_equal,
    children_of,
    living,
    message_id,
    of_its_own,
    peaceful_end,
    stop,
    undisturbed,
    until_idle,
)
from tests.fuzz.test_worker import everything
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, until
from tests.support.workers import SILTSTONE, asked

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PORTIONS, PORTION = 3, 300
DAY = 86_400
#: Bytes: less than the write-ahead log of a shard that takes in a portion.
ROOM = 64 * 1024


@pytest.fixture(scope="module")
def said() -> list[list[Said]]:
    return portions(1_000, PORTIONS, PORTION)


@pytest.fixture
def disturbed(settings: Settings, tmp_path: Path) -> Settings:
    return of_its_own(settings, tmp_path / "disturbed")


@pytest.fixture(scope="module")
def expected(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, said: list[list[Said]]) -> Holdings:
    base = Settings.load()
    quiet = base.model_copy(update={"kafka": broker.settings(base.kafka)})
    return asyncio.run(undisturbed(of_its_own(quiet, tmp_path_factory.mktemp("undisturbed")), said))


def ready(port: int) -> bool:
    return bool(asked(port, "/readyz").get("ready"))


def reasons(port: int) -> str:
    return "; ".join(asked(port, "/readyz").get("waiting_for", []))


@pytest.mark.parametrize("topics", ["made by others", "made by the worker"])
async def test_a_broker_that_dies_and_returns_empty(
    disturbed: Settings, expected: Holdings, said: list[list[Said]], topics: str
) -> None:
    """The worker waits for it, and says so. What producers then send again is taken in, and nothing of it twice.

    Tansu, beside a worker that was there before it, now and then loses records that it has acknowledged. Then nothing
    can be said of the worker; else what it holds is what an undisturbed one does.
    """
    port, kafka_port = free_port(), free_port()
    kafka = disturbed.kafka.model_copy(update={"bootstrap_servers": f"127.0.0.1:{kafka_port}"})
    disturbed = disturbed.model_copy(update={"kafka": kafka})
    with living(disturbed, port) as worker:
        await until(lambda: "no Kafka broker answers" in reasons(port), alive=worker)
        with embedded_broker(kafka_port) as broker:
            await until(lambda: ready(port), alive=worker)
            await produce(disturbed, said[0])
            await until_idle(worker, disturbed.kafka)
            await produce(disturbed, said[1])  # some of it is in the middle of its way
            broker.process.kill()
        await until(lambda: "broker" in reasons(port), alive=worker)
        assert worker.poll() is None
        with embedded_broker(kafka_port):
            if topics == "made by others":
                await ensure_topics(kafka)
            # It has started over, which a broker that is asked for much hampers.
            await until_idle(worker, disturbed.kafka, steadily=10)
            assert await has_all_topics(kafka)
            for records in said:
                await produce(disturbed, records, one_by_one=True)
                await until_idle(worker, disturbed.kafka)
            stop(worker)
            held = await peaceful_end(disturbed, PORTIONS)
            if lost := await lost_by_the_broker(disturbed, said):
                pytest.skip(f"the broker has lost {lost} records that it had acknowledged")
            assert_equal(held, expected)


async def lost_by_the_broker(settings: Settings, said: list[list[Said]]) -> int:
    """Events that producers sent, and promotions of messages, that are not in the log."""
    topic = Topics.with_prefix(settings.kafka.topic_prefix).long_term
    log = [orjson.loads(record.value) for record in await everything(settings.kafka, topic)]
    events = {event["event_id"] for event in log}
    promoted = {identity for event in log for identity in event.get("message_ids") or ()}
    sent = [record for records in said for record in records]
    lost = sum(orjson.loads(one.value)["event_id"] not in events for one in sent if one.topic == "long_term")
    return lost + len({identity for one in sent if (identity := message_id(one))} - promoted)


async def has_all_topics(kafka: KafkaSettings) -> bool:
    return not await missing_topics(kafka)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "hanging"])
async def test_a_stop_beside_a_broker_that_does_not_answer(
    disturbed: Settings, said: list[list[Said]], fault: signal.Signals
) -> None:
    """It has nobody to flush to, and takes no longer for that."""
    port = free_port()
    with embedded_broker() as broker:
        settings = disturbed.model_copy(
            update={"kafka": disturbed.kafka.model_copy(update={"bootstrap_servers": broker.bootstrap_servers})}
        )
        with living(settings, port) as worker:
            await until(lambda: ready(port), alive=worker)
            await produce(settings, said[0])
            await until(lambda: asked(port, "/v1/stats/states").get("total"), alive=worker)
            broker.process.send_signal(fault)
            stop(worker)


async def test_a_broker_that_hangs_for_longer_than_a_session(
    settings: Settings, tmp_path: Path, expected: Holdings, said: list[list[Said]]
) -> None:
    port = free_port()
    with embedded_broker() as broker:
        frozen = of_its_own(settings, tmp_path / "frozen")
        frozen = frozen.model_copy(
            update={"kafka": frozen.kafka.model_copy(update={"bootstrap_servers": broker.bootstrap_servers})}
        )
        await ensure_topics(frozen.kafka)
        with living(frozen, port) as worker:
            await until(lambda: ready(port), alive=worker)
            for records in said:
                await produce(frozen, records)
                broker.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(frozen.kafka.session_timeout_seconds + 2)
                broker.process.send_signal(signal.SIGCONT)
                assert worker.poll() is None
            await until(lambda: ready(port), alive=worker)
            await until_idle(worker, frozen.kafka)
            stop(worker)
        assert_equal(await peaceful_end(frozen, PORTIONS), expected)


async def test_a_disk_that_fills_up(
    disturbed: Settings, expected: Holdings, said: list[list[Said]], capfd: pytest.CaptureFixture[str]
) -> None:
    """The worker stops with one line that says why; when there is room, it goes on where it was."""
    port = free_port()
    await ensure_topics(disturbed.kafka)
    await produce(disturbed, said[0])
    with living(disturbed, port) as worker:
        await until(lambda: ready(port), alive=worker)
        await until_idle(worker, disturbed.kafka)
        stop(worker)
    await produce(disturbed, said[1])
    with living(disturbed, port, [sys.executable, "-m", "tests.crash.limited", str(ROOM)]) as worker:
        await until(lambda: worker.poll() is not None)
        assert worker.returncode == 1
    said_last = capfd.readouterr().err
    told = [line for line in said_last.splitlines() if line.startswith("siltstone: ")]
    assert len(told) == 1, said_last
    assert "is the disk full?" in told[0]
    await produce(disturbed, said[2])
    assert_equal(await peaceful_end(disturbed, PORTIONS), expected)


async def test_a_shard_that_somebody_holds_for_a_while(
    disturbed: Settings, expected: Holdings, said: list[list[Said]]
) -> None:
    """The worker waits for the file, and answers about the other shards; then it goes on."""
    port = free_port()
    await ensure_topics(disturbed.kafka)
    await produce(disturbed, said[0])
    with living(disturbed, port) as worker:
        await until(lambda: ready(port), alive=worker)
        await until_idle(worker, disturbed.kafka)
        worker.kill()
        worker.wait()
    await produce(disturbed, said[1])
    held = duckdb.connect(str(disturbed.data_dir / "shards" / "0" / "catalog.duckdb"))
    with living(disturbed, port) as worker:
        await until(lambda: "shards are being opened" in reasons(port), alive=worker)
        await asyncio.sleep(5)
        assert not ready(port)
        held.close()
        await until(lambda: ready(port), alive=worker)
        stop(worker)
    await produce(disturbed, said[2])
    assert_equal(await peaceful_end(disturbed, PORTIONS), expected)


async def test_an_embedding_process_that_is_killed(
    disturbed: Settings, settings: Settings, tmp_path: Path, said: list[list[Said]]
) -> None:
    """With whatever else the worker has started, in the middle of each portion. It starts another."""
    expected = await undisturbed(of_its_own(settings, tmp_path / "undisturbed"), said, SILTSTONE)
    port, chance = free_port(), random.Random(0)
    await ensure_topics(disturbed.kafka)
    with living(disturbed, port, SILTSTONE) as worker:
        await until(lambda: ready(port), alive=worker)
        for records in said:
            await produce(disturbed, records)
            await asyncio.sleep(chance.uniform(0, 0.3))
            for child in children_of(worker):
                os.kill(child, signal.SIGKILL)
            await until_idle(worker, disturbed.kafka)
        stop(worker)
    assert_equal(await peaceful_end(disturbed, PORTIONS, program=SILTSTONE), expected)


@pytest.mark.parametrize("index", ["kept", "lost"])
async def test_everything_is_delivered_once_more(
    disturbed: Settings, expected: Holdings, said: list[list[Said]], index: str
) -> None:
    """A new consumer group behind the old data directory reads both topics from their start."""
    await ensure_topics(disturbed.kafka)
    await produce(disturbed, [record for records in said for record in records])
    await peaceful_end(disturbed, PORTIONS)
    if index == "lost":
        for file in disturbed.data_dir.glob("shards/*/segments/*.ivf"):
            file.unlink()
    group = f"{disturbed.kafka.group_id}-again"  # topics are named after it
    again = disturbed.model_copy(update={"kafka": disturbed.kafka.model_copy(update={"group_id": group})})
    assert_equal(await peaceful_end(again, PORTIONS), expected)


async def test_a_clock_that_jumps(
    disturbed: Settings, settings: Settings, tmp_path: Path, said: list[list[Said]]
) -> None:
    """Ahead by years, back by years, right again: states follow, and nothing else has noticed."""
    wall = {"SILTSTONE_LIFECYCLE__CLOCK": "wall"}
    expected = await undisturbed(of_its_own(settings, tmp_path / "undisturbed"), said, **wall)
    port, wrong_by = free_port(), tmp_path / "wrong_by"
    await ensure_topics(disturbed.kafka)
    with living(disturbed, port, [sys.executable, "-m", "tests.crash.jumping", str(wrong_by)], wall) as worker:
        await until(lambda: ready(port), alive=worker)
        for records, days in zip(said, (400, -700, 0), strict=True):
            wrong_by.write_text(str(days * DAY), encoding="ascii")
            await produce(disturbed, records)
            await until_idle(worker, disturbed.kafka)
        stop(worker)
    held = await peaceful_end(disturbed, PORTIONS, wall)
    assert_equal(without_changes_of_state(held), without_changes_of_state(expected))


async def test_a_clock_that_is_ahead_for_a_moment_removes_nothing(disturbed: Settings, tmp_path: Path) -> None:
    """Neither what has a day to live, nor a memory, by an automatic cleanup, nor what a forgotten user says later."""
    port, wrong_by = free_port(), tmp_path / "wrong_by"
    surroundings = {
        "SILTSTONE_LIFECYCLE__CLOCK": "wall",
        "SILTSTONE_LIFECYCLE__CLEANUP__ENABLED": "true",
        "SILTSTONE_LIFECYCLE__CLEANUP__AFTER_DAYS": "1",
    }
    await ensure_topics(disturbed.kafka)
    program = [sys.executable, "-m", "tests.crash.jumping", str(wrong_by)]
    with (
        living(disturbed, port, program, surroundings) as worker,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=CLIENT_SECONDS) as http,
    ):

        def post(user: str, text: str, **fields: object) -> None:
            body = {"user_id": user, "text": text, **fields}
            http.post("/v1/memories?wait=applied", json=body).raise_for_status()

        def held(user: str, path: str = "/v1/memories") -> list[dict[str, Any]]:
            found = http.get(path, params={"user_id": user, "include_all": True}).raise_for_status()
            memories: list[dict[str, Any]] = found.json()["memories"]
            return memories

        def texts(user: str) -> list[str]:
            return sorted(memory["memory"] for memory in held(user))

        def counted(state: str) -> bool:
            """When states were worked out last, a memory had this one; then it was looked for what goes."""
            shown = re.search(rf'^siltstone_memory_states{{state="{state}"}} (.*)$', http.get("/metrics").text, re.M)
            return shown is not None and float(shown[1]) > 0

        def forget(user: str) -> None:
            http.delete("/v1/memories", params={"user_id": user, "wait": "applied"}).raise_for_status()

        await until(lambda: ready(port), alive=worker)
        post("ann", "lasts", importance=70)
        post("ann", "an item", kind="item", memory_id=str(uuid.uuid4()), ttl_seconds=DAY)
        post("ann", "a note", kind="short_term", session_id="s", ttl_seconds=DAY)
        post("bob", "before")
        everything = texts("ann")
        wrong_by.write_text(str(400 * DAY), encoding="ascii")
        await until(lambda: counted("deprecated"), alive=worker)
        forget("bob")
        wrong_by.write_text("0", encoding="ascii")
        await until(lambda: not counted("deprecated"), alive=worker)
        post("bob", "after")
        assert texts("ann") == everything
        assert len(held("ann", "/v1/sessions/s/memories")) == 1
        assert texts("bob") == ["after"]
        assert held("ann", "/v1/archive") == []
        stop(worker)


def without_changes_of_state(holdings: Holdings) -> Holdings:
    """There are as many as the clock jumped. What is archived keeps the state of its moment."""
    tables = {name: rows for name, rows in holdings.tables.items() if name != "transitions"}
    for name in ("memories", "archive"):
        tables[name] = Counter(_without_transitions(row) for row in holdings.tables[name].elements())
    return holdings._replace(tables=tables)


def _without_transitions(row: str) -> str:
    fields = orjson.loads(row)
    meta = orjson.loads(fields["meta"])
    meta.pop("transitions", None)
    state = "" if "reason" in fields else fields["state"]
    return str(orjson.dumps({**fields, "meta": meta, "state": state}), "utf-8")


async def test_an_orderly_stop_under_load(disturbed: Settings, expected: Holdings, said: list[list[Said]]) -> None:
    """Within ten seconds, with two signals; what was in its hands is committed or read again."""
    port = free_port()
    await ensure_topics(disturbed.kafka)
    await produce(disturbed, [record for records in said[:2] for record in records])
    with living(disturbed, port) as worker:
        await until(lambda: ready(port), alive=worker)
        worker.send_signal(signal.SIGINT)
        await asyncio.sleep(0.3)
        stop(worker)
    await produce(disturbed, said[2])
    assert_equal(await peaceful_end(disturbed, PORTIONS), expected)
