"""The embedded broker with a journal: what it has acknowledged is there again, at the same places."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from schemas.errors import EmbeddedBrokerEnded, JournalError
from streams.kafka.clients.broker import EmbeddedBroker, embedded_broker
from streams.kafka.embedded.journal import process as journal
from streams.kafka.topics.ids import Identity, identities

TOPICS = {"log": "delete", "table": "compact"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "broker.log"


async def create(broker: EmbeddedBroker) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    new = [NewTopic(name, 2, 1, topic_configs={"cleanup.policy": policy}) for name, policy in TOPICS.items()]
    await admin.create_topics(new)
    await admin.close()


async def known(broker: EmbeddedBroker) -> dict[str, Identity]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    try:
        return await identities(admin, list(TOPICS))
    finally:
        await admin.close()


async def produce(broker: EmbeddedBroker, topic: str, values: Sequence[int]) -> list[int]:
    """One key to each value's last digit, all to partition 0, each acknowledged; their offsets."""
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        return [
            (await producer.send_and_wait(topic, b"%d" % value, b"%d" % (value % 10), partition=0)).offset
            for value in values
        ]


async def read(broker: EmbeddedBroker, topic: str, start: int = 0) -> list[tuple[int, bytes]]:
    """What is in partition 0 from there to its end, with offsets."""
    place = aiokafka.TopicPartition(topic, 0)
    found: list[tuple[int, bytes]] = []
    async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        consumer.assign([place])
        consumer.seek(place, start)
        while True:  # the end that the broker tells without being read from is that of its last batch's first record
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [(record.offset, record.value) for record in records]
            if await consumer.position(place) == consumer.highwater(place):
                return found


def size(path: Path) -> int:
    return path.stat().st_size


def kill(broker: EmbeddedBroker) -> None:
    """Both processes, at once."""
    assert broker.journal is not None
    for process in (broker.journal.process, broker.process):
        process.kill()
        process.wait()


@pytest.mark.slow
async def test_a_broker_that_was_killed_has_all_that_it_had_acknowledged(path: Path) -> None:
    """Topics with their ids, records at their offsets, and what groups have committed."""
    place = aiokafka.TopicPartition("log", 0)
    with embedded_broker(journal=path) as broker:
        await create(broker)
        ids = await known(broker)
        assert await produce(broker, "log", range(25)) == list(range(25))
        async with aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="readers", enable_auto_commit=False
        ) as consumer:
            consumer.assign([place])
            await consumer.commit({place: 17})
        kill(broker)
    with embedded_broker(journal=path) as broker:
        assert await known(broker) == ids
        assert await read(broker, "log") == [(value, b"%d" % value) for value in range(25)]
        assert await produce(broker, "log", [25]) == [25]
        async with aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="readers"
        ) as consumer:
            consumer.assign([place])
            assert await consumer.committed(place) == 17
            assert await consumer.position(place) == 17


@pytest.mark.slow
async def test_offsets_stay_when_the_journal_is_rewritten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changelog has fewer records then; whoever reads from an offset that is gone gets what is behind it."""
    with embedded_broker(journal=path) as broker:
        await create(broker)
        for topic in TOPICS:
            assert await produce(broker, topic, range(95)) == list(range(95))
    length = size(path)
    monkeypatch.setattr(journal, "GROWN_BYTES", 0)
    journal.opened(path).close()
    assert size(path) < length / 3
    with embedded_broker(journal=path) as broker:
        assert await read(broker, "log") == [(value, b"%d" % value) for value in range(95)]
        assert await read(broker, "log", 40) == [(value, b"%d" % value) for value in range(40, 95)]
        assert await read(broker, "table", 3) == [(value, b"%d" % value) for value in range(85, 95)]
        for topic in TOPICS:
            assert await produce(broker, topic, [95]) == [95]
    again = size(path)
    with monkeypatch.context() as usual:
        usual.undo()
        journal.opened(path).close()
    assert size(path) == again, "it is rewritten when it has grown, not at each start"


@pytest.mark.slow
async def test_what_is_a_week_old_and_was_read_leaves_a_log_whose_offsets_go_on(path: Path) -> None:
    """Whoever reads from the earliest offset begins behind it."""
    place = aiokafka.TopicPartition("log", 0)
    with embedded_broker(journal=path) as broker:
        await create(broker)
        await produce(broker, "log", range(30))
        async with aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="readers", enable_auto_commit=False
        ) as consumer:
            consumer.assign([place])
            await consumer.commit({place: 20})
    journal.opened(path).close()
    length = size(path)
    journal.opened(path).close()
    assert size(path) == length, "it is too early"
    journal.opened(path, time.time_ns() // 1_000_000 + 8 * journal.DAY_MS).close()
    with embedded_broker(journal=path) as broker:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            assert await consumer.beginning_offsets([place]) == {place: 20}
        assert await read(broker, "log", 20) == [(value, b"%d" % value) for value in range(20, 30)]
        assert await produce(broker, "log", [30]) == [30]


@pytest.mark.slow
async def test_a_journal_whose_last_frame_is_torn_is_whole_without_it(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with embedded_broker(journal=path) as broker:
        await create(broker)
        await produce(broker, "log", range(5))
    os.truncate(path, size(path) - 3)
    with embedded_broker(journal=path) as broker:
        assert await read(broker, "log") == [(value, b"%d" % value) for value in range(4)]
        assert await produce(broker, "log", [4]) == [4]
    assert "were incomplete" in capfd.readouterr().err


@pytest.mark.slow
async def test_a_deleted_topic_is_gone_after_a_start_as_well(path: Path) -> None:
    with embedded_broker(journal=path) as broker:
        await create(broker)
        await produce(broker, "log", range(5))
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        await admin.start()
        await admin.delete_topics(["log"])
        await admin.close()
    with embedded_broker(journal=path) as broker:
        await create(broker)
        assert await read(broker, "log") == []


@pytest.mark.slow
async def test_records_may_be_as_large_as_ever(path: Path) -> None:
    """Of several megabytes, and many to a batch."""
    with embedded_broker(journal=path) as broker:
        await create(broker)
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, max_request_size=9 << 20, linger_ms=50
        ) as producer:
            await producer.send_and_wait("log", b"x" * (7 << 20), partition=0)
            await asyncio.gather(*[await producer.send("log", b"y", partition=0) for _ in range(500)])
    with embedded_broker(journal=path) as broker:
        found = await read(broker, "log")
        assert [len(value) for _, value in found] == [7 << 20] + [1] * 500


@pytest.mark.slow
@pytest.mark.parametrize("which", ["the journal", "the broker"])
async def test_the_end_of_either_process_is_told(path: Path, which: str) -> None:
    with embedded_broker(journal=path) as broker:
        assert broker.journal is not None
        process = broker.journal.process if which == "the journal" else broker.process
        process.send_signal(signal.SIGKILL)
        with pytest.raises((JournalError, EmbeddedBrokerEnded), match="killed by SIGKILL") as told:
            await asyncio.wait_for(broker.watch(), 10)
        assert "no acknowledged record is lost" in str(told.value)
        assert broker.process.wait(5) != 0


@pytest.mark.slow
def test_a_journal_that_cannot_be_opened_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    with (
        pytest.raises(JournalError, match="File exists"),
        embedded_broker(journal=tmp_path / "journal" / "broker.log"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("head", ["Origin: http://example.com", "Host: rebound.example.com:{port}", "Host: ", ""])
async def test_a_page_in_a_browser_gets_nothing(path: Path, head: str) -> None:
    """Neither one of another origin, nor one whose own name was made to lead here."""
    with embedded_broker(journal=path) as broker:
        assert broker.journal is not None
        port = broker.journal.port
        lines = [head.format(port=port)] if "Host" in head or not head else [f"Host: 127.0.0.1:{port}", head]
        for request in ("PUT /tansu/x", "GET /tansu/?list-type=2"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            said = "\r\n".join([f"{request} HTTP/1.1", *filter(None, lines), "Content-Length: 1"])
            writer.write(f"{said}\r\n\r\nx".encode())
            assert b"403" in await reader.readline()
            writer.close()
            await writer.wait_closed()
