"""The smallest worker on the hot path: one partition of one topic, one table, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from faust.types import TP

from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.faust.consumer import Consumer
from streams.kafka.faust.hot_path import HotPath
from streams.worker.wiring.faust_app import faust_app
from tables.windows.rows import Rows
from tables.windows.window_stores import WindowStores
from tests.support.waiting import until_it_is
from tests.support.window_stores import close_stores

TABLE = "texts"


def on_one_partition(settings: Settings) -> Settings:
    """These settings with topics of one partition, and commits when they are asked for."""
    kafka = settings.kafka.model_copy(update={"partitions": 1, "commit_seconds": 3600.0})
    return settings.model_copy(update={"kafka": kafka})


def changelog_of(settings: Settings) -> TP:
    """Where the worker's table is kept."""
    return TP(f"{settings.kafka.group_id}-{TABLE}-changelog", 0)


async def make_changelog(settings: Settings) -> None:
    """It is there when a worker starts, as Siltstone's are: who joins a group does not see what came a moment ago."""
    admin = AIOKafkaAdminClient(**client_options(settings.kafka))
    await admin.start()
    topic = changelog_of(settings).topic

    async def seen() -> bool:
        return topic in await admin.list_topics()

    try:
        if not await seen():
            await admin.create_topics([NewTopic(topic, settings.kafka.partitions, replication_factor=1)])
            await until_it_is(seen)
    finally:
        await admin.close()


class TextWorker:
    """Keeps each key's newest value in its table. `refused` is a value that its agent raises on."""

    def __init__(self, settings: Settings, refused: bytes | None = None, topic_id: str | None = None) -> None:
        (settings.data_dir / "faust").mkdir(parents=True, exist_ok=True)
        self.settings, self.refused = settings, refused
        self.topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
        self.app = faust_app(settings)
        stores, kept = None, None
        if topic_id is not None:
            stores = WindowStores(settings.data_dir / "windows")
            stores.topic_ids = {changelog_of(settings).topic: topic_id}
            kept = stores.table(changelog_of(settings).topic, b"t")
        self.hot = HotPath(self.app, stores=stores)
        self.rows: Rows[str] = Rows(str.encode, bytes.decode, kept=kept)
        self.read: list[int] = []
        self.recovered: dict[str, str] | None = None
        self.hot.table(
            TABLE,
            self.rows,
            partitions=settings.kafka.partitions,
            on_recovered=self._on_recovered,
            records_of=self.topic,
        )
        self.hot.agent(self.topic, self._take, name="texts")

    async def _on_recovered(self) -> None:
        self.recovered = self.texts()

    async def _take(self, partition: int, records: Sequence[Any]) -> None:
        self.read += [record.offset for record in records]
        for record in records:
            if record.value == self.refused:
                raise ValueError("refused")
            self.rows.put(partition, record.key, record.value.decode())

    def texts(self) -> dict[str, str]:
        return {key.decode(): text for _, key, text in self.rows.items()}

    @property
    def consumer(self) -> Consumer:
        return cast(Consumer, self.app.consumer)

    @property
    def done(self) -> int | None:
        """The offset that may be committed."""
        return self.consumer._ledgers[TP(self.topic, 0)].committable()


@contextlib.asynccontextmanager
async def running(
    settings: Settings, refused: bytes | None = None, *, started_over: bool = False, topic_id: str | None = None
) -> AsyncIterator[TextWorker]:
    """A worker that is up; stopped at the end of the block. `started_over`: its topic is another one than before.

    With the changelog's `topic_id`, its rows are on the disk.
    """
    await ensure_topics(settings.kafka)
    await make_changelog(settings)
    worker = TextWorker(settings, refused, topic_id)
    if started_over:
        worker.hot.started_over = frozenset({worker.topic})
    try:
        await worker.app.start()
        worker.hot.connect()
        yield worker
    finally:
        await worker.app.stop()
        if worker.hot.stores is not None:
            close_stores(worker.hot.stores)


@contextlib.contextmanager
def unconnected(settings: Settings) -> Iterator[TextWorker]:
    """A worker that is not started: its consumer can be asked what needs no broker."""
    worker = TextWorker(settings)
    thread = worker.consumer._thread
    try:
        yield worker
    finally:
        thread.thread_loop.close()


@contextlib.asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Consumer]:
    """A worker's consumer with its thread and its connection, but without group, agents and recovery."""
    consumer = TextWorker(settings).consumer
    await consumer._thread.start()
    try:
        yield consumer
    finally:
        await consumer._thread.stop()


async def feed(settings: Settings, keys: Sequence[str], value: str) -> None:
    """Produce this value under each of the keys; acknowledged when this returns."""
    async with producing(settings.kafka) as producer:
        for key in keys:
            await producer.send(key.encode(), value.encode())
