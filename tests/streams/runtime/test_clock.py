"""What the lifecycle takes for now."""

from __future__ import annotations

from streams.runtime.clock import AHEAD_MS, STAYS_AHEAD_MS, EventClock, WallClock
from tables.analysts.statistics import DAY_MS
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


class Machine:
    """A wall clock that can be set, and what really passes."""

    def __init__(self) -> None:
        self.wall, self.passed = START, 0
        self.clock = WallClock(lambda: self.wall, lambda: self.passed)

    def passes(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.passed += milliseconds


def test_before_anything_was_seen_nothing_has_passed() -> None:
    assert Machine().clock.passed() == 0


def test_what_has_passed_is_the_newest_event_and_the_time_since() -> None:
    machine = Machine()
    machine.clock.observe(START - DAY_MS)
    assert machine.clock.passed() == START - DAY_MS
    machine.passes(60_000)
    assert machine.clock.passed() == START - DAY_MS + 60_000
    machine.clock.observe(START + 59_000)
    assert machine.clock.passed() == START + 59_000


def test_a_clock_that_is_set_ahead_takes_nothing_along() -> None:
    """Also where events are dated by it. Once it is back, or has stayed there for an hour, it counts as before."""
    machine = Machine()
    machine.clock.observe(START)
    machine.wall += 400 * DAY_MS
    machine.clock.observe(machine.wall)
    machine.passes(50_000)
    assert machine.clock.passed() == START + 50_000
    machine.wall -= 400 * DAY_MS
    assert machine.clock.passed() == START + 50_000
    machine.wall += 2 * DAY_MS
    assert machine.clock.passed() < START + DAY_MS
    machine.passes(STAYS_AHEAD_MS + 1)
    assert machine.clock.passed() == machine.wall


def test_a_process_that_begins_while_it_is_ahead_goes_by_what_it_sees() -> None:
    machine = Machine()
    machine.clock.observe(START - 400 * DAY_MS)
    assert machine.clock.passed() == START - 400 * DAY_MS
    machine.passes(1_000)
    assert machine.clock.passed() == START - 400 * DAY_MS + 1_000


def test_a_clock_that_is_set_back_takes_what_has_passed_along() -> None:
    machine = Machine()
    machine.clock.observe(START)
    machine.wall -= 700 * DAY_MS
    assert machine.clock.passed() == START - 700 * DAY_MS
