"""The file of vectors: slots that stay where they are, and nothing else in it."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.errors import DataDirError
from tables.vectors.vector_file import Head, VectorFile, digests
from tests.support.making import axis

HEAD = Head(uuid.UUID(int=7), 3, 8)


def three() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.stack([axis(place) for place in range(3)]).astype(np.float32)


def filled(folder: Path) -> VectorFile:
    file = VectorFile(folder, HEAD)
    file.put(0, three())
    return file


def test_behind_the_head_there_are_vectors_alone(tmp_path: Path) -> None:
    filled(tmp_path).close()
    found = np.fromfile(tmp_path / "vectors-3.f32", "<f4", offset=4096).reshape(-1, 8)
    assert found.tolist() == three().tolist()


def test_slots_are_read_in_the_order_asked_for_and_those_behind_the_end_are_zeros(tmp_path: Path) -> None:
    filled(tmp_path).close()
    file = VectorFile(tmp_path, HEAD)
    assert file.slots == 3
    assert file.read(np.array([2, 9, 0])).tolist() == [axis(2).tolist(), [0.0] * 8, axis(0).tolist()]
    file.close()


def test_a_wiped_slot_is_zeros_and_its_neighbours_stay(tmp_path: Path) -> None:
    file = filled(tmp_path)
    file.wipe(np.array([1]))
    assert file.read(np.arange(3)).tolist() == [axis(0).tolist(), [0.0] * 8, axis(2).tolist()]
    file.close()


def test_what_is_not_kept_leaves_the_file(tmp_path: Path) -> None:
    """A slot that comes again holds nothing of what was there."""
    file = filled(tmp_path)
    file.keep(1)
    file.keep(3)
    assert file.read(np.arange(3)).tolist() == [axis(0).tolist(), [0.0] * 8, [0.0] * 8]
    file.close()


@pytest.mark.parametrize("other", [HEAD._replace(shard=uuid.UUID(int=8)), HEAD._replace(dimension=4)])
def test_a_file_of_another_catalog_is_refused(tmp_path: Path, other: Head) -> None:
    filled(tmp_path).close()
    before = (tmp_path / "vectors-3.f32").read_bytes()
    with pytest.raises(DataDirError, match="another catalog: put back the file of this catalog"):
        VectorFile(tmp_path, other)
    assert (tmp_path / "vectors-3.f32").read_bytes() == before


def test_vectors_of_another_dimension_are_refused(tmp_path: Path) -> None:
    file = filled(tmp_path)
    with pytest.raises(ValueError, match="dimension 8"):
        file.put(3, np.zeros((2, 4), np.float32))
    file.close()


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = filled(tmp_path)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DataDirError, match="vectors cannot be written: No space left on device"):
        file.put(3, three())
    file.close()


def test_digests_tell_vectors_apart() -> None:
    """Also those that hold the same numbers in another order; zeros have 0."""
    one = np.array([[1, 2, 0], [2, 1, 0], [1, 2, 0], [0, 0, 0]], np.float32)
    found = digests(one).tolist()
    assert found[0] == found[2]
    assert len({*found}) == 3
    assert found[3] == 0
