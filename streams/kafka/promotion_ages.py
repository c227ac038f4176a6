"""Measures the age of each promotion when it is committed.

The age is the time in seconds since the production of the record that led to the promotion's decision.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import Histogram

from schemas.events import LongTermEvent, Promotion
from schemas.times import EARLIEST_MS, LATEST_MS, now_ms
from schemas.topics import CLOSED_AT_HEADER, Headers


class PromotionAges:
    """The promotions that were read but not committed to a shard yet, each with the time of its decision.

    `now` returns epoch ms. It should be the clock that stamps Kafka's records. With another clock, ages are wrong by
    the difference of the clocks, but never below 0.
    """

    def __init__(self, seconds: Histogram, now: Callable[[], int] = now_ms) -> None:
        self._seconds, self._now = seconds, now
        self._closed_at: dict[uuid.UUID, int] = {}

    def note(self, event: LongTermEvent, headers: Headers) -> None:
        """Note an event that was read for the first time, from a record with these headers."""
        if isinstance(event, Promotion) and (moment := closed_at(headers)) is not None:
            self._closed_at[event.event_id] = moment

    def committed(self, events: Iterable[LongTermEvent], fresh: Sequence[LongTermEvent]) -> None:
        """Record the ages of those committed promotions that are `fresh`: they were not in the shard before."""
        if not self._closed_at:
            return
        now, new = self._now(), {event.event_id for event in fresh}
        for event in events:
            moment = self._closed_at.pop(event.event_id, None)
            if moment is not None and event.event_id in new:
                self._seconds.observe(max(0, now - moment) / 1000)

    def clear(self) -> None:
        """Forget all noted promotions. Promotions that are not committed yet will be read again."""
        self._closed_at.clear()


def closed_at(headers: Headers) -> int | None:
    """Return the time of the promotion's decision (epoch ms); None if its header is missing or invalid."""
    for name, value in headers:
        if name == CLOSED_AT_HEADER:
            try:
                moment = int(value or b"")
            except ValueError:
                return None
            return moment if EARLIEST_MS <= moment < LATEST_MS else None
    return None
