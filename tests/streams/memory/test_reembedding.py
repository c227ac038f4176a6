"""A change of the model goes on where a shard moves away meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from schemas.settings import EmbeddingSettings
from streams.memory.reembedding import Reembedder
from streams.runtime.backlog_gate import BacklogGate
from streams.shards.owned import OwnedShards
from tables.memories.catalog.reembedding import VectorModel
from tests.streams.shards.test_models import DIMENSION, Toy, embedding_of
from tests.streams.shards.test_owned import shards_in
from tests.support.waiting import until


@pytest.fixture
async def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OwnedShards]:
    """Of partition 0; the first two who ask are told of partition 7 as well, which moves away in that moment."""
    made = shards_in(tmp_path)
    made.own(frozenset({0}))
    await until(lambda: made.ready)
    told: Iterator[list[int]] = iter([[0, 7], [0, 7]])
    monkeypatch.setattr(made, "partitions", lambda: next(told, [0]))
    yield made
    await made.close()
    await made.models.stop()


@pytest.fixture
def reembedder(shards: OwnedShards) -> Reembedder:
    return Reembedder(shards, BacklogGate(lambda: 0, 0.0), EmbeddingSettings(backend="use"))


async def test_a_shard_that_moves_when_the_change_begins_is_left_to_its_new_owner(
    shards: OwnedShards, reembedder: Reembedder
) -> None:
    target, embedding = VectorModel("new", DIMENSION), embedding_of(Toy("new", 5))
    await reembedder._change(embedding, target)
    await reembedder.close()
    assert (reembedder.progress.switched, reembedder.progress.rows) == ({0}, {0: 0})
    assert shards.models.current is embedding


async def test_a_shard_that_moves_when_the_change_is_abandoned_keeps_no_other_from_it(reembedder: Reembedder) -> None:
    assert await reembedder.abandon() == []
    assert await reembedder.abandon() == []
