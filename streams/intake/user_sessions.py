"""Reads a user's sessions for the entry points: windows, notes, explanations of decisions, messages of a day."""

from __future__ import annotations

import sys
from datetime import date, tzinfo
from typing import NamedTuple

from schemas.exchanges import Exchange, Message
from schemas.sessions import Session
from schemas.settings import MemorySettings
from schemas.times import day_of, now_ms
from streams.intake.rules.explaining import Explainer, Explanation
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.shards.user_shards import UserShards
from tables.memories.shard import Shard
from tables.windows.session_notes import Note
from tables.windows.short_term import ShortTermStore, unexpired


class WindowExchange(NamedTuple):
    """An exchange of a session's window, and whether it is still open."""

    exchange: Exchange
    open: bool


class UserSessions:
    """The windows and notes of this worker's users. A day ends at midnight in `timezone`."""

    def __init__(
        self,
        *,
        users: UserShards,
        windows: ShortTermStore,
        shards: OwnedShards,
        explainer: Explainer,
        memory: MemorySettings,
        clock: Clock,
        timezone: tzinfo,
    ) -> None:
        self._users, self._windows, self._shards, self._explainer = users, windows, shards, explainer
        self._memory, self._clock, self._timezone = memory, clock, timezone

    @property
    def rater_name(self) -> str:
        """The name of the model, or of the local estimator, that rates exchanges."""
        return self._explainer.rater_name

    def window(self, user_id: str, session_id: str, limit: int | None) -> list[WindowExchange]:
        """Return a window's newest unexpired exchanges, oldest first. `limit` defaults to `memory.context_turns`."""
        partition, memory = self._users.partition_here(user_id), self._memory
        session = self._windows.session(partition, user_id, session_id)
        exchanges = self._windows.whole_window(partition, session)
        newest = unexpired(exchanges, self._clock.now(), memory.ttl_seconds)[-(limit or memory.context_turns) :]
        return [WindowExchange(one, one.seq == session.next) for one in newest]

    def notes(self, user_id: str, session_id: str) -> list[Note]:
        """Return the session's unexpired notes, oldest first."""
        partition, now = self._users.partition_here(user_id), self._clock.now()
        return [n for n in self._windows.notes.of_session(partition, user_id, session_id) if n.expires_at > now]

    def notes_of(self, user_id: str) -> list[Note]:
        """Return the unexpired notes of all of the user's sessions."""
        partition, now = self._users.partition_here(user_id), self._clock.now()
        return [note for note in self._windows.notes.of_user(partition, user_id) if note.expires_at > now]

    def window_of(self, user_id: str) -> list[tuple[str, Exchange]]:
        """Return the unexpired exchanges of all of the user's windows, newest first, each with its session id."""
        since = self._clock.now() - self._memory.ttl_seconds * 1000
        return self._windows.newest_of(self._users.partition_here(user_id), user_id, since, sys.maxsize)

    def session(self, user_id: str, session_id: str) -> Session:
        return self._windows.session(self._users.partition_here(user_id), user_id, session_id)

    async def explain(self, session: Session, limit: int | None) -> list[Explanation]:
        """Explain the decisions on the newest `limit` exchanges of a session, oldest first, including expired ones.

        Without a limit, explain all exchanges that the session keeps.
        """
        partition = self._users.partition_here(session.user_id)
        held = [self._windows.exchange(partition, session, seq) for seq in session.named]
        if session.open:
            held.append(session.open_exchange)
        exchanges = sorted(held, key=lambda exchange: (exchange.started_at, exchange.seq))[-(limit or 0) :]
        model, questions = self._explainer.rater_name, self._explainer.questions(exchanges)
        ids = {one.seq: one.memory_id(session.user_id, session.session_id) for one in questions}

        def rated(shard: Shard) -> dict[int, int]:
            found = {seq: shard.ratings.of(identity, model) for seq, identity in ids.items()}
            return {seq: rating for seq, rating in found.items() if rating is not None}

        async with self._users.in_time(session.user_id):
            ratings = await self._shards.call(partition, rated) if ids else {}
        return list(self._explainer.explain(session, exchanges, ratings))

    def newest_day(self, user_id: str) -> date:
        """Return the day of the newest message in the user's windows, or today if they are empty."""
        partition = self._users.partition_here(user_id)
        said = (message.timestamp for _, message in self._windows.said_by(partition, user_id))
        return day_of(max(said, default=self._clock.now() or now_ms()), self._timezone)

    def said_on(self, user_id: str, day: date) -> list[tuple[str, Message]]:
        """Return the messages of a day in the user's windows, each with its session id, in no particular order."""
        return self._windows.said_on(self._users.partition_here(user_id), user_id, day, self._timezone)
