"""Which memories are shown as related, over HTTP, with a service that has one shard."""

from __future__ import annotations

import uuid
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from schemas.settings import LifecycleSettings, LongTermSettings
from streams.doors.http.relations import related_of, relation_routes
from streams.service import MemoryService
from tables.memories.shard import Shard
from tests.streams.doors.http.test_listing import OneShard
from tests.support.making import START, axis, leaning, promotion

E5 = "multilingual-e5-small-q4"
#: Of a memory with each of the others.
COSINES = (0.36, 0.49, 0.51, 0.85, 0.875, 0.91, 0.925)


def service_of(folder: Path, model: str, text: str) -> tuple[Shard, MemoryService, uuid.UUID]:
    """A shard, a service that has it, and the id of its first memory."""
    shard = Shard(0, folder, model, 8, LongTermSettings(), LifecycleSettings())
    said = [promotion(f"{text} {n}", f"m{n}", at=START + n) for n in range(len(COSINES) + 1)]
    vectors = [axis(0), *(leaning(0, n, cosine) for n, cosine in enumerate(COSINES, start=1))]
    shard.apply(said, {one.event_id: vector for one, vector in zip(said, vectors, strict=True)}, START)
    return shard, cast(MemoryService, OneShard(shard, START)), said[0].memory_id


@pytest.mark.parametrize(
    ("model", "text", "asked", "similar"),
    [
        ("use-multilingual-v3", "tea", {}, COSINES[2:]),
        ("another", "tea", {}, COSINES[2:]),
        (E5, "tea", {}, COSINES[5:]),
        (E5, "茶", {}, COSINES[6:]),
        (E5, "茶", {"min_similarity": 0.5}, COSINES[2:]),
        (E5, "tea", {"min_similarity": -1}, COSINES),
    ],
)
def test_what_is_similar_depends_on_the_model(
    tmp_path: Path, model: str, text: str, asked: dict[str, Any], similar: tuple[float, ...]
) -> None:
    """Unless the request says it."""
    shard, service, memory_id = service_of(tmp_path, model, text)
    api = FastAPI()
    api.include_router(relation_routes(service))
    try:
        answer = TestClient(api).get(f"/v1/memories/{memory_id}/related", params={"user_id": "u", **asked}).json()
    finally:
        shard.close()
    assert [one["similarity"] for one in answer["related"]] == pytest.approx(sorted(similar, reverse=True), abs=1e-4)


@pytest.mark.parametrize(("model", "similar"), [("use-multilingual-v3", COSINES), (E5, COSINES[4:])])
async def test_the_dashboard_shows_less_similar_ones(tmp_path: Path, model: str, similar: tuple[float, ...]) -> None:
    shard, service, memory_id = service_of(tmp_path, model, "tea")
    try:
        found = await related_of(service, "u", memory_id, 10, attrgetter("shown"))
    finally:
        shard.close()
    assert len(found.related) == len(similar)
