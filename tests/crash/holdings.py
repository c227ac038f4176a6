"""What a worker holds, in a form that two of them can be compared by."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import orjson

from schemas.settings import MemorySettings, Settings
from schemas.topics import Topics
from streams.intake.rules.exchanges import Limits
from streams.kafka.clients.log_reader import bounds_of, records_between
from streams.summaries.rules.drafting import Order, drafted
from tests.crash.chatter import USERS
from tests.support.segments import indexed
from tests.support.stored import stored_in
from tests.support.workers import surely_asked

#: Numbers and moments of writing are each worker's own; all else has to be equal.
QUERIES = {
    "memories": "SELECT * EXCLUDE (seq) FROM memories",
    "archive": "SELECT * EXCLUDE (seq, vector, archived_at) FROM archive",
    "links": "SELECT * FROM links",
    "tombstones": "SELECT * FROM tombstones",
    "merged": "SELECT * FROM merged",
    "applied": "SELECT event_id FROM applied",
    "history": "SELECT * FROM history",
    "transitions": "SELECT * FROM transitions",
}
DIMENSION = 512
_RUN = re.compile(r"^<!-- run: (\S{36}) -->$", re.MULTILINE)
_ENTRY = re.compile(
    r"((?:^<!-- run: \S{36} -->\n)+)\*[^*\n]+\*\n\n(.*?)(?=\n\n---\n\n<!-- run: |\Z)", re.MULTILINE | re.DOTALL
)


def tables(data: Path) -> dict[str, Counter[str]]:
    """The rows of all shards, each as often as it is there."""
    held: dict[str, Counter[str]] = {name: Counter() for name in QUERIES}
    for path in data.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            for name, query in QUERIES.items():
                found = db.execute(query)
                columns = [column[0] for column in found.description]
                rows = (dict(zip(columns, row, strict=True)) for row in found.fetchall())
                held[name].update(orjson.dumps(row, default=str).decode() for row in rows)
    return held


def vectors(data: Path) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """The stored vectors by memory; fails where segments hold vectors of other memories."""
    held: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for path in data.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            found = db.execute("SELECT m.id, m.seq FROM memories m JOIN vectors v USING (seq)").fetchall()
        stored = stored_in(path.parent) if found else {}
        held |= {str(identity): stored[seq] for identity, seq in found}
        assert indexed(path.parent, DIMENSION) == sorted(seq for _, seq in found), path
    return held


def windows(port: int, portions: int) -> dict[str, Any]:
    """The exchanges of every session, and the notes of those who only write."""
    users = [*(f"user-{n}" for n in range(USERS)), *(f"stray-{n}" for n in range(portions))]
    writers = [f"writer-{n}" for n in range(USERS)]
    sessions = {
        user: surely_asked(port, f"/v1/sessions/{user}-s/exchanges?user_id={user}&limit=1000") for user in users
    }
    notes = {user: surely_asked(port, f"/v1/sessions/{user}-s/memories?user_id={user}") for user in writers}
    return sessions | notes


def summaries(data: Path) -> Counter[tuple[str, str]]:
    """Each run in each day's file. Which of them share a summary depends on what waited together."""
    held: Counter[tuple[str, str]] = Counter()
    for path in data.glob("memory/*/*.md"):
        held.update((str(path.relative_to(data)), run) for run in _RUN.findall(path.read_text(encoding="utf-8")))
    return held


async def assert_summaries_are_of_their_requests(settings: Settings, gap_seconds: int) -> None:
    """What stands under the marks of runs is what the requests with these ids come to; all but its time."""
    compared = 0
    requests = {orjson.loads(value)["run_id"]: value for value in await _requested(settings)}
    for path in settings.data_dir.glob("memory/*/*.md"):
        for entry in _ENTRY.findall(path.read_text(encoding="utf-8")):
            marks, text = entry
            compared += 1
            order = Order(
                requests=tuple(requests[run] for run in _RUN.findall(marks)),
                limits=Limits.of(MemorySettings(exchange_gap_seconds=gap_seconds)),
                language="auto",
                timezone=ZoneInfo("UTC"),
                reason="count",
                written_at=0,
            )
            assert text.rpartition("\n\n**")[0] == drafted(order).text.rpartition("\n\n**")[0], path
    assert compared


async def _requested(settings: Settings) -> list[bytes]:
    """All records of `summary-requests`: of each partition up to where it ends, however long that takes."""
    topic, found = Topics.with_prefix(settings.kafka.topic_prefix).summary_requests, []
    for partition in range(settings.kafka.partitions):
        first, end = await bounds_of(settings.kafka, topic, partition)
        async with aclosing(records_between(settings.kafka, topic, partition, first, end)) as batches:
            found += [record.value async for records in batches for record in records]
    return found
