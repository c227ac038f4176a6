"""The analysts' copy, of real shards, read as an analyst reads it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.errors import DataDirError, ShardLocked
from schemas.lifecycle import DAY_MS, score_of, state_of
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import parse_timestamp
from tables.analysts.copy import FILE, Copy, Fingerprint, assemble, parquet
from tables.analysts.statistics import distribution
from tables.database.database import Interruption
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes, NewLink
from tables.memories.shard import Shard
from tables.offline.snapshot import snapshot_of_files
from tests.support.making import START, axis, promotion
from tests.tables.memories.catalog.test_catalog import DIMENSION, HALVED, adding, dropping, memory

LIFECYCLE = LifecycleSettings()


def shard(data: Path, partition: int = 0) -> Catalog:
    catalog = Catalog(data / "shards" / str(partition) / "catalog.duckdb", partition)
    catalog.bind_model("toy", DIMENSION)
    return catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = shard(tmp_path)
    yield catalog
    catalog.close()


def copy_of(data: Path, *catalogs: Catalog, at: int = START) -> Copy:
    exported = {}
    for one in catalogs:
        found = one.export(data / "analytics", None)
        assert found is not None
        exported[one.partition] = found[1]
    return assemble(data / "analytics", exported, at, LIFECYCLE)


def read(made: Copy, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(made.path), read_only=True) as db:
        return db.execute(sql).fetchall()


@pytest.mark.slow
def test_it_holds_all_shards_with_their_partitions_and_no_vectors(tmp_path: Path) -> None:
    zero, three = shard(tmp_path, 0), shard(tmp_path, 3)
    one, two = memory(1), memory(2)
    changes = adding(one, two)
    changes.links = [NewLink("u", one.id, two.id, "related", 1.0, START)]
    zero.write(changes, START)
    three.write(adding(memory(7, user_id="v", text="石头", meta={"a": None})), START)
    zero.ageing.recompute(HALVED, LIFECYCLE)
    made = copy_of(tmp_path, zero, three)
    assert (made.partitions, made.memories) == ([0, 3], 3)
    assert read(made, "SELECT partition, user_id, text FROM memories ORDER BY seq") == [
        (0, "u", "text 1"),
        (0, "u", "text 2"),
        (3, "v", "石头"),
    ]
    assert read(made, "SELECT partition, source_id FROM links") == [(0, str(one.id))]
    assert read(made, "SELECT count(*), min(to_state) FROM transitions") == [(2, "cold")]
    columns = {name for (name,) in read(made, "SELECT column_name FROM duckdb_columns()")}
    assert not columns & {"vector", "published"}
    parquet = made.path.parent / "parquet" / "memories" / "3.parquet"
    assert duckdb.execute(f"SELECT text, meta->>'a' FROM '{parquet}'").fetchall() == [("石头", None)]
    zero.close()
    three.close()


@pytest.mark.slow
def test_empty_shards_make_an_empty_copy_with_every_view(catalog: Catalog, tmp_path: Path) -> None:
    made = copy_of(tmp_path, catalog)
    views = read(made, "SELECT view_name FROM duckdb_views() WHERE NOT internal")
    counts = {view: len(read(made, f"FROM {view}")) for (view,) in views}
    assert counts == {
        "scores": 0,
        "states": 3,
        "states_over_time": 0,
        "daily_transitions": 0,
        "transition_rates": 0,
        "score_points": 0,
        "score_histogram": 10,
        "score_clusters": 0,
        "score_fences": 1,
        "score_outliers": 0,
    }


def test_scores_and_states_are_those_of_the_stated_moment(catalog: Catalog, tmp_path: Path) -> None:
    """By the worker's own formula, whatever state was stored; `scores_at` gives them for other moments."""
    kept = [memory(1), memory(2, pinned=True), memory(3, importance=40.0), memory(4, last_accessed=HALVED)]
    catalog.write(adding(*kept), START)
    made = copy_of(tmp_path, catalog, at=HALVED)
    for moment, source in ((HALVED, "scores"), (START, f"scores_at(make_timestamp_ms({START}))")):
        scores = [score_of(one, moment, LIFECYCLE) for one in kept]
        expected = [(score, state_of(score, LIFECYCLE).value) for score in scores]
        assert read(made, f"SELECT score, state FROM {source} ORDER BY seq") == expected
    assert read(made, "FROM states") == [("active", 2, 50.0), ("cold", 1, 25.0), ("deprecated", 1, 25.0)]
    points = catalog.ageing.score_points(HALVED, LIFECYCLE)
    histogram = [tuple(part.values()) for part in distribution(points).histogram]
    assert read(made, "FROM score_histogram") == histogram


def test_what_held_is_by_the_workers_own_rule(catalog: Catalog, tmp_path: Path) -> None:
    ends = [(None, None), (None, 3), (1, 3), (3, None), (None, -2), (2, 2)]
    at = {None: None} | {day: START + day * DAY_MS for day in (-2, 1, 2, 3)}
    kept = [memory(seq, valid_from=at[begin], valid_to=at[end]) for seq, (begin, end) in enumerate(ends, 1)]
    catalog.write(adding(*kept), START)
    made = copy_of(tmp_path, catalog)
    for moment in (START + day * DAY_MS // 2 for day in range(-6, 9)):
        rows = read(made, f"SELECT seq FROM held_at(make_timestamp_ms({moment})) ORDER BY seq")
        assert [seq for (seq,) in rows] == [one.seq for one in kept if one.held_at(moment)]


def test_rates_cover_the_days_since_the_first_change(catalog: Catalog, tmp_path: Path) -> None:
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    made = copy_of(tmp_path, catalog, at=HALVED + 3 * DAY_MS)
    assert read(made, "FROM transition_rates") == [("active", "cold", 2, 0.5, 25.0)]


@pytest.mark.slow
def test_states_over_time_are_the_shards(catalog: Catalog, tmp_path: Path) -> None:
    """From the day of the first memory on; two changes at one moment stay in their order."""
    kept = [memory(1), memory(2, pinned=True), memory(3, importance=10.0)]
    catalog.write(adding(*kept), START)
    for day in (37, 0, 37):
        catalog.ageing.recompute(START + day * DAY_MS, LIFECYCLE)
    catalog.write(Changes(updated={kept[0].seq: replace(kept[0], last_accessed=HALVED)}), HALVED)
    catalog.ageing.recompute(HALVED, LIFECYCLE)
    made = copy_of(tmp_path, catalog, at=HALVED)
    counted = [(*key, number) for key, number in catalog.ageing.states_over_time(START, HALVED).items()]
    assert read(made, "SELECT day, state, memories FROM states_over_time") == counted
    assert read(made, "SELECT state, memories, percent FROM states_over_time WHERE day = '2026-02-07'") == [
        ("active", 2, 66.67),
        ("cold", 0, 0.0),
        ("deprecated", 1, 33.33),
    ]
    assert len(read(made, "FROM states_between(TIMESTAMP '2026-01-05', TIMESTAMP '2026-01-06')")) == 6


READER = """
import sys, duckdb
db = duckdb.connect(sys.argv[1], read_only=True)
for _ in sys.stdin:
    print(db.execute("SELECT count(*) FROM memories").fetchall()[0][0], flush=True)
"""


@pytest.mark.slow
def test_who_has_the_old_copy_open_goes_on_reading_it(catalog: Catalog, tmp_path: Path) -> None:
    """And who opens it afterwards reads the new one."""
    catalog.write(adding(memory(1)), START)
    made = copy_of(tmp_path, catalog)
    command = [sys.executable, "-c", READER, str(made.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def asked() -> int:
            print(file=reader.stdin, flush=True)
            assert reader.stdout is not None
            return int(reader.stdout.readline())

        assert asked() == 1
        catalog.write(adding(memory(2)), START)
        made = copy_of(tmp_path, catalog)
        assert asked() == 1
        assert read(made, "SELECT count(*) FROM memories") == [(2,)]
        reader.stdin.close()


def test_a_shard_that_has_not_changed_is_not_exported(catalog: Catalog, tmp_path: Path) -> None:
    """Nor after a recompute that changes no state; after any commit it is."""
    catalog.write(adding(memory(1)), START)
    catalog.ageing.recompute(START, LIFECYCLE)  # the first notes by which settings
    found = catalog.export(tmp_path / "analytics", None)
    assert found is not None
    catalog.ageing.recompute(START, LIFECYCLE)
    catalog.ageing.state_counts(HALVED, LIFECYCLE)
    assert catalog.export(tmp_path / "analytics", found[0]) is None
    catalog.write(dropping(memory(1)), START)
    assert catalog.export(tmp_path / "analytics", found[0]) is not None


def test_a_fingerprint_of_nothing_is_of_nothing(tmp_path: Path) -> None:
    assert Fingerprint.of(tmp_path / "x") == Fingerprint((None, None))


def test_shards_of_other_workers_stay_in_the_copy(tmp_path: Path) -> None:
    """Two workers, one data directory: each exports its own shards."""
    zero, one = shard(tmp_path, 0), shard(tmp_path, 1)
    zero.write(adding(memory(1)), START)
    one.write(adding(memory(2, user_id="v")), START)
    copy_of(tmp_path, zero)
    made = copy_of(tmp_path, one)
    assert read(made, "SELECT partition, user_id FROM memories ORDER BY 1") == [(0, "u"), (1, "v")]
    zero.close()
    one.close()


def test_what_is_forgotten_is_in_no_file_of_the_next_copy(catalog: Catalog, tmp_path: Path) -> None:
    catalog.write(adding(memory(1, text="a secret of mine"), memory(2)), START)
    copy_of(tmp_path, catalog)
    catalog.write(dropping(memory(1)), START)
    made = copy_of(tmp_path, catalog)
    assert read(made, "SELECT text FROM memories") == [("text 2",)]
    files = [path for path in made.path.parent.rglob("*") if path.is_file()]
    assert not [path for path in files if b"a secret of mine" in path.read_bytes()]


def test_leftovers_of_a_killed_worker_do_no_harm(catalog: Catalog, tmp_path: Path) -> None:
    staged = tmp_path / "analytics" / "staged"
    staged.mkdir(parents=True)
    for name in ("siltstone.duckdb", "siltstone.duckdb.wal", "memories-0.parquet"):
        (staged / name).write_bytes(b"half")
    assert copy_of(tmp_path, catalog).memories == 0


@pytest.mark.slow
def test_a_copy_is_made_of_files_that_nobody_has_open(tmp_path: Path) -> None:
    """Of those that a killed worker left, too; on the event clock it is of the newest access or change."""
    one = shard(tmp_path, 5)
    one.write(adding(memory(1)), START)
    with pytest.raises(ShardLocked):
        snapshot_of_files(tmp_path, HALVED, LIFECYCLE)
    one.close()
    made = snapshot_of_files(tmp_path, HALVED, LIFECYCLE)
    assert (made.partitions, made.memories, made.at) == ([5], 1, HALVED)
    event = LifecycleSettings(clock="event")
    assert snapshot_of_files(tmp_path, HALVED, event).at == START
    one = shard(tmp_path, 5)
    one.ageing.recompute(HALVED, LIFECYCLE)
    one.close()
    assert snapshot_of_files(tmp_path, START, event).at == HALVED


def test_a_copy_is_made_of_shards_that_have_no_archive_yet(tmp_path: Path) -> None:
    """Those that an older worker left: the copy's archive is empty, and every view answers."""
    one = shard(tmp_path)
    one.write(adding(memory(1)), START)
    one.close()
    with duckdb.connect(str(tmp_path / "shards" / "0" / "catalog.duckdb")) as db:
        db.execute("DROP TABLE archive")
    made = snapshot_of_files(tmp_path, START, LIFECYCLE)
    assert read(made, "SELECT count(*) FROM archive") == [(0,)]
    assert read(made, "SELECT memories FROM states_over_time WHERE state = 'active'") == [(1,)]


def test_a_directory_without_shards_has_no_copy(tmp_path: Path) -> None:
    with pytest.raises(DataDirError, match="no shards"):
        snapshot_of_files(tmp_path, START, LIFECYCLE)


def test_a_path_may_hold_a_quote(tmp_path: Path) -> None:
    data = tmp_path / "ann's [data]"
    one = shard(data)
    one.write(adding(memory(1)), START)
    assert copy_of(data, one).memories == 1
    one.close()


def test_a_copy_is_on_the_disk_before_it_takes_the_old_ones_place(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut there is the old copy or the new one, whole."""
    steps, replace = list[str](), Path.replace

    def fsync(descriptor: int) -> None:
        steps.append(f"synced {Path(f'/proc/self/fd/{descriptor}').readlink().parent.name}")

    def replaced(path: Path, target: Path) -> Path:
        if path.name == FILE:
            steps.append(f"replaced by {path.parent.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replaced)
    copy_of(tmp_path, catalog)
    assert steps == ["synced staged", "replaced by staged"]


def test_one_process_at_a_time_makes_a_copy(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock is held from the first file to the last, and is free afterwards."""
    lock, free = tmp_path / "analytics" / "staged" / "lock", list[bool]()

    def is_free() -> bool:
        with lock.open("w") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    replace = Path.replace

    def replaced(path: Path, target: Path) -> Path:
        free.append(is_free())
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    copy_of(tmp_path, catalog)
    assert free == [False] * len(free)
    assert len(free) > 1
    assert is_free()


def test_what_is_interrupted_leaves_the_former_copy(catalog: Catalog, tmp_path: Path) -> None:
    """Also where it waits for another process, which may take its time."""
    former = copy_of(tmp_path, catalog)
    interruption = Interruption()
    interruption.call()
    with pytest.raises(DataDirError, match="it was interrupted"):
        assemble(former.path.parent, {}, START + 1, LIFECYCLE, interruption=interruption)
    with (tmp_path / "analytics" / "staged" / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataDirError, match="it was interrupted"):
            assemble(former.path.parent, {}, START + 1, LIFECYCLE, interruption=interruption)
    assert read(former, "SELECT epoch_ms(as_of) FROM copy_info") == [(START,)]


@pytest.mark.slow
def test_files_with_ids_of_another_type_are_read_beside_new_ones(tmp_path: Path) -> None:
    """A shard that does not change is not exported again: its file is as an older worker has written it."""
    zero, three = shard(tmp_path, 0), shard(tmp_path, 3)
    zero.write(adding(memory(1)), START)
    three.write(adding(memory(7, user_id="v")), START)
    older = copy_of(tmp_path, zero, three).path.parent / "parquet" / "memories" / "3.parquet"
    duckdb.execute(f"CREATE OR REPLACE TEMP TABLE rows AS FROM '{older}'")
    duckdb.execute(
        "COPY (SELECT * REPLACE (id::UUID AS id, summary_of::UUID[] AS summary_of, meta::JSON AS meta) FROM rows) "
        f"TO '{older}' (FORMAT parquet)"
    )
    made = copy_of(tmp_path, zero)
    assert read(made, "SELECT DISTINCT typeof(id), typeof(summary_of) FROM memories") == [("VARCHAR", "VARCHAR[]")]
    assert read(made, "SELECT count(*), count(meta->>'$.a') FROM memories") == [(2, 0)]
    zero.close()
    three.close()


def test_times_that_memories_speak_of_are_rows(tmp_path: Path) -> None:
    """Of a worker's shard, and of a data directory at rest; shards of older workers have none."""
    folder, said_at = tmp_path / "shards" / "0", parse_timestamp("2026-03-14T12:00:00Z")
    whole = Shard(0, folder, "toy", 8, LongTermSettings(), LifecycleSettings())
    said = [promotion(text, text, at=said_at) for text in ("we met last Friday in Rome", "I like tea")]
    whole.apply(said, {one.event_id: axis(place) for place, one in enumerate(said)}, said_at)
    first = whole.export(tmp_path / "analytics", None)
    assert first is not None
    while whole.rows.fill(100):
        pass
    second = whole.export(tmp_path / "analytics", first[0])
    assert second is not None, "times were read"
    assert whole.export(tmp_path / "analytics", second[0]) is None
    whole.rows.spoken.start_over()  # as damage of the search rows does
    whole.rows.fill(100)
    assert whole.export(tmp_path / "analytics", second[0]) is not None
    made = assemble(tmp_path / "analytics", {0: second[1]}, said_at, LIFECYCLE)
    rows = "SELECT user_id, memory_id, CAST(starts_at AS VARCHAR), CAST(ends_at AS VARCHAR), grain, words FROM times"
    expected = [("u", str(said[0].memory_id), "2026-03-06 00:00:00", "2026-03-07 00:00:00", "day", "last Friday")]
    assert read(made, rows) == expected
    speaking = "SELECT text FROM speaking_of(TIMESTAMP '2026-03-{}', TIMESTAMP '2026-03-{}')"
    assert read(made, speaking.format("06", "07")) == [("we met last Friday in Rome",)]
    assert read(made, speaking.format("07", "31")) == []
    whole.close()
    assert read(snapshot_of_files(tmp_path, said_at, LIFECYCLE), rows) == expected
    memories, times = (parquet(tmp_path / "analytics", table, 0) for table in ("memories", "times"))
    duckdb.execute(f"COPY (FROM '{memories}' WHERE seq > 1) TO '{tmp_path}/left.parquet'")
    (tmp_path / "left.parquet").replace(memories)
    assert read(assemble(tmp_path / "analytics", {}, said_at, LIFECYCLE), rows) == [], "an older worker forgot one"
    times.unlink()
    older = assemble(tmp_path / "analytics", {}, said_at, LIFECYCLE)
    assert read(older, rows) == []
    assert read(older, speaking.format("01", "31")) == []
