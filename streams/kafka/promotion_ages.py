"""Ages of promotions when they are committed: seconds since the record that decided on them was produced."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import Histogram

from schemas.events import LongTermEvent, Promotion
from schemas.times import EARLIEST_MS, LATEST_MS, now_ms
from schemas.topics import CLOSED_AT_HEADER, Headers


class PromotionAges:
    """Promotions on their way into a shard, and when each was decided on.

    `now` (epoch ms) should be the clock that stamps Kafka's records. With two clocks an age is wrong by their
    difference, but never below 0.
    """

    def __init__(self, seconds: Histogram, now: Callable[[], int] = now_ms) -> None:
        self._seconds, self._now = seconds, now
        self._closed_at: dict[uuid.UUID, int] = {}

    def note(self, event: LongTermEvent, headers: Headers) -> None:
        """Note an event that was read for the first time, from a record with these headers."""
        if isinstance(event, Promotion) and (moment := closed_at(headers)) is not None:
            self._closed_at[event.event_id] = moment

    def committed(self, events: Iterable[LongTermEvent], fresh: Sequence[LongTermEvent]) -> None:
        """Observe the ages of committed events; only the `fresh` ones were not in the shard before."""
        if not self._closed_at:
            return
        now, new = self._now(), {event.event_id for event in fresh}
        for event in events:
            moment = self._closed_at.pop(event.event_id, None)
            if moment is not None and event.event_id in new:
                self._seconds.observe(max(0, now - moment) / 1000)

    def clear(self) -> None:
        """Forget all events: those that were read and not committed are read again."""
        self._closed_at.clear()


def closed_at(headers: Headers) -> int | None:
    """When the promotion with these headers was decided on (epoch ms); None if the header is missing or invalid."""
    for name, value in headers:
        if name == CLOSED_AT_HEADER:
            try:
                moment = int(value or b"")
            except ValueError:
                return None
            return moment if EARLIEST_MS <= moment < LATEST_MS else None
    return None
