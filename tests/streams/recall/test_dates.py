"""When something was said, seen from the day of the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from streams.recall.dates import ReferenceDate, opening


def at(text: str, zone: tzinfo = UTC) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


NOON = ReferenceDate(at("2026-11-28T12:00"), UTC)


@pytest.mark.parametrize(
    ("day", "english", "chinese"),
    [
        ("2026-11-28", "today", "今天"),
        ("2026-11-27", "yesterday", "昨天"),
        ("2026-11-29", "tomorrow", "明天"),
        ("2026-11-26", "2 days ago", "2 天前"),
        ("2026-12-03", "in 5 days", "5 天后"),
        ("2026-11-15", "13 days ago", "13 天前"),
        ("2026-11-14", "2 weeks ago", "2 周前"),
        ("2026-09-27", "8 weeks ago", "8 周前"),
        ("2026-09-26", "2 months ago", "2 个月前"),
        ("2026-03-14", "8 months ago", "8 个月前"),
        ("2026-03-29", "7 months ago", "7 个月前"),
        ("2025-11-28", "12 months ago", "12 个月前"),
        ("2024-11-29", "23 months ago", "23 个月前"),
        ("2024-11-28", "2 years ago", "2 年前"),
        ("2030-01-01", "in 3 years", "3 年后"),
    ],
)
def test_how_long_ago_a_day_is(day: str, english: str, chinese: str) -> None:
    assert NOON.said(at(f"{day}T23:59"), "I live in Oslo") == f"{day}, {english}"
    assert NOON.said(at(f"{day}T00:00"), "我住在青岛") == f"{day}，{chinese}"


def test_no_age_is_one_of_something() -> None:
    """One day has a word of its own, and there is no age of 1 week, 1 month or 1 year."""
    for days in range(2, 1_500):
        assert NOON.said(NOON.moment - days * 86_400_000, "hi").split(", ")[1].split()[0] != "1"


def test_a_day_is_that_of_the_users_zone() -> None:
    """At noon in London, it is already the next day on the other side."""
    auckland = ReferenceDate(NOON.moment, ZoneInfo("Pacific/Auckland"))
    assert opening(auckland.day) == "Today is Sunday, 2026-11-29."
    assert auckland.said(NOON.moment - 3_600_000, "hi") == "2026-11-29, today"
    assert auckland.said(NOON.moment - 2 * 3_600_000, "hi") == "2026-11-28, yesterday"
    assert auckland.clock(NOON.moment) == "2026-11-29 01:00"
    west = ReferenceDate(NOON.moment, timezone(timedelta(hours=-12)))
    assert west.clock(NOON.moment) == "2026-11-28 00:00"
