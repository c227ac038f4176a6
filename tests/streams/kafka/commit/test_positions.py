"""What is known of how far memory and a changelog are the same."""

from __future__ import annotations

import pytest

from streams.kafka.commit.positions import Positions


@pytest.fixture
def positions() -> Positions:
    """All ten rows of each of two partitions were read."""
    positions = Positions()
    for partition in (0, 1):
        positions.read(partition, 10, rows=10)
        positions.recovered(partition, 10)
    return positions


def test_rows_of_ours_that_follow_each_other_are_behind_what_was_read(positions: Positions) -> None:
    positions.begin([0])
    positions.wrote(0, 10, 5)
    positions.wrote(0, 15, 1)
    positions.end()
    assert (positions.known(0), positions.known(1), positions.rows) == (16, 10, {0: 16, 1: 10})


def test_with_anothers_row_before_ours_nothing_is_known(positions: Positions) -> None:
    """Nor later: it may be of a key whose value in memory is another one."""
    for offset in (11, 12):
        positions.begin([0])
        positions.wrote(0, offset, 1)
        positions.end()
    assert (positions.known(0), positions.known(1)) == (None, 10)


def test_while_rows_are_on_their_way_nothing_is_known(positions: Positions) -> None:
    positions.begin([0])
    positions.wrote(0, 10, 5)
    assert positions.known(0) is None


def test_what_an_attempt_that_failed_has_written_is_not_known(positions: Positions) -> None:
    positions.begin([0])
    positions.wrote(0, 10, 5)
    positions.fail()
    positions.begin([0])
    positions.wrote(0, 15, 5)
    positions.end()
    assert positions.known(0) is None


def test_a_row_that_was_refused_for_good_is_in_memory_alone(positions: Positions) -> None:
    positions.begin([0])
    positions.left_out(0)
    positions.wrote(0, 10, 1)
    positions.end()
    assert positions.known(0) is None


def test_rows_that_were_on_their_way_when_partitions_moved_count_for_nothing(positions: Positions) -> None:
    """The partition may be back meanwhile, and be read."""
    positions.begin([0])
    positions.keep([1])
    positions.wrote(0, 10, 5)
    positions.left_out(0)
    positions.wrote(0, 16, 1)
    positions.end()
    assert (positions.known(0), positions.known(1), positions.rows) == (None, 10, {1: 10})


def test_rows_that_are_read_again_are_not_counted_when_they_are_written_as_well(positions: Positions) -> None:
    """They were on their way when the partition moved, and came back to its disk: their changelog brings them."""
    positions.begin([0])
    positions.keep([1])
    positions.resume(0, 10, rows=10)
    positions.wrote(0, 10, 5)
    positions.end()
    positions.read(0, 15, rows=5)
    assert positions.rows == {0: 15, 1: 10}


def test_of_a_changelog_that_is_started_over_nothing_is_known_and_of_others_all(positions: Positions) -> None:
    positions.begin([0, 1])
    positions.wrote(1, 10, 5)
    positions.start_over(0)
    positions.wrote(0, 10, 5)
    positions.end()
    assert (positions.known(0), positions.known(1), positions.rows) == (None, 15, {1: 15})


def test_what_is_read_from_the_start_again_is_known_again(positions: Positions) -> None:
    positions.begin([0])
    positions.keep([1])
    positions.read(0, 12, rows=12)
    assert positions.known(0) is None
    positions.recovered(0, 11)
    assert (positions.known(0), positions.rows) == (12, {0: 12, 1: 10})


def test_an_empty_changelog_is_known_when_it_was_looked_at() -> None:
    positions = Positions()
    positions.recovered(0, 0)
    assert positions.known(0) == 0


def test_a_recovery_that_ends_after_partitions_moved_is_of_those_before(positions: Positions) -> None:
    """Memory has nothing of what came again, and what was read of it by then is no whole changelog."""
    positions.keep([1])
    positions.recovered(0, 10)
    positions.recovered(1, 11)
    assert (positions.known(0), positions.known(1)) == (None, None)


def test_a_row_that_comes_after_the_recovery_leaves_nothing_known(positions: Positions) -> None:
    positions.read(0, 11, rows=1)
    assert positions.known(0) is None


def test_a_mark_right_behind_what_is_known_is_known_and_no_row(positions: Positions) -> None:
    positions.marked(0, 10)
    positions.marked(1, 12)  # there are others' rows in between
    assert (positions.known(0), positions.known(1), positions.rows) == (11, 10, {0: 10, 1: 10})


def test_of_a_changelog_that_was_empty_all_is_known_with_the_first_mark() -> None:
    positions = Positions()
    positions.marked(0, 0)
    positions.marked(1, 3)
    assert (positions.known(0), positions.known(1)) == (1, None)


def test_a_mark_alone_is_no_row_and_no_end_of_the_recovery() -> None:
    """What a changelog lost is told when it was read, and not before."""
    positions = Positions()
    positions.read(0, 3, rows=0)
    assert 0 not in positions.rows
    positions.recovered(0, 3)
    assert positions.rows == {0: 0}
