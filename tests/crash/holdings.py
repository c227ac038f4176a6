"""What a worker holds, in a form that two of them can be compared by."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import orjson

from tables.vectors import VectorIndex
from tests.crash.chatter import USERS
from tests.workers import asked

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
_RUN = re.compile(r"^<!-- run: ", re.MULTILINE)


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
    """The stored vectors by memory; fails where an index file holds vectors of other memories."""
    held: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for path in data.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            found = db.execute("SELECT m.id, m.seq, v.vector FROM memories m JOIN vectors v USING (seq)").fetchall()
        held |= {str(identity): np.array(vector, np.float32) for identity, _, vector in found}
        index = VectorIndex.load(path.parent / "vectors.faiss", DIMENSION)
        indexed = [] if index is None else index.seqs().tolist()
        assert sorted(indexed) == sorted(seq for _, seq, _ in found), path
    return held


def windows(port: int, portions: int) -> dict[str, Any]:
    """The exchanges of every session, and the notes of those who only write."""
    users = [*(f"user-{n}" for n in range(USERS)), *(f"stray-{n}" for n in range(portions))]
    sessions = {user: asked(port, f"/v1/sessions/{user}-s/exchanges?user_id={user}&limit=1000") for user in users}
    notes = {
        f"writer-{n}": asked(port, f"/v1/sessions/writer-{n}-s/memories?user_id=writer-{n}") for n in range(USERS)
    }
    return sessions | notes


def summaries(data: Path) -> Counter[tuple[str, str, str]]:
    """Each run in each day's file, with what it says but for when it was written."""
    held: Counter[tuple[str, str, str]] = Counter()
    for path in data.glob("memory/*/*.md"):
        for run in _RUN.split(path.read_text(encoding="utf-8"))[1:]:
            identity, _, said = run.partition("## ")
            held[str(path.relative_to(data)), identity[:36], said.rpartition("\n\n**")[0]] += 1
    return held
