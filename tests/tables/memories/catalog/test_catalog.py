"""The rows of one shard, in a real DuckDB file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.errors import DamagedShard, DataDirError, EmbeddingMismatch
from schemas.lifecycle import DAY_MS, score_of, state_of
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from schemas.times import iso
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes, Merged, NewLink, Tombstone, Unlinked
from tests.support.examples import examples
from tests.support.making import START, axis

DIMENSION = 8
LIFECYCLE = LifecycleSettings()
#: Importance 70 is worth 35 after the fresh week and one half-life of 30 days.
HALVED = START + 37 * DAY_MS


def memory(seq: int, **fields: Any) -> Memory:
    kept = Memory(
        seq=seq,
        id=uuid.UUID(int=seq),
        user_id="u",
        session_id="s",
        agent_id=None,
        text=f"text {seq}",
        kind="exchange",
        message_ids=(f"m{seq}",),
        importance=70.0,
        created_at=START,
        last_accessed=START,
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta={},
    )
    return replace(kept, **fields)


def adding(*memories: Memory) -> Changes:
    return Changes(
        new={kept.seq: kept for kept in memories},
        vectors={kept.seq: axis(kept.seq % DIMENSION) for kept in memories},
        numbered=len(memories),
    )


def dropping(*memories: Memory) -> Changes:
    return Changes(dropped=[kept.seq for kept in memories], forgotten=[(kept.user_id, kept.id) for kept in memories])


def opened(folder: Path) -> Catalog:
    catalog = Catalog(folder / "catalog.duckdb", 0)
    catalog.bind_model("toy", DIMENSION)
    return catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = opened(tmp_path)
    yield catalog
    catalog.close()


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What stands in the file, once nobody has it open."""
    with duckdb.connect(str(folder / "catalog.duckdb"), read_only=True) as db:
        return db.execute(sql).fetchall()


def test_a_memory_reads_back_as_it_was_written(catalog: Catalog) -> None:
    """By id, by number and by user; times to the millisecond."""
    kept = memory(
        1,
        session_id=None,
        agent_id="bot",
        message_ids=("a", "b"),
        importance=71.25,
        created_at=START + 1,
        last_accessed=START + 999,
        access_count=3,
        state=State.COLD,
        pinned=True,
        meta={"promotion": {"value": None}, "表情": ["🪨", 1.5]},
    )
    catalog.write(adding(kept), START)
    assert catalog.by_id([("u", kept.id), ("u", uuid.UUID(int=99)), ("v", kept.id)]) == [kept]
    assert catalog.by_seq([1, 99]) == {1: kept}
    assert catalog.of_user("u") == [kept]
    assert catalog.of_user("v") == []


@pytest.mark.slow
@examples(30)
@given(
    text=st.text(st.characters(codec="utf-8"), max_size=50), name=st.text(st.characters(codec="utf-8"), min_size=1)
)
@example(text="\0", name="\0")
@example(text="'; DROP TABLE memories; --", name="%s ? $1")
def test_any_text_reads_back(tmp_path_factory: pytest.TempPathFactory, text: str, name: str) -> None:
    catalog = opened(tmp_path_factory.mktemp("any"))
    kept = memory(1, text=text, user_id=name, message_ids=(name,), meta={name: text, "list": [text]})
    catalog.write(adding(kept), START)
    assert catalog.of_user(name) == [kept]
    catalog.close()


def test_the_newest_number_goes_on_after_reopening(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    assert catalog.next_seq == 1
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.close()
    catalog = opened(tmp_path)
    assert (catalog.next_seq, catalog.count(), catalog.ageing.newest_event()) == (3, 2, START)
    catalog.close()


def test_an_empty_catalog_has_no_newest_event(catalog: Catalog) -> None:
    assert (catalog.ageing.newest_event(), catalog.count(), catalog.seqs().tolist()) == (0, 0, [])


def test_vectors_come_with_their_users_in_the_order_asked_for(catalog: Catalog) -> None:
    catalog.write(adding(memory(1), memory(2, user_id="v"), memory(3)), START)
    users, vectors = catalog.vectors(np.array([3, 2], np.int64))
    assert users == ["u", "v"]
    assert vectors.tolist() == [axis(3).tolist(), axis(2).tolist()]
    assert catalog.seqs().tolist() == [1, 2, 3]


def test_an_update_changes_what_access_can_change_and_nothing_else(catalog: Catalog) -> None:
    one, two = memory(1), memory(2)
    catalog.write(adding(one, two), START)
    changed = replace(
        one,
        message_ids=("m1", "m9"),
        importance=95.0,
        last_accessed=START + 5,
        access_count=7,
        pinned=True,
        meta={"a": 1},
    )
    said_again = Merged(uuid.UUID(int=9), "u", one.id, START)
    catalog.write(Changes(updated={one.seq: changed}, merged=[said_again]), START)
    assert catalog.of_user("u") == [changed, two]


def test_a_forgotten_memory_takes_its_vector_and_its_links_along(catalog: Catalog, tmp_path: Path) -> None:
    one, two, three = memory(1), memory(2), memory(3)
    links = [NewLink("u", a.id, b.id, "related", 1.0, START) for a, b in ((one, two), (two, one), (two, three))]
    catalog.write(replace_links(adding(one, two, three), links), START)
    catalog.write(dropping(one), START)
    assert catalog.seqs().tolist() == [2, 3]
    catalog.close()
    assert rows(tmp_path, "SELECT source_id, target_id FROM links") == [(two.id, three.id)]


def replace_links(changes: Changes, links: list[NewLink]) -> Changes:
    changes.links = links
    return changes


def test_an_unlink_removes_that_kind_alone(catalog: Catalog, tmp_path: Path) -> None:
    one, two = memory(1), memory(2)
    links = [NewLink("u", one.id, two.id, kind, 0.5, START) for kind in ("related", "cause")]
    catalog.write(replace_links(adding(one, two), links), START)
    catalog.write(Changes(unlinked=[Unlinked("u", one.id, two.id, "related")]), START)
    catalog.close()
    assert rows(tmp_path, "SELECT kind, weight FROM links") == [("cause", 0.5)]


def test_events_that_are_in_are_known(catalog: Catalog) -> None:
    """To their user; another user's event of the same id is another one."""
    first, second = ("u", uuid.UUID(int=1)), ("u", uuid.UUID(int=2))
    catalog.write(Changes(applied=[first]), START)
    assert catalog.applied([first, second, ("v", first[1])]) == {first}
    assert catalog.applied([]) == set()


def test_what_was_applied_is_known_without_a_statement_also_after_reopening(tmp_path: Path) -> None:
    """Events and memories; of a memory that was removed its event is left."""
    event = uuid.UUID(int=1)
    made = memory(0)
    catalog = opened(tmp_path)
    catalog.write(replace(adding(made), applied=[("u", event)]), START)
    ids = [event, made.id, uuid.UUID(int=2)]
    assert catalog.ids.known(ids).tolist() == [True, True, False]
    assert catalog.ids.known([]).tolist() == []
    catalog.write(dropping(made), START)
    catalog.close()
    catalog = opened(tmp_path)
    assert catalog.ids.known(ids).tolist() == [True, False, False]
    catalog.close()


def test_tombstones_are_found_by_their_user(catalog: Catalog) -> None:
    """Without a memory's id, one is about everything up to its time."""
    tombstones = [
        Tombstone("u", uuid.UUID(int=1), START),
        Tombstone("u", None, START + 7),
        Tombstone("v", None, START),
    ]
    catalog.write(Changes(tombstones=tombstones), START)
    assert catalog.tombstones(["u", "w"]) == tombstones[:2]


def test_a_write_that_fails_leaves_nothing_behind(catalog: Catalog) -> None:
    """Neither the rows before the fault nor the note that the event is in; the next write works."""
    event = ("u", uuid.UUID(int=1))
    changes = adding(memory(1))
    changes.applied.append(event)
    changes.vectors = dict.fromkeys(changes.new, axis(0, DIMENSION + 1))
    with pytest.raises(ValueError, match="dimension"):
        catalog.write(changes, START)
    assert (catalog.count(), catalog.seqs().tolist(), catalog.applied([event])) == (0, [], set())
    catalog.write(adding(memory(1)), START)
    assert catalog.count() == 1


def test_a_removal_goes_back_when_the_rest_of_its_batch_fails(catalog: Catalog) -> None:
    one = memory(1)
    catalog.write(adding(one), START)
    changes = adding(memory(2))
    changes.dropped.append(one.seq)
    changes.vectors = dict.fromkeys(changes.new, axis(0, DIMENSION + 1))
    with pytest.raises(ValueError, match="dimension"):
        catalog.write(changes, START)
    assert catalog.of_user("u") == [one]


def test_the_model_is_noted_once(tmp_path: Path) -> None:
    opened(tmp_path).close()
    opened(tmp_path).close()


@pytest.mark.parametrize(("model", "dimension"), [("other", DIMENSION), ("toy", DIMENSION + 1)])
def test_vectors_of_another_model_are_refused(catalog: Catalog, model: str, dimension: int) -> None:
    """The error names both models, and what an operator can do."""
    with pytest.raises(EmbeddingMismatch, match=rf"from toy \(8 dimensions\), not from {model}.*siltstone reembed"):
        catalog.bind_model(model, dimension)


@pytest.mark.parametrize("name", ["0", "clock"])
def test_a_file_that_is_no_database_is_a_damaged_shard(tmp_path: Path, name: str) -> None:
    """And not taken for a locked one, whatever words its path contains."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "catalog.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(DamagedShard) as caught:
        Catalog(folder / "catalog.duckdb", 0)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_the_data_directorys_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirError):
        Catalog(tmp_path / "file" / "catalog.duckdb", 0)


def states(catalog: Catalog) -> list[str]:
    return [kept.state.value for kept in catalog.of_user("u")]


def test_recompute_writes_only_what_changes(catalog: Catalog) -> None:
    """70 halves to 35 and turns cold; the pinned and the just accessed stay active and get no entry."""
    catalog.write(adding(memory(1), memory(2, pinned=True), memory(3, last_accessed=HALVED)), START)
    assert catalog.ageing.recompute(HALVED, LIFECYCLE) == ["u"]
    assert states(catalog) == ["cold", "active", "active"]
    assert [kept.meta for kept in catalog.of_user("u")[1:]] == [{}, {}]
    (transition,) = catalog.ageing.unpublished()
    assert (transition.memory_id, transition.from_, transition.to) == (uuid.UUID(int=1), "active", "cold")
    assert (transition.score, transition.at) == (35, "2026-02-07T00:00:00.000Z")
    assert catalog.ageing.recompute(HALVED, LIFECYCLE) == []
    assert len(catalog.ageing.unpublished()) == 1


def test_recompute_names_each_user_once(catalog: Catalog) -> None:
    catalog.write(adding(memory(1), memory(2), memory(3, user_id="v"), memory(4, user_id="w", pinned=True)), START)
    assert sorted(catalog.ageing.recompute(HALVED, LIFECYCLE)) == ["u", "v"]


def test_a_change_of_state_stands_in_the_memorys_meta(catalog: Catalog) -> None:
    """With time, states and score; what else is there stays, nulls too."""
    catalog.write(adding(memory(1, meta={"a": None, "promotion": {"value": None}})), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    (kept,) = catalog.of_user("u")
    assert kept.meta == {
        "a": None,
        "promotion": {"value": None},
        "transitions": [{"at": "2026-02-07T00:00:00.000Z", "from": "active", "to": "cold", "score": 35.0}],
    }


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"promotion": {"value": None, "total": 800}},
        {"a": '他说 }"', "b": [1.5, {"c": {}}]},
        {"said": 'of "transitions" and {}'},
        {"speakers": ["Eve"], "transitions": []},
    ],
)
def test_a_first_change_is_written_as_a_merge_would_write_it(catalog: Catalog, meta: dict[str, Any]) -> None:
    """To the byte, though mostly nothing is merged."""
    catalog.write(adding(memory(1, meta=meta)), START)
    merged = (
        "SELECT json_merge_patch(?, json_object('transitions', [json_object('at', ?, 'from', 'active', 'to', 'cold', "
    )
    expected = catalog._db.execute(
        f"{merged}'score', 35.0)]))", [orjson.dumps(meta).decode(), iso(HALVED)]
    ).fetchall()
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    assert catalog._db.execute("SELECT meta FROM memories").fetchall() == expected


@pytest.mark.slow
def test_a_memorys_meta_keeps_its_newest_20_changes(catalog: Catalog) -> None:
    catalog.write(adding(memory(1)), START)
    moments = [HALVED + step if step % 2 == 0 else START + step for step in range(25)]
    for moment in moments:
        catalog.ageing.recompute(moment, LIFECYCLE)
    (kept,) = catalog.of_user("u")
    entries = kept.meta["transitions"]
    assert len(entries) == 20
    assert [entry["to"] for entry in entries[-2:]] == ["active", "cold"]
    assert len(catalog.ageing.unpublished()) == 25


@pytest.mark.parametrize("theirs", ["a bus line", 5, {"a": 1}, [1, 2], None])
def test_a_services_own_field_named_transitions_stops_nothing(catalog: Catalog, theirs: object) -> None:
    """A message's metadata must not keep a whole shard from ageing."""
    catalog.write(adding(memory(1, meta={"transitions": theirs}), memory(2)), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    assert states(catalog) == ["cold", "cold"]


def test_transitions_are_published_oldest_first_and_once(catalog: Catalog) -> None:
    catalog.write(adding(*(memory(seq) for seq in range(1, 4))), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    catalog.ageing.recompute(HALVED + 60 * DAY_MS, LIFECYCLE)
    every = catalog.ageing.unpublished()
    assert [transition.to for transition in every] == ["cold"] * 3 + ["deprecated"] * 3
    assert catalog.ageing.unpublished(limit=2) == every[:2]
    catalog.ageing.mark_published(4)
    assert catalog.ageing.unpublished() == every[4:]
    catalog.ageing.mark_published(2)
    assert catalog.ageing.unpublished() == []


def test_unpublished_transitions_survive_reopening(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    catalog.ageing.mark_published(1)
    due = catalog.ageing.unpublished()
    catalog.close()
    catalog = opened(tmp_path)
    assert catalog.ageing.unpublished() == due
    assert len(due) == 1
    catalog.close()


def test_states_are_counted_as_of_now_without_writing(catalog: Catalog) -> None:
    later = START + 200 * DAY_MS
    catalog.write(adding(memory(1), memory(2, last_accessed=later - 37 * DAY_MS), memory(3, pinned=True)), START)
    assert catalog.ageing.state_counts(later, LIFECYCLE) == {State.ACTIVE: 1, State.COLD: 1, State.DEPRECATED: 1}
    assert states(catalog) == ["active"] * 3


def test_an_empty_catalog_counts_zero_of_each_state(catalog: Catalog) -> None:
    assert catalog.ageing.state_counts(START, LIFECYCLE) == dict.fromkeys(State, 0)


AGES = st.one_of(
    st.integers(-DAY_MS, 400 * DAY_MS), st.sampled_from([7, 22, 37, 67, 247]).map(lambda days: days * DAY_MS)
)
IMPORTANCES = st.one_of(st.floats(0, 100), st.sampled_from([70.0, 30.0, 60.0, 100.0, np.nextafter(70, 0).item()]))
SETTINGS = st.builds(
    lambda fresh, half, cold, above: LifecycleSettings(
        fresh_days=fresh, half_life_days=half, cold=cold, active=min(100, cold + above)
    ),
    st.floats(0, 100),
    st.floats(0.01, 1000),
    st.floats(0, 99),
    st.floats(0.5, 100),
)


@pytest.mark.slow
@examples(40)
@given(st.lists(st.tuples(IMPORTANCES, AGES, st.booleans()), min_size=1, max_size=20), st.just(LIFECYCLE) | SETTINGS)
@example([(70.0, 0, False), (30.0, 0, False), (60.0, 22 * DAY_MS, False), (100.0, -5, True)], LIFECYCLE)
def test_the_statements_and_the_rule_are_one_formula(
    tmp_path_factory: pytest.TempPathFactory, aged: list[tuple[float, int, bool]], lifecycle: LifecycleSettings
) -> None:
    """Scores, states and counts in SQL equal schemas/lifecycle.py, exactly at the borders too."""
    catalog = opened(tmp_path_factory.mktemp("formula"))
    now = START + 500 * DAY_MS
    kept = [
        memory(seq, importance=importance, last_accessed=now - age, pinned=pinned)
        for seq, (importance, age, pinned) in enumerate(aged)
    ]
    scores = [score_of(one, now, lifecycle) for one in kept]
    expected = [state_of(score, lifecycle) for score in scores]
    catalog.write(adding(*kept), START)
    assert catalog.ageing.state_counts(now, lifecycle) == {state: expected.count(state) for state in State}
    catalog.ageing.recompute(now, lifecycle)
    assert [one.state for one in catalog.of_user("u")] == expected
    written = {transition.memory_id: transition.score for transition in catalog.ageing.unpublished()}
    catalog.close()
    changed = {one.id: score for one, score, state in zip(kept, scores, expected, strict=True) if state != one.state}
    assert written == changed


def test_a_score_of_exactly_70_is_active_and_of_exactly_30_is_cold(catalog: Catalog) -> None:
    """70 is active while it is fresh; 60 halves to 30 after 22 days. One bit less is the next state."""
    catalog.write(
        adding(
            memory(1, importance=70.0, last_accessed=HALVED),
            memory(2, importance=np.nextafter(70.0, 0).item(), last_accessed=HALVED),
            memory(3, importance=60.0, last_accessed=HALVED - 22 * DAY_MS),
            memory(4, importance=np.nextafter(60.0, 0).item(), last_accessed=HALVED - 22 * DAY_MS),
        ),
        START,
    )
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    assert states(catalog) == ["active", "cold", "cold", "deprecated"]


def test_a_question_does_not_stand_in_the_way_of_the_next(catalog: Catalog) -> None:
    """DuckDB refuses other work while a result is not read to its end."""
    catalog.write(adding(memory(1)), START)
    for ask in (catalog.count, catalog.ageing.newest_event, catalog.info.read, catalog.ageing.unpublished):
        ask()
        assert catalog.applied([("u", uuid.UUID(int=1))]) == set()
