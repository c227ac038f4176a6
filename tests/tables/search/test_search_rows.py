"""What a search reads without SQL is what the catalog holds, whatever happened in between."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Edit, ForgetUser, LongTermEvent, Touch
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.search import row_file
from tables.search.appended import AppendedFile
from tables.search.bodies import BodiesFile
from tables.search.candidates import Candidates
from tables.search.recent import Recent
from tables.search.tokens import RULES
from tests.support import sparse
from tests.support.examples import examples
from tests.support.making import START, axis, promotion
from tests.tables.commands import COMMANDS, WHO, event, vectors_of
from tests.tables.memories.test_shard import forget, let_go, touch

FILES = ("search.rows", "search.terms", "search.bodies")


def opened(folder: Path, limit: int = 0) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(max_memories_per_user=limit), LifecycleSettings())


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    shard = opened(tmp_path / "0")
    yield shard
    shard.close()


def said(shard: Shard, *events: LongTermEvent) -> None:
    shard.apply(events, {one.event_id: axis(place % 8) for place, one in enumerate(events)}, START)


def shown(shard: Shard, user: str = "u") -> list[Memory]:
    return shard.rows.memories(shard.held(user).places)


def the_same(shard: Shard) -> None:
    """Memories and candidates are those of the catalog's rows."""
    for user in WHO:
        memories = shard._catalog.of_user(user)
        found, wanted = shard.rows.candidates(shard.held(user)), Candidates.of(memories)
        assert shown(shard, user) == memories
        for name in ("seqs", "importance", "last_accessed", "pinned", "current", "previous"):
            assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
        for name in ("words", "sizes", "lengths"):
            assert getattr(found.terms, name).tolist() == getattr(wanted.terms, name).tolist(), name


@pytest.mark.slow
@examples(15)
@given(events=st.lists(COMMANDS, min_size=5, max_size=25), limit=st.sampled_from([0, 2, 3]), data=st.data())
def test_what_is_searched_is_what_the_catalog_holds(
    tmp_path_factory: pytest.TempPathFactory, events: list[LongTermEvent], limit: int, data: st.DataObject
) -> None:
    """After any events, ageing, filling, asking or not, kills, closings, and files that were lost."""
    folder = tmp_path_factory.mktemp("shards")
    vectors = vectors_of(events)
    with ExitStack() as stack:  # an example may end wherever something is drawn
        shard, lives, start = opened(folder / "0", limit), 1, 0
        stack.callback(lambda: let_go(shard))
        while start < len(events):
            end = start + data.draw(st.integers(1, 6))
            shard.apply(events[start:end], vectors, START)
            start = end
            for _ in range(data.draw(st.integers(0, 2))):
                match data.draw(st.sampled_from(["ask", "age", "fill", "kill", "close", "lose"])):
                    case "ask":
                        the_same(shard)
                    case "age":
                        shard.recompute(START + data.draw(st.integers(0, 60)) * DAY_MS, LifecycleSettings())
                    case "fill":
                        shard.rows.fill(data.draw(st.integers(1, 5)))
                    case "kill":  # the files as they are while the process lives are those that it leaves
                        shutil.copytree(folder / str(lives - 1), folder / str(lives), copy_function=sparse.copy)
                        shard.close()
                        shard, lives = opened(folder / str(lives), limit), lives + 1
                    case how:
                        shard.close()
                        if how == "lose":
                            (folder / str(lives - 1) / data.draw(st.sampled_from(FILES))).unlink()
                        shard = opened(folder / str(lives - 1), limit)
        the_same(shard)


def counting(monkeypatch: pytest.MonkeyPatch, shard: Shard) -> dict[str, int]:
    """Counts statements of the catalog and bodies that are read."""
    counts = {"statements": 0, "bodies": 0}

    class Counting:
        def __init__(self, db: Any) -> None:
            self._db = db

        def __getattr__(self, name: str) -> Any:
            counts["statements"] += name in ("execute", "sql", "executemany")
            return getattr(self._db, name)

    of = BodiesFile.of

    def read(file: BodiesFile, row: row_file.Row) -> memoryview | None:
        counts["bodies"] += 1
        return of(file, row)

    monkeypatch.setattr(shard._catalog, "_db", Counting(shard._catalog._db))
    monkeypatch.setattr(BodiesFile, "of", read)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 40])
def test_a_first_search_asks_no_sql_however_many_other_users_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    for other in range(others):
        said(shard, promotion("0", "0", user=f"other {other}"))
    while shard.rows.fill(100):
        pass
    shard.close()
    shard = opened(tmp_path / "0")
    counts = counting(monkeypatch, shard)
    held = shard.held("u")
    shard.rows.candidates(held)
    shard.rows.memories(held.places[:3])
    assert counts == {"statements": 0, "bodies": 3}
    shard.close()


def test_what_was_just_written_is_searched_without_sql(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    said(shard, promotion("1", "a"))
    counts = counting(monkeypatch, shard)
    assert [memory.text for memory in shown(shard)] == ["1"]
    assert counts["statements"] == 0


def test_a_shard_of_an_older_version_is_filled_in_slices_that_go_on_after_a_restart(tmp_path: Path) -> None:
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    shard.close()
    for name in FILES:
        (tmp_path / "0" / name).unlink()
    shard = opened(tmp_path / "0")
    assert shard.rows.fill(5) == 5
    shard.close()
    shard = opened(tmp_path / "0")
    assert [shard.rows.fill(5), shard.rows.fill(5)] == [3, 0]
    the_same(shard)
    shard.close()


def test_terms_of_other_rules_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = opened(tmp_path / "0")
    said(shard, promotion("1", "a"))
    shown(shard)
    shard.close()
    monkeypatch.setattr(row_file, "RULES", RULES + 1)
    shard = opened(tmp_path / "0")
    assert shard.rows.fill(10) == 1
    the_same(shard)
    shard.close()


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", [lambda held: bytes(len(held)), lambda held: held[:200], lambda held: b"x" * 300])
def test_what_the_disk_has_lost_is_made_again(tmp_path: Path, file: str, damage: Callable[[bytes], bytes]) -> None:
    """Zeros, an end that is missing, or other bytes: each is seen before it is believed."""
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    shown(shard)
    shard.close()
    path = tmp_path / "0" / file
    path.write_bytes(damage(path.read_bytes()))
    shard = opened(tmp_path / "0")
    the_same(shard)
    shard.close()


def test_rows_of_another_catalog_are_not_believed(tmp_path: Path) -> None:
    """Two shards whose numbers are the same: one gets the other's files."""
    for name, text in (("one", "1"), ("other", "2")):
        shard = opened(tmp_path / name)
        said(shard, promotion(text, "a"))
        shown(shard)
        shard.close()
    for file in FILES:
        shutil.copy(tmp_path / "other" / file, tmp_path / "one" / file)
    shard = opened(tmp_path / "one")
    assert [memory.text for memory in shown(shard)] == ["1"]
    shard.close()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_no_word_of_a_forgotten_memory_stays(tmp_path: Path, killed: bool) -> None:
    """Nor of what it was before an edit of its metadata; after a kill the next opening sees to it."""
    shard, secret = opened(tmp_path / "0"), promotion("unmistakable", "a")
    said(shard, secret, promotion("2", "b", user="v"))
    shown(shard), shown(shard, "v")
    said(shard, event(Edit, "u", memory_id=secret.memory_id, metadata={"mood": "sanguine"}))
    said(shard, event(Edit, "u", memory_id=secret.memory_id, metadata={"mood": "fine"}))
    if killed:
        for file in FILES:
            shutil.copy(tmp_path / "0" / file, tmp_path / file)
    terms = shard.rows.candidates(shard.held("u")).terms.words.tobytes()
    assert terms in (tmp_path / "0" / "search.terms").read_bytes()
    said(shard, forget(secret.memory_id) if killed else event(ForgetUser, "u", START + 5))
    if killed:
        generation = shard._catalog.info.read().search_rows
        shard.close()
        for file in FILES:
            shutil.copy(tmp_path / file, tmp_path / "0" / file)
        assert generation
        shard = opened(tmp_path / "0")
    assert shown(shard) == []
    bodies, left = (tmp_path / "0" / "search.bodies").read_bytes(), (tmp_path / "0" / "search.terms").read_bytes()
    assert not [word for word in (b"unmistakable", b"sanguine") if word in bodies]
    assert terms not in left
    assert len(shown(shard, "v")) == 1
    shard.close()


def test_a_body_is_stale_before_the_commit_that_changes_it(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a crash right after the commit leaves none that the catalog has otherwise."""
    one = promotion("1", "a")
    said(shard, one)
    shown(shard)
    flags: list[int] = []

    def write(*_: object) -> None:
        flags.extend(shard.rows._file.rows["flags"].tolist())
        raise RuntimeError("the commit fails")

    edit = event(Edit, "u", memory_id=one.memory_id, metadata={"mood": "fine"})
    with monkeypatch.context() as patched:
        patched.setattr(shard._catalog, "write", write)
        with pytest.raises(RuntimeError):
            said(shard, edit)
    assert [each & row_file.BODY for each in flags] == [0]
    the_same(shard)


def test_an_access_writes_no_body(shard: Shard) -> None:
    one = promotion("1", "a")
    said(shard, one)
    shown(shard)
    size = shard.rows._bodies.size
    said(shard, touch(one.memory_id))
    assert shard.rows._bodies.size == size
    the_same(shard)


def test_a_full_disk_costs_speed_and_no_memory(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed is committed; filling is put off."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(AppendedFile, "append", full)
        said(shard, promotion("1", "a"))
        assert shard.rows.fill(10) == 0
    the_same(shard)


@pytest.mark.slow
def test_waste_is_thrown_away_at_an_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tables.search.search_rows._WASTE", 0)
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    shown(shard)
    gone = [memory.id for memory in shown(shard)][:6]
    said(shard, *(forget(identity) for identity in gone))
    shard.close()
    before = (tmp_path / "0" / "search.bodies").stat().st_size
    shard = opened(tmp_path / "0")
    the_same(shard)
    shard.close()
    assert (tmp_path / "0" / "search.bodies").stat().st_size < before / 2


def test_users_who_were_asked_for_leave_when_their_bytes_are_needed(tmp_path: Path) -> None:
    """And are right when they are asked for again."""
    recent = Recent(3000)
    shard = Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(), LifecycleSettings(), recent)
    for user in ("u", "v", "w"):
        said(shard, promotion("1", "a", user=user))
    for user in ("u", "v", "w", "u"):
        assert len(shown(shard, user)) == 1
        assert 0 < recent.held <= 3000
    shard.close()
    assert recent.held == 0


def test_another_users_rows_of_the_same_cell_are_not_found(shard: Shard) -> None:
    said(shard, promotion("1", "a"), promotion("2", "b", user="v"))
    every = np.array([1, 2], np.int64)
    assert [m.text for m in shard.rows.memories(shard.rows.of_user("v", lambda: every).places)] == ["2"]


@pytest.mark.slow
@pytest.mark.parametrize("restored", ["catalog.duckdb", "search.*"])
def test_an_older_copy_of_catalog_or_rows_shows_nothing_of_another_time(tmp_path: Path, restored: str) -> None:
    """Of one opening, too: numbers that were given to others, bodies that were edited since."""
    folder, one, elsewhere = tmp_path / "0", promotion("1", "a"), event(Touch, "v", memory_ids=[])
    shard = opened(folder)
    said(shard, one)
    shown(shard)
    shard.close()
    shard = opened(folder)
    shard._catalog._db.execute("CHECKPOINT")
    (tmp_path / "backup").mkdir()
    for path in folder.glob(restored):
        shutil.copy(path, tmp_path / "backup")
    said(shard, event(Edit, "u", memory_id=one.memory_id, metadata={"mood": "sanguine"}))
    said(shard, elsewhere, promotion("2", "b"))
    shown(shard)
    shard.close()
    for path in (tmp_path / "backup").iterdir():
        shutil.copy(path, folder)
    shard = opened(folder)
    said(shard, elsewhere, elsewhere, promotion("3", "c"))
    assert shown(shard) == list(shard._catalog.of_user("u"))
    told = ["1", "3"] if restored == "catalog.duckdb" else ["1", "2", "3"]
    assert [memory.text for memory in shown(shard)] == told
    shard.close()
