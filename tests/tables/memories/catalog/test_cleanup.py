"""What cleanup would do: each verdict beside a second reckoning in plain Python, and each rule's border."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.lifecycle import DAY_MS, half_life_of, score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import CleanupSettings, LifecycleSettings, WhitelistSettings
from tables.memories.catalog.archive import ToArchive
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes, NewLink
from tables.memories.catalog.cleanup import Candidate, Kind, Verdicts
from tests.support.examples import examples
from tests.support.making import START
from tests.tables.memories.catalog.test_catalog import adding, memory, opened

NOW = START + 400 * DAY_MS
#: Importance 60 is worth 30 after the fresh week and one half-life of 15 days.
FADED_DAYS = 22


def lifecycle(cold: float = 30.0, whitelist: dict[str, Any] | None = None, **cleanup: Any) -> LifecycleSettings:
    white = WhitelistSettings.model_validate(whitelist or {})
    return LifecycleSettings(cold=cold, cleanup=CleanupSettings(whitelist=white, **cleanup))


def link(source: Memory, target: Memory, weight: float = 1.0) -> NewLink:
    return NewLink("u", source.id, target.id, "related", weight, START)


def faded(seq: int, days: float = FADED_DAYS + 30, ms: int = 1, **fields: Any) -> Memory:
    """Deprecated since `days` - 22 days and `ms` milliseconds, as of NOW."""
    return memory(seq, **{"importance": 60.0, "last_accessed": int(NOW - days * DAY_MS) - ms, **fields})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = opened(tmp_path)
    yield catalog
    catalog.close()


def hold(catalog: Catalog, *memories: Memory, links: Sequence[NewLink] = ()) -> None:
    changes = adding(*memories)
    changes.links.extend(links)
    catalog.write(changes, START)


def archive(catalog: Catalog, *memories: Memory, at: int) -> None:
    catalog.write(Changes(archived=[ToArchive(one.seq, at, "manual") for one in memories]), at)


def verdicts(catalog: Catalog, rules: LifecycleSettings, now: int = NOW, user: str | None = None) -> dict[int, Any]:
    """By number, the exemption of each candidate."""
    return {one.memory_id.int: one.exemption for one in catalog.cleanup.verdicts(now, rules, user, 100).candidates}


IMPORTANCES = [0.0, 15.0, 29.99, 30.0, 30.01, 45.5, 60.0, 100.0]
RULES = st.builds(
    lifecycle,
    cold=st.sampled_from([0.0, 15.0, 30.0]),
    whitelist=st.fixed_dictionaries(
        {
            "users": st.sampled_from([[], ["v"]]),
            "ids": st.sampled_from([[], [str(uuid.UUID(int=3))]]),
            "tags": st.sampled_from([[], ["keep", "1"]]),
        }
    ),
    after_days=st.sampled_from([0.0, 1.5, 30.0]),
    recent_access_days=st.sampled_from([0.0, 7.0, 40.0]),
    link_weight=st.sampled_from([0.0, 0.7]),
)
META: list[dict[str, Any]] = [
    {},
    {"tags": ["keep"]},
    {"tags": "keep"},
    {"tags": ["other", 1]},
    {"tags": {"keep": 1}},
    {"tags": None},
    {"other": ["keep"]},
]


@st.composite
def held(draw: st.DrawFn) -> tuple[LifecycleSettings, list[Memory], list[NewLink]]:
    """Rules, and memories whose last access lies at their borders or anywhere else."""
    rules = draw(RULES)
    memories = []
    for seq in range(1, draw(st.integers(2, 9))):
        importance = draw(st.sampled_from(IMPORTANCES))
        borders = [rules.cleanup.recent_access_days * DAY_MS, rules.cleanup.after_days * DAY_MS]
        if 0 < rules.cold <= importance:
            borders.append(
                borders[1]
                + 7 * DAY_MS
                + half_life_of(importance, rules) * DAY_MS * math.log2(importance / rules.cold)
            )
        age = draw(st.one_of(st.sampled_from(borders), st.integers(0, 300 * DAY_MS))) + draw(st.integers(-1, 1))
        stand_in = draw(st.sampled_from([None, None, seq - 1, 99]))
        memories.append(
            memory(
                seq,
                user_id=draw(st.sampled_from(["u", "v"])),
                importance=importance,
                created_at=NOW - draw(st.sampled_from([0, 30 * DAY_MS, 30 * DAY_MS + 1, 300 * DAY_MS])),
                last_accessed=NOW - max(0, int(age)),
                pinned=draw(st.integers(0, 5)) == 0,
                meta=draw(st.sampled_from(META)),
                summary_of=draw(st.sampled_from([(), (), (uuid.UUID(int=98),)])),
                summarized_by=None if stand_in is None else uuid.UUID(int=stand_in),
            )
        )
    ends = st.sampled_from([*(one.id for one in memories), uuid.UUID(int=99)])
    weights = st.sampled_from([0.0, 0.69, 0.7, 1.0])
    links = draw(
        st.lists(
            st.builds(lambda one, other, weight: NewLink("u", one, other, "r", weight, START), ends, ends, weights)
        )
    )
    return rules, memories, [one for one in links if one.source_id != one.target_id]


def expected(rules: LifecycleSettings, memories: list[Memory], links: list[NewLink]) -> dict[int, Candidate]:
    """The verdicts, reckoned memory by memory."""
    here = {one.id: one for one in memories}
    settings, white = rules.cleanup, rules.cleanup.whitelist
    found = {}
    for one in memories:
        moments: dict[str, float] = {}
        if one.importance < rules.cold:
            moments["deprecated"] = one.last_accessed
        elif rules.cold > 0 and not one.pinned:
            days = rules.fresh_days + half_life_of(one.importance, rules) * math.log2(one.importance / rules.cold)
            moments["deprecated"] = one.last_accessed + math.floor(days * DAY_MS)
        summary = here.get(one.summarized_by) if one.summarized_by else None
        if summary is not None and summary.summary_of:
            moments["summarized"] = summary.created_at
        if not moments or NOW - min(moments.values()) <= settings.after_days * DAY_MS:
            continue
        cause = min(moments, key=lambda name: moments[name])
        tags = one.meta.get("tags")
        tags = [tags] if isinstance(tags, str) else [str(tag) for tag in tags] if isinstance(tags, list) else []
        partners = {
            end
            for each in links
            if each.weight >= settings.link_weight
            for end, other in ((each.source_id, each.target_id), (each.target_id, each.source_id))
            if other == one.id
        }
        exemption = None
        if one.pinned:
            exemption = "pinned"
        elif one.user_id in white.users or one.id in white.ids or set(tags) & set(white.tags):
            exemption = "whitelist"
        elif partners & here.keys():
            exemption = "link"
        elif NOW - one.last_accessed <= settings.recent_access_days * DAY_MS:
            exemption = "recent access"
        found[one.seq] = Candidate(
            one.id,
            one.user_id,
            one.text,
            int(moments[cause]),
            score_of(one, NOW, rules),
            one.last_accessed,
            cause,  # type: ignore[arg-type]
            exemption,  # type: ignore[arg-type]
        )
    return found


@pytest.mark.slow
@examples(60)
@given(held())
def test_each_verdict_is_that_of_a_second_reckoning(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[LifecycleSettings, list[Memory], list[NewLink]]
) -> None:
    rules, memories, links = drawn
    catalog = opened(tmp_path_factory.mktemp("any"))
    hold(catalog, *memories, links=links)
    found = catalog.cleanup.verdicts(NOW, rules, None, 100)
    wanted = expected(rules, memories, links)
    assert {one.memory_id.int: one._replace(score=0) for one in found.candidates} == {
        seq: one._replace(score=0) for seq, one in wanted.items()
    }
    assert [one.score for one in found.candidates] == pytest.approx(
        [wanted[one.memory_id.int].score for one in found.candidates]
    )
    assert found.counts == Counter(Kind(one.cause, one.exemption) for one in wanted.values())
    mine = catalog.cleanup.verdicts(NOW, rules, "v", 100).candidates
    assert mine == [one for one in found.candidates if one.user_id == "v"]
    catalog.close()


@pytest.mark.slow
@examples(30)
@given(
    importance=st.floats(0, 100),
    cold=st.floats(0.5, 69),
    fresh=st.floats(0, 30),
    half_life=st.floats(0.01, 1000),
)
def test_it_is_deprecated_from_the_moment_on_at_which_the_formula_says_so(
    tmp_path_factory: pytest.TempPathFactory, importance: float, cold: float, fresh: float, half_life: float
) -> None:
    """A second before it is not, a second later it is."""
    rules = LifecycleSettings(
        cold=cold, fresh_days=fresh, half_life_days=half_life, cleanup=CleanupSettings(after_days=0)
    )
    catalog, kept = opened(tmp_path_factory.mktemp("any")), memory(1, importance=importance)
    hold(catalog, kept)
    # At importance 100 a half-life is 8,000 days at most, and from 100 to 0.5 there are 7.7 of them.
    (found,) = catalog.cleanup.verdicts(START + 100_000 * DAY_MS, rules, None, 1).candidates
    assert state_of(score_of(kept, found.since + 1000, rules), rules) is State.DEPRECATED
    if importance >= cold:
        assert state_of(score_of(kept, found.since - 1000, rules), rules) is not State.DEPRECATED
    else:
        assert found.since == kept.last_accessed
    catalog.close()


def test_it_goes_a_millisecond_after_thirty_days(catalog: Catalog) -> None:
    """Whatever a recompute has stored of its state: at thirty days exactly it stays."""
    hold(catalog, faded(1), faded(2, ms=0), faded(3, days=FADED_DAYS))
    assert verdicts(catalog, lifecycle()) == {1: None}
    assert verdicts(catalog, lifecycle(after_days=0)) == {1: None, 2: None, 3: None}


def test_where_nothing_is_deprecated_nothing_goes(catalog: Catalog) -> None:
    """A `cold` of 0 is a score that none is below."""
    hold(catalog, faded(1), faded(2, importance=0.0))
    assert verdicts(catalog, lifecycle(cold=0.0)) == {}


def test_what_a_summary_stands_for_goes_after_as_long(catalog: Catalog) -> None:
    """Counted from the summary's making, however much the original is worth."""
    whole = memory(9, created_at=NOW - 30 * DAY_MS - 1, summary_of=(uuid.UUID(int=1),), last_accessed=NOW)
    late = memory(8, created_at=NOW - 30 * DAY_MS, summary_of=(uuid.UUID(int=2),), last_accessed=NOW)
    old = {"importance": 100.0, "last_accessed": NOW - 20 * DAY_MS}
    hold(catalog, whole, late, memory(1, summarized_by=whole.id, **old), memory(2, summarized_by=late.id, **old))
    (found,) = catalog.cleanup.verdicts(NOW, lifecycle(), None, 10).candidates
    assert (found.memory_id.int, found.since, found.cause) == (1, whole.created_at, "summarized")


def test_what_an_archived_summary_stands_for_stays(catalog: Catalog) -> None:
    """Or nothing would be left to be found of either."""
    whole = memory(9, created_at=START, summary_of=(uuid.UUID(int=1),))
    hold(catalog, whole, memory(1, summarized_by=whole.id, last_accessed=NOW - 20 * DAY_MS))
    assert verdicts(catalog, lifecycle()) == {1: None, 9: None}
    archive(catalog, whole, at=NOW)
    assert verdicts(catalog, lifecycle()) == {}


def test_pinned_ones_stay(catalog: Catalog) -> None:
    """One that decays is no candidate at all; one that was never worth as much, and one that is summed up, are."""
    whole = memory(9, created_at=START, summary_of=(uuid.UUID(int=2),), last_accessed=NOW)
    hold(
        catalog,
        faded(1, pinned=True, importance=20.0),
        memory(2, pinned=True, summarized_by=whole.id),
        faded(3, pinned=True),
        whole,
    )
    assert verdicts(catalog, lifecycle()) == {1: "pinned", 2: "pinned"}


@pytest.mark.parametrize(
    "whitelist",
    [{"users": ["u"]}, {"ids": [str(uuid.UUID(int=1))]}, {"tags": ["keep"]}, {"tags": ["x", "work"]}],
)
def test_the_whitelist_names_users_ids_and_tags(catalog: Catalog, whitelist: dict[str, Any]) -> None:
    hold(catalog, faded(1, meta={"tags": ["keep", "work"]}), faded(2, user_id="v", meta={"tags": ["keeper"]}))
    assert verdicts(catalog, lifecycle(whitelist=whitelist)) == {1: "whitelist", 2: None}


def test_a_strong_link_keeps_both_its_ends(catalog: Catalog) -> None:
    """From 0.7 on, as long as the other end is among the memories."""
    ends = [faded(seq) for seq in range(1, 7)]
    hold(
        catalog, *ends, links=[link(ends[0], ends[1], 0.7), link(ends[2], ends[3], 0.69), link(ends[4], ends[5], 1.0)]
    )
    archive(catalog, ends[5], at=NOW)
    assert verdicts(catalog, lifecycle()) == {1: "link", 2: "link", 3: None, 4: None, 5: None}
    assert verdicts(catalog, lifecycle(link_weight=0.6))[3] == "link"


def test_what_was_accessed_within_a_week_stays(catalog: Catalog) -> None:
    """To the millisecond, and though it was never worth as much as a cold one."""
    hold(
        catalog,
        memory(1, importance=10.0, last_accessed=NOW - 7 * DAY_MS),
        memory(2, importance=10.0, last_accessed=NOW - 7 * DAY_MS - 1),
    )
    assert verdicts(catalog, lifecycle(after_days=1)) == {1: "recent access", 2: None}


def test_those_that_go_come_first_and_the_longest_due_of_them(catalog: Catalog) -> None:
    """Counted are all, whatever the limit."""
    hold(catalog, faded(1, days=80, pinned=True, importance=10.0), faded(2, days=70), faded(3, days=80), faded(4))
    found = catalog.cleanup.verdicts(NOW, lifecycle(), None, 2)
    assert [one.memory_id.int for one in found.candidates] == [3, 2]
    assert (found.going_by_cause, found.exempt) == ({"deprecated": 3}, {"pinned": 1})


def removable(catalog: Catalog, rules: LifecycleSettings, user: str | None = None) -> Verdicts:
    return catalog.cleanup.verdicts(NOW, rules, user, 100)


def test_what_was_archived_for_longer_than_ninety_days_is_removable(catalog: Catalog) -> None:
    old, border, theirs = memory(1), memory(2), memory(3, user_id="v")
    hold(catalog, old, border, theirs)
    archive(catalog, old, theirs, at=NOW - 90 * DAY_MS - 1)
    archive(catalog, border, at=NOW - 90 * DAY_MS)
    found = removable(catalog, lifecycle())
    assert [(one.memory_id.int, one.text, one.cause, one.exemption) for one in found.candidates] == [
        (1, "text 1", "archived", None),
        (3, "text 3", "archived", None),
    ]
    assert found.candidates[0].since == NOW - 90 * DAY_MS - 1
    assert removable(catalog, lifecycle(), "v").going_by_cause == {"archived": 1}
    assert removable(catalog, lifecycle(retention_days=None)) == Verdicts()


def test_nothing_pinned_or_whitelisted_is_removable(catalog: Catalog) -> None:
    """However it came into the archive."""
    kept = [memory(1, pinned=True), memory(2, meta={"tags": ["keep"]}), memory(3)]
    hold(catalog, *kept)
    archive(catalog, *kept, at=START)
    found = removable(catalog, lifecycle(whitelist={"tags": ["keep"]}))
    assert (found.going_by_cause, found.exempt) == ({"archived": 1}, {"pinned": 1, "whitelist": 1})
