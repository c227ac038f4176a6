"""How fast a worker recovers its windows from their changelogs.

    python benchmarks/recovery.py [--rows 400000] [--partitions 4] [--json]

The changelogs of `exchanges` and `sessions` are filled on the embedded broker with the rows that a worker writes:
every session closed 50 exchanges, and its own row was written ten times, as by ten commits. Then a worker starts with
default settings. The rate is rows ÷ seconds from the assignment of its partitions, when Faust begins to read, until
all tables are recovered. This includes finding the changelogs' ends, reading, decoding and keeping the rows, and
dropping exchanges that no session names.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

import aiokafka
import click
import orjson
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import TopicPartition
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.intake import FIRST_AT, SMALL_TALK
from schemas.conversations import Role
from schemas.exchanges import Exchange, Message
from schemas.sessions import Session
from schemas.settings import AnalyticsSettings, EmbeddingSettings, HttpSettings, KafkaSettings, Settings
from schemas.topics import Topics, partition_of
from streams.doors.cli import running
from streams.doors.cli.process import configure_logging, run
from streams.kafka.clients.broker import client_options, embedded_broker, ensure_topics
from streams.kafka.faust.recovery import KeptTable
from tables.windows.sessions import encode_session, session_key
from tables.windows.short_term import EXCHANGE_KEY, encode_exchange

EXCHANGES_A_SESSION: Final = 50
COMMITS_A_SESSION: Final = 10

#: (partition, key, value)
Row = tuple[int, bytes, bytes]


def rows_of(rows: int, partitions: int) -> tuple[Iterator[Row], Iterator[Row]]:
    """Rows of the exchanges' and of the sessions' changelog, `rows` together."""
    sessions = max(1, rows // (EXCHANGES_A_SESSION + COMMITS_A_SESSION))
    users = [f"user-{n:06}" for n in range(sessions)]
    exchanges = (
        (
            partition_of(user, partitions),
            EXCHANGE_KEY % (session_key(user, "main"), seq),
            encode_exchange(Exchange(seq, _messages(seq))),
        )
        for seq in range(EXCHANGES_A_SESSION)
        for user in users
    )
    each = EXCHANGES_A_SESSION // COMMITS_A_SESSION
    written = (
        (
            partition_of(user, partitions),
            session_key(user, "main"),
            encode_session(_session(user, commit * each)),
        )
        for commit in range(1, COMMITS_A_SESSION + 1)
        for user in users
    )
    return exchanges, written


def _messages(seq: int) -> tuple[Message, ...]:
    asked, answered = SMALL_TALK[seq % len(SMALL_TALK)]
    at = FIRST_AT + seq * 12_000
    return (
        Message(f"m-{seq}-0", Role.USER, asked, at, agent_id="assistant"),
        Message(f"m-{seq}-1", Role.ASSISTANT, answered, at + 6_000, agent_id="assistant"),
    )


def _session(user: str, exchanges: int) -> Session:
    opened = _messages(exchanges)[:1]
    return Session(
        user,
        "main",
        offset=2 * exchanges,
        last_at=opened[-1].timestamp,
        open=opened,
        next=exchanges,
        pending=tuple(range(max(0, exchanges - 10), exchanges)),
        exchanges=exchanges,
    )


async def fill(kafka: KafkaSettings, table: str, rows: Iterable[Row]) -> int:
    """Write a changelog in batches; return its number of rows."""
    topic = f"{kafka.group_id}-{table}-changelog"
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, kafka.partitions, 1)])
    finally:
        await admin.close()
    count, sent = 0, list[asyncio.Future[Any]]()
    async with aiokafka.AIOKafkaProducer(**client_options(kafka), max_batch_size=900_000) as producer:
        batches = [producer.create_batch() for _ in range(kafka.partitions)]

        async def flush(partition: int) -> None:
            batches[partition].close()
            sent.append(await producer.send_batch(batches[partition], topic, partition=partition))
            batches[partition] = producer.create_batch()

        for partition, key, value in rows:
            count += 1
            if batches[partition].append(key=key, value=value, timestamp=None) is None:
                await flush(partition)
                batches[partition].append(key=key, value=value, timestamp=None)
        for partition, batch in enumerate(batches):
            if batch.record_count():
                await flush(partition)
        await asyncio.gather(*sent)
    return count


async def commit_something(kafka: KafkaSettings) -> None:
    """Produce a record to each partition of each topic that agents read, and commit the offset behind it.

    If its group has committed nothing, a worker takes the rows for those of another log, and drops them.
    """
    topics = Topics.with_prefix(kafka.topic_prefix)
    read = (topics.conversations, topics.long_term, topics.summary_requests)
    everywhere = [TopicPartition(topic, p) for topic in read for p in range(kafka.partitions)]
    async with aiokafka.AIOKafkaProducer(**client_options(kafka)) as producer:
        for tp in everywhere:
            await producer.send_and_wait(tp.topic, b"{}", partition=tp.partition)
    consumer = aiokafka.AIOKafkaConsumer(
        **client_options(kafka), group_id=kafka.group_id, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with consumer:
        consumer.assign(everywhere)
        await consumer.commit(dict.fromkeys(everywhere, 1))


class Watch:
    """When recovery began, and when each table was recovered (monotonic seconds)."""

    def __init__(self) -> None:
        self.began = self.first = self.ended = 0.0

    def patches(self) -> list[Any]:
        table = KeptTable
        rebalanced, applied = table.on_rebalance, table.apply_changelog_batch
        recovered = table.on_recovery_completed

        async def on_rebalance(of: Any, *args: Any, **kwargs: Any) -> None:
            self.began = self.began or time.monotonic()
            await rebalanced(of, *args, **kwargs)

        def apply_changelog_batch(of: Any, batch: Any) -> None:
            self.first = self.first or time.monotonic()
            applied(of, batch)

        async def on_recovery_completed(of: Any, *args: Any) -> None:
            await recovered(of, *args)
            self.ended = time.monotonic()

        return [
            mock.patch.object(table, "on_rebalance", on_rebalance),
            mock.patch.object(table, "apply_changelog_batch", apply_changelog_batch),
            mock.patch.object(table, "on_recovery_completed", on_recovery_completed),
        ]


async def recover(settings: Settings, watch: Watch) -> tuple[int, float, float]:
    """The number of recovered exchanges, the seconds of the whole start, and its processor seconds."""
    started, cpu = time.monotonic(), time.process_time()
    async with running.started(settings) as worker:
        while not worker.health.recovered:  # noqa: ASYNC110 - a worker says so by a flag
            await asyncio.sleep(0.01)
        seconds, used = time.monotonic() - started, time.process_time() - cpu
        return len(worker.intake.windows.exchanges), seconds, used


async def measure(rows: int, partitions: int) -> dict[str, float | int]:
    with embedded_broker() as broker, tempfile.TemporaryDirectory() as folder:
        kafka = broker.settings(KafkaSettings(topic_prefix="recovery.", group_id="recovery")).model_copy(
            update={"partitions": partitions}
        )
        settings = Settings(
            data_dir=Path(folder),
            kafka=kafka,
            http=HttpSettings(port=0),
            embedding=EmbeddingSettings(backend="use"),
            analytics=AnalyticsSettings(enabled=False),
        )
        await ensure_topics(kafka)
        await commit_something(kafka)
        exchanges, sessions = rows_of(rows, partitions)
        kept = await fill(kafka, "exchanges", exchanges)
        written = kept + await fill(kafka, "sessions", sessions)
        watch = Watch()
        patches = watch.patches()
        for patch in patches:
            patch.start()
        try:
            held, seconds, used = await recover(settings, watch)
        finally:
            for patch in patches:
                patch.stop()
        if held != kept:
            raise click.ClickException(f"recovered {held} of {kept} exchanges")
    return {
        "rows": written,
        "rows_per_s": round(written / (watch.ended - watch.began)),
        "rows_per_s_from_first": round(written / (watch.ended - watch.first)),
        "recovery_seconds": round(watch.ended - watch.began, 2),
        "start_seconds": round(seconds, 2),
        "cpu_us_per_row": round(used / written * 1e6, 2),
    }


@click.command()
@click.option("--rows", default=400_000, show_default=True, type=click.IntRange(min=1))
@click.option("--partitions", default=4, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(rows: int, partitions: int, as_json: bool) -> None:
    """Measure how fast changelogs are read back at a worker's start."""
    configure_logging("WARNING")
    figures = run(measure(rows, partitions))
    Console().print(
        f"{figures['rows']:,} rows in {figures['recovery_seconds']} s: [b]{figures['rows_per_s']:,} rows/s[/b] "
        f"({figures['rows_per_s_from_first']:,} from the first row on), {figures['cpu_us_per_row']} µs of "
        f"processor time each; the worker was up after {figures['start_seconds']} s"
    )
    if as_json:
        click.echo(orjson.dumps(figures))


if __name__ == "__main__":
    main()
