"""The live flow of messages, exchanges, decisions and memories, recorded only while the dashboard shows it.

Each time the dashboard reads the steps, agents record steps for the next `WATCHED_SECONDS`. After that, the recording
stops, and the steps are dropped. While nothing is recorded, agents only check one attribute for each batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from schemas.events import LongTermEvent, Parts, Promotion, Remember
from schemas.exchanges import Exchange, Message, render
from schemas.times import now_ms
from streams.intake.rules.advance import SessionInput
from streams.intake.rules.session_changes import SessionChanges

#: Seconds for which steps are recorded after the dashboard has read them.
WATCHED_SECONDS: Final = 30.0
#: The maximum number of stored steps, and the approximate maximum number of steps that one batch records. Under load,
#: people can read only the newest steps.
MOST_STEPS: Final = 600
MOST_A_BATCH: Final = 60
SHOWN_CHARS: Final = 280

Kind = Literal["message", "exchange", "promoted", "dropped", "asked", "memory"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the flow. `number` orders this worker's steps. `at` is the wall-clock time (epoch ms).

    `message_ids` connect the steps about the same messages. `memory_id` is the id of the memory that the exchange
    becomes, or would become. Only decisions have `parts`. Only decisions and memories have an `importance`.
    """

    number: int
    at: int
    kind: Kind
    user_id: str
    session_id: str
    text: str
    message_ids: tuple[str, ...]
    reason: str = ""
    memory_id: str = ""
    importance: float | None = None
    parts: Parts | None = None


class Flow:
    """The newest steps of the live flow. Agents record steps only while `open` is True."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, now: Callable[[], int] = now_ms) -> None:
        self._monotonic, self._now = monotonic, now
        self._until, self._number = 0.0, 0
        self._steps: deque[Step] = deque(maxlen=MOST_STEPS)
        self.open = False

    def look(self) -> list[Step]:
        """Return the recorded steps, oldest first, and record further steps for `WATCHED_SECONDS` from now."""
        self.open, self._until = True, self._monotonic() + WATCHED_SECONDS
        return list(self._steps)

    def tick(self) -> None:
        """Stop recording and drop the steps if the dashboard has not read them for `WATCHED_SECONDS`."""
        if self.open and self._monotonic() > self._until:
            self.open = False
            self._steps.clear()

    def forget(self, user_id: str) -> None:
        """Drop all steps of the user."""
        self._steps = deque((step for step in self._steps if step.user_id != user_id), MOST_STEPS)

    def heard(self, told: Mapping[tuple[str, str], Sequence[tuple[int, SessionInput]]]) -> None:
        """Record the messages of one batch. `told` has the messages by user and session."""
        said = [(ids, one) for ids, several in told.items() for _, one in several if isinstance(one, Message)]
        for (user_id, session_id), message in said[-MOST_A_BATCH:]:
            self._note(
                "message", user_id, session_id, message.content, (message.message_id,), reason=message.role.value
            )

    def followed(self, outcomes: Iterable[SessionChanges]) -> None:
        """Record the changes by one batch: closed exchanges, questions to a rater, and decisions."""
        left = MOST_A_BATCH
        for outcome in outcomes:
            user_id, session_id = outcome.session.user_id, outcome.session.session_id
            for exchange in outcome.closed[:left]:
                self._exchange("exchange", user_id, session_id, exchange)
            for exchange in outcome.questions[:left]:
                self._exchange("asked", user_id, session_id, exchange, reason="value_wanted")
            for decision in outcome.decisions[:left]:
                self._exchange(
                    "promoted" if decision.kept else "dropped",
                    user_id,
                    session_id,
                    decision.exchange,
                    reason=decision.parts.reason,
                    importance=float(decision.importance),
                    parts=decision.parts,
                )
            left -= len(outcome.closed) + len(outcome.decisions)
            if left <= 0:
                return

    def written(self, events: Sequence[LongTermEvent]) -> None:
        """Record the memories of events that a shard has applied."""
        for event in [one for one in events if isinstance(one, Promotion | Remember)][-MOST_A_BATCH:]:
            self._note(
                "memory",
                event.user_id,
                event.session_id or "",
                event.text,
                tuple(event.message_ids),
                reason=event.parts.reason if isinstance(event, Promotion) else event.origin,
                memory_id=str(event.memory_id or event.event_id),
                importance=event.importance,
            )

    def _exchange(self, kind: Kind, user_id: str, session_id: str, exchange: Exchange, **more: Any) -> None:
        ids = tuple(message.message_id for message in exchange.messages)
        identity = str(exchange.memory_id(user_id, session_id))
        self._note(kind, user_id, session_id, render(exchange), ids, memory_id=identity, **more)

    def _note(
        self, kind: Kind, user_id: str, session_id: str, text: str, message_ids: tuple[str, ...], **more: Any
    ) -> None:
        self._number += 1
        shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
        self._steps.append(Step(self._number, self._now(), kind, user_id, session_id, shown, message_ids, **more))
