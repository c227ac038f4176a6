"""Segments of a shard's vectors answer as one index in memory does, whatever was sealed, merged, gone or damaged."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tables.vectors import manifest, segment_file, segmented
from tables.vectors.cells import NewCells
from tables.vectors.index import Seqs, Vectors
from tables.vectors.manifest import Stamp, read_manifest, segment_files
from tables.vectors.merging import MOST_ROWS, to_merge
from tables.vectors.segment import Segment
from tables.vectors.segmented import SegmentedIndex
from tests.support.examples import examples

DIMENSION = 8
CELLS = [3, 70, 40_000]
ROOT = Path(__file__).parents[3]


def new_stamp(_: Stamp | None) -> Stamp:
    return Stamp(uuid.UUID(int=7), secrets.randbits(62) + 1)


def fits(_: Stamp) -> bool:
    return True


def opened(folder: Path, changes: int = 0) -> tuple[SegmentedIndex, bool]:
    """The index, and whether nothing has to be compared."""
    index = SegmentedIndex(folder, DIMENSION, "shard 0")
    return index, index.load(fits, new_stamp, changes)


def rows(first: int, count: int) -> tuple[Seqs, Seqs, Vectors]:
    """Numbers, cells and unit vectors, the same each time."""
    seqs = np.arange(first, first + count)
    vectors = np.stack([np.random.default_rng(seq).standard_normal(DIMENSION) for seq in seqs.tolist()])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return seqs, np.array([CELLS[seq % 3] for seq in seqs.tolist()]), vectors.astype(np.float32)


def sealed(folder: Path, *counts: int) -> SegmentedIndex:
    """An index of so many segments, with so many vectors each."""
    index, _ = opened(folder)
    first = 0
    for count in counts:
        index.add(*rows(first, count))
        index.flush()
        first += count
    return index


def assert_same(index: SegmentedIndex, whole: NewCells) -> None:
    """Each answer, to the last bit."""
    queries = rows(1_000, 6)[2]
    assert len(index) == len(whole)
    assert index.seqs().tolist() == whole.seqs().tolist()
    for cell, query in zip([*CELLS, 5], queries, strict=False):
        held = whole.seqs()
        asked = np.concatenate([held, [99_999]])
        assert index.similarities(cell, query, asked).tolist() == whole.similarities(cell, query, asked).tolist()
    cells = np.array([CELLS[number % 3] for number in range(len(queries))])
    assert index.near(cells, queries, 0.1) == whole.near(cells, queries, 0.1)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 9)),
        st.tuples(st.just("remove"), st.sets(st.integers(0, 60), max_size=8)),
        st.tuples(st.sampled_from(["seal", "merge", "tidy", "reopen", "sync"]), st.none()),
    ),
    max_size=25,
)


@examples(40)
@example(steps=[("add", 1), ("reopen", None), ("remove", {0}), ("reopen", None)])
@example(steps=[("add", 1), ("remove", {0}), ("reopen", None)])
@given(steps=STEPS)
def test_it_answers_as_one_index_in_memory(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    """And nothing has to be compared when it was closed."""
    folder = tmp_path_factory.mktemp("index")
    index, _ = opened(folder)
    whole, first = NewCells(DIMENSION), 0
    for step, what in steps:
        match step:
            case "add":
                index.add(*rows(first, what))
                whole.add(*rows(first, what))
                first += what
            case "remove":
                gone = np.array(sorted(what), np.int64)
                index.remove(gone)
                whole.remove(gone)
            case "seal":
                index.flush()
            case "merge":
                index.merge_all()
                assert len(index.segments) <= 1
            case "tidy":
                index.tidy()
            case "sync":
                index.erase()
            case "reopen":
                index.close(5)
                noted = read_manifest(folder) is not None
                index, in_step = opened(folder, 5)
                assert in_step == noted
                assert noted or not len(whole), "what came and went before it was sealed is in no file"
        assert_same(index, whole)
    index.close(0)
    found = read_manifest(folder)
    named = [one.name for one in found.segments] if found is not None else []
    assert [path.name for path in segment_files(folder)] == sorted(named)


def test_what_was_changed_since_is_compared(tmp_path: Path) -> None:
    """An index that was not closed, or not after so many changes."""
    sealed(tmp_path, 5).close(12)
    assert opened(tmp_path, 12)[1]
    assert not opened(tmp_path, 13)[1]


def test_a_cells_rows_lie_side_by_side(tmp_path: Path) -> None:
    """After a merge of three segments, and without those that went."""
    index = sealed(tmp_path, 9, 9, 9)
    index.remove(np.array([0, 13]))
    index.merge_all()
    (segment,) = index.segments
    assert (len(segment), segment.gone, segment.layout.rows) == (25, 0, 25)
    content, (_, _, vectors) = segment.path.read_bytes(), rows(0, 27)
    kept = [seq for seq in range(27) if seq not in (0, 13) and seq % 3 == 1]
    start = segment.layout.vector_at(segment.list_of(CELLS[1]), int(segment.layout.starts[segment.list_of(CELLS[1])]))
    assert content[start : start + 32 * len(kept)] == vectors[kept].tobytes()
    index.close(0)


@pytest.mark.parametrize("merged", [False, True])
def test_no_byte_of_what_is_removed_stays_in_a_file(tmp_path: Path, merged: bool) -> None:
    """At once, in the file that there is; and after a merge that had begun before."""
    index, (_, _, vectors) = sealed(tmp_path, 20, 20), rows(0, 40)
    if merged:
        with index._guard:  # the merge waits before its first row
            index._merge()
            index._went.append(np.array([7]))
            for segment in index.segments:
                segment.wipe(np.array([7]))
        index._finish(index._merging)
        assert len(index.segments) == 1
    else:
        index.remove(np.array([7]))
    held = b"".join(path.read_bytes() for path in segment_files(tmp_path))
    assert vectors[7].tobytes() not in held
    assert vectors[8].tobytes() in held
    assert 7 not in index.seqs()
    index.close(0)


def test_what_goes_while_a_segment_is_merged_is_gone_from_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copied already, then removed: before anybody reads the new segment it is overwritten there."""
    index = sealed(tmp_path, 20, 20)
    copied, go_on, tables = threading.Event(), threading.Event(), segment_file._tables

    def waiting(*given: Any) -> Any:
        copied.set()
        assert go_on.wait(30)
        return tables(*given)

    monkeypatch.setattr(segment_file, "_tables", waiting)
    index._merge()
    assert copied.wait(30)
    index.remove(np.array([3, 25]))
    index.add(*rows(40, 3))
    go_on.set()
    index._finish(index._merging)
    whole = NewCells(DIMENSION)
    whole.add(*rows(0, 43))
    whole.remove(np.array([3, 25]))
    assert_same(index, whole)
    held, vectors = b"".join(path.read_bytes() for path in segment_files(tmp_path)), rows(0, 40)[2]
    assert [vectors[seq].tobytes() in held for seq in (3, 4, 25)] == [False, True, False]
    index.close(0)


def test_the_adding_thread_waits_for_no_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds, asks and tidies while one is stuck; what is done is taken over then."""
    index = sealed(tmp_path, 20, 20)
    go_on, tables = threading.Event(), segment_file._tables
    monkeypatch.setattr(segment_file, "_tables", lambda *given: tables(*given) if go_on.wait(30) else [])
    index._merge()
    index.add(*rows(40, 3))
    index._take_over()
    assert (len(index), len(index.segments)) == (43, 2)
    go_on.set()
    assert index._merging is not None
    index._merging.wait()
    index._take_over()
    assert (len(index), len(index.segments)) == (43, 1)
    index.close(0)


def test_so_much_is_new_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written fast is sealed beside, what is being sealed is waited for, and the segments stay few."""
    monkeypatch.setattr(segmented, "_SEAL_BYTES", 32 * 4 * DIMENSION)
    index, _ = opened(tmp_path)
    for first in range(0, 4_000, 10):
        index.add(*rows(first, 10))
        assert index.unsealed <= 5 * 32
        assert len(index.segments) <= 40
    index.flush()
    index.merge_all()
    assert index.seqs().tolist() == list(range(4_000))
    assert len(index.segments) <= 4
    index.close(0)


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda content: None,
    "cut": lambda content: content[:-1],
    "cut in half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "head flipped": lambda content: content[:40] + bytes([content[40] ^ 4]) + content[41:],
    "tables flipped": lambda content: content[:-80] + bytes([content[-80] ^ 4]) + content[-79:],
    "foot flipped": lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_missed_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    """One line says so; the other's vectors are there."""
    index = sealed(tmp_path, 20, 10)
    path = index.segments[0].path
    index.close(4)
    content = DAMAGES[damage](path.read_bytes())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    index, in_step = opened(tmp_path, 4)
    assert (in_step, index.seqs().tolist()) == (False, list(range(20, 30)))
    told = f"shard 0: {path.name} is damaged: its 20 vectors are added again from the stored vectors"
    assert caplog.messages == [told]
    assert not path.exists()
    index.add(*rows(0, 20))
    index.merge_all()
    index.close(5)
    index, in_step = opened(tmp_path, 5)
    assert (in_step, index.seqs().tolist()) == (True, list(range(30)))


def test_a_flipped_mark_of_what_is_gone_is_found(tmp_path: Path) -> None:
    """One that is there is said to be gone, or the other way round: then all is compared."""
    for bit, held in ((1 << 2, [0, 1, 3, 4]), (1 << 1, [0, 1, 2, 3, 4])):
        index = sealed(tmp_path, 5)
        index.remove(np.array([1]))
        (segment,) = index.segments
        index.close(4)
        content = bytearray(segment.path.read_bytes())
        content[segment.layout.gone_at] ^= bit
        segment.path.write_bytes(content)
        index, in_step = opened(tmp_path, 4)
        assert (in_step, index.seqs().tolist()) == (False, [one for one in held if one != 1 or bit == 2])
        index.remove(np.array([1]))
        index.add(*rows(2, 1)) if bit == 4 else None
        whole = NewCells(DIMENSION)
        whole.add(*rows(0, 5))
        whole.remove(np.array([1]))
        assert_same(index, whole)
        index.discard()
        (tmp_path / manifest.NAME).unlink()


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"format": 2}', b"\xff\xfe"])
def test_a_manifest_that_cannot_be_read_names_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    sealed(tmp_path, 5).close(4)
    (tmp_path / manifest.NAME).write_bytes(content)
    index, in_step = opened(tmp_path, 4)
    assert (in_step, len(index), segment_files(tmp_path)) == (False, 0, [])
    assert caplog.messages == ["shard 0: segments.json cannot be read: its segments are rebuilt"]


def test_a_full_disk_puts_it_off_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is lost, no part of a file stays, and it is done once there is room."""
    index, whole = sealed(tmp_path, 20, 20), NewCells(DIMENSION)
    whole.add(*rows(0, 60))
    before = segment_files(tmp_path)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "writev", full)
    index.add(*rows(40, 20))
    for _ in range(3):
        index.tidy()
        index.flush()
        assert_same(index, whole)
        assert segment_files(tmp_path) == before
    assert len(caplog.messages) == 1
    assert "cannot be written; a new attempt follows each minute" in caplog.messages[0]
    monkeypatch.undo()
    index.tidy()
    assert_same(index, whole)
    assert (index.unsealed, len(index.segments)) == (0, 1)
    index.close(0)


KILLED = """
import os, signal, sys
from pathlib import Path
from tables.vectors import segment_file, segmented
from tests.tables.vectors.test_segments import rows, sealed

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

index = sealed(Path(sys.argv[1]), 20, 20)
index.close(7)
from tests.tables.vectors.test_segments import opened
index, in_step = opened(Path(sys.argv[1]), 7)
assert in_step
write = segmented.write_manifest
match sys.argv[2]:
    case "while a segment is merged":
        segment_file._tables = die
    case "before the manifest is swapped":
        segmented.write_manifest = die
    case "after the manifest is swapped":
        segmented.write_manifest = lambda *given: die(write(*given))
index.merge_all()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["while a segment is merged", "before the manifest is swapped", "after the manifest is swapped"]
)
def test_a_worker_that_is_killed_leaves_the_old_segments_or_the_new_one(tmp_path: Path, moment: str) -> None:
    """Nothing is lost, nothing is there twice, and no draft stays."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    died = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], env=environment, check=False)
    assert died.returncode == -9
    assert len(segment_files(tmp_path)) == 3
    index, _ = opened(tmp_path)
    whole = NewCells(DIMENSION)
    whole.add(*rows(0, 40))
    assert_same(index, whole)
    assert len(index.segments) == (1 if moment.startswith("after") else 2)
    assert sorted(segment_files(tmp_path)) == sorted(segment.path for segment in index.segments)
    index.close(0)


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], []),
        ([(5, 0)], []),
        ([(100, 0), (10, 0)], []),
        ([(100, 0), (10, 0), (10, 0)], [1, 2]),
        ([(30, 0), (10, 0), (10, 0)], [0, 1, 2]),
        ([(300, 0), (30, 0), (4, 0), (30, 0), (30, 0)], [1, 3, 4]),
        ([(8, 0), (1, 0)], [0, 1]),
        ([(100, 24)], []),
        ([(100, 26)], [0]),
        ([(MOST_ROWS - 1, 0), (MOST_ROWS - 2, 0)], []),
        ([(MOST_ROWS - 1, 0), (2, 0), (2, 0)], [1, 2]),
    ],
)
def test_which_segments_become_one(sizes: Sequence[tuple[int, int]], chosen: list[int]) -> None:
    """Each is more than twice as large as all smaller ones; those under four rows count as four."""
    assert to_merge(sizes, 4) == chosen


def test_a_segment_of_another_dimension_is_none(tmp_path: Path) -> None:
    index = sealed(tmp_path, 5)
    assert Segment.opened(index.segments[0].path, DIMENSION + 1) is None
    index.close(0)


def test_what_nobody_has_any_more_leaves_no_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = sealed(tmp_path, 5, 5)
    index.remove(np.arange(10))
    with caplog.at_level(logging.INFO):
        index.merge_all()
    assert (len(index), segment_files(tmp_path), caplog.messages) == (0, [], [])
    index.close(3)
    assert opened(tmp_path, 3)[1]
