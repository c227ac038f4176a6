"""Summaries that could not be made: one row each, kept until the next one of their user is asked for."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from schemas.events import SummaryRequest
from tables.rows import Rows

#: Of one user; of more, the oldest are given up.
MOST_OF_A_USER = 20


class Pending(NamedTuple):
    """A request, and how often it was tried in vain."""

    request: SummaryRequest
    tries: int


class PendingSummaries(Rows[Pending]):
    """The pending requests of every user whose partition is this worker's."""

    def __init__(self) -> None:
        super().__init__(_encode, _decode)

    def of_user(self, partition: int, user_id: str) -> list[Pending]:
        """A user's, oldest day first."""
        held = [row for where, _, row in self.items() if (where, row.request.user_id) == (partition, user_id)]
        return sorted(held, key=lambda row: (row.request.date, str(row.request.run_id)))

    def keep(self, partition: int, pending: Pending) -> list[Pending]:
        """Keep it; those that had to be given up for it."""
        self.put(partition, _key(pending.request), pending)
        given_up = self.of_user(partition, pending.request.user_id)[:-MOST_OF_A_USER]
        for one in given_up:
            self.drop(partition, one.request)
        return given_up

    def drop(self, partition: int, request: SummaryRequest) -> None:
        """It is done, or nobody wants it any more."""
        self.delete(partition, _key(request))


def _key(request: SummaryRequest) -> bytes:
    return orjson.dumps((request.user_id, request.run_id))


def _encode(pending: Pending) -> bytes:
    return orjson.dumps((pending.request.model_dump(mode="json"), pending.tries))


def _decode(raw: bytes) -> Pending:
    fields, tries = orjson.loads(raw)
    return Pending(SummaryRequest.model_validate(fields), tries)
