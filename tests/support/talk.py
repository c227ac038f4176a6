"""A worker without a broker that is talked to and asked: windows, promotion, shard, search and API are its own.

What it promotes waits in the log until it is `applied`: so a test sees what is said before it is a memory, and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import httpx
import numpy as np
import pytest

from schemas.events import LongTermEvent
from schemas.memories import SearchHit, State
from schemas.settings import Settings
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.application import build
from streams.kafka.commit.sends import Producer
from streams.models.embedding.embedding import Model, Side, Vectors
from streams.recall.query import Query
from streams.worker.health import WorkerHealth
from tables.search.tokens import tokens
from tests.fuzz.way import Log, Record
from tests.support.window_stores import close_stores

DIMENSION = 256


class Words:
    """An embedding model to which texts with the same words are alike. It embeds when the gate is open."""

    simultaneous = 1

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sides: dict[str, set[Side]] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def load(self) -> Model:
        return Model("words", DIMENSION)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        self.asked += texts
        for text in texts:
            self.sides.setdefault(text, set()).add(of)
        await self.gate.wait()
        return np.stack([self.vector(text) for text in texts])

    async def close(self) -> None:
        self.gate.set()

    @staticmethod
    def vector(text: str) -> Vectors:
        vector = np.full(DIMENSION, 1e-3, np.float32)
        for token in tokens(text):
            vector[crc32(token.encode()) % DIMENSION] += 1
        return vector / np.linalg.norm(vector)


class Talk:
    """What is said to one worker, and asked of it."""

    def __init__(self, worker: Siltstone, model: Words) -> None:
        self.worker, self.model, self.log = worker, model, Log()

    async def say(self, *records: bytes, user: str = "u") -> None:
        """Records of `conversations`, which are in the windows when this returns; nothing that follows is."""
        for record in records:
            self.log.append(self.worker.topics.conversations, key_of(user), record)
        await self.heard()

    async def heard(self) -> None:
        """Take in what is in the log of `conversations`."""
        if found := self.log.unread(self.worker.topics.conversations):
            assert await self.worker.intake.short_term.handle(0, found) is None

    async def applied(self, *events: LongTermEvent) -> None:
        """What was promoted until now is in the shard, and then these."""
        for event in events:
            value = event.model_dump_json(exclude_none=True).encode()
            self.log.append(self.worker.topics.long_term, key_of(event.user_id), value)
        found: list[Record] = self.log.unread(self.worker.topics.long_term)
        if found and (effects := await self.worker.long_term.handle(0, found)) is not None:
            await effects

    @property
    def promoted(self) -> int:
        """How many promotions have left the windows."""
        return sum(b'"promotion"' in (one.value or b"") for one in self.log.records[self.worker.topics.long_term])

    async def found(self, text: str, user: str = "u", **fields: Any) -> list[SearchHit]:
        """As a search of every state."""
        query = Query(user, text, fields.pop("top_k", 10), fields.pop("states", frozenset(State)), **fields)
        hits = await self.worker.recall.search(query)
        self.worker.recall.count(query, hits)
        return hits

    def http(self) -> httpx.AsyncClient:
        """The worker's API, to be closed."""
        transport = httpx.ASGITransport(build(self.worker.service, self.worker.forwarding))
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@asynccontextmanager
async def talk(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> AsyncIterator[Talk]:
    """One worker of one partition, on the event clock."""
    lifecycle = {"clock": "event", **settings.pop("lifecycle", {})}
    worker = Siltstone(Settings.load(data_dir=folder, kafka={"partitions": 1}, lifecycle=lifecycle, **settings))
    made = Talk(worker, Words())
    worker.shards.models.current._backend = made.model
    worker.shards.models.current.start()
    worker.hot.outbox.connect(cast(Producer, made.log))
    worker.context.gate._lag = lambda: 0  # it would ask the consumer, which has not started
    monkeypatch.setattr(WorkerHealth, "recovered", True)
    worker.context.stores.open(0)
    worker.shards.own(frozenset({0}))
    worker.long_term.own(frozenset({0}))
    worker.long_term._caught_up[0].set()
    try:
        yield made
    finally:
        close_stores(worker.context.stores)
        made.model.gate.set()
        await worker.long_term.stop()
        await worker.shards.close()
        await worker.shards.models.current.stop()
        if worker._reranker is not None:
            await worker._reranker.stop()
        if (consumer := cast(Any, worker.context.faust)._consumer) is not None:  # made by a question, never started
            consumer._thread.thread_loop.close()
