"""What a search reads without SQL is what the catalog holds, whatever happened in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataDirError
from schemas.events import Archive, Edit, ForgetUser, LongTermEvent, Pin, Promotion, Restore, Supersede, Touch
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.committing import Commit
from tables.memories.shard import Shard
from tables.rocksdb import StoreDamaged
from tables.search import search_rows
from tables.search.candidates import Candidates
from tables.search.held import bytes_of
from tables.search.recent import Recent
from tables.search.spoken_times import spoken_in
from tables.search.text_store import FOLDER, TextStore, hash_of_name
from tests.support.examples import examples
from tests.support.making import START, axis, promotion
from tests.tables.commands import COMMANDS, WHO, event, vectors_of
from tests.tables.memories.test_shard import forget, let_go, touch

Seqs = npt.NDArray[np.int64]


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


def listed(shard: Shard) -> None:
    """The memories of a list are those of the catalog's rows, in the same order. No second reading is needed."""
    for user in WHO:
        held = shard.memories_of(user)
        assert held == tuple(shard._catalog.of_user(user))
        assert shard.memories_of(user) is held
        assert shard.rows._recent.get((shard.rows, hash_of_name(user), "memories")).bytes == bytes_of(held)


def the_same(shard: Shard) -> None:
    """Memories and candidates are those of the catalog's rows."""
    for user in WHO:
        memories = shard._catalog.of_user(user)
        found, wanted = shard.rows.candidates(shard.held(user)), Candidates.of(memories)
        assert shown(shard, user) == memories
        assert shard.rows.spoken.of(shard.held(user).places, UTC) == [spoken_in(one, UTC) for one in memories]
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
                match data.draw(st.sampled_from(["ask", "list", "age", "fill", "kill", "close", "lose"])):
                    case "ask":
                        the_same(shard)
                    case "list":
                        listed(shard)
                    case "age":
                        shard.recompute(START + data.draw(st.integers(0, 60)) * DAY_MS, LifecycleSettings())
                    case "fill":
                        shard.rows.fill(data.draw(st.integers(1, 5)))
                    case "kill":  # the files as they are while the process lives are those that it leaves
                        shutil.copytree(folder / str(lives - 1), folder / str(lives))
                        shard.close()
                        shard, lives = opened(folder / str(lives), limit), lives + 1
                    case how:
                        shard.close()
                        if how == "lose":
                            kept = sorted((folder / str(lives - 1) / FOLDER).iterdir())
                            data.draw(st.sampled_from(kept)).unlink()
                        shard = opened(folder / str(lives - 1), limit)
        listed(shard)
        the_same(shard)
        listed(shard)


def damaged_once() -> Callable[[], object]:
    results: Iterator[object] = iter([StoreDamaged("Corruption: of a test"), None])

    def read() -> object:
        if isinstance(result := next(results), StoreDamaged):
            raise result
        return result

    return read


#: By name, what happens to a shard in which `u` has two memories. The second that was told is the older one.
HAPPENS: dict[str, Callable[[Shard, list[Promotion]], object]] = {
    "nothing": lambda shard, told: None,
    "a new one, dated before the others": lambda shard, told: said(shard, promotion("0", "z", at=START - 1)),
    "edited metadata": lambda shard, told: said(
        shard, event(Edit, "u", memory_id=told[0].memory_id, metadata={"mood": "fine"})
    ),
    "an edited text": lambda shard, told: said(shard, event(Edit, "u", memory_id=told[0].memory_id, text="other")),
    "accessed": lambda shard, told: said(shard, touch(told[0].memory_id, at=START + 7)),
    "pinned": lambda shard, told: said(shard, event(Pin, "u", memory_id=told[1].memory_id)),
    "recomputed": lambda shard, told: shard.recompute(START + 90 * DAY_MS, LifecycleSettings()),
    "superseded": lambda shard, told: said(
        shard, event(Supersede, "u", memory_id=told[0].memory_id, by=told[1].memory_id)
    ),
    "a near-copy": lambda shard, told: said(
        shard, event(Touch, "u", memory_ids=[]), promotion("1", "z", at=START + 9)
    ),
    "archived": lambda shard, told: said(shard, event(Archive, "u", memory_id=told[0].memory_id)),
    "archived at once": lambda shard, told: said(
        shard, *(new := [promotion("5", "z")]), event(Archive, "u", memory_id=new[0].memory_id)
    ),
    "archived and restored": lambda shard, told: said(
        shard, *(event(kind, "u", memory_id=told[0].memory_id) for kind in (Archive, Restore))
    ),
    "deleted": lambda shard, told: said(shard, forget(told[0].memory_id)),
    "forgotten ahead": lambda shard, told: shard.forget_ahead([forget(told[1].memory_id)], START),
    "the user forgotten": lambda shard, told: said(shard, event(ForgetUser, "u", START + 5)),
    "filled": lambda shard, told: shard.rows.fill(100),
    "searched": lambda shard, told: shown(shard),
    "erased": lambda shard, told: shard.rows.erase(),
    "damage that is met": lambda shard, told: shard.rows._whole(damaged_once()),
}
#: After these, the user's memories are what they were.
UNCHANGED = ("nothing", "archived at once", "filled", "searched", "erased", "damage that is met")


@pytest.mark.parametrize("asked", ["before", "after a restart", "not before", "of the others"])
@pytest.mark.parametrize("what", HAPPENS)
def test_a_list_has_what_the_catalog_holds_oldest_first(tmp_path: Path, what: str, asked: str) -> None:
    """Whether it was in the cache or not; and it is the same tuple until a memory of the user changes."""
    with ExitStack() as stack:
        shard = opened(tmp_path / "0")
        stack.callback(lambda: let_go(shard))
        told = [promotion(f"{place}", f"{place}", at=START + 2 - place) for place in range(2)]
        said(shard, *told, promotion("2", "a", user="v"))
        if asked == "after a restart":
            while shard.rows.fill(100):
                pass
            shard.close()
            shard = opened(tmp_path / "0")
        before = {user: shard.memories_of(user) for user in WHO if asked != "not before"}
        if asked == "of the others":
            shard.rows._recent.drop((shard.rows, hash_of_name("u"), "memories"))
        HAPPENS[what](shard, told)
        listed(shard)
        if asked in ("before", "after a restart"):
            assert (shard.memories_of("u") is before["u"]) == (what in UNCHANGED)
            assert (shard.memories_of("v") is before["v"]) == (what != "recomputed")


def test_a_batch_changes_the_memories_at_hand_without_reading_them(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, the next batch reads neither the catalog nor the store for a list of them."""
    told = [promotion(f"{place}", f"{place}") for place in range(8)]
    said(shard, *told[:5])
    shard.rows.fill(100)
    shard.memories_of("u")
    said(shard, *told[5:], touch(told[1].memory_id), forget(told[2].memory_id))
    counts = counting(monkeypatch, shard)
    assert [memory.text for memory in shard.memories_of("u")] == ["0", "1", "3", "4", "5", "6", "7"]
    assert counts == {"statements": 0, "bodies": 0}


def copy(of: Path, to: Path) -> None:
    if of.is_dir():
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(of, to)
    else:
        shutil.copy(of, to)


def counting(monkeypatch: pytest.MonkeyPatch, shard: Shard) -> dict[str, int]:
    """Counts statements of the catalog and bodies that are read."""
    counts = {"statements": 0, "bodies": 0}

    class Counting:
        def __init__(self, db: Any) -> None:
            self._db = db

        def __getattr__(self, name: str) -> Any:
            counts["statements"] += name in ("execute", "sql", "executemany")
            return getattr(self._db, name)

    bodies = TextStore.bodies

    def read(texts: TextStore, seqs: Seqs) -> list[bytes | None]:
        counts["bodies"] += len(seqs)
        return bodies(texts, seqs)

    monkeypatch.setattr(shard._catalog, "_db", Counting(shard._catalog._db))
    monkeypatch.setattr(TextStore, "bodies", read)
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
    assert len(shard.memories_of("u")) == 8
    assert counts == {"statements": 0, "bodies": 11}
    shard.close()


def test_what_was_just_written_is_searched_without_sql(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    said(shard, promotion("1", "a"))
    counts = counting(monkeypatch, shard)
    assert [memory.text for memory in shard.memories_of("u")] == ["1"]
    assert [memory.text for memory in shown(shard)] == ["1"]
    assert counts["statements"] == 0


def test_a_shard_of_an_older_version_is_filled_in_slices_that_go_on_after_a_restart(tmp_path: Path) -> None:
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    shard.close()
    shutil.rmtree(tmp_path / "0" / FOLDER)
    shard = opened(tmp_path / "0")
    assert shard.rows.fill(5) == 5
    shard.close()
    shard = opened(tmp_path / "0")
    assert shard.rows.fill(5) == 3
    while shard.rows.fill(5):  # texts are read for times
        pass
    the_same(shard)
    shard.close()


def test_terms_of_other_rules_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = opened(tmp_path / "0")
    said(shard, promotion("1", "a"))
    shown(shard)
    shard.close()
    monkeypatch.setattr(search_rows, "_RULES", search_rows._RULES + 1)
    shard = opened(tmp_path / "0")
    assert shard.rows.fill(10) == 1
    the_same(shard)
    shard.close()


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("kind", [".sst", ".log", "MANIFEST", "CURRENT"])
@pytest.mark.parametrize("damage", [lambda held: bytes(len(held)), lambda held: held[:200], lambda held: b"x" * 300])
def test_what_the_disk_has_lost_is_made_again(
    tmp_path: Path, kind: str, damage: Callable[[bytes], bytes], killed: bool
) -> None:
    """Zeros, an end that is missing, or other bytes: each is seen before it is believed."""
    shard = opened(tmp_path / "0")
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    shown(shard)
    shard.rows.erase()
    (first, *_) = shown(shard)
    said(shard, event(Edit, "u", memory_id=first.id, metadata={"mood": "fine"}))
    if killed:
        shutil.copytree(tmp_path / "0", tmp_path / "1")
    shard.close()
    folder = tmp_path / ("1" if killed else "0")
    chosen = [path for path in (folder / FOLDER).iterdir() if path.name.startswith(kind) or path.suffix == kind]
    assert chosen
    for path in chosen:
        path.write_bytes(damage(path.read_bytes()))
    shard = opened(folder)
    the_same(shard)
    shard.close()


@pytest.mark.parametrize("met_by", ["a search", "a list", "an erasure", "a count", "an edit"])
def test_damage_that_is_met_later_costs_time_and_nothing_else(tmp_path: Path, met_by: str) -> None:
    shard = opened(tmp_path / "0")
    told = [promotion(f"{place}", f"{place}") for place in range(8)]
    said(shard, *told)
    while shard.rows.fill(100):
        pass
    shard.rows.erase()
    shard.close()
    (tables,) = (tmp_path / "0" / FOLDER).glob("*.sst")
    held = bytearray(tables.read_bytes())
    held[20:40] = bytes(20)
    tables.write_bytes(held)
    shard = opened(tmp_path / "0")
    match met_by:
        case "an erasure":
            shard.rows.erase()
        case "a list":
            assert len(shard.memories_of("u")) == 8
        case "a count":
            assert shard.rows.living("u").current == 8
        case "an edit":
            said(shard, event(Edit, "u", memory_id=told[0].memory_id, metadata={"mood": "fine"}))
    the_same(shard)
    shard.close()


def test_a_users_memories_are_counted_as_they_come_and_go(shard: Shard) -> None:
    told = [promotion(f"{place}", f"{place}", user="uv"[place % 2]) for place in range(6)]
    said(shard, *told[:4])
    assert shard.rows.living("u") == (2, 2)
    said(shard, *told[4:], event(Pin, "u", memory_id=told[0].memory_id))
    assert (shard.rows.living("u"), shard.rows.living("v")) == ((3, 2), (3, 3))
    said(shard, forget(told[2].memory_id))
    assert (shard.rows.living("u"), shard.rows.living("v"), shard.rows.living("w")) == ((2, 1), (3, 3), (0, 0))


def test_rows_of_another_catalog_are_not_believed(tmp_path: Path) -> None:
    """Two shards whose numbers are the same: one gets the other's files."""
    for name, text in (("one", "1"), ("other", "2")):
        shard = opened(tmp_path / name)
        said(shard, promotion(text, "a"))
        shown(shard)
        shard.close()
    shutil.rmtree(tmp_path / "one" / FOLDER)
    shutil.copytree(tmp_path / "other" / FOLDER, tmp_path / "one" / FOLDER)
    shard = opened(tmp_path / "one")
    assert [memory.text for memory in shown(shard)] == ["1"]
    shard.close()


def in_files(folder: Path, *words: bytes) -> set[bytes]:
    held = [path.read_bytes() for path in (folder / FOLDER).iterdir()]
    return {word for word in words if any(word in one for one in held)}


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_no_word_of_a_forgotten_memory_stays(tmp_path: Path, killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of what it was before an edit of its metadata; after a kill the next opening sees to it."""
    folder, secret = tmp_path / "0", promotion("unmistakable, and we met last Tuesday", "a")
    shard = opened(folder)
    said(shard, secret, promotion("2", "b", user="v"))
    shown(shard), shown(shard, "v")
    said(shard, event(Edit, "u", memory_id=secret.memory_id, metadata={"mood": "sanguine"}))
    said(shard, event(Edit, "u", memory_id=secret.memory_id, metadata={"mood": "fine"}))
    terms = shard.rows.candidates(shard.held("u")).terms.words.tobytes()
    while shard.rows.fill(100):
        pass
    words = b"unmistakable", b"sanguine", terms, b',"last Tuesday"]]'
    assert in_files(folder, *words) == set(words)
    commit = shard._catalog.write

    def write(*given: Any) -> None:
        commit(*given)
        shutil.copytree(folder, tmp_path / "1")

    if killed:
        monkeypatch.setattr(shard._catalog, "write", write)
    said(shard, event(ForgetUser, "u", START + 5))
    if killed:
        shard.close()
        folder = tmp_path / "1"
        shard = opened(folder)
    assert shown(shard) == []
    shard.save()
    shard.save()
    assert in_files(folder, *words) == set()
    assert len(shown(shard, "v")) == 1
    shard.close()


def test_a_body_is_stale_before_the_commit_that_changes_it(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a crash right after the commit leaves none that the catalog has otherwise."""
    one = promotion("1", "a")
    said(shard, one)
    shown(shard)
    (seq,) = shard.held("u").seqs
    bodies: list[bytes | None] = []

    def write(*_: object) -> None:
        bodies.extend(shard.rows._texts.bodies(np.array([seq])))
        raise RuntimeError("the commit fails")

    edit = event(Edit, "u", memory_id=one.memory_id, metadata={"mood": "fine"})
    with monkeypatch.context() as patched:
        patched.setattr(shard._catalog, "write", write)
        with pytest.raises(RuntimeError):
            said(shard, edit)
    assert bodies == [None]
    the_same(shard)


def test_an_access_writes_no_body(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    one = promotion("1", "a")
    said(shard, one)
    shown(shard)
    put = list[int]()
    with monkeypatch.context() as patched:
        patched.setattr(TextStore, "put_body", lambda texts, memory: put.append(memory.seq))
        said(shard, touch(one.memory_id))
    assert put == []
    the_same(shard)


def full(*_: object, **__: object) -> None:
    raise DataDirError(Path(), "No space left on device")


def test_a_full_disk_puts_filling_off(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    said(shard, promotion("1", "a"))
    with monkeypatch.context() as patched:
        patched.setattr(TextStore, "write", full)
        assert shard.rows.fill(10) == 0
    the_same(shard)


@pytest.mark.parametrize("state", ["fresh", "lacking", "without bodies"])
def test_a_list_needs_no_room_on_the_disk(shard: Shard, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    said(shard, *(promotion(f"{place}", f"{place}") for place in range(8)))
    if state == "lacking":
        shard.rows._fresh.clear()
        shard.rows._lacking = True
    elif state == "without bodies":
        shard.rows.fill(100)
        shard.recompute(START + 90 * DAY_MS, LifecycleSettings())
    with monkeypatch.context() as patched:
        patched.setattr(TextStore, "write", full)
        listed(shard)
    the_same(shard)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("step", ["follow", "remove_vectors", "add_vectors"])
def test_a_list_shows_what_was_committed_though_the_rows_lack_it(
    shard: Shard, monkeypatch: pytest.MonkeyPatch, step: str, asked: bool
) -> None:
    """Nothing that was forgotten is listed until the next opening repairs the rows."""
    one = promotion("1", "a")
    said(shard, one)
    if asked:
        shard.memories_of("u")

    def failed(commit: Commit) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Commit, step, failed)
    with pytest.raises(OSError, match="Input/output error"):
        said(shard, forget(one.memory_id), promotion("2", "b"))
    assert [memory.text for memory in shard.memories_of("u")] == ["2"]


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


@pytest.mark.slow
@pytest.mark.parametrize("restored", ["catalog.duckdb", FOLDER])
def test_an_older_copy_of_catalog_or_rows_shows_nothing_of_another_time(tmp_path: Path, restored: str) -> None:
    """Of one opening, too: numbers that were given to others, bodies that were edited since."""
    folder, one, elsewhere = tmp_path / "0", promotion("1", "a"), event(Touch, "v", memory_ids=[])
    shard = opened(folder)
    said(shard, one)
    shown(shard)
    shard.close()
    shard = opened(folder)
    shard._catalog._db.execute("CHECKPOINT")
    copy(folder / restored, tmp_path / restored)
    said(shard, event(Edit, "u", memory_id=one.memory_id, metadata={"mood": "sanguine"}))
    said(shard, elsewhere, promotion("2", "b"))
    shown(shard)
    shard.close()
    copy(tmp_path / restored, folder / restored)
    shard = opened(folder)
    said(shard, elsewhere, elsewhere, promotion("3", "c"))
    assert shown(shard) == list(shard._catalog.of_user("u"))
    told = ["1", "3"] if restored == "catalog.duckdb" else ["1", "2", "3"]
    assert [memory.text for memory in shown(shard)] == told
    shard.close()


def test_metadata_of_any_form_breaks_no_search(shard: Shard) -> None:
    """A client may have written what else has the names of speakers."""
    forms: list[Any] = [5, [["a"]], [None]]
    odd = [
        promotion(f"User: {form}", str(form)).model_copy(update={"metadata": {"speakers": form}}) for form in forms
    ]
    said(shard, *odd)
    said(shard, promotion("User: hi", "named").model_copy(update={"speakers": ["Ann"]}))
    assert shard.held("u").speakers == frozenset({"Ann"})
