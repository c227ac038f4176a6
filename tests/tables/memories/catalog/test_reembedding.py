"""A shard's vectors become another model's: interrupted anywhere, and while memories come, change and go."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from schemas.errors import EmbeddingMismatch, ShardError
from schemas.events import Archive, Edit, Forget, ForgetUser, LongTermEvent, Promotion, Remove, Restore
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.applied import Applied
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tests.support.making import START, axis, promotion
from tests.support.segments import manifest_of
from tests.support.sparse import Held, held


@dataclass(frozen=True)
class Toy:
    """A model of texts that are numbers: each lies along an axis, which one depends on the model."""

    name: str
    dimension: int
    shift: int

    @property
    def model(self) -> VectorModel:
        return VectorModel(self.name, self.dimension)

    def embed(self, text: str) -> Vectors:
        return axis((int(text) + self.shift) % self.dimension, self.dimension)

    def open(self, folder: Path) -> Shard:
        return Shard(0, folder, self.name, self.dimension, LongTermSettings(), LifecycleSettings())


OLD = Toy("old", 16, 0)
SAME_SIZE, LARGER = Toy("new", 16, 5), Toy("new", 24, 5)
NEXT = pytest.mark.parametrize("new", [SAME_SIZE, LARGER], ids=["same-dimension", "other-dimension"])


def apply(shard: Shard, toy: Toy, *events: LongTermEvent) -> Applied:
    texts = [(event.event_id, event.text) for event in events if isinstance(event, Promotion | Edit) and event.text]
    return shard.apply(events, {event_id: toy.embed(text) for event_id, text in texts}, START)


def about(kind: type[LongTermEvent], kept: Promotion, **fields: Any) -> LongTermEvent:
    """A command about a memory."""
    given = {"event_id": uuid.uuid4(), "user_id": kept.user_id, "timestamp": START, "memory_id": kept.memory_id}
    return kind.model_validate({**given, **fields})


def embed_missing(shard: Shard, toy: Toy, most: int | None = None) -> int:
    """As a worker does, in small batches; how many were embedded."""
    side = shard.reembedding
    side.begin(toy.model)
    missing = side.missing()[:most]
    for start in range(0, len(missing), 2):
        seqs, texts = side.texts(missing[start : start + 2])
        side.put(seqs, np.stack([toy.embed(text) for text in texts]))
    return len(missing)


def change(shard: Shard, toy: Toy) -> None:
    embed_missing(shard, toy)
    assert shard.adopt(shard.index_beside(toy.dimension))


def has_vectors_of(shard: Shard, toy: Toy) -> bool:
    """Whether each text, archived or not, has the vector that this model gives it, in the table and in the index."""
    for user in ("u", "v"):
        memories = shard.memories_of(user)
        for memory in memories:
            expected = [float(other is memory) for other in memories]
            if shard.similarities(user, toy.embed(memory.text), memories).tolist() != expected:
                return False
            if shard.resembling(memory, memories).tolist() != expected:
                return False
        archived = shard.archive.listed(user)
        vectors = shard.archive_rows.vectors(shard.archive_rows.of_user(user)) if archived else None
        if vectors is not None and not np.array_equal(
            vectors, np.stack([toy.embed(one.memory.text) for one in archived])
        ):
            return False
    return shard.in_step()


def filled(folder: Path) -> Shard:
    """Seven memories of two users and one in the archive, with an index in its file."""
    shard, gone = OLD.open(folder), promotion("7", "m7")
    apply(shard, OLD, *(promotion(str(n), f"m{n}", user="uv"[n % 2]) for n in range(7)), gone)
    apply(shard, OLD, about(Archive, gone))
    shard.save()
    assert has_vectors_of(shard, OLD)
    return shard


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    shard = filled(tmp_path / "0")
    yield shard
    shard.close()


@pytest.mark.slow
@NEXT
def test_the_shard_works_with_the_new_vectors_at_once_and_when_it_is_opened_again(tmp_path: Path, new: Toy) -> None:
    shard = filled(tmp_path / "0")
    assert (shard.reembedding.rows(), embed_missing(shard, new)) == (8, 8)
    assert has_vectors_of(shard, OLD)  # until then
    change(shard, new)
    assert (shard.reembedding.model, shard.reembedding.target) == (new.model, None)
    assert has_vectors_of(shard, new)
    apply(shard, new, promotion("8", "m8"))
    shard.close()
    with pytest.raises(EmbeddingMismatch, match="siltstone reembed"):
        OLD.open(tmp_path / "0")
    shard = new.open(tmp_path / "0")
    assert has_vectors_of(shard, new)
    assert len(shard.memories_of("u")) + len(shard.memories_of("v")) == 8
    shard.close()


@pytest.mark.slow
@NEXT
def test_an_interrupted_change_goes_on_where_it_was(tmp_path: Path, new: Toy) -> None:
    """Meanwhile the shard is as it was, for the old model alone."""
    shard = filled(tmp_path / "0")
    assert embed_missing(shard, new, most=4) == 4
    shard.close()
    with pytest.raises(EmbeddingMismatch):
        new.open(tmp_path / "0")
    shard = OLD.open(tmp_path / "0")
    assert (has_vectors_of(shard, OLD), shard.reembedding.target) == (True, new.model)
    assert embed_missing(shard, new) == 4
    change(shard, new)
    assert has_vectors_of(shard, new)
    shard.close()


@pytest.mark.slow
@NEXT
def test_what_comes_changes_and_goes_meanwhile(shard: Shard, new: Toy) -> None:
    """Added, edited, archived, restored, removed and forgotten: each memory ends with the new vector of its text."""
    kept = [promotion(str(n), f"k{n}") for n in range(8, 14)]
    edited, archived, restored, removed, forgotten, forgotten_there = kept
    apply(shard, OLD, *kept, *(about(Archive, memory) for memory in (restored, removed, forgotten_there)))
    index = shard.index_beside(new.dimension)
    assert embed_missing(shard, new) == 14
    while shard.reembedding.bring_nearer(index, 3):
        pass
    assert len(index) == 10
    apply(shard, OLD, promotion("14", "k14"), about(Edit, edited, text="15"), about(Archive, archived))
    apply(shard, OLD, about(Restore, restored), about(Remove, removed, reason="old"))
    apply(shard, OLD, about(Forget, forgotten), about(Forget, forgotten_there))
    assert not shard.adopt(index)
    assert has_vectors_of(shard, OLD)
    assert embed_missing(shard, new) == 3  # what came, what was edited, and what came back
    assert shard.adopt(index)
    assert has_vectors_of(shard, new)
    assert sorted(int(memory.text) for memory in shard.memories_of("u")) == [0, 2, 4, 6, 10, 14, 15]
    assert [one.memory.text for one in shard.archive.listed("u")] == ["7", "9"]
    apply(shard, new, about(Restore, archived))
    assert has_vectors_of(shard, new)


@pytest.mark.slow
def test_no_vector_of_what_is_forgotten_stays_in_the_side_table(shard: Shard) -> None:
    """Neither what was there, nor what was on its way from the model."""
    side = shard.reembedding
    embed_missing(shard, SAME_SIZE, most=4)
    under_way, texts = side.texts(side.missing())
    apply(shard, OLD, ForgetUser(event_id=uuid.uuid4(), user_id="u", timestamp=START))
    side.put(under_way, np.stack([SAME_SIZE.embed(text) for text in texts]))
    side.put(under_way, np.stack([SAME_SIZE.embed(text) for text in texts]))
    rows = shard._catalog._db.execute("SELECT seq FROM vectors_next ORDER BY seq").fetchall()
    mine = sorted(memory.seq for memory in shard.memories_of("v"))
    assert [seq for (seq,) in rows] == mine
    assert len(side.missing()) == 0


def test_another_models_half_done_change_is_not_lost_unasked(shard: Shard) -> None:
    embed_missing(shard, SAME_SIZE, most=2)
    with pytest.raises(ShardError, match=r"to those of new \(16 dimensions\) is half done.*--abandon"):
        shard.reembedding.begin(LARGER.model)
    assert len(shard.reembedding.missing()) == 6
    assert shard.reembedding.abandon()
    assert not shard.reembedding.abandon()
    change(shard, LARGER)
    assert has_vectors_of(shard, LARGER)


@pytest.mark.slow
def test_a_whole_change_is_adopted_by_whoever_opens_the_shard_with_its_model(tmp_path: Path) -> None:
    """A worker ended between two shards: this one was ready, and the other one has the new model already."""
    shard = filled(tmp_path / "0")
    embed_missing(shard, SAME_SIZE)
    shard.close()
    shard = SAME_SIZE.open(tmp_path / "0")
    assert has_vectors_of(shard, SAME_SIZE)
    assert shard.reembedding.target is None
    shard.close()


def test_an_empty_shard_changes_its_model_too(tmp_path: Path) -> None:
    shard = OLD.open(tmp_path / "0")
    change(shard, LARGER)
    apply(shard, LARGER, promotion("3", "a"))
    assert has_vectors_of(shard, LARGER)
    shard.close()


@pytest.mark.slow
def test_a_commit_that_fails_leaves_the_shard_as_it_was(shard: Shard, tmp_path: Path) -> None:
    """The manifest of the segments is gone by then: it is written again."""
    embed_missing(shard, SAME_SIZE)
    with pytest.raises(RuntimeError, match="no space"), at_each_line(_fail_at("ALTER TABLE")):
        shard.adopt(shard.index_beside(SAME_SIZE.dimension))
    assert not manifest_of(tmp_path / "0").exists()
    assert has_vectors_of(shard, OLD)
    apply(shard, OLD, promotion("9", "more"))
    shard.save()
    assert manifest_of(tmp_path / "0").exists()
    change(shard, SAME_SIZE)
    assert has_vectors_of(shard, SAME_SIZE)


@pytest.mark.slow
@NEXT
def test_a_crash_between_any_two_steps_leaves_a_shard_of_one_model(tmp_path: Path, new: Toy) -> None:
    """The files as they are before each line of the way is run: what a killed process would leave."""
    left: list[dict[str, Held]] = []

    def keep(_: FrameType) -> None:
        files = {
            str(path.relative_to(tmp_path / "0")): held(path)
            for path in (tmp_path / "0").rglob("*")
            if path.is_file()
        }
        if files not in left[-1:]:
            left.append(files)

    shard = filled(tmp_path / "0")
    with at_each_line(keep):
        change(shard, new)
        shard.save()
    shard.close()
    ends = [_opened_after(files, tmp_path / f"crash-{number}", new) for number, files in enumerate(left)]
    assert ends == ["old"] * ends.count("old") + ["new"] * ends.count("new")
    indexed = ["segments.json" in files for files in left]
    gone, back = indexed.index(False), len(indexed) - indexed[::-1].index(False)
    assert gone < ends.index("new") < back  # the old manifest is gone before, the new one comes after


def _opened_after(files: dict[str, Held], folder: Path, new: Toy) -> str:
    """Of which model the shard is, whose vectors are right whichever it is; and goes on to the new one."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content.put(folder / name)
    try:
        shard, end = OLD.open(folder), "old"
    except EmbeddingMismatch:
        shard, end = new.open(folder), "new"
    assert has_vectors_of(shard, OLD if end == "old" else new), folder.name
    if end == "old":
        change(shard, new)
        assert has_vectors_of(shard, new), folder.name
    shard.close()
    return end


@contextmanager
def at_each_line(call: Callable[[FrameType], None]) -> Iterator[None]:
    """Call before each line of the modules that change a shard's vectors or write its index."""
    files = {
        sys.modules[name].__file__
        for name in (
            "tables.memories.catalog.stored_vectors",
            "tables.memories.catalog.reembedding",
            "tables.memories.shard",
            "tables.vectors.segmented",
        )
    }

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_code.co_name in STEPS:
            call(frame)
        return local

    def begin(frame: FrameType, event: str, _: object) -> Any:
        return local if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        yield
    finally:
        sys.settrace(before)


STEPS = {"adopt", "adopted", "begin", "bring_nearer", "discard", "publish", "put", "save", "synced", "_swap"}


def _fail_at(statement: str) -> Callable[[FrameType], None]:
    def fail(frame: FrameType) -> None:
        if frame.f_code.co_name == "adopt" and statement in _line_of(frame):
            raise RuntimeError("no space")

    return fail


def _line_of(frame: FrameType) -> str:
    return Path(frame.f_code.co_filename).read_text().splitlines()[frame.f_lineno - 1]
