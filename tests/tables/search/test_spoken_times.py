"""The times that memories speak of: stored a little later, and the same as if the texts were read now."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pytest

from schemas.errors import DataDirError
from schemas.events import Edit, Forget
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import iso, parse_timestamp
from tables.memories.shard import Shard
from tables.rocksdb import StoreDamaged
from tables.search import spoken_times
from tables.search.spoken_times import spoken_in, windows_at_rest
from tables.search.text_store import FOLDER, TextStore
from tables.time_expressions import windows
from tables.time_expressions.windows import Window, windows_of
from tests.support.making import axis, promotion
from tests.tables.commands import event

SAID_AT = parse_timestamp("2026-03-14T23:30:00Z")
TEXTS = (
    "we met last Friday",
    "I like tea",
    "上周三我去了北京",
    "in 2019 I lived in Rome",
    "see you tomorrow at 3 pm",
)
#: At SAID_AT, it is already the 15th there.
OSLO = ZoneInfo("Europe/Oslo")


def opened(folder: Path, zone: tzinfo = UTC) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(), LifecycleSettings(), zone=zone)


def told(shard: Shard, *texts: str) -> list[Any]:
    said = [promotion(text, text, at=SAID_AT + place) for place, text in enumerate(texts)]
    shard.apply(said, {one.event_id: axis(place) for place, one in enumerate(said)}, SAID_AT)
    return said


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    yield shard
    shard.close()


def filled(shard: Shard) -> None:
    while shard.rows.fill(16):
        pass


def found(shard: Shard, zone: tzinfo = UTC) -> list[list[Window]]:
    return shard.rows.spoken.of(shard.held("u").places, zone)


def wanted(shard: Shard, zone: tzinfo = UTC) -> list[list[Window]]:
    return [spoken_in(memory, zone) for memory in shard.memories_of("u")]


def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoken_in(memory: Memory, zone: tzinfo) -> list[Window]:
        raise AssertionError(f"read again: {memory.text}")

    monkeypatch.setattr(spoken_times, "spoken_in", spoken_in)


def test_stored_times_are_those_of_the_texts_and_no_text_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they are stored, while some are, afterwards, and after a restart."""
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    expected = wanted(shard)
    assert [len(one) for one in expected] == [1, 0, 1, 1, 1]
    assert found(shard) == expected
    assert shard.rows.fill(100) == len(TEXTS)  # rows first
    assert shard.rows.fill(2) == 2
    assert found(shard) == expected
    filled(shard)
    with monkeypatch.context() as patched:
        unreadable(patched)
        assert found(shard) == expected
        shard.close()
        again = opened(tmp_path / "0")
        assert (found(again), again.rows.fill(100)) == (expected, 0)
        again.close()


def test_in_another_zone_the_texts_are_read(shard: Shard) -> None:
    filled(shard)
    (tomorrow, *_), (there, *_) = found(shard)[-1], found(shard, OSLO)[-1]
    assert (iso(tomorrow.start)[:10], iso(there.start)[:10]) == ("2026-03-15", "2026-03-16")
    assert found(shard, OSLO) == wanted(shard, OSLO)


@pytest.mark.parametrize("changed", ["zone", "rules"])
def test_texts_are_read_again_after_a_change(tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the time zone, or of the rules, and then only once."""
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    filled(shard)
    shard.close()
    zone: tzinfo = OSLO if changed == "zone" else UTC
    if changed == "rules":  # those find less
        monkeypatch.setattr(spoken_times, "RULES", windows.RULES + 1)
        monkeypatch.setattr(spoken_times, "windows_of", lambda *given: windows_of(*given)[1:])
    shard = opened(tmp_path / "0", zone)
    assert shard.rows.spoken.stored().windows() == []
    assert found(shard, zone) == wanted(shard, zone)
    assert shard.rows.fill(100) == len(TEXTS)
    assert shard.rows.fill(100) == 0
    assert found(shard, zone) == wanted(shard, zone)
    shard.close()


def test_an_edited_text_has_its_own_times_and_a_forgotten_memory_none(shard: Shard) -> None:
    filled(shard)
    (first, *_) = shard.memories_of("u")
    edit = event(Edit, "u", at=SAID_AT, memory_id=first.id, text="we met in May 2020")
    shard.apply([edit], {edit.event_id: axis(6)}, SAID_AT)
    assert found(shard) == wanted(shard)
    filled(shard)
    assert found(shard) == wanted(shard)
    stored = {one.words for one in shard.rows.spoken.stored().windows()}
    assert "in May 2020" in stored
    assert "last Friday" not in stored
    shard.apply([event(Forget, "u", at=SAID_AT, memory_id=first.id)], {}, SAID_AT)
    assert "in May 2020" not in {one.words for one in shard.rows.spoken.stored().windows()}


def test_a_full_disk_puts_reading_off(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shard.rows.fill(100) == len(TEXTS)

    def full(*_: Any, **__: Any) -> None:
        raise DataDirError(Path("/data"), "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(TextStore, "write", full)
        assert shard.rows.fill(100) == 0
    assert shard.rows.spoken.read == 0
    assert found(shard) == wanted(shard)
    filled(shard)
    assert found(shard) == wanted(shard)
    assert shard.rows.spoken.read > 0


def test_damage_that_is_met_while_texts_are_read_loses_no_time(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are written again, and all texts are read again."""
    shard.rows.fill(100)
    shard.rows.fill(2)
    bodies, broken = TextStore.bodies, True

    def damaged(store: TextStore, seqs: np.ndarray[Any, np.dtype[np.int64]]) -> list[bytes | None]:
        nonlocal broken
        if broken:
            broken = False
            raise StoreDamaged("Corruption: block checksum mismatch")
        return bodies(store, seqs)

    monkeypatch.setattr(TextStore, "bodies", damaged)
    shard.rows.fill(8)
    assert shard.rows.spoken.read == 0
    filled(shard)
    assert found(shard) == wanted(shard)
    assert len(shard.rows.spoken.stored().windows()) == 4


def test_a_closed_shard_has_the_times_of_its_own_catalog(tmp_path: Path) -> None:
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    filled(shard)
    stored, generation = shard.rows.spoken.stored().windows(), shard.rows._generation
    shard.close()
    assert len(stored) == 4
    assert windows_at_rest(tmp_path / "0", generation, UTC) == stored
    assert windows_at_rest(tmp_path / "0", generation + 1, UTC) == []
    assert windows_at_rest(tmp_path / "0", None, UTC) == []
    assert windows_at_rest(tmp_path / "0", generation, OSLO) == []
    shutil.rmtree(tmp_path / "0" / FOLDER)
    assert windows_at_rest(tmp_path / "0", generation, UTC) == []
    assert not (tmp_path / "0" / FOLDER).exists()


def test_what_is_not_read_yet_is_not_in_the_copy(shard: Shard) -> None:
    assert shard.rows.spoken.stored().windows() == []
    filled(shard)
    assert len(shard.rows.spoken.stored().windows()) == 4
    shard.rows.spoken.read = 2
    assert {one.seq for one in shard.rows.spoken.stored().windows()} < {0, 1, 2}


def test_windows_of_other_rules_are_deleted_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older worker, which knows none, may have forgotten their memories."""
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    filled(shard)
    stamp = shard.rows._texts.stamp
    assert stamp is not None
    shard.rows._texts.write(msgspec.structs.replace(stamp, times_read=0, times_rules=""))
    assert len(shard.rows._texts.all_times()) == 4
    shard.close()
    erased, erase = [], TextStore.erase

    def erasing(store: TextStore) -> None:
        erased.append(store)
        erase(store)

    monkeypatch.setattr(TextStore, "erase", erasing)
    shard = opened(tmp_path / "0")
    assert (shard.rows._texts.all_times(), erased) == ([], [shard.rows._texts])
    filled(shard)
    assert found(shard) == wanted(shard)
    shard.close()


def test_what_a_full_disk_kept_from_being_deleted_is_deleted_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are read for times in between, and that write must not claim that all is done."""
    shard = opened(tmp_path / "0")
    told(shard, *TEXTS)
    (first, *_) = shard.memories_of("u")
    shard.held("u")
    while shard.rows.spoken.read <= first.seq:
        shard.rows.fill(1)
    write, synced = TextStore.write, []

    def full_after_the_commit(store: TextStore, *given: Any, **options: Any) -> None:
        synced.append(options.get("synced"))
        if len(synced) == 2:  # the one before the commit names what leaves
            raise DataDirError(Path("/data"), "No space left on device")
        write(store, *given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(TextStore, "write", full_after_the_commit)
        with pytest.raises(DataDirError):
            shard.apply([event(Forget, "u", at=SAID_AT, memory_id=first.id)], {}, SAID_AT)
    filled(shard)
    shard.close()
    shard = opened(tmp_path / "0")
    assert len(shard.held("u")) == len(TEXTS) - 1
    filled(shard)
    assert "last Friday" not in {one.words for one in shard.rows.spoken.stored().windows()}
    shard.close()
