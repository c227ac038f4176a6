"""Trigger watch: decides, message by message, when a session needs a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.conversations import SPEAKERS, Role
from schemas.exchanges import Message
from streams.intake.rules.summary_triggers import Reason, SummaryWanted, Triggers


class TriggerWatch:
    """Counts a session's user messages, and watches for the end of its day.

    `said` is the number of user messages since the last summary. That summary covered the messages up to the time
    `summed_up`. `day_ends` is the end of the day whose messages are not summed up yet; 0 if there are no such
    messages. `since` returns the window's messages that are newer than a given time, in time order. `open_from`
    returns the time of the open exchange's first message; 0 if no exchange is open. Times are epoch ms.
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
        """Count a message that entered the window, and request a summary if the message triggers one."""
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
        """Request the day's summary if the day has ended at `moment`."""
        if self.day_ends and moment >= self.day_ends:
            ended = self.day_ends
            self._sum_up("day_end", ended, str(self.summed_up))
            self.summed_up, self.day_ends = ended - 1, 0

    def _sum_up(self, reason: Reason, day_ends: int, by: str) -> None:
        """Request a summary.

        It includes the messages that the open exchange has so far. The next summary will include that exchange again,
        from its first message.
        """
        new = tuple(message for message in self._since(self.summed_up) if message.timestamp < day_ends)
        if reason == "manual" or any(message.role in SPEAKERS for message in new):
            self._wanted.append(SummaryWanted(reason, self._triggers.day_of(day_ends - 1), by, new))
        self.said = 0
        if new:
            last = self._open_from() or new[-1].timestamp + 1
            self.summed_up = max(self.summed_up, last - 1)
