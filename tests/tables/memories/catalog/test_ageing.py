"""A recompute looks only at memories whose state can have changed, and stores what looking at all would."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.lifecycle import DAY_MS, half_life_of, score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.memories.catalog.next_checks import NEVER, NextChecks
from tests.support.examples import examples
from tests.support.making import START
from tests.tables.memories.catalog.test_catalog import HALVED, LIFECYCLE, adding, dropping, memory, opened

LATER = START + 400 * DAY_MS


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return opened(tmp_path)


def changing(*memories: Memory) -> Changes:
    return Changes(updated={kept.seq: kept for kept in memories})


def states(catalog: Catalog) -> list[State]:
    return [kept.state for kept in catalog.of_user("u")]


def looked_at(catalog: Catalog) -> list[int]:
    """The numbers of the memories at which a recompute looked since the last question."""
    seen = [seq for (seq,) in catalog.ageing._db.execute("SELECT seq FROM looked_at ORDER BY seq").fetchall()]
    catalog.ageing._db.execute("DELETE FROM looked_at")
    return seen


def borders(memories: list[Memory], lifecycle: LifecycleSettings) -> list[int]:
    """The last whole milliseconds before each memory's score falls below a threshold, had it never been touched."""
    found = []
    for kept in memories:
        for threshold in (lifecycle.active, lifecycle.cold):
            if 0 < threshold <= kept.importance:
                halvings = math.log2(kept.importance / threshold)
                days = lifecycle.fresh_days + half_life_of(kept.importance, lifecycle) * halvings
                found.append(math.floor(kept.last_accessed + days * DAY_MS))
    return found


SETTINGS = st.builds(
    lambda fresh, half, cold, above: LifecycleSettings(
        fresh_days=fresh, half_life_days=half, cold=cold, active=min(100, cold + above)
    ),
    st.floats(0, 50),
    st.floats(0.01, 100),
    st.sampled_from([0.0, 1e-9, 30.0]) | st.floats(0.001, 99),
    st.floats(0.5, 100),
)
MEMORIES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 30.0, 70.0, 100.0]) | st.floats(0, 100), st.integers(0, 60 * DAY_MS), st.booleans()
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@examples(12)
@given(aged=MEMORIES, lifecycle=st.just(LIFECYCLE) | SETTINGS, data=st.data())
@example(aged=[(60.0, 0, False), (100.0, 5, False)], lifecycle=LIFECYCLE, data=None)
def test_what_is_stored_is_the_rules_state_at_every_moment(
    tmp_path_factory: pytest.TempPathFactory,
    aged: list[tuple[float, int, bool]],
    lifecycle: LifecycleSettings,
    data: st.DataObject | None,
) -> None:
    """To the millisecond around each border, with memories that are touched, come and go in between."""
    with closing(opened(tmp_path_factory.mktemp("ageing"))) as catalog:
        kept = [
            memory(seq, importance=importance, last_accessed=START + after, pinned=pinned)
            for seq, (importance, after, pinned) in enumerate(aged, start=1)
        ]
        catalog.write(adding(*kept), START)
        numbers = count(len(kept) + 1)
        moments = sorted(
            {at + step for at in borders(kept, lifecycle) for step in range(-1, 3)} | {START + 61 * DAY_MS}
        )
        for now in moments:
            catalog.ageing.recompute(now, lifecycle)
            stored = {one.id: one for one in catalog.of_user("u")}
            assert [stored[one.id].state for one in kept] == [
                state_of(score_of(one, now, lifecycle), lifecycle) for one in kept
            ]
            if data is None or not data.draw(st.booleans()):
                continue
            place = data.draw(st.integers(0, len(kept) - 1))
            match data.draw(st.sampled_from(["touch", "pin", "come", "go"])):
                case "touch":
                    importance = min(100.0, kept[place].importance + 2)
                    kept[place] = replace(stored[kept[place].id], importance=importance, last_accessed=now)
                    catalog.write(changing(kept[place]), START)
                case "pin":
                    kept[place] = replace(stored[kept[place].id], pinned=not kept[place].pinned)
                    catalog.write(changing(kept[place]), START)
                case "come":
                    kept.append(memory(next(numbers), last_accessed=now))
                    catalog.write(adding(kept[-1]), START)
                case "go" if len(kept) > 1:
                    catalog.write(dropping(kept.pop(place)), START)


def test_a_recompute_looks_at_what_is_new_was_touched_or_is_old_enough(catalog: Catalog) -> None:
    """70 is active for a week; then it is looked at for the border at 30."""
    one, two = memory(1), memory(2, last_accessed=START + DAY_MS)
    catalog.write(adding(one, two), START)
    border, next_border = borders([one], LIFECYCLE)
    seen = []
    for now in (START, START, border - 5, border + 5, border + 6, next_border - 5, next_border + 5, LATER):
        catalog.ageing.recompute(now, LIFECYCLE)
        seen.append(looked_at(catalog))
    catalog.close()
    assert seen == [[1, 2], [], [], [1], [], [2], [1], [2]]


def test_a_pinned_or_deprecated_memory_is_looked_at_when_it_is_touched(catalog: Catalog) -> None:
    pinned, old = memory(1, pinned=True), memory(2)
    catalog.write(adding(pinned, old), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert states(catalog) == [State.ACTIVE, State.DEPRECATED]
    catalog.write(changing(replace(pinned, pinned=False), replace(old, last_accessed=LATER)), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert states(catalog) == [State.DEPRECATED, State.ACTIVE]
    catalog.close()


def test_other_settings_look_at_all(catalog: Catalog) -> None:
    catalog.write(adding(memory(1, importance=80.0), memory(2, importance=100.0)), START)
    catalog.ageing.recompute(START, LIFECYCLE)
    catalog.ageing.recompute(START, LIFECYCLE.model_copy(update={"active": 90.0}))
    assert states(catalog) == [State.COLD, State.ACTIVE]
    catalog.close()


def test_when_time_goes_back_all_are_looked_at(catalog: Catalog) -> None:
    """The clock of events goes by the newest one, which can be forgotten."""
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    catalog.ageing.recompute(START, LIFECYCLE)
    assert states(catalog) == [State.ACTIVE, State.ACTIVE]
    catalog.close()


def reasons(catalog: Catalog) -> list[tuple[str, str, str]]:
    """Of the transitions that were not told yet."""
    found = catalog.ageing.unpublished()
    catalog.ageing.mark_published(len(found))
    return [(one.from_, one.to, one.reason) for one in found]


def test_what_cools_cools_by_decay_and_what_warms_by_an_access_or_a_pin(catalog: Catalog) -> None:
    accessed, pinned = memory(1), memory(2)
    catalog.write(adding(accessed, pinned), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert reasons(catalog) == [("active", "deprecated", "decay")] * 2
    accessed, pinned = catalog.of_user("u")
    catalog.write(changing(replace(accessed, last_accessed=LATER), replace(pinned, pinned=True)), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert reasons(catalog) == [("deprecated", "active", "access"), ("deprecated", "active", "pin")]
    catalog.write(changing(*(replace(one, pinned=False) for one in catalog.of_user("u"))), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert reasons(catalog) == [("active", "deprecated", "decay")]
    catalog.close()


def test_a_pinned_memory_that_an_access_raises_above_a_border_warms_by_it(catalog: Catalog) -> None:
    pinned = memory(1, importance=69.0, pinned=True)
    catalog.write(adding(pinned), START)
    catalog.ageing.recompute(START, LIFECYCLE)
    catalog.write(changing(replace(pinned, importance=71.0, last_accessed=LATER)), START)
    catalog.ageing.recompute(LATER, LIFECYCLE)
    assert reasons(catalog) == [("active", "cold", "decay"), ("cold", "active", "access")]
    catalog.close()


def test_what_other_settings_or_an_earlier_clock_warm_was_not_accessed(tmp_path: Path) -> None:
    """Settings are changed between two lives of a worker."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1)), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    catalog.close()
    catalog = opened(tmp_path)
    catalog.ageing.recompute(HALVED, LIFECYCLE.model_copy(update={"active": 35.0}))
    catalog.ageing.recompute(LATER, LIFECYCLE.model_copy(update={"active": 35.0}))
    catalog.ageing.recompute(START, LIFECYCLE.model_copy(update={"active": 35.0}))
    assert [reason for _, _, reason in reasons(catalog)] == ["decay", "settings", "decay", "clock"]
    catalog.close()


def test_a_shard_that_was_closed_looks_at_all(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1)), START)
    catalog.ageing.recompute(START, LIFECYCLE)
    catalog.close()
    catalog = opened(tmp_path)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    assert states(catalog) == [State.COLD]
    catalog.close()


def test_due_tells_what_to_look_at() -> None:
    due = NextChecks()
    assert (due.newest, due.at(LATER).tolist()) == (-1, [])
    due.add(np.array([3, 5, 9]))
    assert (due.newest, due.at(1).tolist()) == (9, [3, 5, 9])
    due.set(np.array([5, 3]), np.array([NEVER, 7.0]))
    assert (due.at(6).tolist(), due.at(7).tolist(), due.at(LATER).tolist()) == ([9], [3, 9], [3, 9])


def test_a_number_that_is_not_due_yet_is_passed_over() -> None:
    """Touched before it was ever looked at: it will be added, due at once."""
    due = NextChecks()
    due.set(np.array([1]), 0)
    due.add(np.array([3]))
    due.set(np.array([1, 2, 3, 4]), NEVER)
    assert (due.newest, due.at(LATER).tolist()) == (3, [])


def test_a_number_takes_eight_bytes_until_its_next_look() -> None:
    due = NextChecks()
    for start in range(1, 100_001, 1_000):
        due.add(np.arange(start, start + 1_000))
    due.set(np.arange(1, 100_001), float(LATER))
    assert due.nbytes <= 8 * 100_000 + 100
