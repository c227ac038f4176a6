"""How far a partition is on its way back, and how long it will take."""

from __future__ import annotations

import pytest

from streams.telemetry.recovery_progress import RATE_SECONDS, Behind, RecoveryProgress, seconds_left


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def coming_back(clock: Seconds) -> RecoveryProgress:
    return RecoveryProgress(clock)


def test_what_is_left_takes_as_long_as_the_rate_of_the_last_seconds_says(
    coming_back: RecoveryProgress, clock: Seconds
) -> None:
    """100 a second at first, then 10: what was quick long ago counts no more."""
    reached = coming_back.begins(3, "memories", "restoring", 0, 10_000)
    (begun,) = coming_back.of(3)
    assert begun == Behind(3, "memories", "restoring", 0, 10_000, "bytes", None)
    for second in range(1, 11):
        clock.now = second
        reached(100 * second, 10_000)
    assert coming_back.of(3)[0].eta_seconds == 90
    for second in range(11, 11 + int(RATE_SECONDS)):
        clock.now = second
        reached(1_000 + 10 * (second - 10), 10_000)
    assert coming_back.of(3)[0].eta_seconds == 890


def test_what_stands_still_takes_longer_and_longer(coming_back: RecoveryProgress, clock: Seconds) -> None:
    reached = coming_back.begins(0, "memories", "catching up", 0, 100)
    clock.now = 1
    reached(50, 100)
    seen = []
    for clock.now in (1, 4, 16):
        seen += [one.eta_seconds for one in coming_back.all()]
    assert seen == [1, 4, 16]


def test_thousands_of_calls_a_second_are_noted_a_few_times(coming_back: RecoveryProgress, clock: Seconds) -> None:
    reached = coming_back.begins(0, "memories", "opening", 0, 100_000)
    for done in range(100_000):
        clock.now = done / 10_000
        reached(done, 100_000)
    (way,) = coming_back._ways.values()
    assert len(way.noted) <= 101
    assert coming_back.of(0)[0].done == 99_999


def test_windows_are_as_far_as_their_changelogs(coming_back: RecoveryProgress, clock: Seconds) -> None:
    read = {0: (0, 400)}
    coming_back.windows = lambda: read
    coming_back.begins(0, "windows", "catching up")
    coming_back.begins(1, "windows", "catching up")
    assert [(one.done, one.of_all) for one in coming_back.all()] == [(0, 400), (0, None)]
    read, clock.now = {0: (100, 400)}, 2
    assert coming_back.of(0)[0].eta_seconds == 6
    coming_back.is_back([0], "windows")
    assert coming_back.of(0) == []


def test_a_shard_that_is_opened_is_compared_with_the_log_afterwards(coming_back: RecoveryProgress) -> None:
    coming_back.begins(0, "memories", "opening")
    for partition in (0, 1):
        coming_back.is_to_catch_up(partition)
    assert [one.doing for one in coming_back.all()] == ["opening", "catching up"]


def test_what_is_not_ours_any_more_is_not_waited_for(coming_back: RecoveryProgress) -> None:
    reached = coming_back.begins(0, "memories", "opening")
    coming_back.begins(1, "memories", "opening")
    coming_back.keep({1})
    reached(1, 2)
    assert [one.partition for one in coming_back.all()] == [1]


def test_partitions_come_back_side_by_side() -> None:
    behind = [Behind(n, "memories", "opening", 0, 1, "rows", eta) for n, eta in enumerate((None, 3.0, 8.0))]
    assert seconds_left(behind) == 8
    assert seconds_left(behind[:1]) is None


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (Behind(3, "memories", "opening", 0, None, "rows", None), "partition 3: memories: opening"),
        (
            Behind(3, "memories", "restoring", 1 << 20, 3 << 30, "bytes", 12.4),
            "partition 3: memories: restoring, 1 MiB of 3.0 GiB, about 12 s left",
        ),
        (
            Behind(0, "windows", "catching up", 1000, 20000, "records", None),
            "partition 0: windows: catching up, 1,000 of 20,000 records",
        ),
    ],
)
def test_people_are_told_in_words(behind: Behind, said: str) -> None:
    assert str(behind) == said
