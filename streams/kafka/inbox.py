"""From a fetched batch to what its agent works with: decoded, without what is unusable or another partition's.

It stands above `hotpath`, which moves bytes and offsets and does not know what a record says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from schemas.errors import BadRecord, NothingSaid
from schemas.topics import route_of
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.rerouting import Rerouting


class OfUser(Protocol):
    """What a record of a keyed topic says, and whose it is."""

    @property
    def user_id(self) -> str: ...


T = TypeVar("T")
U = TypeVar("U", bound=OfUser)


class Inbox(Generic[U]):
    """Reads the records of one topic with `decode`, which raises `BadRecord` for what it cannot read.

    inbox = Inbox(decode, dead_letters, rerouting)
    for record, event in inbox.read(records): ...
    """

    def __init__(self, decode: Callable[[Any], U], dead_letters: DeadLetters, rerouting: Rerouting) -> None:
        self._decode, self._dead_letters, self._rerouting = decode, dead_letters, rerouting

    def read(self, records: Iterable[Any]) -> Iterator[tuple[Any, U]]:
        """The records that are to be used here, in their order, each with what it says.

        Where a record cannot be read, a dead letter is posted. Where it is misrouted, it is posted again with the
        right key. Either happens when the iteration comes to it, and awaits nothing. A message without words is
        passed over.
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
            # Nearly every record lies where it should: of those, `reroute` is not asked.
            in_place = (record.key, record.partition) == route_of(said.user_id, partitions)
            if in_place or not rerouting.reroute(record, said.user_id):
                yield record, said

    def read_again(self, records: Iterable[Any]) -> Iterator[tuple[Any, U]]:
        """The same as `read` for records whose turn has been, or is still to come: nothing is posted."""
        for record, said in readable(self._decode, records):
            if not self._rerouting.is_misrouted(record, said.user_id):
                yield record, said


def readable(decode: Callable[[Any], T], records: Iterable[Any]) -> Iterator[tuple[Any, T]]:
    """The records that `decode` can read, misrouted or not, each with what it says."""
    for record in records:
        try:
            said = decode(record)
        except BadRecord:  # a dead letter, where it is read in its turn
            continue
        yield record, said
