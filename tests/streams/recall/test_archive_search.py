"""The archive is searched with terms that were counted once, and only what is shown is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.events import Archive, Edit, Forget, ForgetUser, LongTermEvent, Remove, Restore, Supersede
from schemas.memories import SearchHit, State
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.models.embedding.calibration import COSINE
from streams.recall.answers import archived_answers
from streams.recall.query import PreparedQuery, Query
from tables.memories.shard import Shard
from tables.search import candidates, terms
from tables.search.archived_rows import ArchivedRows
from tables.search.recent import Recent
from tests.support.calls import Statements
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

SAID = [
    promotion(text, f"{place}", at=START + place).model_copy(update={"speakers": [name]})
    for place, (text, name) in enumerate([("I live in Málaga", "Ann"), ("my sister likes hiking", "Bob"),
                                          ("hiking again", "Ann"), ("我住在北京", "Li")])
]  # fmt: skip
IDS = [one.memory_id for one in SAID]


@pytest.fixture
def statements() -> Statements:
    return Statements()


@pytest.fixture
def shard(tmp_path: Path, statements: Statements) -> Iterator[Shard]:
    with statements.counted():
        shard = Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())
    shard.apply(SAID, {one.event_id: axis(place) for place, one in enumerate(SAID)}, START)
    tell(shard, *(event(Archive, memory_id=identity) for identity in IDS[:3]))
    yield shard
    shard.close()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts whose terms are counted."""
    texts, count = list[str](), terms.counted

    def noted(text: str) -> Any:
        texts.append(text)
        return count(text)

    monkeypatch.setattr(candidates, "counted", noted)
    return texts


def tell(shard: Shard, *events: LongTermEvent) -> None:
    shard.apply(events, {one.event_id: axis(7) for one in events if isinstance(one, Edit) and one.text}, START)


def found(shard: Shard, top_k: int = 10) -> list[SearchHit]:
    query = Query("u", "hiking in Málaga", top_k, frozenset(State), replaced=True)
    vector = ((axis(0) + axis(1)) / 2**0.5).astype(np.float32)
    return archived_answers(
        shard, PreparedQuery(query, [query.text], vector[None], COSINE, START, LifecycleSettings())
    )


def test_terms_are_counted_at_the_first_search_alone(shard: Shard, counted: list[str]) -> None:
    first = found(shard)
    assert counted == [one.text for one in SAID[:3]]
    assert {hit.id for hit in first} == set(IDS[:3])
    assert found(shard) == first
    assert len(counted) == 3


def test_a_search_is_a_statement_for_the_vectors_and_one_for_what_is_shown(
    shard: Shard, statements: Statements
) -> None:
    found(shard)
    before = statements.total
    assert len(found(shard, 1)) == 1
    assert statements.total - before == 2


def test_who_speaks_is_known_without_reading_the_archive_again(shard: Shard, statements: Statements) -> None:
    assert shard.archive_rows.speakers_of("u") == frozenset({"Ann", "Bob"})
    before = statements.total
    assert shard.archive_rows.speakers_of("u") == frozenset({"Ann", "Bob"})
    assert statements.total == before
    assert shard.archive_rows.speakers_of("v") is None


@pytest.mark.parametrize("command", [Archive, Restore, Remove, Forget, ForgetUser, Supersede, None])
def test_whatever_changes_the_archive_is_seen_by_the_next_search(
    shard: Shard, command: type[LongTermEvent] | None
) -> None:
    """As by one that has just been opened. Forgetting the successor of what is archived changes it, too."""
    if command is Supersede:
        tell(shard, event(Restore, memory_id=IDS[0]))
        tell(shard, event(Supersede, memory_id=IDS[0], by=IDS[3]), event(Archive, memory_id=IDS[0]))
    assert len(found(shard)) == 3
    if command is Supersede:
        tell(shard, event(Forget, memory_id=IDS[3]))
    elif command is ForgetUser:
        tell(shard, event(ForgetUser, at=START + 9))
    elif command is not None:
        tell(shard, event(command, memory_id=IDS[3 if command is Archive else 1]))
    seen = found(shard)
    shard.archive_rows = ArchivedRows(shard.archive, Recent())
    assert seen == found(shard)
    assert len(seen) == {Archive: 4, Supersede: 3, ForgetUser: 0, None: 3}.get(command, 2)  # type: ignore[arg-type]


def test_what_others_do_leaves_it_as_it_is(shard: Shard, counted: list[str]) -> None:
    found(shard)
    other = promotion("elsewhere", "x", user="v")
    shard.apply([other], {other.event_id: axis(5)}, START)
    tell(shard, event(Archive, "v", memory_id=other.memory_id))
    tell(shard, event(Edit, memory_id=IDS[3], metadata={"k": 1}))
    counted.clear()
    found(shard)
    assert counted == []
