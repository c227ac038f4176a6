"""Until when checkpoints may hold what was forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tables.checkpoints.erasing import may_hold
from tables.checkpoints.manifest import Manifest, Pack
from tests.tables.checkpoints.made import facts

TERM = timedelta(milliseconds=900)
FORGOTTEN = 10_000


def generation(at: int, *dead_since: int) -> Manifest:
    return Manifest(1, facts(at=at), tuple(Pack(str(n), 10, since) for n, since in enumerate(dead_since)), ())


@pytest.mark.parametrize(
    ("generations", "later", "held"),
    [
        ([], 0, False),
        ([generation(FORGOTTEN - 1)], 0, True),
        ([generation(FORGOTTEN + 1)], 899, True),
        ([generation(FORGOTTEN + 1)], 900, False),
        ([generation(FORGOTTEN + 1, 0, FORGOTTEN + 601)], 900, False),
        ([generation(FORGOTTEN + 1, 0, FORGOTTEN + 600)], 900, True),
        ([generation(FORGOTTEN + 800), generation(FORGOTTEN)], 900, True),
    ],
    ids=["none", "older", "in the term", "behind it", "dead later", "dead for long", "one that is as old"],
)
def test_they_may_up_to_the_term_and_behind_it_where_no_take_has_followed(
    generations: list[Manifest], later: int, held: bool
) -> None:
    assert may_hold(generations, FORGOTTEN, FORGOTTEN + later, TERM) is held
