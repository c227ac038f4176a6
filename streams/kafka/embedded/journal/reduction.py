"""Reduces a broker's objects, at a start, to the objects that it needs to continue at the same offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from schemas.topic_specs import TOMBSTONES_MS
from streams.kafka.embedded.journal.batches import (
    PACKED_BYTES,
    Record,
    end_of,
    is_compressed,
    is_plain,
    packed,
    records_of,
)
from streams.kafka.embedded.journal.objects import Kept, Objects

_WATERMARK: Final = re.compile(r"(clusters/[^/]+/topics/[^/]+/partitions/\d+/)watermark\.json")
_BATCH: Final = re.compile(r"(clusters/[^/]+/topics/([^/]+)/partitions/\d+/records/)(\d+)\.batch")
#: Keys of objects with the members of a group. The members were clients of the broker that has ended. The group's
#: committed offsets are in another folder.
_MEMBERS: Final = re.compile(r"clusters/[^/]+/groups/consumers/[^/]+\.json")
_META: Final = re.compile(r"clusters/[^/]+/meta\.json")
#: The retention of topics without `retention.ms`. It is Apache Kafka's default. With it, the records of forgotten
#: messages leave the file after some time.
RETENTION_MS: Final = 7 * 24 * 3_600_000


def mend(objects: Objects) -> None:
    """Undo produce requests that a broker left unfinished when it ended, and remove its clients from their groups.

    For a produce request, Tansu first moves the partition's end, and then puts the batch. If it was interrupted in
    between, the request was never acknowledged, and its offsets have no records. A consumer that reads up to the end
    would wait for these records. Raises `JournalError`.
    """
    for key in list(objects):
        if _MEMBERS.fullmatch(key):
            objects.delete(key)
        elif found := _WATERMARK.fullmatch(key):
            mark = orjson.loads(objects.get(key) or b"{}")
            end = _end(objects, list(objects.within(found[1] + "records/")))
            if (mark.get("high") or 0) > end:
                objects.put(key, orjson.dumps({**mark, "high": end or None}))


def _end(objects: Objects, batches: Sequence[str]) -> int:
    return end_of(_base(batches[-1]), objects.get(batches[-1]) or b"") if batches else 0


def reduced(objects: Objects, now: int) -> Iterator[Kept]:
    """Yield all objects that are kept at time `now` (epoch ms).

    Of a compacted topic, the newest record of each key is kept, without old tombstones. Of other topics, the records
    within the retention, and older records that a group has not read, are kept in fewer and larger batches. The last
    batch of a partition stays unchanged, because Tansu takes the partition's end from it.
    """
    settings = _settings(objects)
    partitions: dict[tuple[str, str], list[str]] = {}
    marks = []
    for key in objects:
        if found := _BATCH.fullmatch(key):
            partitions.setdefault((found[1], found[2]), []).append(key)
        elif _WATERMARK.fullmatch(key):
            marks.append(key)
        else:
            yield _as_it_is(objects, key)
    starts: dict[str, int] = {}
    for (folder, topic), keys in partitions.items():
        keys.sort()
        told = settings.get(topic, {})
        if told.get("cleanup.policy") == "compact":
            tombstones = int(told.get("delete.retention.ms") or TOMBSTONES_MS)
            yield from _newest_of_each_key(objects, folder, keys, now - tombstones)
        else:
            before = now - int(told.get("retention.ms") or RETENTION_MS)
            old = _too_old(objects, keys, before, _committed(objects, folder)) if before < now else 0
            starts[folder] = _base(keys[old])
            yield from _closer_together(objects, folder, keys[old:-1])
        yield _as_it_is(objects, keys[-1])
    for key in marks:
        yield _begins(_as_it_is(objects, key), starts.get(key.removesuffix("watermark.json") + "records/", 0))


def _too_old(objects: Objects, keys: Sequence[str], before: int, committed: int) -> int:
    """Return the number of batches at the beginning that can be dropped. The last batch is never dropped.

    A batch can be dropped if it was put before `before` (epoch ms), and if all of its offsets are below `committed`.
    """
    for i, key in enumerate(keys[:-1]):
        if _when(objects, key) >= before or _base(keys[i + 1]) > committed:
            return i
    return max(0, len(keys) - 1)


def _committed(objects: Objects, folder: str) -> int:
    """Return the lowest offset that a group has committed in the partition; 0 if no group has committed one."""
    found = _BATCH.fullmatch(f"{folder}{0:020}.batch")
    assert found is not None
    offsets = f"/offsets/{found[2]}/partitions/{folder.split('/')[-3]}.json"
    committed = [orjson.loads(objects.get(key) or b"{}").get("offset", 0) for key in objects if key.endswith(offsets)]
    return min(committed, default=0)


def _begins(mark: Kept, start: int) -> Kept:
    said = orjson.loads(mark.value)
    if start <= (said.get("low") or 0):
        return mark
    return mark._replace(value=orjson.dumps({**said, "low": start}))


def _as_it_is(objects: Objects, key: str) -> Kept:
    return Kept(key, objects.get(key) or b"", _when(objects, key))


def _when(objects: Objects, key: str) -> int:
    place = objects.find(key)
    return 0 if place is None else place.when


def _settings(objects: Objects) -> dict[str, dict[str, str]]:
    """Return the settings with which each topic was created."""
    found: dict[str, dict[str, str]] = {}
    for key in objects:
        if _META.fullmatch(key):
            topics: dict[str, Any] = orjson.loads(objects.get(key) or b"{}").get("topics") or {}
            for name, described in topics.items():
                configs = described.get("topic", {}).get("configs") or []
                found[name] = {one["name"]: one["value"] for one in configs if one.get("value") is not None}
    return found


def _newest_of_each_key(objects: Objects, folder: str, keys: Sequence[str], before: int) -> Iterator[Kept]:
    """Yield batches with the newest record of each key, without tombstones from before `before` (epoch ms).

    The last batch is read but not yielded. All batches are read twice, so that memory holds only the keys of a large
    changelog, and not its values. A changelog with transactions is yielded unchanged.
    """
    if not all(is_plain(objects.get(key) or b"") for key in keys):
        yield from (_as_it_is(objects, key) for key in keys[:-1])
        return
    newest = {one.key: one.offset for one in _records(objects, keys)}
    kept = (
        one
        for one in _records(objects, keys[:-1])
        if newest[one.key] == one.offset and (one.value is not None or one.timestamp >= before)
    )
    when = max((_when(objects, key) for key in keys[:-1]), default=0)
    for base, batch in packed(kept):
        yield Kept(_named(folder, base), batch, when)


def _records(objects: Objects, keys: Sequence[str]) -> Iterator[Record]:
    for key in keys:
        yield from records_of(_base(key), objects.get(key) or b"")


def _closer_together(objects: Objects, folder: str, keys: Sequence[str]) -> Iterator[Kept]:
    """Pack small batches into larger ones. A larger batch has the time of the newest batch in it.

    Compressed and transactional batches stay unchanged.
    """
    near: list[Record] = []
    when = bytes_near = 0
    for key in keys:
        batch = objects.get(key) or b""
        plain = is_plain(batch) and not is_compressed(batch)
        if near and (not plain or bytes_near + len(batch) > PACKED_BYTES):
            yield from (Kept(_named(folder, base), closer, when) for base, closer in packed(near))
            near, when, bytes_near = [], 0, 0
        if not plain or len(batch) > PACKED_BYTES:
            yield _as_it_is(objects, key)
            continue
        near += records_of(_base(key), batch)
        when, bytes_near = max(when, _when(objects, key)), bytes_near + len(batch)
    yield from (Kept(_named(folder, base), closer, when) for base, closer in packed(near))


def _base(key: str) -> int:
    return int(key[-26:-6])


def _named(folder: str, base: int) -> str:
    return f"{folder}{base:020}.batch"
