"""Pending summaries: summary requests that failed, one row each. The user's next request tries them again."""

from __future__ import annotations

import uuid
from typing import NamedTuple

import orjson

from schemas.events import SummaryRequest
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Resident
from tables.windows.rows_by_user import RowsByUser

#: Maximum number of pending requests of one user. If there are more, requests for the oldest days are given up.
MOST_OF_A_USER = 20


class Pending(NamedTuple):
    """A summary request, and its number of failed attempts."""

    request: SummaryRequest
    tries: int


class PendingSummaries(RowsByUser[Pending]):
    """The pending requests of all users in this worker's partitions.

    `generation` counts the assignments of partitions. Requests that a worker began to answer before the last
    assignment may belong to another worker now, so their results must not change these rows.
    """

    def __init__(self, *, kept: KeptRows | None = None, resident: Resident | None = None) -> None:
        super().__init__(_encode, _decode, lambda pending: pending.request.user_id, kept=kept, resident=resident)
        self.generation = 0

    def own(self, partitions: frozenset[int]) -> None:
        self.generation += 1
        super().own(partitions)

    def of_user(self, partition: int, user_id: str) -> list[Pending]:
        """Return a user's pending requests, oldest day first."""
        held = super().of_user(partition, user_id)
        return sorted(held, key=lambda row: (row.request.date, str(row.request.run_id)))

    def keep(self, partition: int, pending: Pending) -> list[Pending]:
        """Store a request. Return the requests that are given up, because the user now has too many."""
        self.put(partition, _key(pending.request.user_id, pending.request.run_id), pending)
        given_up = self.of_user(partition, pending.request.user_id)[:-MOST_OF_A_USER]
        for one in given_up:
            self.drop(partition, one.request.user_id, one.request.run_id)
        return given_up

    def drop(self, partition: int, user_id: str, run_id: uuid.UUID) -> None:
        """Remove a request that was answered or given up, or whose user was forgotten."""
        self.delete(partition, _key(user_id, run_id))


def _key(user_id: str, run_id: uuid.UUID) -> bytes:
    return orjson.dumps((user_id, run_id))


def _encode(pending: Pending) -> bytes:
    return orjson.dumps((pending.request.model_dump(mode="json"), pending.tries))


def _decode(raw: bytes) -> Pending:
    fields, tries = orjson.loads(raw)
    return Pending(SummaryRequest.model_validate(fields), tries)
