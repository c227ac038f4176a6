"""Inbox: decodes the records of a fetched batch for an agent, and leaves out unusable and misrouted records.

This module is a layer above `faust/`, which moves bytes and offsets and does not decode records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from schemas.errors import BadRecord, NothingSaid
from schemas.topics import route_of
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.rerouting import Rerouting


class OfUser(Protocol):
    """The decoded content of a record of a keyed topic, with its user."""

    @property
    def user_id(self) -> str: ...


T = TypeVar("T")
U = TypeVar("U", bound=OfUser)


class Inbox(Generic[U]):
    """Reads the records of one topic with `decode`, which raises `BadRecord` for a record that it cannot read.

    inbox = Inbox(decode, dead_letters, rerouting)
    for record, event in inbox.read(records): ...
    """

    def __init__(self, decode: Callable[[Any], U], dead_letters: DeadLetters, rerouting: Rerouting) -> None:
        self._decode, self._dead_letters, self._rerouting = decode, dead_letters, rerouting

    def read(self, records: Iterable[Any]) -> Iterator[tuple[Any, U]]:
        """Yield the usable records in their order, each with its content.

        For an unreadable record a dead letter is posted. A misrouted record is posted again with the right key. This
        is done without an await, when the iteration reaches the record. A message without words is skipped.
        """
        decode, rerouting = self._decode, self._rerouting
        partitions = rerouting.partitions
        for record in records:
            try:
                said = decode(record)
            except NothingSaid:
                self._dead_letters.pass_over()
                continue
            except BadRecord as error:
                self._dead_letters.send(record, error)
                continue
            # Nearly all records have the right key and partition. To save time, `reroute` is not called for them.
            in_place = (record.key, record.partition) == route_of(said.user_id, partitions)
            if in_place or not rerouting.reroute(record, said.user_id):
                yield record, said

    def read_again(self, records: Iterable[Any]) -> Iterator[tuple[Any, U]]:
        """As `read`, but post nothing, because `read` gets the same records, before or after this call."""
        for record, said in readable(self._decode, records):
            if not self._rerouting.is_misrouted(record, said.user_id):
                yield record, said


def readable(decode: Callable[[Any], T], records: Iterable[Any]) -> Iterator[tuple[Any, T]]:
    """Yield the records that `decode` can read, misrouted or not, each with its content."""
    for record in records:
        try:
            said = decode(record)
        except BadRecord:  # `Inbox.read` posts a dead letter for this record
            continue
        yield record, said
