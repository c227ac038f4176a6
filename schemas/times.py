"""Times: epoch milliseconds, read from and shown as ISO 8601."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, tzinfo
from typing import Final

#: Timestamps outside of [1990, 2100) are a producer's mistake (seconds for milliseconds, a zeroed clock).
EARLIEST_MS = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp() * 1000)
LATEST_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)

#: The clocks of one deployment are expected to differ by at most this (ms).
SKEW_MS: Final = 60_000


def now_ms() -> int:
    """Return the system time (epoch ms). Use it only for the timestamps of new data, and never in a rule."""
    return time.time_ns() // 1_000_000


def parse_timestamp(value: object) -> int:
    """Return the epoch milliseconds of an ISO 8601 text (UTC if it names no zone) or of a number of milliseconds."""
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be ISO 8601 or epoch milliseconds") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        millis = round(moment.timestamp() * 1000)
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18:
        millis = int(value)
    else:
        raise ValueError("must be ISO 8601 or epoch milliseconds")
    if not EARLIEST_MS <= millis < LATEST_MS:
        raise ValueError("must lie between the years 1990 and 2100 (epoch values are in milliseconds)")
    return millis


def iso(millis: int) -> str:
    """Return ISO 8601 in UTC, to the millisecond, as in our records and answers."""
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(millis: int, zone: tzinfo) -> date:
    """Return the day of a time (epoch ms) in this time zone."""
    return datetime.fromtimestamp(millis / 1000, zone).date()
