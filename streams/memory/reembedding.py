"""Re-embedding: changes this worker's shards to another embedding model, while they are in use with the old model.

First, every shard gets new vectors in addition to the old ones. This pauses while the intake has a backlog. Then the
shards switch to the new vectors, one directly after the other. A shard switches in one step, so a search uses the
vectors of one model only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Protocol, TypeVar

import duckdb

from schemas.errors import ReembeddingRefused, ShardNotHere, SiltstoneError
from schemas.settings import OF_THE_MODEL, ONE_MODEL, EmbeddingSettings
from streams.models.embedding.embedding import Embedding
from streams.runtime.backlog_gate import BacklogGate
from streams.shards.owned import OwnedShards
from tables.memories.catalog.reembedding import Reembedding, VectorModel
from tables.memories.shard import Shard
from tables.vectors.index import VectorIndex

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Number of texts that are embedded and then stored together. An interruption loses at most this many vectors.
ROWS = 256
#: Maximum number of vectors that are added to the new index in one call, during which searches wait.
INDEXED = 5_000
#: Maximum time that a shard's writes wait for its last new vectors (seconds). After that, writes continue, and the
#: missing vectors are made at the same time.
LAST_SECONDS = 60.0


class Phase(StrEnum):
    """The phases of a change of the embedding model.

    After `stopped` and `failed`, the new vectors are kept. A later change to the same model continues with them.
    """

    IDLE = "idle"
    LOADING = "loading"
    EMBEDDING = "embedding"
    SWITCHING = "switching"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(slots=True)
class Progress:
    """Progress of a change of the embedding model: `done` of `total` new vectors exist.

    `rows` has the number of vectors that each partition needs, `missing` the number that it still lacks. The shards
    of the partitions in `switched` use the new model.
    """

    phase: Phase = Phase.IDLE
    model: VectorModel | None = None
    rows: dict[int, int] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)
    switched: set[int] = field(default_factory=set)
    error: str = ""

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    @property
    def done(self) -> int:
        return self.total - sum(self.missing.values())


class Ask(Protocol):
    """Calls a method of a shard's `Reembedding`, the table of new vectors beside the old ones."""

    async def __call__(self, method: Callable[[Reembedding], T]) -> T: ...


async def at_once() -> None:
    """Return immediately. This is the default `pause`, which does not wait."""


async def embed_missing(
    ask: Ask,
    embedding: Embedding,
    tell: Callable[[int, int], None],
    pause: Callable[[], Awaitable[object]] = at_once,
) -> None:
    """Make the new vectors that a shard lacks.

    `tell` is called with the number of vectors that the shard needs, and the number that it still lacks. `pause` is
    awaited before each batch. If the embedding service does not answer, this function waits without a limit.
    """
    rows, missing = await ask(Reembedding.rows), await ask(Reembedding.missing)
    tell(rows, len(missing))
    for start in range(0, len(missing), ROWS):
        await pause()
        part = missing[start : start + ROWS]
        seqs, texts = await ask(partial(Reembedding.texts, seqs=part))
        if texts:
            vectors = await embedding.embed(texts, of="document")
            await ask(partial(Reembedding.put, seqs=seqs, vectors=vectors))
        tell(rows, len(missing) - start - len(part))


class Reembedder:
    """Changes the embedding model of a worker's shards, one change at a time, on the worker's event loop.

    reembedder.begin(settings.embedder())      # returns at once
    reembedder.progress.phase                  # … until it is `done`
    """

    def __init__(self, shards: OwnedShards, gate: BacklogGate, settings: EmbeddingSettings) -> None:
        self._shards, self._gate = shards, gate
        #: The settings of the model that the worker uses.
        self.settings = settings
        #: The settings of the model that was requested last.
        self.wanted = settings
        self.progress = Progress()
        self._embedding: Embedding | None = None
        self._changing_over = False
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def waiting_for(self) -> str:
        """The reason why the new model cannot embed now; empty if it can."""
        return self._embedding.trouble if self._embedding is not None and self.running else ""

    def begin(self, wanted: EmbeddingSettings) -> None:
        """Begin or resume a change to the model `wanted`. If this change is running already, do nothing.

        Raises `ReembeddingRefused` if a change to another model is not finished.
        """
        if (self.running or self._shards.models.mixed) and wanted != self.wanted:
            raise ReembeddingRefused(f"a change to {named(self.wanted)} is under way: wait for its end, or stop it")
        if not self.running:
            self.wanted, self.progress = wanted, Progress(Phase.LOADING)
            self._task = asyncio.create_task(self._run(wanted))

    async def stop(self) -> None:
        """Stop the change, and keep the new vectors. Raises `ReembeddingRefused` if shards have already switched."""
        if self._shards.models.mixed or self._changing_over:
            raise ReembeddingRefused(f"shards have changed over to {named(self.wanted)}: the others follow")
        await self._cancel()

    async def abandon(self) -> list[int]:
        """Stop the change, and drop its new vectors. Return the partitions that had new vectors.

        Raises `ReembeddingRefused` if shards have already switched.
        """
        await self.stop()
        held = []
        for partition in self._shards.partitions():
            with contextlib.suppress(ShardNotHere):  # the partition has moved, with its new vectors
                if await self._ask(partition, Reembedding.abandon):
                    held.append(partition)
        return held

    async def close(self) -> None:
        """Cancel the change, even while shards switch. At the next start, each shard has the old or the new model."""
        await self._cancel()
        await asyncio.gather(*self._ending)

    async def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, wanted: EmbeddingSettings) -> None:
        models, progress = self._shards.models, self.progress
        try:
            if models.next is None:
                self._embedding = Embedding(wanted)
                self._embedding.start()
            embedding = self._embedding
            assert embedding is not None
            loaded, current = await embedding.model(), await models.current.model()
            progress.model = VectorModel(loaded.name, loaded.dimension)
            if progress.model != (current.name, current.dimension):
                await self._change(embedding, progress.model)
            self.settings = wanted
            progress.phase = Phase.DONE
        except asyncio.CancelledError:
            progress.phase = Phase.STOPPED
            raise
        except Exception as exc:
            progress.phase, progress.error = Phase.FAILED, _reason(exc)
            log.error("the change to vectors of %s failed: %s", named(wanted), progress.error)
        finally:
            if not models.mixed:
                models.next = None
                if self._embedding is not None and self._embedding is not models.current:
                    self._end(self._embedding)

    def _end(self, embedding: Embedding) -> None:
        """Stop a model in the background, because a model that is being loaded stops only after loading."""
        ending = asyncio.create_task(embedding.stop())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _change(self, embedding: Embedding, target: VectorModel) -> None:
        models, progress = self._shards.models, self.progress
        if not self._shards.partitions():
            raise ReembeddingRefused("this worker has no shards now: ask again, or ask another worker")
        for partition in self._shards.partitions():
            with contextlib.suppress(ShardNotHere):  # the partition has moved to another worker, which continues
                await self._ask(partition, partial(Reembedding.refuse_other, target=target))
                rows = await self._ask(partition, Reembedding.rows)
                missing = await self._ask(partition, Reembedding.missing)
                progress.rows[partition], progress.missing[partition] = rows, len(missing)
        models.next = embedding
        while left := [p for p in self._shards.partitions() if models.of(p) is not embedding]:
            for phase, step in ((Phase.EMBEDDING, self._embed), (Phase.SWITCHING, self._switch)):
                progress.phase = phase
                for partition in left:
                    with contextlib.suppress(ShardNotHere):  # as above
                        await step(partition, embedding, target)
        self._end(models.settle())
        log.info("all shards have vectors of %s now", target)

    async def _embed(self, partition: int, embedding: Embedding, target: VectorModel) -> None:
        await self._ask(partition, partial(Reembedding.begin, target=target))
        await self._embed_missing(partition, embedding, self._gate.wait)

    async def _switch(self, partition: int, embedding: Embedding, target: VectorModel) -> None:
        """Switch a shard to the new vectors. The shard's writes wait while the last missing vectors are made.

        If the writes did not wait, new memories could arrive all the time, and some vectors would always be missing.
        """
        index = await self._shards.call(partition, Shard.index_beside, target.dimension)
        try:
            await self._switch_to(index, partition, embedding)
        except BaseException:
            index.discard()
            raise

    async def _switch_to(self, index: VectorIndex, partition: int, embedding: Embedding) -> None:
        while True:
            while await self._ask(partition, partial(Reembedding.bring_nearer, index=index, most=INDEXED)):
                await self._gate.wait()
            async with self._shards.models.writing(partition):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST_SECONDS):
                        await self._embed_missing(partition, embedding, at_once)
                if await self._changed_over(partition, embedding, index):
                    self.progress.switched.add(partition)
                    return
            await self._embed_missing(partition, embedding, self._gate.wait)

    async def _changed_over(self, partition: int, embedding: Embedding, index: VectorIndex) -> bool:
        self._changing_over = True
        try:
            return await self._shards.change_model(partition, embedding, index)
        finally:
            self._changing_over = False

    async def _embed_missing(
        self, partition: int, embedding: Embedding, pause: Callable[[], Awaitable[object]]
    ) -> None:
        def tell(rows: int, missing: int) -> None:
            self.progress.rows[partition], self.progress.missing[partition] = rows, missing

        async def ask(method: Callable[[Reembedding], T]) -> T:
            return await self._ask(partition, method)

        await embed_missing(ask, embedding, tell, pause)

    async def _ask(self, partition: int, method: Callable[[Reembedding], T]) -> T:
        def asked(shard: Shard) -> T:
            return method(shard.reembedding)

        return await self._shards.call(partition, asked)


def named(settings: EmbeddingSettings) -> str:
    """Return a model's name for messages to users, such as `use` or `openai text-embedding-3-small`."""
    return settings.backend if settings.backend in ONE_MODEL else f"{settings.backend} {settings.model}"


def to_set(wanted: EmbeddingSettings, before: EmbeddingSettings) -> dict[str, Any]:
    """Return the settings to write into the configuration, by key, so that the next start uses the model `wanted`.

    `before` are the present settings. A value of None means that its key must be removed from the configuration. If
    the present settings leave the choice to the worker, nothing has to change for an embedded model.
    """
    if before.backend == "auto" and wanted.backend in ONE_MODEL:
        return {}
    keys: dict[str, Any] = {"embedding.backend": wanted.backend}
    if wanted.backend not in ONE_MODEL:
        keys["embedding.model"] = wanted.model
    for name in OF_THE_MODEL[wanted.backend]:
        if getattr(wanted, name) != getattr(before, name):
            keys[f"embedding.{name}"] = getattr(wanted, name)
    return keys


def _reason(exc: Exception) -> str:
    """Return the reason of a failure that may be logged: the text of our own errors and of DuckDB's I/O errors.

    For all other errors, return only the name of the type, because their texts may quote users' messages.
    """
    if isinstance(exc, SiltstoneError):
        return str(exc)
    return f"DuckDB: {str(exc).splitlines()[0]}" if isinstance(exc, duckdb.IOException) else type(exc).__name__
