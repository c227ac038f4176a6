"""What is forgotten is gone for good: all that lay before the command in the log, in every table and every file."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import (
    Archive,
    Edit,
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Pin,
    Promotion,
    Remember,
    Remove,
    Restore,
    Supersede,
    Touch,
)
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from tables import paths
from tables.memories import shard as module
from tables.memories.catalog import catalog_file
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tests.support.died import died
from tests.support.examples import examples
from tests.support.making import START, axis, leaning, promotion
from tests.support.sparse import held
from tests.tables.commands import event

HOUR = 3_600_000
#: What holds words of memories. The audit trail is looked at by its reasons.
WORDS = {
    "memories": "SELECT text FROM memories WHERE user_id = 'u'",
    "archive": "SELECT text FROM archive WHERE user_id = 'u'",
    "history": "SELECT details FROM history WHERE user_id = 'u'",
    "links": "SELECT kind FROM links WHERE user_id = 'u'",
    "merged": "SELECT memory_id FROM merged WHERE user_id = 'u'",
    "reasons": "SELECT reason FROM transitions WHERE reason = 'a grudge'",
}


def opened(folder: Path, limit: int = 0) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(max_memories_per_user=limit), LifecycleSettings())


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    shard = opened(tmp_path / "0")
    yield shard
    shard.close()


def tell(shard: Shard, *events: LongTermEvent, place: int = 0) -> dict[str, int]:
    """Apply; all texts have the same vector."""
    return shard.apply(events, {one.event_id: axis(place) for one in events}, START).effects()


def left(shard: Shard) -> dict[str, list[Any]]:
    """What is there of user u, by where; empty places are left out."""
    db = shard._catalog._db
    found = {what: [row[0] for row in db.execute(sql).fetchall()] for what, sql in WORDS.items()}
    return {what: rows for what, rows in found.items() if rows}


def summaries(shard: Shard) -> list[Memory]:
    return [memory for memory in shard.memories_of("u") if memory.kind == "summary"]


def beset(shard: Shard, *, removed: bool) -> Promotion:
    """A memory with a near-copy, an edit, links and reasons; archived, and removed where asked for."""
    one, copy, other = promotion("secret", "a"), promotion("secret", "b"), promotion("other", "c")
    tell(shard, one, copy)
    tell(shard, other, place=1)
    tell(shard, event(Edit, memory_id=one.memory_id, text="edited"), place=2)
    tell(shard, event(Link, source_id=one.memory_id, target_id=other.memory_id, kind="paramour"))
    tell(shard, event(Archive, memory_id=one.memory_id, reason="a grudge"))
    if removed:
        tell(shard, event(Remove, memory_id=one.memory_id, reason="a grudge"))
    return one


@pytest.mark.parametrize("removed", [False, True])
def test_forgetting_a_user_leaves_nothing_of_memories_that_were_archived_or_removed(
    shard: Shard, removed: bool
) -> None:
    """Neither edits nor links nor near-copies, nor the reasons that somebody gave."""
    beset(shard, removed=removed)
    assert {"history", "links", "merged", "reasons"} <= left(shard).keys()
    tell(shard, event(ForgetUser, at=START + DAY_MS))
    assert left(shard) == {}


@pytest.mark.parametrize("removed", [False, True])
def test_forgetting_a_memory_leaves_nothing_of_it_though_it_was_removed_before(shard: Shard, removed: bool) -> None:
    one = beset(shard, removed=removed)
    tell(shard, event(Forget, memory_id=one.memory_id))
    assert left(shard) == {"memories": ["other"]}


def test_forgetting_a_user_leaves_other_users_what_is_theirs(shard: Shard) -> None:
    """Though their memories have the same ids."""
    one, other = uuid.uuid4(), uuid.uuid4()
    for user in ("u", "v"):
        tell(shard, event(Remember, user, text="one", memory_id=one))
        tell(shard, event(Remember, user, text="two", memory_id=other), place=1)
        tell(shard, event(Link, user, source_id=one, target_id=other, kind="cause"))
        tell(shard, event(Edit, user, memory_id=one, metadata={"mood": "fine"}))
    tell(shard, event(ForgetUser))
    assert left(shard) == {}
    assert [memory.text for memory in shard.memories_of("v")] == ["one", "two"]
    assert (len(shard.links.of("v", one)), len(shard.history.of("v", one))) == (1, 1)
    assert shard.history.of("u", one)[0].details["reason"] == "forget"


def test_what_a_batch_says_after_a_forgetting_stays(shard: Shard) -> None:
    """What it says before is forgotten with the rest."""
    before, new, other = (
        promotion("before", "a"),
        promotion("new", "b", at=START + 9),
        promotion("more", "c", at=START + 9),
    )
    vectors = {one.event_id: axis(place) for place, one in enumerate((before, new, other))}
    shard.apply(
        [
            before,
            event(Edit, memory_id=before.memory_id, metadata={"mood": "sanguine"}),
            event(ForgetUser, at=START + 5),
            new,
            other,
            event(Edit, memory_id=new.memory_id, metadata={"mood": "fine"}),
            event(Link, source_id=new.memory_id, target_id=other.memory_id, kind="cause"),
        ],
        vectors,
        START,
    )
    assert [memory.text for memory in shard.memories_of("u")] == ["new", "more"]
    assert (left(shard)["links"], len(left(shard)["history"])) == (["cause"], 1)


def test_what_is_dated_ahead_is_forgotten_where_it_lies_before_the_event_in_the_log(shard: Shard) -> None:
    """And stays so when it comes again; what was said later, and is dated between the two, is kept."""
    ahead, copy = promotion("ahead", "a", at=START + HOUR), promotion("ahead", "b", at=START + HOUR)
    tell(shard, ahead, copy)
    tell(shard, event(ForgetUser, at=START))
    assert left(shard) == {}
    later = promotion("later", "c", at=START + 5)
    again = [one.model_copy(update={"event_id": uuid.uuid4()}) for one in (ahead, copy)]
    assert tell(shard, *again) == {"forgotten": 2}
    assert tell(shard, later) == {"new": 1}


@pytest.mark.parametrize("ahead", [2 * HOUR, 400 * DAY_MS])
@pytest.mark.parametrize("applied", ["by a clock that is ahead as well", "by one that is right"])
def test_who_is_forgotten_by_a_clock_that_is_ahead_is_remembered_from_then_on(
    shard: Shard, ahead: int, applied: str
) -> None:
    """What comes later in the log is kept, items among it; what was there stays forgotten. In any batches."""
    before = promotion("before", "a")
    tell(shard, before)
    command = event(ForgetUser, at=START + ahead)
    item = event(Remember, at=START + 20, text="item", kind="item", memory_id=uuid.uuid4())
    shard.apply([command], {}, START + (ahead if applied.endswith("well") else 10))
    again = before.model_copy(update={"event_id": uuid.uuid4()})
    later: list[Promotion | Remember] = [promotion("later", "b", at=START + 20), item]
    vectors = {one.event_id: axis(n, 8) for n, one in enumerate([again, *later])}
    assert shard.apply([again, *later], vectors, START + 30).effects() == {"forgotten": 1, "new": 2}
    second = event(ForgetUser, at=START + 40)
    old = [one.model_copy(update={"event_id": uuid.uuid4()}) for one in (before, later[0])]
    new = promotion("new", "c", at=START + 50)
    vectors = {one.event_id: axis(n, 8) for n, one in enumerate([*old, new])}
    shard._catalog.retention.drop(START, START, LongTermSettings().retention)
    assert shard.apply([second, *old, new], vectors, START + 60).effects()["new"] == 1
    assert [memory.text for memory in shard.memories_of("u")] == ["new"]


def test_clocks_that_differ_by_seconds_change_nothing(shard: Shard) -> None:
    """What was said before the command, and comes after it, is forgotten: the worker's clock is a little behind."""
    shard.apply([event(ForgetUser, at=START + 5_000)], {}, START)
    late = promotion("said before", "a", at=START + 4_000)
    assert shard.apply([late], {late.event_id: axis(0, 8)}, START + 1_000).effects() == {"forgotten": 1}


def test_a_near_copy_that_is_dated_ahead_does_not_come_back(shard: Shard) -> None:
    """Though the memory that stood for it is not; in one batch with the forgetting, too."""
    for number, batches in enumerate(([0, 1, 2], [0, 1], [0])):
        user = f"user-{number}"
        one, copy = promotion("x", "a", user=user), promotion("x", "b", user=user, at=START + HOUR)
        told: list[LongTermEvent] = [one, copy, event(ForgetUser, user, START + 5)]
        for first, end in zip(batches, [*batches[1:], 3], strict=True):
            tell(shard, *told[first:end])
        assert tell(shard, copy.model_copy(update={"event_id": uuid.uuid4()})) == {"forgotten": 1}


def groups_of(shard: Shard, count: int) -> tuple[list[Promotion], dict[uuid.UUID, Vectors]]:
    """Promotions of which the first eleven are one too many, and come in groups."""
    said = [promotion(f"text {n}", f"m{n}", at=START + n, importance=80) for n in range(count)]
    return said, {one.event_id: leaning(n % 4, 4 + n // 4 % 4, 0.9) for n, one in enumerate(said)}


def test_a_forgotten_summary_does_not_come_back(tmp_path: Path) -> None:
    """Its members stay as they are: no summary of just these is made again."""
    shard = opened(tmp_path, 10)
    said, vectors = groups_of(shard, 12)
    shard.apply(said[:11], vectors, START)
    (summary,) = summaries(shard)
    tell(shard, event(Forget, memory_id=summary.id))
    tell(shard, event(Forget, memory_id=said[10].memory_id))
    shard.apply([said[11]], vectors, START)
    assert summary.id not in {memory.id for memory in shard.memories_of("u")}
    assert all(memory.current for memory in shard.memories_of("u"))
    shard.close()


@pytest.mark.slow
@pytest.mark.parametrize("away", ["there", "archived", "removed"])
@pytest.mark.parametrize("whole", ["there", "archived"])
def test_a_summary_goes_with_the_first_memory_whose_words_it_has(tmp_path: Path, away: str, whole: str) -> None:
    """Though that memory, or the summary, is in the archive, or was removed out of it."""
    shard = opened(tmp_path, 10)
    said, vectors = groups_of(shard, 11)
    shard.apply(said, vectors, START)
    (summary,) = summaries(shard)
    member = summary.summary_of[0]
    if away != "there":
        tell(shard, event(Archive, memory_id=member))
    if away == "removed":
        tell(shard, event(Remove, memory_id=member))
    if whole == "archived":
        tell(shard, event(Archive, memory_id=summary.id))
    tell(shard, event(Forget, memory_id=member))
    assert summaries(shard) == []
    assert shard.archive.listed("u") == []
    shard.close()


def test_what_an_archived_memory_gave_way_to_may_be_forgotten(shard: Shard) -> None:
    """It holds again when it comes back."""
    old, new = promotion("old", "a"), promotion("new", "b")
    tell(shard, old)
    tell(shard, new, place=1)
    tell(shard, event(Supersede, memory_id=old.memory_id, by=new.memory_id))
    tell(shard, event(Archive, memory_id=old.memory_id))
    tell(shard, event(Forget, memory_id=new.memory_id))
    assert [one.memory.current for one in shard.archive.listed("u")] == [True]
    tell(shard, event(Restore, memory_id=old.memory_id))
    assert [memory.current for memory in shard.memories_of("u")] == [True]


def test_a_forgotten_memorys_near_copies_do_not_come_back_under_their_own_names(shard: Shard) -> None:
    """Forgotten after a restart, when only the table knows them."""
    one, copy = promotion("x", "a"), promotion("x", "b")
    tell(shard, one)
    tell(shard, copy)
    tell(shard, event(Forget, memory_id=one.memory_id))
    again = [said.model_copy(update={"event_id": uuid.uuid4()}) for said in (one, copy)]
    assert tell(shard, *again) == {"forgotten": 2}
    assert left(shard) == {}


#: Each as distinctive as no byte of a file is by chance.
SAID = [f"unmistakable{n}" for n in range(4)]
SECRETS = [
    *SAID,
    "sanguine",
    "paramour",
    "a grudge",
    "edited0",
    "remembered",
    "sessionate",
    "butlerian",
    "msgid-secret",
]
PROMOTED = [
    promotion(text, f"msgid-secret{n}", at=START + n).model_copy(
        update={"session_id": "sessionate", "agent_id": "butlerian"}
    )
    for n, text in enumerate([*SAID, f"{SAID[0]}!"])
]
#: The second one is near the first one and says something else, the last one is the first one in another form.
PLACES = [axis(0), leaning(0, 1, 0.96), axis(2), axis(3), axis(0)]
ID = st.sampled_from([one.memory_id for one in PROMOTED])
COMMANDS: st.SearchStrategy[LongTermEvent] = st.one_of(
    st.sampled_from(PROMOTED),
    st.sampled_from(PROMOTED),
    st.builds(lambda i: event(Edit, memory_id=i, text="edited0"), ID),
    st.builds(lambda i: event(Edit, memory_id=i, metadata={"mood": "sanguine"}), ID),
    st.builds(lambda a, b: event(Link, source_id=a, target_id=b, kind="paramour"), ID, ID),
    st.builds(lambda kind, i: event(kind, memory_id=i, reason="a grudge"), st.sampled_from([Archive, Remove]), ID),
    st.builds(lambda kind, i: event(kind, memory_id=i), st.sampled_from([Restore, Pin, Forget]), ID),
    st.builds(lambda i: event(Touch, memory_ids=[i]), ID),
    st.builds(lambda a, b: event(Supersede, memory_id=a, by=b, reason="a grudge"), ID, ID),
    st.builds(lambda i: event(Remember, text="remembered", memory_id=uuid.uuid4(), supersedes=[i]), ID),
)


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: held(path).written for path in folder.rglob("*") if path.is_file()}


def found_in(folder: Path, secrets: Sequence[str] = SECRETS) -> list[tuple[str, str]]:
    return [
        (name, word) for name, content in bytes_in(folder).items() for word in secrets if word.encode() in content
    ]


@pytest.mark.slow
@examples(15)
@given(
    commands=st.lists(COMMANDS, min_size=1, max_size=12),
    restarts=st.sets(st.integers(0, 11), max_size=2),
    closing=st.booleans(),
)
def test_after_any_commands_and_a_forgetting_no_file_holds_a_word_of_the_users(
    tmp_path_factory: pytest.TempPathFactory, commands: list[LongTermEvent], restarts: set[int], closing: bool
) -> None:
    """Byte for byte: neither pages of the catalog nor its log, the index or what is searched, once it was quiet."""
    folder = tmp_path_factory.mktemp("shard")
    shard, other = opened(folder, 3), promotion("keepsake of another", "z", user="v")
    vectors = {one.event_id: place for one, place in zip(PROMOTED, PLACES, strict=True)} | {other.event_id: axis(5)}
    for place, command in enumerate([other, *commands]):
        given = {command.event_id: axis(4)} | vectors
        shard.apply([command], given, START + place)
        shard.rows.memories(shard.held("u").places)
        if place in restarts:
            shard.save()
            shard.close()
            shard = opened(folder, 3)
    shard.recompute(START + 90 * DAY_MS, LifecycleSettings())
    shard.apply([event(ForgetUser, at=START + DAY_MS)], {}, START)
    if not closing:
        shard.save()
        shard.save()
        assert found_in(folder) == []
        assert [memory.text for memory in shard.rows.memories(shard.held("v").places)] == ["keepsake of another"]
    shard.close()
    assert found_in(folder) == []
    shard = opened(folder, 3)
    assert (left(shard), shard.in_step(), shard.count()) == ({}, True, 1)
    shard.close()


def secretive(folder: Path) -> tuple[Shard, LongTermEvent]:
    """A shard with a secret in the pages of its catalog, and what makes it forget that."""
    shard, others = opened(folder), [promotion(f"other {n} " * 20, f"o{n}") for n in range(3)]
    told = [promotion("unmistakable0", "y"), *others]
    shard.apply(told, {one.event_id: axis(n) for n, one in enumerate(told)}, START)
    shard._catalog._db.execute("CHECKPOINT")
    assert ("catalog.duckdb", "unmistakable0") in found_in(folder)
    return shard, event(Forget, memory_id=told[0].memory_id)


@pytest.mark.slow
def test_what_was_forgotten_is_erased_in_the_first_quiet_minute(tmp_path: Path) -> None:
    """Not while events come in; nor is a file rewritten where nothing was forgotten since."""
    shard, forget = secretive(tmp_path)
    tell(shard, forget)
    shard.save()
    shard._catalog._db.execute("CHECKPOINT")
    assert ("catalog.duckdb", "unmistakable0") in found_in(tmp_path)
    shard.save()
    assert found_in(tmp_path) == []
    inode = (tmp_path / "catalog.duckdb").stat().st_ino
    tell(shard, promotion("later", "l"))
    for _ in range(3):
        shard.save()
    assert (tmp_path / "catalog.duckdb").stat().st_ino == inode
    shard.close()


@pytest.mark.slow
def test_a_shard_that_is_never_quiet_erases_after_an_hour_of_minutes(tmp_path: Path) -> None:
    shard, forget = secretive(tmp_path)
    tell(shard, forget)
    inode = (tmp_path / "catalog.duckdb").stat().st_ino
    for minute in range(60):
        tell(shard, event(Touch, memory_ids=[uuid.UUID(int=minute)]))
        shard.save()
    assert (tmp_path / "catalog.duckdb").stat().st_ino == inode
    tell(shard, event(Touch, memory_ids=[uuid.UUID(int=99)]))
    shard.save()
    assert (tmp_path / "catalog.duckdb").stat().st_ino != inode
    assert found_in(tmp_path) == []
    shard.close()


@pytest.mark.slow
def test_a_large_shard_leaves_the_erasing_to_its_next_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for it does not wait for a copy of it; that is made after an hour of minutes, and not more often."""
    shard, forget = secretive(tmp_path)
    tell(shard, forget)
    monkeypatch.setattr(module, "_SMALL_CATALOG", 0)
    shard.close()
    assert found_in(tmp_path) != []
    shard = opened(tmp_path)
    for _ in range(60):
        shard.save()
    assert found_in(tmp_path) != []
    shard.save()
    assert found_in(tmp_path) == []
    shard.close()


@pytest.mark.slow
def test_a_shard_works_on_after_its_file_was_rewritten(tmp_path: Path) -> None:
    """All that it keeps, in its order; new events, ageing, the archive and another model's vectors."""
    shard, forget = secretive(tmp_path)
    _, one, two, _ = shard.memories_of("u")
    tell(shard, forget, event(Link, source_id=one.id, target_id=two.id))
    before = {name: table(shard, name) for name in TABLES}
    for _ in range(2):
        shard.save()
    assert {name: table(shard, name) for name in TABLES} == before
    new = promotion("new", "n", at=START + 9)
    tell(shard, new, place=7)
    tell(shard, event(Archive, memory_id=new.memory_id))
    shard.recompute(START + 90 * DAY_MS, LifecycleSettings())
    shard.cleanup.verdicts(START + 90 * DAY_MS, LifecycleSettings(), None, 10)
    assert shard.reembedding.target is None
    assert (len(shard.archive.listed("u")), shard.in_step(), len(shard.memories_of("u"))) == (1, True, 3)
    assert shard.similarities("u", axis(2), shard.memories_of("u")[1:2]).tolist() == [1]
    assert tell(shard, forget, new) == {"repeated": 2}
    shard.close()


TABLES = (
    "memories", "vectors", "archive", "links", "history", "transitions", "merged", "tombstones", "applied", "ratings"
)  # fmt: skip


def table(shard: Shard, name: str) -> list[str]:
    """As it lies there: transitions are published by their order."""
    return [repr(row) for row in shard._catalog._db.execute(f"FROM {name}").fetchall()]


class Died(BaseException):
    pass


def calls() -> list[str]:
    return ["the copy", "fsync of the copy", "its replacement", "fsync of the folder", "the new connection"]


@pytest.mark.slow
@pytest.mark.parametrize("fatal", calls())
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_a_file_is_rewritten_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: str, after: bool
) -> None:
    """At the next opening all rows are there, and what was not erased is erased in the first quiet minute."""
    shard, forget = secretive(tmp_path)
    tell(shard, forget)
    shard.save()
    rows = {name: table(shard, name) for name in TABLES}

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def dies(*given: Any, **named: Any) -> Any:
            if after:
                call(*given, **named)
            raise Died

        return dies

    synced = 1 if fatal == "fsync of the folder" else 0

    def second(call: Callable[[Path], None]) -> Callable[[Path], None]:
        def counted(path: Path) -> None:
            nonlocal synced
            if synced:
                synced -= 1
                call(path)
            else:
                dying(call)(path)

        return counted

    if fatal == "the copy":
        monkeypatch.setattr(catalog_file.CatalogFile, "_put_copy", dying(catalog_file.CatalogFile._put_copy))
    elif fatal.startswith("fsync"):
        monkeypatch.setattr(catalog_file, "synced", second(paths.synced))
    elif fatal == "its replacement":
        monkeypatch.setattr(Path, "replace", dying(Path.replace))
    else:
        monkeypatch.setattr(catalog_file.CatalogFile, "_connected", dying(catalog_file.CatalogFile._connected))
    with pytest.raises(Died):
        shard._catalog.erase()
    monkeypatch.undo()
    with contextlib.suppress(duckdb.Error):
        died(shard)
    shard = opened(tmp_path)
    assert {name: table(shard, name) for name in TABLES} == rows
    assert sorted(path.name for path in tmp_path.glob("catalog.fresh*")) == []
    for _ in range(2):
        shard.save()
    assert found_in(tmp_path) == []
    assert {name: table(shard, name) for name in TABLES} == rows
    shard.close()


@pytest.mark.slow
def test_a_full_disk_puts_the_erasing_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told, and the shard works on with the file that it has."""
    shard, forget = secretive(tmp_path)
    tell(shard, forget)
    shard.save()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(catalog_file, "synced", full)
    shard.save()
    monkeypatch.undo()
    assert [message for message in caplog.messages if "stays in pages of the catalog for now" in message]
    tell(shard, promotion("new", "n", at=START + 9), place=7)
    assert [memory.text for memory in shard.memories_of("u")][-1] == "new"
    for _ in range(2):
        shard.save()
    assert found_in(tmp_path) == []
    shard.close()


def vector_of(place: int) -> bytes:
    """As it lies in a file; distinctive, unlike one along an axis."""
    drawn = np.random.default_rng(place).normal(size=8).astype(np.float32)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32).tobytes()


def test_an_index_that_is_not_of_this_catalog_goes_though_nothing_takes_its_place(tmp_path: Path) -> None:
    """Whoever has the vector of a text can guess the text: a shard that holds nothing writes no file over it."""
    shard, said = opened(tmp_path), promotion("secret", "a")
    shard.apply([said], {said.event_id: np.frombuffer(vector_of(1), np.float32)}, START)
    shard.close()
    (tmp_path / "catalog.duckdb").unlink()
    opened(tmp_path).close()
    assert [name for name, content in bytes_in(tmp_path).items() if vector_of(1) in content] == []


def test_a_half_written_index_goes_at_the_next_opening(tmp_path: Path) -> None:
    """What was in it may be forgotten without that the index changes, as what lies in the archive."""
    opened(tmp_path).close()
    (tmp_path / "vectors.tmp").write_bytes(vector_of(1))
    opened(tmp_path).close()
    assert not (tmp_path / "vectors.tmp").exists()
