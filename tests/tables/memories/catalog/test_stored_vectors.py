"""A shard's vectors in their file: there when the rows are, gone when these are, of any version's shard."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from schemas.errors import DataDirError, ShardError
from schemas.events import Archive, Edit, Forget, ForgetUser, LongTermEvent, Promotion, Remember, Remove
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.catalog import stored_vectors
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tables.vectors.vector_file import VectorFile
from tests.support.died import died
from tests.support.making import START, leaning, promotion
from tests.support.segments import lose
from tests.support.stored import as_version_7, stored_in
from tests.tables.commands import event

NEXT = VectorModel("next", 4)


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(max_memories_per_user=0), LifecycleSettings())


def vector(number: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Eight of them lie apart; of the others each is like none of these."""
    return leaning(number % 8, (number + 1) % 8, 1 - 0.01 * number).astype(np.float32)


def tell(shard: Shard, *events: LongTermEvent) -> None:
    vectors = {
        one.event_id: vector(int(one.text))
        for one in events
        if isinstance(one, Promotion | Remember | Edit) and one.text is not None
    }
    shard.apply(events, vectors, START)


def said(number: int) -> Promotion:
    return promotion(str(number), f"m{number}", at=START + number)


def bytes_of(number: int) -> bytes:
    return vector(number).astype("<f4").tobytes()


def files_with(folder: Path, number: int) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if bytes_of(number) in path.read_bytes())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("vectors-*.f32"))


def in_it(shard: Shard) -> list[float]:
    """The cosine of each memory with the vector that it was given, by what is stored."""
    memories = shard.memories_of("u")
    stored = shard._catalog.vectors(np.array([memory.seq for memory in memories], np.int64))[1]
    return [round(float(vector(int(one.text)) @ row), 4) for one, row in zip(memories, stored, strict=True)]


def test_vectors_lie_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    shard = opened(tmp_path)
    tell(shard, said(0), said(1))
    tell(shard, said(2))
    shard.close()
    assert [held.tolist() for held in stored_in(tmp_path).values()] == [vector(n).tolist() for n in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forget", "forget_user", "edit", "removed from the archive"])
def test_what_is_forgotten_is_written_over(tmp_path: Path, how: str) -> None:
    """At once in the file of vectors, with the index in all others; a neighbour stays."""
    shard, other = opened(tmp_path), promotion("3", "x", user="v")
    tell(shard, said(0), other)
    tell(shard, said(1))
    identity = said(1).memory_id
    if how == "removed from the archive":
        tell(shard, event(Archive, memory_id=identity))
    commands: dict[str, LongTermEvent] = {
        "forget": event(Forget, memory_id=identity),
        "forget_user": event(ForgetUser, at=START + 9),
        "edit": event(Edit, memory_id=identity, text="2"),
        "removed from the archive": event(Remove, memory_id=identity),
    }
    tell(shard, commands[how])
    assert "vectors-1.f32" not in files_with(tmp_path, 1)
    assert "vectors-1.f32" in files_with(tmp_path, 3)
    if how.startswith("forget"):
        shard._erase()
        assert files_with(tmp_path, 1) == []
    shard.close()


@pytest.mark.slow
def test_what_a_crash_kept_from_being_written_over_goes_with_the_catalogs_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = opened(tmp_path)
    tell(shard, said(0), said(1), said(2))
    monkeypatch.setattr(VectorFile, "wipe", lambda *_: None)
    tell(shard, event(Forget, memory_id=said(1).memory_id))
    died(shard)
    monkeypatch.undo()
    shard = opened(tmp_path)
    assert "vectors-1.f32" in files_with(tmp_path, 1)
    shard._erase()
    assert files_with(tmp_path, 1) == []
    assert in_it(shard) == [1, 1]
    shard.close()


@pytest.mark.slow
def test_a_batch_that_was_not_committed_leaves_no_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(BaseException):
        pass

    def dying(*_: object) -> None:
        raise Died

    shard = opened(tmp_path)
    tell(shard, said(0))
    monkeypatch.setattr(Catalog, "_note", dying)
    with pytest.raises(Died):
        tell(shard, said(1))
    monkeypatch.undo()
    assert files_with(tmp_path, 1) == ["vectors-1.f32"]
    died(shard)
    shard = opened(tmp_path)
    assert files_with(tmp_path, 1) == []
    tell(shard, said(2))
    assert in_it(shard) == [1, 1]
    shard.close()


def test_a_full_disk_costs_the_batch_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise DataDirError(tmp_path, "vectors cannot be written: No space left on device")

    shard = opened(tmp_path)
    tell(shard, said(0))
    monkeypatch.setattr(VectorFile, "put", full)
    with pytest.raises(DataDirError, match="No space left"):
        tell(shard, said(1))
    monkeypatch.undo()
    assert len(shard.memories_of("u")) == 1
    tell(shard, said(1))
    assert in_it(shard) == [1, 1]
    shard.close()


def test_a_file_that_is_gone_is_told_before_anything_is_written(tmp_path: Path) -> None:
    """An index beside it would hide that for a while."""
    shard = opened(tmp_path)
    tell(shard, said(0))
    shard.close()
    (tmp_path / "vectors-1.f32").unlink()
    with pytest.raises(
        ShardError, match=r"vectors-1\.f32, the file of its vectors, is missing.*from a backup.*siltstone replay"
    ):
        opened(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("damage", ["another vector", "its end is lost"])
def test_a_vector_that_is_not_what_the_catalog_says_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Such a memory has zeros: it is found by its words."""
    shard = opened(tmp_path)
    tell(shard, said(0), said(1))
    shard.close()
    path = tmp_path / "vectors-1.f32"
    held = path.read_bytes()
    path.write_bytes(held[:-32] + (bytes_of(5) if damage == "another vector" else b""))
    lose(tmp_path)
    with caplog.at_level(logging.WARNING):
        shard = opened(tmp_path)
    assert any("vectors-1.f32 lacks 1 vectors that its catalog lists" in one for one in caplog.messages)
    assert in_it(shard) == [1, 0]
    shard.close()


@pytest.mark.slow
def test_many_free_slots_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is brought together in a file of the next number."""
    monkeypatch.setattr(stored_vectors, "_WORTH_IT", 2)
    shard = opened(tmp_path)
    tell(shard, *(said(number) for number in range(6)))
    tell(shard, *(event(Forget, memory_id=said(number).memory_id) for number in (0, 2, 5)))
    shard._erase()
    assert (names(tmp_path), in_it(shard)) == (["vectors-2.f32"], [1, 1, 1])
    tell(shard, said(7))
    shard.close()
    assert (tmp_path / "vectors-2.f32").stat().st_size == 4096 + 4 * 32
    shard = opened(tmp_path)
    assert in_it(shard) == [1, 1, 1, 1]
    shard.close()


@pytest.mark.parametrize(
    "at", ["VectorFile.keep", "VectorFile.put", "VectorFile.remove", "InfoTable.write", "transaction.__exit__"]
)
def test_a_crash_while_they_are_brought_together_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    class Died(BaseException):
        pass

    def dying(*given: object) -> None:
        if name == "remove":  # what is removed has no other owner any more
            cast(VectorFile, given[0]).close()
        raise Died

    monkeypatch.setattr(stored_vectors, "_WORTH_IT", 2)
    shard = opened(tmp_path)
    tell(shard, *(said(number) for number in range(6)))
    tell(shard, *(event(Forget, memory_id=said(number).memory_id) for number in (0, 2, 5)))
    shard.save()
    owner, name = at.split(".")
    monkeypatch.setattr(getattr(stored_vectors, owner), name, dying)
    with pytest.raises(Died):
        shard._catalog._vectors.tidy()
    monkeypatch.undo()
    died(shard)
    shard = opened(tmp_path)
    assert (len(names(tmp_path)), in_it(shard)) == (1, [1, 1, 1])
    shard.close()


def in_next(shard: Shard, numbers: Sequence[int]) -> list[list[float]]:
    found: list[list[float]] = shard.reembedding.vectors.of(np.array(numbers, np.int64)).tolist()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_shard_of_an_earlier_version_has_its_vectors_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """Those of the next model, too; and after a crash on the way."""
    monkeypatch.setattr(stored_vectors, "_AT_A_TIME", 2)
    shard = opened(tmp_path)
    tell(shard, *(said(number) for number in range(5)))
    shard.reembedding.begin(NEXT)
    made = np.eye(4, dtype=np.float32)[:2]
    shard.reembedding.put(np.array([3, 2]), made)
    tell(shard, event(Forget, memory_id=said(0).memory_id))
    shard.close()
    as_version_7(tmp_path)
    assert names(tmp_path) == []
    if interrupted:

        def dying(put: Callable[..., None]) -> Callable[..., None]:
            def second(file: VectorFile, first: int, vectors: Any) -> None:
                if first:
                    raise KeyboardInterrupt
                put(file, first, vectors)

            return second

        monkeypatch.setattr(VectorFile, "put", dying(VectorFile.put))
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path)
        monkeypatch.undo()
    lose(tmp_path)
    shard = opened(tmp_path)
    assert in_it(shard) == [1, 1, 1, 1]
    assert in_next(shard, [2, 3]) == made[::-1].tolist()
    assert shard.reembedding.missing().tolist() == [
        memory.seq for memory in shard.memories_of("u") if memory.seq not in (2, 3)
    ]
    assert len(names(tmp_path)) == 2
    shard.close()
