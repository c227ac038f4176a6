"""Short-term windows: the recent exchanges of each session, in the rows of two changelog tables.

`sessions` has one small row for each session; `exchanges` has one row for each closed exchange in a window. So the
number of bytes that are written for a message depends on the new exchanges only, not on the length of the window. A
session's row has the offset of the newest source record that it includes. After a restart, records up to this offset
are skipped, so that no message counts twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, tzinfo
from typing import Final, NamedTuple

import msgspec

from schemas.exchanges import Emptied, Exchange, Message
from schemas.sessions import Session
from schemas.times import day_of
from tables.windows.compact_json import encode_row
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Derived, Resident
from tables.windows.rows import Rows
from tables.windows.session_notes import Notes
from tables.windows.sessions import Sessions, session_key


def _session_of(exchange_key: bytes) -> bytes:
    return exchange_key[: exchange_key.rindex(b"]") + 1]


def _number(key: bytes, length: int) -> int:
    """Return the number in an exchange's key; for the key of an `Emptied` row, the number's bitwise complement.

    `length` is the length of the session's key, with which the exchange's key begins.
    """
    return ~int(key[length + 1 :]) if key[length] == _TILDE else int(key[length:])


_TILDE: Final = ord("~")
#: The values of `named`, `known`, `first` and `missing` that `_fit_all` uses for a session without a row.
_NONE: Final[tuple[Collection[int], int, int, tuple[int, ...]]] = ((), 0, 0, ())


def _digest(user_id: str) -> str:
    """Return the digest of a user's id. When a user is forgotten, this digest is stored for good, but not the id."""
    return hashlib.blake2b(user_id.encode(), digest_size=16).hexdigest()


def _newest_first(said: tuple[str, Exchange]) -> tuple[int, int]:
    return -said[1].ended_at, -said[1].seq


#: The approximate bytes of memory of a session's set of message ids, and of each id in the set.
A_SET: Final = 400
AN_ID: Final = 130

#: A user id that no user has. Each `Session` with this user id is a record of a forgotten user. Its session id is the
#: digest of the forgotten user's id, and `horizon` is the time up to which that user's messages are forgotten.
NO_USER: Final = ""

#: An exchange's key: its session's key, which ends with a bracket, and then the number of the exchange.
EXCHANGE_KEY: Final = b"%b%d"
#: Key of the `Emptied` row of an exchange that has left its window. This row is written before the exchange's own row
#: is deleted.
EMPTIED_KEY: Final = b"%b~%d"


def encode_exchange(row: Exchange | Emptied) -> bytes:
    return encode_row(row, row.messages) if type(row) is Exchange else _encode_emptied(row)


def decode_exchange(raw: bytes) -> Exchange | Emptied:
    return _decode_emptied(raw) if raw.startswith(b"{") else _decode_exchange(raw)


_encode_emptied: Final = msgspec.json.Encoder().encode
_decode_emptied: Final = msgspec.json.Decoder(Emptied).decode
_decode_exchange: Final = msgspec.json.Decoder(Exchange).decode


class KeptTables(NamedTuple):
    """The kept rows of each of the three window tables."""

    sessions: KeptRows
    exchanges: KeptRows
    notes: KeptRows


class ShortTermStore:
    """The windows and the notes of all sessions in this worker's partitions."""

    def __init__(self, kept: KeptTables | None = None, resident: Resident | None = None) -> None:
        sessions, exchanges, notes = kept or (None, None, None)
        resident = Resident() if resident is None else resident
        self.sessions = Sessions(kept=sessions, resident=resident)
        self.exchanges: Rows[Exchange | Emptied] = Rows(
            encode_exchange, decode_exchange, kept=exchanges, resident=resident
        )
        self.notes = Notes(kept=notes, resident=resident)
        self._message_ids: Derived[tuple[int, bytes], set[str]] = Derived(A_SET, AN_ID)
        resident.add(self._message_ids)

    def session(self, partition: int, user_id: str, session_id: str) -> Session:
        """Return the session, or a new one if it is unknown."""
        found = self.sessions.get(partition, session_key(user_id, session_id))
        return found or Session(user_id, session_id, horizon=self.forgotten_until(partition, user_id))

    def forgotten_until(self, partition: int, user_id: str) -> int:
        """Return the time (epoch ms) up to which the user's messages are forgotten; 0 if nothing was forgotten."""
        forgotten = self.sessions.get(partition, session_key(NO_USER, _digest(user_id)))
        return forgotten.horizon if forgotten is not None else 0

    def note_forgotten(self, partition: int, user_id: str, until: int) -> None:
        """Record that the user's messages dated up to `until` (epoch ms) are forgotten, in all sessions."""
        if until > self.forgotten_until(partition, user_id):
            digest = _digest(user_id)
            self.sessions.put(partition, session_key(NO_USER, digest), Session(NO_USER, digest, horizon=until))

    def exchange(self, partition: int, session: Session, seq: int) -> Exchange:
        return self.exchanges_of(partition, session)(seq)

    def emptied_of(self, partition: int, session: Session) -> Callable[[int], Emptied | None]:
        """Return a function that takes the number of an exchange of this session, and returns its `Emptied` row.

        The function returns None if there is no such row.
        """
        get, key = self.exchanges.get, session_key(session.user_id, session.session_id)

        def emptied(seq: int) -> Emptied | None:
            found = get(partition, EMPTIED_KEY % (key, seq))
            return found if type(found) is Emptied else None

        return emptied

    def exchanges_of(self, partition: int, session: Session) -> Callable[[int], Exchange]:
        """Return a function that takes the number of a closed exchange of this session, and returns the exchange.

        To read several exchanges, the function is faster than calls of the method `exchange`.
        """
        get, key = self.exchanges.get, session_key(session.user_id, session.session_id)

        def exchange(seq: int) -> Exchange:
            found = get(partition, EXCHANGE_KEY % (key, seq))
            assert type(found) is Exchange, f"exchange {seq} of {session.session_id} is missing from its table"
            return found

        return exchange

    def asked(self) -> Iterator[tuple[int, Session, Exchange]]:
        """Yield (partition, session, exchange) for each exchange that waits for a rating that was requested."""
        for partition, session in self.all_sessions():
            for exchange in self.asked_of(partition, session):
                yield partition, session, exchange

    def asked_of(self, partition: int, session: Session) -> list[Exchange]:
        """Return the session's exchanges that wait for a rating that was requested."""
        return [self.exchange(partition, session, seq) for seq in session.asked]

    def window(self, partition: int, session: Session) -> list[Exchange]:
        """Return the closed exchanges in the window, oldest first."""
        return list(map(self.exchanges_of(partition, session), session.window))

    def whole_window(self, partition: int, session: Session) -> list[Exchange]:
        """Return all exchanges in the window, oldest first: the closed ones, then the open one if there is one."""
        closed = self.window(partition, session)
        return [*closed, session.open_exchange] if session.open else closed

    def newest_of(self, partition: int, user_id: str, since: int, most: int) -> list[tuple[str, Exchange]]:
        """Return the user's exchanges that ended after `since` (epoch ms): (session id, exchange), newest first.

        Exchanges of all sessions are included, also open ones, and those that left the window but wait for a rating.
        At most `most` exchanges are returned. A user may have thousands of sessions, so the most recently active
        sessions are read first, and reading stops when there are enough exchanges.
        """
        found: list[tuple[str, Exchange]] = []
        for session in self.sessions.spoken_in(partition, user_id, since):
            if len(found) >= most:
                break
            held = list(map(self.exchanges_of(partition, session), session.named))
            if session.open:
                held.append(session.open_exchange)
            found += [(session.session_id, exchange) for exchange in held if exchange.ended_at > since]
        found.sort(key=_newest_first)
        return found[:most]

    def said_by(self, partition: int, user_id: str) -> Iterator[tuple[str, Message]]:
        """Yield the messages in the user's windows: (session id, message), in no particular order."""
        for session in self.of_user(partition, user_id):
            for exchange in self.whole_window(partition, session):
                for message in exchange.messages:
                    yield session.session_id, message

    def said_on(self, partition: int, user_id: str, day: date, zone: tzinfo) -> list[tuple[str, Message]]:
        """Return the messages of `said_by` that are from this day, in this time zone."""
        return [said for said in self.said_by(partition, user_id) if day_of(said[1].timestamp, zone) == day]

    def message_ids(self, partition: int, session: Session) -> set[str]:
        """Return the ids of all known messages of the session. A new message with one of these ids is a repeated one.

        Known messages are in the window, in the open exchange, or in exchanges that have only an `Emptied` row now.
        The returned set is the cached one, so the caller must update it when the session changes.
        """
        key = partition, session_key(session.user_id, session.session_id)
        found = self._message_ids.get(key)
        if found is None:
            found = {message.message_id for message in session.open}
            for _, row in self.exchanges.of_partition(partition, key[1]):
                found.update(row.message_ids)
            self._message_ids.keep(key, found)
        return found

    def save(
        self,
        partition: int,
        session: Session,
        new: Iterable[Exchange],
        gone: Iterable[int],
        left: Mapping[int, Emptied] = {},
        unknown: Iterable[int] = (),
    ) -> None:
        """Save a session's new value and the exchanges that have closed (`new`).

        `left` has the `Emptied` rows of exchanges that leave the window now. The exchanges with the numbers in `gone`
        are deleted. The `Emptied` rows with the numbers in `unknown`, whose exchanges left the window long ago, are
        also deleted.
        """
        key, exchanges = session_key(session.user_id, session.session_id), self.exchanges
        for exchange in new:
            exchanges.put(partition, EXCHANGE_KEY % (key, exchange.seq), exchange)
        for seq, emptied in left.items():
            exchanges.put(partition, EMPTIED_KEY % (key, seq), emptied)
        for seq in gone:
            exchanges.delete(partition, EXCHANGE_KEY % (key, seq))
        for seq in unknown:
            exchanges.delete(partition, EMPTIED_KEY % (key, seq))
        self.sessions.put(partition, key, session)

    def drop(self, partition: int, session: Session) -> None:
        """Delete a session with its exchanges. The next flush writes tombstones for their keys."""
        key = session_key(session.user_id, session.session_id)
        for row in list(self.exchanges.keys(partition, key)):
            self.exchanges.delete(partition, row)
        self.sessions.delete(partition, key)
        self._message_ids.forget((partition, key))

    def recovered(self) -> int:
        """Make sessions and exchanges consistent after recovery; return the number of lost exchanges.

        An exchange that no session names was written just before a crash. It is deleted, because its records are read
        again. An exchange that a session names but that has no row was deleted by a worker that no longer owned the
        partition. It is lost, so it is removed from its session.
        """
        self._message_ids.clear()
        return sum(map(self._fit, sorted({*self.sessions.partitions(), *self.exchanges.partitions()})))

    def has_changes(self, partition: int) -> bool:
        """True if a session or an exchange has changed since the last drain."""
        return self.sessions.has_changes(partition) or self.exchanges.has_changes(partition)

    def _fit(self, partition: int) -> int:
        """Make a partition's tables consistent; return the number of lost exchanges.

        If the tables were consistent before the recovery, only the restored rows are checked.
        """
        sessions, exchanges = self.sessions.touched(partition), self.exchanges.touched(partition)
        if sessions is None or exchanges is None:
            return self._fit_all(partition)
        sessions |= {_session_of(key) for key in exchanges}
        return sum(self._fit_one(partition, key) for key in sorted(sessions))

    def _fit_one(self, partition: int, key: bytes) -> int:
        session = self.sessions.get(partition, key)
        held = {_number(one, len(key)): one for one in self.exchanges.keys(partition, key)}
        named = session.named if session is not None else ()
        known = {~seq for seq in session.emptied} if session is not None else set[int]()
        for seq in held.keys() - set(named) - known:
            self.exchanges.delete(partition, held[seq])
        gone = {seq for seq in named if seq not in held}
        if session is not None and gone:
            self.sessions.put(partition, key, session.without(gone))
        return len(gone)

    def _fit_all(self, partition: int) -> int:
        numbers = {
            key: (session.named, session.known, session.first, session.missing)
            for key, session in self.sessions.of_partition(partition)
        }
        held, unknown = dict.fromkeys(numbers, 0), list[bytes]()
        for row in self.exchanges.keys(partition):
            key = _session_of(row)
            seq = _number(row, len(key))
            named, known, first, missing = numbers.get(key, _NONE)
            if seq >= 0 and seq in named:
                held[key] += 1
            elif seq >= 0 or not (known <= ~seq < first or ~seq in missing):
                unknown.append(row)
        for row in unknown:
            self.exchanges.delete(partition, row)
        return sum(self._fit_one(partition, key) for key, (named, *_) in numbers.items() if len(named) > held[key])

    def all_sessions(self) -> Iterator[tuple[int, Session]]:
        for partition, _, session in self.sessions.items():
            if session.user_id != NO_USER:
                yield partition, session

    def of_user(self, partition: int, user_id: str) -> list[Session]:
        return self.sessions.of_user(partition, user_id)

    def of_partition(self, partition: int) -> Iterator[Session]:
        for _, session in self.sessions.of_partition(partition):
            if session.user_id != NO_USER:
                yield session

    def forget_message_ids(self, partition: int, session: Session) -> None:
        """Drop the session's cached message ids; `message_ids` computes them again."""
        self._message_ids.forget((partition, session_key(session.user_id, session.session_id)))

    def find(self, user_id: str, session_id: str) -> tuple[int, Session] | None:
        """Search all partitions for a session. Return its partition and the session; None if no partition has it."""
        key = session_key(user_id, session_id)
        for partition in self.partitions():
            session = self.sessions.get(partition, key)
            if session is not None:
                return partition, session
        return None

    def partitions(self) -> list[int]:
        return self.sessions.partitions()


def unexpired(exchanges: Iterable[Exchange], now: int, ttl_seconds: int) -> list[Exchange]:
    """Return the exchanges whose last message is younger than `ttl_seconds` at `now` (epoch ms), in time order."""
    left = [exchange for exchange in exchanges if exchange.ended_at + ttl_seconds * 1000 > now]
    return sorted(left, key=lambda exchange: exchange.started_at)
