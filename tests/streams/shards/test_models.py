"""Whoever embeds for a shard does it with the shard's model, also while that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from schemas.settings import EmbeddingSettings, LifecycleSettings, LongTermSettings
from streams.models.embedding.embedding import Embedding, Model, Side, Vectors
from streams.shards.models import ShardModel
from streams.shards.owned import OwnedShards
from tables.memories.applied import Applied
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.support.waiting import until

DIMENSION = 16


class Toy:
    """A backend whose texts are numbers: each lies along an axis, which one depends on the model."""

    simultaneous = 1

    def __init__(self, name: str, shift: int) -> None:
        self.name, self.shift = name, shift
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0

    async def load(self) -> Model:
        return Model(self.name, DIMENSION)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        self.asked += 1
        await self.gate.wait()
        return np.stack([self.vector(text) for text in texts])

    async def close(self) -> None:
        pass

    def vector(self, text: str) -> Vectors:
        return axis((int(text) + self.shift) % DIMENSION, DIMENSION)


def embedding_of(toy: Toy) -> Embedding:
    embedding = Embedding(EmbeddingSettings(backend="use"))
    embedding._backend = toy
    embedding.start()
    return embedding


class Setting:
    """One shard of an old model, and a new one beside it."""

    def __init__(self, data: Path) -> None:
        self.data, self.failures = data, list[BaseException]()
        self.old, self.new = Toy("old", 0), Toy("new", 5)
        self.embedding = embedding_of(self.new)
        self.shards = self.reopened(self.old)

    def reopened(self, toy: Toy) -> OwnedShards:
        return OwnedShards(
            self.data,
            LongTermSettings(),
            LifecycleSettings(),
            embedding_of(toy),
            lambda exc, where: self.failures.append(exc),
        )

    async def keep(self, text: str) -> Applied:
        """As the long-term agent does."""
        event = promotion(text, text)

        async def written(shard: ShardModel) -> Applied:
            (vector,) = await shard.embed([text], of="document")
            async with self.shards.models.writing(0):
                return await shard.call(Shard.apply, [event], {event.event_id: vector}, START)

        return await self.shards.with_model(0, written)

    async def found(self, text: str) -> list[str]:
        """As a search does: the texts whose vector is the question's."""
        memories = await self.shards.call(0, Shard.memories_of, "u")

        async def ranked(shard: ShardModel) -> list[str]:
            (vector,) = await shard.embed([text], of="question")
            cosines = await shard.call(Shard.similarities, "u", vector, memories)
            return [memory.text for memory, cosine in zip(memories, cosines, strict=True) if cosine > 0.5]

        return await self.shards.with_model(0, ranked)

    async def change(self) -> None:
        """The new model's vectors of all that is there, and over to them."""

        def prepared(shard: Shard) -> None:
            shard.reembedding.begin(VectorModel("new", DIMENSION))
            seqs, texts = shard.reembedding.texts(shard.reembedding.missing())
            shard.reembedding.put(seqs, np.stack([self.new.vector(text) for text in texts]))

        self.shards.models.next = self.embedding
        await self.shards.call(0, prepared)
        assert await self.shards.change_model(
            0, self.embedding, await self.shards.call(0, Shard.index_beside, DIMENSION)
        )


@pytest.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    setting = Setting(tmp_path)
    setting.shards.own(frozenset({0}))
    await until(lambda: setting.shards.ready)
    await setting.keep("1")
    await setting.keep("2")
    yield setting
    await setting.shards.close()
    await setting.shards.models.stop()


async def test_a_question_and_a_write_under_way_are_embedded_anew(setting: Setting) -> None:
    """Both had their vectors of the old model asked for; no vector of it gets in or is compared."""
    setting.old.gate.clear()
    asked = [asyncio.ensure_future(setting.found("1")), asyncio.ensure_future(setting.keep("3"))]
    await until(lambda: setting.old.asked == 4)
    await setting.change()
    setting.old.gate.set()
    assert await asyncio.gather(*asked) == [["1"], Applied(new=1)]
    assert (setting.old.asked, setting.new.asked) == (4, 2)
    assert [await setting.found(text) for text in "123"] == [["1"], ["2"], ["3"]]


async def test_a_former_model_that_never_answers_holds_up_nobody(setting: Setting) -> None:
    """It may be why another one was taken."""
    setting.old.gate.clear()
    writing = asyncio.ensure_future(setting.keep("3"))
    await until(lambda: setting.old.asked == 3)
    await setting.change()
    assert await asyncio.wait_for(writing, 10) == Applied(new=1)
    assert await setting.found("3") == ["3"]


async def test_vectors_that_are_ready_before_the_change_do_not_get_in_after_it(setting: Setting) -> None:
    """Between the embedding and the shard there is a moment, and the two sizes are equal."""
    attempts = []

    async def written(shard: ShardModel) -> Applied:
        event = promotion("3", "3")
        (vector,) = await shard.embed(["3"], of="question")
        attempts.append((await shard.model()).name)
        if len(attempts) == 1:
            await setting.change()
        return await shard.call(Shard.apply, [event], {event.event_id: vector}, START)

    await setting.shards.with_model(0, written)
    assert attempts == ["old", "new"]
    assert [await setting.found(text) for text in "123"] == [["1"], ["2"], ["3"]]


async def test_a_shard_that_comes_back_while_models_are_changed_has_its_own(setting: Setting) -> None:
    """Its partition was moved away and came back: of the two models it is the one that fits."""
    await setting.change()
    assert setting.shards.models.mixed
    await setting.shards.close()
    setting.shards.own(frozenset({0, 1}))
    await until(lambda: setting.shards.ready)
    assert await setting.found("2") == ["2"]
    assert setting.shards.models.of(1) is setting.shards.models.current
    assert setting.failures == []
