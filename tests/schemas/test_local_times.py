"""Days and moments as people give them, in their own time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from schemas.times import iso, known_zone, parse_local

AUCKLAND = ZoneInfo("Pacific/Auckland")


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ("2026-03-14", "2026-03-13T23:00:00.000Z"),  # its noon, thirteen hours ahead
        ("2026-03-14T10:00", "2026-03-13T21:00:00.000Z"),
        ("2026-03-14T10:00:00Z", "2026-03-14T10:00:00.000Z"),
        ("2026-03-14T10:00:00+02:00", "2026-03-14T08:00:00.000Z"),
        (1_773_482_400_000, "2026-03-14T10:00:00.000Z"),
        ("1773482400000", "2026-03-14T10:00:00.000Z"),
    ],
)
def test_what_names_no_zone_is_in_the_one_that_is_given(given: str | int, at: str) -> None:
    assert iso(parse_local(given, AUCKLAND)) == at


def test_a_day_is_the_same_day_there() -> None:
    for zone in (UTC, AUCKLAND, ZoneInfo("Pacific/Honolulu")):
        there = datetime.fromtimestamp(parse_local("2026-03-14", zone) / 1000, zone)
        assert (there.date().isoformat(), there.hour) == ("2026-03-14", 12)


@pytest.mark.parametrize("given", ["", "soon", "2026-02-30", "14.3.2026", "9" * 5_000, "²", "1764", -1, 10**30])
def test_what_is_no_time_is_refused_in_one_line(given: str | int) -> None:
    with pytest.raises(ValueError, match=r"^must (?:be a day such as|be ISO 8601|lie between)[^\n]+$"):
        parse_local(given, UTC)


def test_a_zone_has_its_name_from_iana() -> None:
    assert known_zone("Europe/Oslo") == ZoneInfo("Europe/Oslo")
    for name in ("Oslo", "", "../etc/passwd", "Mars/Olympus", "Europe/Oslo\0"):
        with pytest.raises(ValueError, match=r"^needs an IANA name such as"):
            known_zone(name)
