"""A journal that is rewritten: the same offsets, the same ends, and no more than it takes."""

from __future__ import annotations

import time
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import orjson
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.embedded.journal.batches import PACKED_BYTES, Record, end_of, packed, records_of
from streams.kafka.embedded.journal.objects import Objects
from streams.kafka.embedded.journal.reduction import mend, reduced
from tests.support.examples import examples

CLUSTER = "clusters/tansu_cluster"
META = f"{CLUSTER}/meta.json"

NOW = time.time_ns() // 1_000_000
DAY_MS = 24 * 3_600_000

KEYS = st.sampled_from([b"ann", b"bob", b"eve", None])
#: Long ago, or around the day for which tombstones stay.
TIMES = st.integers(0, 1 << 40) | st.integers(NOW - 2 * DAY_MS, NOW)
SAID = st.tuples(KEYS, st.none() | st.binary(max_size=9), TIMES)
#: Records by batch, and whether a batch is compressed.
PARTITION = st.lists(st.tuples(st.lists(SAID, min_size=1, max_size=5), st.booleans()), max_size=6)

Said: TypeAlias = tuple[bytes | None, bytes | None, int]


def folder(topic: str, partition: int = 0) -> str:
    return f"{CLUSTER}/topics/{topic}/partitions/{partition:010}/"


def described(**policies: str) -> bytes:
    """What Tansu keeps of its topics, with their `cleanup.policy`."""
    topics = {
        name: {"id": name, "topic": {"name": name, "configs": [{"name": "cleanup.policy", "value": policy}]}}
        for name, policy in policies.items()
    }
    topics["ever"] = {"id": "ever", "topic": {"name": "ever", "configs": [{"name": "retention.ms", "value": "-1"}]}}
    return orjson.dumps({"producers": {}, "topics": topics, "transactions": {}})


def batch(records: list[Said], compressed: bool = False, transactional: bool = False) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 1 if compressed else 0, int(transactional), -1, -1, -1, 1 << 20)
    for i, (key, value, at) in enumerate(records):
        builder.append(i, at, key, value, [("header", b"h")])
    return bytes(builder.build())


def produce(objects: Objects, topic: str, batches: list[tuple[list[Said], bool]], partition: int = 0) -> None:
    """As the broker does it: the end goes on, and then the batch comes."""
    base = 0
    for records, compressed in batches:
        end = base + len(records)
        objects.put(folder(topic, partition) + "watermark.json", orjson.dumps({"low": None, "high": end}))
        objects.put(f"{folder(topic, partition)}records/{base:020}.batch", batch(records, compressed))
        base = end


def read(objects: Objects, topic: str) -> list[Record]:
    keys = objects.within(folder(topic) + "records/")
    return [one for key in keys for one in records_of(int(key[-26:-6]), objects.get(key) or b"")]


def end(objects: Objects, topic: str) -> int:
    keys = list(objects.within(folder(topic) + "records/"))
    return end_of(int(keys[-1][-26:-6]), objects.get(keys[-1]) or b"") if keys else 0


@given(log=PARTITION, table=PARTITION)
@examples(100)
def test_a_log_stays_and_a_changelog_keeps_the_newest_of_each_key(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[tuple[list[Said], bool]],
    table: list[tuple[list[Said], bool]],
) -> None:
    """At their offsets; no key that lives, or that was deleted today, is without its row; the ends stay."""
    objects = Objects(tmp_path_factory.mktemp("journal") / "log")
    objects.put(META, described(log="delete", table="compact"))
    produce(objects, "log", log)
    produce(objects, "table", table)
    logged, rows = read(objects, "log"), read(objects, "table")
    ends = end(objects, "log"), end(objects, "table")
    objects.rewrite(reduced(objects, NOW))
    assert read(objects, "log") == logged
    last = {row.key: row.offset for row in rows}
    final = len(rows) - (len(table[-1][0]) if table else 0)  # the last batch stays as it is
    rows_kept = [
        row
        for row in rows
        if row.offset >= final
        or (last[row.key] == row.offset and (row.value is not None or row.timestamp >= NOW - DAY_MS))
    ]
    assert read(objects, "table") == rows_kept
    assert (end(objects, "log"), end(objects, "table")) == ends
    assert objects.get(META) == described(log="delete", table="compact")
    again = {kept.key: (kept.value, kept.when) for kept in reduced(objects, NOW)}
    assert again == {key: (objects.get(key) or b"", place.when) for key in objects if (place := objects.find(key))}
    objects.close()


@pytest.mark.parametrize(("topic", "days"), [("table", 1), ("longer", 3)])
def test_a_tombstone_stays_for_as_long_as_somebody_goes_on_from_before_it(
    tmp_path: Path, topic: str, days: int
) -> None:
    """Whoever has the row on a disk, and reads on behind it, would keep what was deleted: for a day, as on Kafka."""
    objects = Objects(tmp_path / "log")
    told = orjson.loads(described(table="compact", longer="compact"))
    told["topics"]["longer"]["topic"]["configs"].append({"name": "delete.retention.ms", "value": str(3 * DAY_MS)})
    objects.put(META, orjson.dumps(told))
    rows: list[Said] = [(b"ann", b"a note", NOW - 9 * DAY_MS), (b"ann", None, NOW), (b"bob", b"1", NOW)]
    produce(objects, topic, [([row], False) for row in rows])
    kept = [(1, b"ann", None, NOW), (2, b"bob", b"1", NOW)]
    for now in (NOW, NOW + days * DAY_MS):
        objects.rewrite(reduced(objects, now))
        assert [(one.offset, one.key, one.value, one.timestamp) for one in read(objects, topic)] == kept
    objects.rewrite(reduced(objects, NOW + days * DAY_MS + 1))
    assert [one.offset for one in read(objects, topic)] == [2]
    objects.close()


def test_many_small_batches_become_few(tmp_path: Path) -> None:
    """The broker looks through the names of a partition's batches at each fetch."""
    objects = Objects(tmp_path / "log")
    objects.put(META, described(log="delete"))
    produce(objects, "log", [([(b"ann", b"x" * 100, i)], False) for i in range(7_000)])
    logged, length = read(objects, "log"), objects.length
    objects.rewrite(reduced(objects, NOW))
    assert read(objects, "log") == logged
    names = list(objects.within(folder("log") + "records/"))
    assert len(names) < 25
    assert all(len(objects.get(name) or b"") <= PACKED_BYTES for name in names)
    assert objects.length < length / 2
    objects.close()


def test_what_is_of_a_transaction_stays_as_it_is(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "log")
    objects.put(META, described(log="delete", table="compact"))
    said: list[Said] = [(b"ann", b"1", 0), (b"ann", b"2", 0)]
    for topic in ("log", "table"):
        objects.put(f"{folder(topic)}records/{0:020}.batch", batch(said, transactional=True))
        objects.put(f"{folder(topic)}records/{2:020}.batch", batch(said))
        objects.put(f"{folder(topic)}records/{4:020}.batch", batch(said))
    before = batch(said, transactional=True)
    objects.rewrite(reduced(objects, NOW))
    for topic in ("log", "table"):
        assert objects.get(f"{folder(topic)}records/{0:020}.batch") == before
        assert [one.offset for one in read(objects, topic)] == [0, 1, 2, 3, 4, 5]
    objects.close()


def test_a_produce_that_was_not_finished_leaves_no_offsets(tmp_path: Path) -> None:
    """Whoever reads up to the end would wait for them for ever."""
    objects = Objects(tmp_path / "log")
    produce(objects, "log", [([(b"ann", b"1", 0), (b"ann", b"2", 0)], False)])
    objects.put(folder("log") + "watermark.json", b'{"low":null,"high":7,"timestamps":null}')
    objects.put(folder("log", 1) + "watermark.json", b'{"low":null,"high":3,"timestamps":null}')
    mend(objects)
    assert orjson.loads(objects.get(folder("log") + "watermark.json") or b"") == {
        "low": None,
        "high": 2,
        "timestamps": None,
    }
    assert orjson.loads(objects.get(folder("log", 1) + "watermark.json") or b"")["high"] is None
    marks = objects.length
    mend(objects)
    assert objects.length == marks
    objects.close()


def test_a_groups_members_have_gone_with_the_broker_and_its_offsets_have_not(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "log")
    offsets = f"{CLUSTER}/groups/consumers/siltstone/offsets/log/partitions/0000000000.json"
    objects.put(f"{CLUSTER}/groups/consumers/siltstone.json", b"{}")
    objects.put(offsets, b'{"offset":3}')
    mend(objects)
    assert list(objects) == [offsets]
    objects.close()


@pytest.mark.parametrize(
    ("days", "committed", "start"), [(6, 40, 0), (8, None, 0), (8, 0, 0), (8, 25, 20), (8, 30, 30), (8, 40, 30)]
)
def test_a_log_without_a_retention_keeps_a_week_and_whatever_was_not_read(
    tmp_path: Path, days: int, committed: int | None, start: int
) -> None:
    """Of a group that has committed there; the last batch stays in any case, and a log that is for ever."""
    objects = Objects(tmp_path / "log")
    objects.put(META, described(log="delete"))
    for topic in ("log", "ever"):
        produce(objects, topic, [([(b"ann", b"x", 0)] * 10, True) for _ in range(4)])
        if committed is not None:
            where = f"{CLUSTER}/groups/consumers/siltstone/offsets/{topic}/partitions/{0:010}.json"
            objects.put(where, orjson.dumps({"offset": committed}))
    objects.rewrite(reduced(objects, NOW + days * DAY_MS))
    assert [one.offset for one in read(objects, "log")] == list(range(start, 40))
    mark = orjson.loads(objects.get(folder("log") + "watermark.json") or b"")
    assert (mark["low"] or 0, mark["high"]) == (start, 40)
    assert len(read(objects, "ever")) == 40
    objects.close()


@given(st.lists(st.tuples(st.integers(1, 1_000), SAID), max_size=30))
@examples(50)
def test_records_are_packed_at_their_offsets(gaps: list[tuple[int, Said]]) -> None:
    offsets = accumulate(gap for gap, _ in gaps)
    records = [
        Record(offset, time, key, value, [("h", b"1")])
        for offset, (_, (key, value, time)) in zip(offsets, gaps, strict=True)
    ]
    batches = list(packed(records, most=150))
    assert [one for base, batch in batches for one in records_of(base, batch)] == records
    assert all(len(batch) <= 150 or end_of(base, batch) == base + 1 for base, batch in batches)
