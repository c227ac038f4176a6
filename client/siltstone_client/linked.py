"""The types of the client's answers about links between memories."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from siltstone_client.written import Answer


class Link(Answer):
    """A link between two memories. `direction` is `out` if it begins at the requested memory, otherwise `in`."""

    source_id: UUID
    target_id: UUID
    kind: str
    weight: float
    direction: str
    created_at: datetime


class Links(Answer):
    """A memory's links, oldest first."""

    id: UUID
    links: list[Link]


class RelatedMemory(Answer):
    """A memory that is linked (`relation`: `explicit`) or similar (`semantic`). `similarity` is the cosine."""

    id: UUID
    memory: str
    state: str
    relation: str
    similarity: float
    kind: str | None
    weight: float | None
    direction: str | None


class Related(Answer):
    """The memories that are linked to a memory, by weight, followed by the memories that are similar to it."""

    id: UUID
    related: list[RelatedMemory]
