"""Which offset may be committed."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.commit import ledger as ledger_module
from streams.kafka.commit.ledger import Ledger


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.data())
def test_no_offset_passes_an_unacknowledged_batch(sizes: list[int], data: st.DataObject) -> None:
    """Whatever the order of acknowledgements, everything before the committed offset is acknowledged."""
    ledger, ends, end = Ledger(), [], -1
    for size in sizes:
        end += size
        ends.append(end)
        ledger.deliver(end)
    done: set[int] = set()
    for last in data.draw(st.permutations(ends)):
        ledger.acknowledge(last)
        done.add(last)
        committable = ledger.committable() or 0
        assert all(batch in done for batch in ends if batch < committable)
    assert ledger.committable() == end + 1


def test_an_acknowledgement_from_before_a_seek_is_ignored() -> None:
    ledger = Ledger()
    ledger.acknowledge(99)
    ledger.deliver(149)
    assert ledger.committable() is None


def test_a_batch_delivered_twice_counts_once() -> None:
    ledger = Ledger()
    ledger.deliver(9)
    ledger.deliver(9)
    ledger.acknowledge(9)
    assert (ledger.committable(), ledger.outstanding) == (10, 0)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(ledger_module).failed == 0


def test_where_nothing_was_acknowledged_nothing_may_be_committed() -> None:
    ledger = Ledger()
    ledger.deliver(9)
    assert (ledger.committable(), ledger.outstanding) == (None, 1)


def test_the_first_record_of_a_partition_may_be_a_batch() -> None:
    ledger = Ledger()
    ledger.deliver(0)
    ledger.acknowledge(0)
    assert ledger.committable() == 1


def test_a_batch_that_is_never_acknowledged_holds_back_all_behind_it() -> None:
    """One that was taken off a queue in a rebalance is read again after it, with all that follows."""
    ledger = Ledger()
    for end in (9, 19, 29, 39):
        ledger.deliver(end)
    for end in (9, 29, 39):
        ledger.acknowledge(end)
    assert (ledger.committable(), ledger.outstanding) == (10, 3)


def test_a_batch_acknowledged_twice_counts_once() -> None:
    ledger = Ledger()
    for end in (9, 19):
        ledger.deliver(end)
    for _ in range(2):
        ledger.acknowledge(19)
    assert ledger.committable() is None
    ledger.acknowledge(9)
    ledger.acknowledge(9)
    assert (ledger.committable(), ledger.outstanding) == (20, 0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=60))
def test_the_committable_offset_never_goes_back_or_passes_what_is_not_done(steps: list[tuple[bool, int]]) -> None:
    """Deliveries (again, or out of order) and acknowledgements (unknown, or repeated) in any mixture.

    A simple model beside it: the batches that were taken up, and those of them that are done.
    """
    ledger = Ledger()
    taken: list[int] = []
    done: set[int] = set()
    before = 0
    for delivering, end in steps:
        if delivering:
            ledger.deliver(end)
            if not taken or end > taken[-1]:
                taken.append(end)
        else:
            ledger.acknowledge(end)
            done |= {end} & set(taken)
        open_batches = [batch for batch in taken if batch not in done]
        finished = [batch for batch in taken if not open_batches or batch < open_batches[0]]
        assert ledger.committable() == (finished[-1] + 1 if finished else None)
        assert ledger.outstanding == len([batch for batch in taken if batch not in finished])
        assert (ledger.committable() or 0) >= before
        before = ledger.committable() or 0


def test_offsets_without_a_record_are_passed_when_all_before_them_is_done() -> None:
    """The marker at the end of a transaction, 10, is committed past once its records are acknowledged."""
    ledger = Ledger()
    ledger.begin(0)
    ledger.deliver(9)
    ledger.pass_over(10, 11)
    assert ledger.committable() is None
    ledger.acknowledge(9)
    assert ledger.committable() == 11


def test_a_partition_that_begins_with_them_is_passed_at_once() -> None:
    ledger = Ledger()
    ledger.begin(5)
    ledger.pass_over(5, 8)
    assert ledger.committable() == 8


def test_they_are_not_passed_where_a_batch_before_them_was_not_delivered() -> None:
    """It was fetched, and taken away in a rebalance: it is read again."""
    ledger = Ledger()
    ledger.begin(0)
    ledger.pass_over(10, 11)
    assert ledger.committable() is None
