"""The short-term window: a session as a value, and the rows that two changelog tables keep of it.

`sessions` holds one small row a session; `exchanges` one row for each closed exchange in its window. What a
message writes is thus proportional to what is new, not to the length of the window. A session's row carries
the source offset that it includes: after a restart, records up to it are skipped, and state is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, tzinfo
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import astuple

from schemas.exchanges import Exchange, Message
from schemas.times import day_of
from tables.windows.compact_json import compact_json
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Resident
from tables.windows.rows import Rows
from tables.windows.rows_by_user import RowsByUser
from tables.windows.session_notes import Notes


class Session(NamedTuple):
    """A session's window without the text of its closed exchanges.

    Exchanges `first <= seq < next` are in the window, but for the `missing` ones, whose messages were cut into
    exchanges again; `left_at` is the time of the newest message that left it. `pending` are those not yet evaluated
    for promotion; `asked` those whose value somebody was asked for, which are kept until it is known, in the window
    or not. `exchanges` counts them since the session began, `offset` is the newest source record that is included.
    `said` counts user messages since the last summary, which held what was said until `summed_up`; at `day_ends` the
    day of what came after is over. `lead` is how far ahead of its record, at the most, a message was dated (ms).
    Times are epoch milliseconds of event time.
    """

    user_id: str
    session_id: str
    offset: int = -1
    last_at: int = 0
    open: tuple[Message, ...] = ()
    first: int = 0
    next: int = 0
    missing: tuple[int, ...] = ()
    left_at: int = 0
    pending: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    exchanges: int = 0
    ended: bool = False
    said: int = 0
    summed_up: int = 0
    day_ends: int = 0
    lead: int = 0

    @property
    def window(self) -> Sequence[int]:
        """The numbers of the exchanges in the window, oldest first."""
        whole = range(self.first, self.next)
        return [seq for seq in whole if seq not in self.missing] if self.missing else whole

    @property
    def named(self) -> Collection[int]:
        """The numbers of all exchanges that there are of it: in the window, or their value is waited for."""
        return {*self.window, *self.asked} if self.asked or self.missing else self.window

    def without(self, seqs: Collection[int]) -> Session:
        """The session without these closed exchanges."""
        missing = {*self.missing, *(seq for seq in seqs if seq >= self.first)}
        first = self.first
        while first in missing:
            missing.remove(first)
            first += 1
        return self._replace(
            first=first,
            missing=tuple(sorted(missing)),
            pending=tuple(seq for seq in self.pending if seq not in seqs),
            asked=tuple(seq for seq in self.asked if seq not in seqs),
        )

    @property
    def open_exchange(self) -> Exchange:
        """What is said since the last exchange closed, as if it closed now."""
        return Exchange(self.next, self.open)


_last_at = attrgetter("last_at")


def _session_of(exchange_key: bytes) -> bytes:
    return exchange_key[: exchange_key.rindex(b"]") + 1]


def _newest_first(said: tuple[str, Exchange]) -> tuple[int, int]:
    return -said[1].ended_at, -said[1].seq


@lru_cache(maxsize=16_384)
def session_key(user_id: str, session_id: str) -> bytes:
    return compact_json((user_id, session_id))


#: Bytes that a session's set of ids takes, and each id in it.
A_SET: Final = 400
AN_ID: Final = 130

#: An exchange's key: its session's key, which ends with a bracket, then its number.
EXCHANGE_KEY: Final = b"%b%d"


# Rows are JSON arrays of the fields in their order: half as large as objects, and written in a third of the time.
# msgspec writes them in half of orjson's time, and the same bytes but for floats, which are in metadata alone.
_encode: Final = msgspec.json.Encoder().encode


def encode_session(session: Session) -> bytes:
    # Few messages are dated ahead, and a row is as it always was without them.
    row = tuple(session) if session.lead else session[:-1]
    return compact_json(row, astuple) if _have_metadata(session.open) else _encode(row)


def encode_exchange(exchange: Exchange) -> bytes:
    return compact_json(exchange, astuple) if _have_metadata(exchange.messages) else _encode(exchange)


def _have_metadata(messages: tuple[Message, ...]) -> bool:
    for message in messages:  # noqa: SIM110 - a generator takes twice as long, for every row
        if message.metadata:
            return True
    return False


decode_session: Final = msgspec.json.Decoder(Session).decode
decode_exchange: Final = msgspec.json.Decoder(Exchange).decode


class KeptTables(NamedTuple):
    """Where the rows are kept that the changelogs have."""

    sessions: KeptRows
    exchanges: KeptRows
    notes: KeptRows


class MessageIds:
    """Sets of ids by partition and session's key, which are worked out anew where they are not here any more."""

    def __init__(self) -> None:
        self._recent: dict[tuple[int, bytes], set[str]] = {}
        self._earlier: dict[tuple[int, bytes], set[str]] = {}
        self._ids = 0

    def get(self, key: tuple[int, bytes]) -> set[str] | None:
        found = self._recent.get(key)
        if found is None and (found := self._earlier.pop(key, None)) is not None:
            self.keep(key, found)
        return found

    def keep(self, key: tuple[int, bytes], ids: set[str]) -> None:
        self._recent[key] = ids
        self._ids += len(ids)

    def forget(self, key: tuple[int, bytes]) -> None:
        self._recent.pop(key, None)
        self._earlier.pop(key, None)

    def clear(self) -> None:
        self._recent, self._earlier, self._ids = {}, {}, 0

    def cached_bytes(self) -> int:
        return len(self._recent) * A_SET + self._ids * AN_ID

    def turn(self) -> None:
        self._earlier, self._recent, self._ids = self._recent, {}, 0


class ShortTermStore:
    """The windows and the notes of every session whose partition is this worker's."""

    def __init__(self, kept: KeptTables | None = None, resident: Resident | None = None) -> None:
        sessions, exchanges, notes = kept or (None, None, None)
        resident = Resident() if resident is None else resident
        self.sessions: RowsByUser[Session] = RowsByUser(
            encode_session,
            decode_session,
            attrgetter("user_id"),
            attrgetter("offset"),
            kept=sessions,
            resident=resident,
        )
        self.exchanges: Rows[Exchange] = Rows(encode_exchange, decode_exchange, kept=exchanges, resident=resident)
        self.notes = Notes(kept=notes, resident=resident)
        self._message_ids = MessageIds()
        resident.add(self._message_ids)

    def session(self, partition: int, user_id: str, session_id: str) -> Session:
        """The session as it stands; a new one where nothing is known of it."""
        found = self.sessions.get(partition, session_key(user_id, session_id))
        return found or Session(user_id, session_id)

    def exchange(self, partition: int, session: Session, seq: int) -> Exchange:
        return self.exchanges_of(partition, session)(seq)

    def exchanges_of(self, partition: int, session: Session) -> Callable[[int], Exchange]:
        """`exchange` of this session, for whoever asks for many before anything is saved."""
        get, key = self.exchanges.get, session_key(session.user_id, session.session_id)

        def exchange(seq: int) -> Exchange:
            found = get(partition, EXCHANGE_KEY % (key, seq))
            assert found is not None, f"exchange {seq} of {session.session_id} is missing from its table"
            return found

        return exchange

    def asked(self) -> Iterator[tuple[int, Session, Exchange]]:
        """Every exchange whose value was asked for and is not known."""
        for partition, session in self.all_sessions():
            for exchange in self.asked_of(partition, session):
                yield partition, session, exchange

    def asked_of(self, partition: int, session: Session) -> list[Exchange]:
        """The session's exchanges whose value was asked for and is not known."""
        return [self.exchange(partition, session, seq) for seq in session.asked]

    def window(self, partition: int, session: Session) -> list[Exchange]:
        """The closed exchanges in the window, oldest first."""
        return list(map(self.exchanges_of(partition, session), session.window))

    def whole_window(self, partition: int, session: Session) -> list[Exchange]:
        """All that is in the window, oldest first: the closed exchanges, then the open one where there is one."""
        closed = self.window(partition, session)
        return [*closed, session.open_exchange] if session.open else closed

    def newest_of(self, partition: int, user_id: str, since: int, most: int) -> list[tuple[str, Exchange]]:
        """What the user's windows hold that was said after `since` (epoch ms): (session, exchange), newest first.

        Of all sessions; open exchanges are among them, and those that left a window and whose value is waited for. At
        most so many, of the sessions that were spoken in last: who has thousands waits for no others to be read.
        """
        found: list[tuple[str, Exchange]] = []
        for session in sorted(self.of_user(partition, user_id), key=_last_at, reverse=True):
            if session.last_at <= since or len(found) >= most:
                break
            held = list(map(self.exchanges_of(partition, session), session.named))
            if session.open:
                held.append(session.open_exchange)
            found += [(session.session_id, exchange) for exchange in held if exchange.ended_at > since]
        found.sort(key=_newest_first)
        return found[:most]

    def said_by(self, partition: int, user_id: str) -> Iterator[tuple[str, Message]]:
        """What the user's windows hold: (session, message), in no particular order."""
        for session in self.of_user(partition, user_id):
            for exchange in self.whole_window(partition, session):
                for message in exchange.messages:
                    yield session.session_id, message

    def said_on(self, partition: int, user_id: str, day: date, zone: tzinfo) -> list[tuple[str, Message]]:
        """What of that was said on a day of this time zone."""
        return [said for said in self.said_by(partition, user_id) if day_of(said[1].timestamp, zone) == day]

    def message_ids(self, partition: int, session: Session) -> set[str]:
        """Ids of the messages in the window and of the open exchange; the caller keeps the set up to date."""
        key = partition, session_key(session.user_id, session.session_id)
        found = self._message_ids.get(key)
        if found is None:
            found = set()
            for exchange in self.whole_window(partition, session):
                found.update(message.message_id for message in exchange.messages)
            self._message_ids.keep(key, found)
        return found

    def save(self, partition: int, session: Session, new: Sequence[Exchange], gone: Sequence[int]) -> None:
        """Keep a session's new value, the exchanges that closed, and drop those that left the window."""
        key = session_key(session.user_id, session.session_id)
        for exchange in new:
            self.exchanges.put(partition, EXCHANGE_KEY % (key, exchange.seq), exchange)
        for seq in gone:
            self.exchanges.delete(partition, EXCHANGE_KEY % (key, seq))
        self.sessions.put(partition, key, session)

    def drop(self, partition: int, session: Session) -> None:
        """Forget a session; its keys get tombstones."""
        key = session_key(session.user_id, session.session_id)
        for seq in {*session.window, *session.asked}:
            self.exchanges.delete(partition, EXCHANGE_KEY % (key, seq))
        self.sessions.delete(partition, key)
        self._message_ids.forget((partition, key))

    def recovered(self) -> int:
        """After recovery: make sessions and exchanges fit each other; how many exchanges are lost.

        Exchanges that no session knows were written just before a crash, and come again. Those that a session names
        and that are not there were deleted by a worker that no longer owned the partition.
        """
        self._message_ids.clear()
        return sum(map(self._fit, sorted({*self.sessions.partitions(), *self.exchanges.partitions()})))

    def has_changes(self, partition: int) -> bool:
        """Whether a session or an exchange was changed since changes were last taken."""
        return self.sessions.has_changes(partition) or self.exchanges.has_changes(partition)

    def _fit(self, partition: int) -> int:
        """Where they fitted each other before, only what was read since is looked at."""
        sessions, exchanges = self.sessions.touched(partition), self.exchanges.touched(partition)
        if sessions is None or exchanges is None:
            return self._fit_all(partition)
        sessions |= {_session_of(key) for key in exchanges}
        return sum(self._fit_one(partition, key) for key in sorted(sessions))

    def _fit_one(self, partition: int, key: bytes) -> int:
        session = self.sessions.get(partition, key)
        held = {int(one[len(key) :]): one for one in self.exchanges.keys(partition, key)}
        named = session.named if session is not None else ()
        for seq in held.keys() - set(named):
            self.exchanges.delete(partition, held[seq])
        gone = {seq for seq in named if seq not in held}
        if session is not None and gone:
            self.sessions.put(partition, key, session.without(gone))
        return len(gone)

    def _fit_all(self, partition: int) -> int:
        named = {key: session.named for key, session in self.sessions.of_partition(partition)}
        held, unknown = dict.fromkeys(named, 0), list[bytes]()
        for key in self.exchanges.keys(partition):
            of = _session_of(key)
            if int(key[len(of) :]) in named.get(of, ()):
                held[of] += 1
            else:
                unknown.append(key)
        for key in unknown:
            self.exchanges.delete(partition, key)
        return sum(self._fit_one(partition, key) for key, seqs in named.items() if len(seqs) > held[key])

    def all_sessions(self) -> Iterator[tuple[int, Session]]:
        for partition, _, session in self.sessions.items():
            yield partition, session

    def of_user(self, partition: int, user_id: str) -> list[Session]:
        return self.sessions.of_user(partition, user_id)

    def of_partition(self, partition: int) -> Iterator[Session]:
        for _, session in self.sessions.of_partition(partition):
            yield session

    def forget_message_ids(self, partition: int, session: Session) -> None:
        """They are worked out anew where they are asked for."""
        self._message_ids.forget((partition, session_key(session.user_id, session.session_id)))

    def find(self, user_id: str, session_id: str) -> tuple[int, Session] | None:
        """A session by its ids, wherever it is kept."""
        key = session_key(user_id, session_id)
        for partition in self.partitions():
            session = self.sessions.get(partition, key)
            if session is not None:
                return partition, session
        return None

    def partitions(self) -> list[int]:
        return self.sessions.partitions()


def unexpired(exchanges: Iterable[Exchange], now: int, ttl_seconds: int) -> list[Exchange]:
    """Those whose last message is not older than the window allows at `now` (epoch ms), in time order."""
    left = [exchange for exchange in exchanges if exchange.ended_at + ttl_seconds * 1000 > now]
    return sorted(left, key=lambda exchange: exchange.started_at)
