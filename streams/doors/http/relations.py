"""Routes of the relations between memories: links, similarity and replacement."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from schemas.embedding_models import LeastCosines
from schemas.errors import MemoryNotFound
from schemas.events import Link, Supersede, Unlink
from schemas.ids import Id
from schemas.memories import Memory, State
from schemas.times import iso
from streams.doors.http.accepted import Accepted
from streams.doors.http.consistency import Consistency, Wait
from streams.doors.http.shown import command, shown
from streams.service import MemoryService
from tables.memories.catalog.changes import NewLink
from tables.memories.likeness import least_cosines
from tables.memories.shard import Shard

#: Chooses the least cosine of similar memories. It gets those of the shard's embedding model.
Least = Callable[[LeastCosines], float]


class LinkRequest(BaseModel):
    """A link between two memories of the user."""

    user_id: Id
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: Id = "related"
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0


class ShownLink(BaseModel):
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str
    weight: float
    direction: Literal["out", "in"] = Field(description="as seen from the requested memory")
    created_at: str


class LinksResponse(BaseModel):
    id: uuid.UUID
    links: list[ShownLink] = Field(description="both directions, oldest first")


class RelatedMemory(BaseModel):
    id: uuid.UUID
    memory: str
    state: State
    relation: Literal["explicit", "semantic"]
    similarity: float = Field(description="cosine, -1 to 1")
    kind: str | None = Field(description="of the link; null if the relation is semantic")
    weight: float | None
    direction: Literal["out", "in"] | None


class RelatedResponse(BaseModel):
    id: uuid.UUID
    related: list[RelatedMemory] = Field(description="linked memories by weight, then similar memories by similarity")


class Replacement(BaseModel):
    user_id: Id
    by: uuid.UUID = Field(description="the newer memory, which replaces this one")


class _Relations(NamedTuple):
    """A memory and its relations, all read in one call on the shard.

    With several calls, a memory that is forgotten in between would be in some fields and missing in others.
    """

    found: Memory
    others: dict[uuid.UUID, Memory]
    similarity: dict[uuid.UUID, float]
    #: The ids of similar memories that no newer memory or summary replaces, most similar first.
    resembling: list[uuid.UUID]
    links: list[ShownLink]


def _relations(shard: Shard, user_id: str, memory_id: uuid.UUID, least: Least) -> _Relations | None:
    """Return the relations of a memory, or None if the user has no such memory.

    This runs on the shard's thread instead of the event loop, because a user may have thousands of memories.
    """
    found = shard.memory_of(user_id, memory_id)
    if found is None:
        return None
    others = {memory.id: memory for memory in shard.memories_of(user_id) if memory.id != found.id}
    cosines = shard.resembling(found, list(others.values()))
    similarity = dict(zip(others, cosines.tolist(), strict=True))
    least_similar = least(least_cosines(shard.reembedding.model, found.text))
    resembling = [
        identity
        for identity in sorted(similarity, key=lambda identity: -similarity[identity])
        if similarity[identity] >= least_similar and others[identity].current
    ]
    return _Relations(found, others, similarity, resembling, _shown(shard.links.of(user_id, found.id), found.id))


def _shown(links: Sequence[NewLink], memory_id: uuid.UUID) -> list[ShownLink]:
    return [
        ShownLink(
            source_id=link.source_id,
            target_id=link.target_id,
            kind=link.kind,
            weight=link.weight,
            direction="out" if link.source_id == memory_id else "in",
            created_at=iso(link.created_at),
        )
        for link in links
    ]


async def related_of(
    service: MemoryService, user_id: str, memory_id: uuid.UUID, limit: int, least: Least
) -> RelatedResponse:
    """Return at most `limit` memories that are related to a memory: first the linked ones, then the similar ones.

    `least` chooses the least cosine of a similar memory. Raises `MemoryNotFound`.
    """
    relations = await service.users.ask(user_id, _relations, user_id, memory_id, least)
    if relations is None:
        raise MemoryNotFound(f"user {user_id} has no memory {memory_id}")
    found, others, similarity, resembling, links = relations

    def related_one(identity: uuid.UUID, link: ShownLink | None) -> RelatedMemory:
        memory = shown(others[identity], service)
        return RelatedMemory(
            id=identity,
            memory=memory.memory,
            state=memory.state,
            relation="semantic" if link is None else "explicit",
            similarity=round(similarity[identity], 4),
            kind=link.kind if link else None,
            weight=link.weight if link else None,
            direction=link.direction if link else None,
        )

    strongest: dict[uuid.UUID, ShownLink] = {}
    for one in sorted(links, key=lambda link: -link.weight):
        strongest.setdefault(one.target_id if one.direction == "out" else one.source_id, one)
    explicit = [(identity, one) for identity, one in strongest.items() if identity in others]
    semantic = [(identity, None) for identity in resembling if identity not in strongest]
    return RelatedResponse(id=found.id, related=[related_one(*one) for one in [*explicit, *semantic][:limit]])


def relation_routes(service: MemoryService) -> APIRouter:
    """Return the routes of `/v1/links`, and the routes of `/v1/memories/{memory_id}/…` that are about relations."""
    api = APIRouter(tags=["memories"])
    write, reads = partial(Accepted.written, service), Consistency(service).reads

    async def pair(user_id: str, one: uuid.UUID, other: uuid.UUID) -> tuple[uuid.UUID, uuid.UUID]:
        found = (await service.one(user_id, one)).id, (await service.one(user_id, other)).id
        if found[0] == found[1]:
            raise HTTPException(422, "both ids name the same memory")
        return found

    @api.post("/v1/links", status_code=202)
    async def link(new: LinkRequest, wait: Wait) -> Accepted:
        """Link two memories of the user. If the link already exists, its weight is changed."""
        source, target = await pair(new.user_id, new.source_id, new.target_id)
        fields = new.model_dump(exclude={"user_id", "source_id", "target_id"})
        return await write(command(Link, new.user_id, source_id=source, target_id=target, **fields), wait)

    @api.delete("/v1/links", status_code=202)
    async def unlink(
        user_id: Id, source_id: uuid.UUID, target_id: uuid.UUID, wait: Wait, kind: Id = "related"
    ) -> Accepted:
        """Remove a link between two memories of the user, which may be archived."""
        source, target = await service.known(user_id, source_id), await service.known(user_id, target_id)
        return await write(command(Unlink, user_id, source_id=source, target_id=target, kind=kind), wait)

    @api.get("/v1/memories/{memory_id}/links", dependencies=reads)
    async def links(memory_id: uuid.UUID, user_id: Id) -> LinksResponse:
        """The memory's links, in both directions."""
        found = await service.one(user_id, memory_id)
        links = await service.users.ask(user_id, lambda shard: shard.links.of(user_id, found.id))
        return LinksResponse(id=found.id, links=_shown(links, found.id))

    @api.get("/v1/memories/{memory_id}/related", dependencies=reads)
    async def related(
        memory_id: uuid.UUID,
        user_id: Id,
        limit: Annotated[int, Query(ge=1, le=1000)] = 10,
        min_similarity: Annotated[
            float | None,
            Query(
                ge=-1,
                le=1,
                description="minimum cosine of semantic relations; if missing, the embedding model's",
            ),
        ] = None,
    ) -> RelatedResponse:
        """Memories that are linked with this one or similar to it. Superseded memories are shown only if linked."""

        def least(own: LeastCosines) -> float:
            return own.related if min_similarity is None else min_similarity

        return await related_of(service, user_id, memory_id, limit, least)

    @api.post("/v1/memories/{memory_id}/supersede", status_code=202)
    async def supersede(memory_id: uuid.UUID, replacement: Replacement, wait: Wait) -> Accepted:
        """Replace this memory by a newer one. It is kept, but searches return it only with `include_all`."""
        older, newer = await pair(replacement.user_id, memory_id, replacement.by)
        return await write(command(Supersede, replacement.user_id, memory_id=older, by=newer), wait)

    return api
