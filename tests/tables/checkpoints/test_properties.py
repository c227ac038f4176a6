"""What holds whatever happens to the files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.manifest import decoded, encoded
from tables.checkpoints.snapshot import BLOCK_BYTES, spans
from tests.tables.checkpoints.made import content, facts, noise, snapshot, written

NAMES = ("shard__catalog_duckdb", "shard__vectors_f32", "windows__1_sst")
LENGTHS = st.integers(0, 3 * BLOCK_BYTES)
#: (file, offset, length, seed): these bytes become others, and the file as long as that takes; -1 removes it.
EDITS = st.tuples(st.sampled_from(NAMES), LENGTHS, st.integers(-1, BLOCK_BYTES), st.integers(0, 5))


def edited(state: Path, edit: tuple[str, int, int, int]) -> None:
    name, offset, length, seed = edit
    path = state / name.replace("__", "/").replace("_", ".")
    before = path.read_bytes() if path.exists() else b""
    if length < 0:
        path.unlink(missing_ok=True)
    else:
        written(
            state, **{name: before[:offset].ljust(offset, b"\0") + noise(length, seed) + before[offset + length :]}
        )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(EDITS, max_size=4), min_size=1, max_size=6), st.integers(1, 3), st.integers(1, 9))
def test_each_generation_that_is_kept_is_what_was_taken(
    rounds: list[list[tuple[str, int, int, int]]], keep: int, minutes: int
) -> None:
    """With a term so short that packs are left and generations removed all the time."""
    with tempfile.TemporaryDirectory() as folder:
        state, now = written(Path(folder, "state"), start=b"1"), [4_000_000_000.0]
        checkpoints = Checkpoints(f"file://{folder}/store", keep=keep, clock=lambda: now[0])
        states = {}
        for edits in rounds:
            for edit in edits:
                edited(state, edit)
            now[0] += minutes * 86_400 / 4
            taken = checkpoints.take(snapshot(state, facts(at=int(now[0] * 1000))))
            assert taken is not None
            states[taken.generation] = content(state)
            checkpoints.expire(3)
        generations = checkpoints.generations(3)
        assert 1 <= len(generations) <= keep
        assert generations[0].generation == len(rounds)
        named = {pack.name for manifest in generations for pack in manifest.packs}
        assert {path.name for path in Path(folder, "store/3/packs").glob("*")} == named
        for manifest in generations:
            restored = Path(folder, f"restored-{manifest.generation}")
            checkpoints.restore(manifest, restored)
            assert content(restored) == states[manifest.generation]
            assert decoded(encoded(manifest), 3, manifest.generation) == manifest
        oldest = Path(folder, f"restored-{generations[-1].generation}")
        checkpoints.refresh(oldest, generations[-1], generations[0])
        assert content(oldest) == states[generations[0].generation]


@given(st.sampled_from(["a.duckdb", "b.f32"]), st.integers(0, 5 * BLOCK_BYTES))
def test_spans_follow_each_other_and_come_to_the_length(name: str, length: int) -> None:
    end = 0
    for offset, size in spans(name, length):
        assert offset == end
        assert 0 < size <= BLOCK_BYTES
        end += size
    assert end == length


def test_a_catalogs_blocks_are_duckdbs_own() -> None:
    assert list(spans("shard/catalog.duckdb", 12_288 + BLOCK_BYTES)) == [(0, 12_288), (12_288, BLOCK_BYTES)]
