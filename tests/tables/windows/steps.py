"""What happens to a table's rows by user, step by step: changes, flushes that succeed or fail, moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import orjson
from hypothesis import strategies as st

from tables.windows.rows import Change
from tables.windows.rows_by_user import RowsByUser

Row = TypeVar("Row")

#: What, in which partition, of which user, and which of the user's rows.
Step = tuple[str, int, str, int]
USERS, PARTITIONS = "abc", (0, 1)
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "restore", "own", "take", "written", "failed", "undo"]),
        st.sampled_from(PARTITIONS),
        st.sampled_from(USERS),
        st.integers(0, 3),
    ),
    max_size=30,
)


def each_step(
    rows: RowsByUser[Row], steps: Sequence[Step], made: Callable[[str, int, int], Row], encode: Callable[[Row], bytes]
) -> Iterator[None]:
    """Take the steps one by one; `made` is the row of a user, by its number and that of the step."""
    taken = list[Change]()
    for number, (what, partition, user, place) in enumerate(steps):
        key, row = orjson.dumps((user, f"{place}")), made(user, place, number)
        match what:
            case "put":
                rows.put(partition, key, row)
            case "delete":
                rows.delete(partition, key)
            case "restore":
                rows.restore(partition, [(key, encode(row))])
            case "take" if not taken:
                taken = rows.drain()
            case "written":
                rows.written(taken)
                taken = []
            case "failed":
                rows.requeue(taken)
                taken = []
            case "undo":
                rows.undo()
            case "own":
                rows.own(frozenset({partition}))
        yield
