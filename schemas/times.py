"""Conversion between epoch milliseconds, which the code uses, and ISO 8601, which records and answers show."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo
from time import time_ns
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

#: Timestamps outside of [1990, 2100) are a producer's mistake, such as seconds instead of milliseconds, or a clock
#: that was reset to zero.
EARLIEST_MS = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp() * 1000)
LATEST_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)

#: No number of milliseconds of these years has so many digits.
_LONGEST_MILLIS: Final = 20

#: The maximum difference in ms that is expected between two clocks of one deployment.
SKEW_MS: Final = 60_000


def now_ms() -> int:
    """Return the system time (epoch ms). Use it only for the timestamps of new data.

    Rules must not call it. They get the time as an argument, so that a replay decides as the live run did.
    """
    return time_ns() // 1_000_000


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


NOON, DAY_END = time(12), time(23, 59, 59, 999_000)


def parse_local(value: str | int, zone: tzinfo, day_at: time = NOON) -> int:
    """Return the epoch milliseconds of a moment or a day in a time zone. A day is represented by one of its times.

    The value is ISO 8601, or a number of milliseconds; a text that names no zone is a time of the given zone.
    """
    if isinstance(value, int) or (value.isdecimal() and len(value) < _LONGEST_MILLIS):
        return parse_timestamp(int(value))
    try:
        moment = datetime.fromisoformat(value)
        if len(value) == len("2026-03-14"):
            moment = datetime.combine(date.fromisoformat(value), day_at)
    except ValueError:
        raise ValueError("must be a day such as 2026-03-14, ISO 8601, or epoch milliseconds") from None
    return parse_timestamp((moment if moment.tzinfo else moment.replace(tzinfo=zone)).isoformat())


def known_zone(name: str) -> ZoneInfo:
    """Return the time zone with an IANA name. Raises `ValueError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("needs an IANA name such as UTC, Asia/Shanghai or Europe/Berlin") from None


#: The name of a time zone that is known.
ZoneName = Annotated[str, AfterValidator(lambda name: known_zone(name).key)]


def iso(millis: int) -> str:
    """Return a time (epoch ms) as ISO 8601 in UTC with milliseconds, the form in our records and answers."""
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(millis: int, zone: tzinfo) -> date:
    """Return the calendar day of a time (epoch ms) in the given time zone."""
    return datetime.fromtimestamp(millis / 1000, zone).date()
