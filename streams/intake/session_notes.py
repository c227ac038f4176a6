"""Session notes: short-term memories that a user asked for. They expire, or are promoted, when their session ends.

Notes arrive by `long-term` and their sessions by `conversations`, so either may arrive first. An important note whose
session has already ended is promoted at once. An important note whose session is unknown opens that session, and
silence ends the session like any other. A note that was requested after the end of its session does not expire with
that end.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from schemas.events import Forget, ForgetUser, LongTermEvent, Remember
from schemas.ids import event_id
from schemas.sessions import Session
from schemas.settings import MemorySettings
from schemas.sources import SOURCES
from streams.kafka.event_log import EventLog
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.memories.shard import Shard
from tables.windows.session_notes import Note
from tables.windows.sessions import session_key
from tables.windows.short_term import ShortTermStore


class SessionNotes:
    """Keeps the notes of a worker's sessions. Notes with an importance of at least `important` are promoted.

    `opened` is called with each session that a note has opened.
    """

    def __init__(
        self,
        *,
        store: ShortTermStore,
        shards: OwnedShards,
        event_log: EventLog,
        metrics: Metrics,
        clock: Clock,
        memory: MemorySettings,
        important: float,
        opened: Callable[[int, Session], None],
    ) -> None:
        self._store, self._notes, self._shards, self._event_log = store, store.notes, shards, event_log
        self._metrics, self._clock = metrics, clock
        self._memory, self._important, self._opened = memory, important, opened

    async def take(self, partition: int, events: Sequence[LongTermEvent]) -> None:
        """Apply events to the notes: keep the requested notes, and drop the forgotten ones.

        Call after the shard has applied the events: a note that the shard's tombstones cover is not kept. Raises
        `ShardNotHere` if another worker has the partition.
        """
        asked = [event for event in events if is_short_term(event)]
        forbidden = []
        if asked:
            named = [(event.user_id, _identity(event), event.timestamp) for event in asked]
            forbidden = await self._shards.call(partition, Shard.forgotten, named)
        kept, verdicts = list[Note](), iter(forbidden)
        for event in events:  # no `await` until all notes are in the table: a flush must not see only some
            if isinstance(event, Forget | ForgetUser):
                self._forget(partition, event)
            elif is_short_term(event) and not next(verdicts):
                kept.append(self._keep(partition, event))
        kept = [note for note in kept if self._notes.named(partition, note.user_id, note.id)]
        self._count("forgotten", sum(forbidden))
        for user_id, session_id in dict.fromkeys((note.user_id, note.session_id) for note in kept):
            held = self._notes.of_session(partition, user_id, session_id)
            self._crowd_out(partition, held, len(held) - self._memory.notes)
        for user_id in dict.fromkeys(note.user_id for note in kept):
            if (too_many := self._notes.count_of(partition, user_id) - self._memory.notes_of_user) > 0:
                spare = self._memory.notes_of_user // 10  # without it, each new note would scan all the user's
                self._crowd_out(partition, self._notes.of_user(partition, user_id), too_many + spare)
        for note in kept:
            session = self._session(partition, note)
            if session is not None and session.ended:
                self._promote(partition, note, session.last_at)
                self._end(partition, note, session.last_at)
        await self._event_log.deliver()

    def session_ended(self, partition: int, session: Session, at: int) -> None:
        """Promote an ended session's important notes, unless they expired before the end `at` (epoch ms, event time).

        Then all notes that were requested up to the end of the session expire.
        """
        until = max(at, session.last_at) if session.ended else at  # the session may have continued and ended again
        for note in self._notes.of_session(partition, session.user_id, session.session_id):
            self._promote(partition, note, at)
            self._end(partition, note, until)

    def forget_expired(self) -> None:
        """Drop expired notes, except important ones whose session has not ended.

        The worker may read the log with a delay. Then an important note may have expired by now, but not at the event
        time of its session's end. Such a note must still be promoted when that end is read.
        """
        now, ours = self._clock.passed(), frozenset(self._shards.partitions())
        for partition, note in self._notes.expired(now):  # includes notes of partitions that other workers own
            if partition not in ours:
                continue
            if not (self._is_due(note) and self._goes_on(partition, note)):
                self._notes.drop(partition, note)
                self._count("expired")

    def recovered(self) -> None:
        """Advance the clock to the newest note, and let notes of ended sessions expire.

        Call this after the notes' table has recovered. A session's row is written before its notes, so after a crash
        in between, notes of an ended session have not expired yet.
        """
        ours = frozenset(self._shards.partitions())
        for partition, _, note in self._notes.items():
            self._clock.observe(note.created_at)
            session = self._session(partition, note)
            if session is not None and session.ended and partition in ours:
                self._end(partition, note, session.last_at)

    def _keep(self, partition: int, event: Remember) -> Note:
        self._clock.observe(event.timestamp)
        for name in (event.event_id, _identity(event)):
            held = self._notes.named(partition, event.user_id, name)
            if held is not None:
                self._count("repeated")
                return held
        note = self._note(event)
        if self._is_due(note):
            self._open_session(partition, note)
        self._notes.keep(partition, note)
        self._count("kept")
        return note

    def _note(self, event: Remember) -> Note:
        assert event.session_id is not None, "a short-term memory without a session is a dead letter"
        return Note(
            _identity(event),
            event.event_id,
            event.user_id,
            event.session_id,
            event.text,
            event.importance,
            event.timestamp,
            event.timestamp + (event.ttl_seconds or self._memory.ttl_seconds) * 1000,
            event.agent_id,
            _metadata(event),
        )

    def _open_session(self, partition: int, note: Note) -> None:
        """Use the note's time as the last activity of the note's session, if the session has no messages.

        Without a last activity, silence would never end the session.
        """
        session = self._store.session(partition, note.user_id, note.session_id)
        if not session.last_at:
            session = session._replace(last_at=note.created_at)
            self._store.save(partition, session, (), ())
            self._opened(partition, session)

    def _crowd_out(self, partition: int, held: Sequence[Note], too_many: int) -> None:
        """Drop the `too_many` oldest notes. Important notes are promoted before, so that they are not lost."""
        for leaving in held[: max(0, too_many)]:
            self._promote(partition, leaving, held[-1].created_at)
            self._notes.drop(partition, leaving)
            self._count("crowded_out")

    def _forget(self, partition: int, event: Forget | ForgetUser) -> None:
        if isinstance(event, Forget):
            named = self._notes.named(partition, event.user_id, event.memory_id)
            gone = [named] if named is not None and named.id == event.memory_id else []
        else:
            gone = self._notes.of_user(partition, event.user_id)
        for note in gone:
            self._notes.drop(partition, note)
        self._count("removed", len(gone))

    def _promote(self, partition: int, note: Note, at: int) -> None:
        """Promote a note, if it is important, not promoted yet, and not expired at the time `at` (epoch ms)."""
        held = self._notes.named(partition, note.user_id, note.id)
        if held is None or not self._is_due(held) or held.expires_at <= at:
            return
        event = promoted(held)
        self._event_log.append(event)
        self._notes.keep(partition, held._replace(promoted=True))
        self._count("promoted")

    def _end(self, partition: int, note: Note, at: int) -> None:
        """Let a note expire at the time `at` (epoch ms), the end of its session.

        A note that was created after `at`, or that expires before `at`, does not change.
        """
        held = self._notes.named(partition, note.user_id, note.id)
        if held is not None and held.created_at <= at < held.expires_at:
            self._notes.keep(partition, held._replace(expires_at=at))

    def _is_due(self, note: Note) -> bool:
        """True if the note has to be promoted when its session ends."""
        return note.importance >= self._important and not note.promoted

    def _goes_on(self, partition: int, note: Note) -> bool:
        session = self._session(partition, note)
        return session is not None and not session.ended

    def _session(self, partition: int, note: Note) -> Session | None:
        return self._store.sessions.get(partition, session_key(note.user_id, note.session_id))

    def _count(self, effect: str, notes: int = 1) -> None:
        if notes:
            self._metrics.notes.labels(effect).inc(notes)


def is_short_term(event: LongTermEvent) -> TypeGuard[Remember]:
    """True if the event asks for a short-term memory. Shards do not keep short-term memories."""
    return isinstance(event, Remember) and event.kind == "short_term"


def promoted(note: Note) -> Remember:
    """Return the event that promotes a note.

    The memory gets the note's id, so a `forget` event removes the note and the memory. The event has the note's time,
    so the tombstone of a later `forget_user` covers the memory.
    """
    return Remember(
        event_id=event_id("note", note.user_id, note.id),
        user_id=note.user_id,
        timestamp=note.created_at,
        text=note.text,
        memory_id=note.id,
        session_id=note.session_id,
        agent_id=note.agent_id,
        importance=note.importance,
        metadata=note.metadata,
        sources=(note.metadata or {}).get(SOURCES, []),
    )


def _metadata(event: Remember) -> dict[str, Any] | None:
    """Return the event's metadata with its sources added, because a note has no field for sources."""
    given = {key: value for key, value in (event.metadata or {}).items() if key != SOURCES}
    return (given | ({SOURCES: event.sources} if event.sources else {})) or None


def _identity(event: Remember) -> uuid.UUID:
    return event.memory_id or event.event_id
