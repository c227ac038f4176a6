"""Which offset may be committed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streams.hotpath.ledger import Ledger


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
