"""What the lifecycle takes for now."""

from __future__ import annotations

from streams.clock import AHEAD_MS, EventClock
from tests.support.making import START

YEAR_2099 = 4_070_908_800_000


def test_the_clock_of_events_is_the_newest_of_them() -> None:
    clock = EventClock(wall=lambda: START + AHEAD_MS)
    for at in (START, START + 5_000, START + 3_000):
        clock.observe(at)
    assert clock.now() == START + 5_000


def test_no_event_moves_it_further_than_a_day_beyond_the_systems_time() -> None:
    """However often it is seen: a message that is dated 2099, its silence, and the memory that is made of it."""
    clock = EventClock(wall=lambda: START)
    for again in range(50):
        clock.observe(YEAR_2099 + again)
    assert clock.now() == START + AHEAD_MS


def test_a_gap_of_years_up_to_the_systems_time_is_followed_at_once() -> None:
    clock = EventClock(wall=lambda: YEAR_2099)
    clock.observe(START)
    clock.observe(YEAR_2099)
    assert clock.now() == YEAR_2099


def test_a_clock_that_was_set_ahead_does_not_go_back() -> None:
    clock = EventClock(YEAR_2099, wall=lambda: START)
    clock.observe(START)
    clock.observe(YEAR_2099 + 1)
    clock.go_to(START)
    assert clock.now() == YEAR_2099
    clock.go_to(YEAR_2099 + 2)
    assert clock.now() == YEAR_2099 + 2
