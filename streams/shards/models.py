"""The embedding model of each shard's vectors: the same for all shards, except while they change to another model.

Vectors of different models cannot be compared, even if their sizes are equal. So a caller that embeds for a shard
uses `OwnedShards.with_model`, and starts over if the shard's model changes meanwhile. Embeddings never wait for a
change of the model, and a change never waits for embeddings.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from streams.models.embedding.embedding import Embedding, Model, Side, Vectors
from tables.memories.shard import Shard

P = ParamSpec("P")
T = TypeVar("T")


class ModelChanged(Exception):
    """The vectors of the shard now come from another model, so the caller must embed its texts again."""


class Caller(Protocol):
    """The type of `OwnedShards.call`."""

    async def __call__(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


@dataclass(eq=False, slots=True)
class _Held:
    """The model of a shard. `changed` is set when the shard gets another model."""

    embedding: Embedding
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Models:
    """The models of all shards.

    `current` is the model of every shard. While it is being replaced by `next`, some shards already have `next`.
    """

    def __init__(self, embedding: Embedding) -> None:
        self.current = embedding
        self.next: Embedding | None = None
        self._held: dict[int, _Held] = {}
        self._writing: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def writing(self, partition: int) -> asyncio.Lock:
        """The lock to hold while vectors of the shard are written, so that no other caller adds vectors."""
        return self._writing[partition]

    def of(self, partition: int) -> Embedding:
        return self.held(partition).embedding

    def held(self, partition: int) -> _Held:
        return self._held.setdefault(partition, _Held(self.current))

    def holds(self, partition: int, held: _Held) -> bool:
        """True if `held` is still the model of the partition's shard.

        If this is called on the shard's own thread, the model cannot change before the thread's present call ends.
        """
        return self._held.get(partition) is held

    def candidates(self, partition: int) -> list[Embedding]:
        """The models that may have made the vectors of a shard that is being opened, the most likely model first."""
        likeliest = self.of(partition)
        others = [self.current] if self.next is None else [self.current, self.next]
        return [likeliest, *(other for other in others if other is not likeliest)]

    def move(self, partition: int, embedding: Embedding, loop: asyncio.AbstractEventLoop) -> None:
        """Record that the vectors of the partition's shard now come from the model of `embedding`.

        Call this on the shard's thread, or when the shard is opened.
        """
        before = self._held.get(partition)
        if before is None or before.embedding is not embedding:
            self._held[partition] = _Held(embedding)
            if before is not None:
                loop.call_soon_threadsafe(before.changed.set)

    def settle(self) -> Embedding:
        """Make `next` the model of every shard. Returns the former model, which is no longer used."""
        assert self.next is not None
        former, self.current, self.next = self.current, self.next, None
        for partition, held in list(self._held.items()):
            if held.embedding is former:  # the shard has moved to another worker
                del self._held[partition]
                held.changed.set()
        return former

    async def stop(self) -> None:
        """Stop the current model, and the next model if there is one."""
        for embedding in (self.current, self.next):
            if embedding is not None:
                await embedding.stop()

    @property
    def mixed(self) -> bool:
        """True if some shards use `next` while it replaces `current`."""
        return self.next is not None and any(held.embedding is self.next for held in self._held.values())


class ShardModel:
    """One shard and the model of its vectors. Raises `ModelChanged` once the shard has another model."""

    def __init__(self, models: Models, partition: int, call: Caller) -> None:
        self._models, self._partition, self._call = models, partition, call
        self._held = models.held(partition)

    async def model(self) -> Model:
        return await self._held.embedding.model()

    async def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        """Like `Embedding.embed`."""
        return await self._unless_changed(self._held.embedding.embed(texts, of))

    async def embed_said(self, texts: Sequence[str]) -> Vectors:
        """Like `Embedding.embed_said`."""
        return await self._unless_changed(self._held.embedding.embed_said(texts))

    async def call(self, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `method(shard, …)`. Raises `ModelChanged` if the shard's vectors now come from another model."""

        def checked(shard: Shard) -> T:
            if not self._models.holds(self._partition, self._held):
                raise ModelChanged
            return method(shard, *args, **kwargs)

        return await self._call(self._partition, checked)

    async def _unless_changed(self, asking: Coroutine[Any, Any, T]) -> T:
        """Await the model's answer, but raise `ModelChanged` as soon as the shard has another model.

        The former model may never answer. This may even be the reason why an operator replaces it.
        """
        asked, changed = asyncio.ensure_future(asking), asyncio.ensure_future(self._held.changed.wait())
        try:
            await asyncio.wait((asked, changed), return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise ModelChanged
            return asked.result()
        finally:
            asked.cancel()
            changed.cancel()
