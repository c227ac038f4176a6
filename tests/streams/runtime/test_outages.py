"""What is amiss is told when it begins, once a minute, and when it is over."""

from __future__ import annotations

from collections.abc import Sequence

from streams.runtime.outages import Outage, Told


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def told(seconds: Sequence[tuple[float, bool]]) -> list[Told | None]:
    clock = Clock()
    outage, said = Outage(clock), list[Told | None]()
    for at, amiss in seconds:
        clock.now = 100.0 + at
        said.append(outage.seen(amiss=amiss))
    return said


def test_what_is_well_is_not_told() -> None:
    assert told([(0, False), (100, False)]) == [None, None]


def test_it_is_told_when_it_begins_each_minute_and_at_its_end() -> None:
    looks = [(0, True), (5, True), (59, True), (60, True), (119, True), (121, True), (122, False), (123, False)]
    said = [Told.BEGINS, None, None, Told.GOES_ON, None, Told.GOES_ON, Told.IS_OVER, None]
    assert told(looks) == said


def test_each_time_that_it_comes_back_it_is_told() -> None:
    assert told([(0, True), (1, False), (2, True)]) == [Told.BEGINS, Told.IS_OVER, Told.BEGINS]


def test_how_long_it_lasts_is_known_and_how_long_it_did() -> None:
    clock = Clock()
    outage = Outage(clock)
    outage.seen(amiss=True)
    clock.now += 7
    assert outage.seconds == 7
    outage.seen(amiss=False)
    clock.now += 100
    assert outage.seconds == 7
