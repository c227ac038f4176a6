"""Which of a session's messages are to be summed up, as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.conversations import SPEAKERS, Role
from schemas.exchanges import Message
from streams.intake.rules.summary_triggers import Reason, SummaryWanted, Triggers


class TriggerWatch:
    """Counts a session's user messages, and watches its day.

    `said` counts since the last summary, which held what was said until `summed_up`; at `day_ends` the day of what
    came after is over, 0 where nothing has come. `since` gives the window's messages that are newer than a moment, in
    time order; `open_from` the time of the first message of the open exchange, 0 where none is open. All in epoch ms.
    """

    __slots__ = ("_open_from", "_since", "_triggers", "_wanted", "day_ends", "said", "summed_up")

    def __init__(
        self,
        triggers: Triggers,
        since: Callable[[int], Sequence[Message]],
        open_from: Callable[[], int],
        wanted: list[SummaryWanted],
        said: int,
        summed_up: int,
        day_ends: int,
    ) -> None:
        self._triggers, self._since, self._open_from, self._wanted = triggers, since, open_from, wanted
        self.said, self.summed_up, self.day_ends = said, summed_up, day_ends

    def hear(self, message: Message) -> None:
        """A message has come into the window."""
        at, triggers = message.timestamp, self._triggers
        if at <= self.summed_up:
            return
        if triggers.automatic and at >= self.day_ends:
            self.reach(at)
            self.day_ends = self.day_ends or triggers.end_of_day(at)
        if message.role is Role.USER:
            self.said += 1
            if triggers.asked_for(message.content):
                self._sum_up("manual", triggers.end_of_day(at), message.message_id)
            elif triggers.interval and self.said >= triggers.interval:
                self._sum_up("count", triggers.end_of_day(at), message.message_id)

    def reach(self, moment: int) -> None:
        """It is so late; the day may be over."""
        if self.day_ends and moment >= self.day_ends:
            ended = self.day_ends
            self._sum_up("day_end", ended, str(self.summed_up))
            self.summed_up, self.day_ends = ended - 1, 0

    def _sum_up(self, reason: Reason, day_ends: int, by: str) -> None:
        """The exchange that is open is in this summary as far as it goes, and whole in the next one."""
        new = tuple(message for message in self._since(self.summed_up) if message.timestamp < day_ends)
        if reason == "manual" or any(message.role in SPEAKERS for message in new):
            self._wanted.append(SummaryWanted(reason, self._triggers.day_of(day_ends - 1), by, new))
        self.said = 0
        if new:
            last = self._open_from() or new[-1].timestamp + 1
            self.summed_up = max(self.summed_up, last - 1)
