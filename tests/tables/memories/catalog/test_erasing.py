"""Every table of a shard is erased from, or says why not: a new one cannot be forgotten in forgetting."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from schemas.events import Archive, Edit, Forget, ForgetUser, Link, LongTermEvent, Remember, Remove
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.catalog.changes import Changes
from tables.memories.catalog.erasing import KEPT, NAMING, NUMBERED
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.catalog.watermarks import Watermark
from tables.memories.shard import Shard
from tests.support.making import START, axis
from tests.tables.commands import event

ROOT = Path(__file__).parents[4]
#: In everything that the user says, and in every reason.
WORD = "unmistakable"
FIRST, SECOND, THIRD, COPY = (uuid.UUID(int=number) for number in range(1, 5))
PLACES = {FIRST: 0, SECOND: 1, THIRD: 2, COPY: 0}
#: The copy says what the first one says.
TEXTS = {FIRST: f"{WORD} one", SECOND: f"{WORD} two", THIRD: f"{WORD} three", COPY: f"{WORD} one!"}
#: Where else rows are deleted, of which tables, and why that erases no memory.
ELSEWHERE = {
    "tables/memories/catalog/catalog.py": {"links"},  # the command to unlink
    "tables/memories/catalog/retention.py": {
        "transitions",
        "history",
        "ratings",
        "links",
        "tombstones",
    },  # rows that are older than they are kept
    "tables/database/shard_info.py": {"shard_info"},
    "tables/memories/catalog/watermarks.py": {"applied", "watermarks"},
    "tables/memories/catalog/reembedding.py": {"vectors_next"},  # what is archived has its vector with it
}

SAID: list[LongTermEvent] = [
    *(
        event(Remember, memory_id=identity, text=text, session_id="s", metadata={"mood": WORD})
        for identity, text in TEXTS.items()
    ),
    event(Link, source_id=FIRST, target_id=SECOND, kind=WORD),
    event(Edit, memory_id=FIRST, metadata={"mood": f"more {WORD}"}, reason=WORD),
    event(Archive, memory_id=THIRD, reason=WORD),
]


def tell(shard: Shard, *events: LongTermEvent) -> None:
    vectors = {
        one.event_id: axis(PLACES[one.memory_id]) for one in events if isinstance(one, Remember) and one.memory_id
    }
    shard.apply(events, vectors, START)


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    """With rows of user u in every table."""
    shard = Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(), LifecycleSettings())
    tell(shard, *SAID)
    for identity in PLACES:
        shard.ratings.put(identity, "judge", 7, START)
    shard.watermarks.keep(Watermark(1, "digest"), START, 7)
    side = shard.reembedding
    side.begin(VectorModel("next", 8))
    side.put(side.missing(), np.stack([axis(4)] * len(side.missing())))
    yield shard
    shard.close()


def rows(shard: Shard) -> dict[str, list[str]]:
    """By table, each row as a text."""
    db = shard._catalog._db
    tables = [name for (name,) in db.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()]
    return {
        table: [row for (row,) in db.execute(f"SELECT cast(one AS VARCHAR) FROM {table} one").fetchall()]
        for table in tables
    }


def one_by_one(shard: Shard) -> None:
    for identity in (FIRST, SECOND, THIRD):
        tell(shard, event(Forget, memory_id=identity))


def all_at_once(shard: Shard) -> None:
    tell(shard, event(ForgetUser))


def ahead(shard: Shard) -> None:
    shard.forget_ahead([event(ForgetUser)], START)


def test_each_table_is_erased_from_or_says_why_not(shard: Shard) -> None:
    assert sorted(rows(shard)) == sorted([*NUMBERED, *NAMING, *KEPT])


@pytest.mark.parametrize("forget", [one_by_one, all_at_once, ahead])
def test_forgetting_empties_all_tables_but_those_that_say_why_not(
    shard: Shard, forget: Callable[[Shard], None]
) -> None:
    before = rows(shard)
    assert [table for table, held in before.items() if not held] == ["tombstones"]
    assert {table for table, held in before.items() if WORD in "".join(held)} == {
        "memories", "archive", "links", "history", "transitions"
    }  # fmt: skip
    forget(shard)
    after = rows(shard)
    assert {table: after[table] for table in (*NUMBERED, *NAMING) if after[table]} == {}
    named = {
        table for table, held in after.items() if any(str(identity) in row for row in held for identity in PLACES)
    }
    assert named <= {"transitions", "tombstones", "ratings"}
    assert [table for table, held in after.items() if WORD in "".join(held)] == []


def test_what_events_before_it_in_a_batch_noted_is_erased_too(tmp_path: Path) -> None:
    """`Changes` has a field for each table that names memories."""
    assert NAMING.keys() <= {field.name for field in fields(Changes)}
    shard = Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(), LifecycleSettings())
    tell(shard, *SAID, event(ForgetUser))
    after = rows(shard)
    assert {table: held for table, held in after.items() if held and (table in NAMING or table in NUMBERED)} == {}
    assert [table for table, held in after.items() if WORD in "".join(held)] == []
    shard.close()


def test_what_is_removed_from_the_archive_has_no_row_under_its_number(shard: Shard) -> None:
    def numbers(table: str) -> set[int]:
        return {seq for (seq,) in shard._catalog._db.execute(f"SELECT seq FROM {table}").fetchall()}

    (gone,) = numbers("archive")
    assert gone in numbers("vectors_next")
    tell(shard, event(Remove, memory_id=THIRD))
    assert [table for table in NUMBERED if gone in numbers(table)] == []
    assert len(numbers("memories")) == len(numbers("vectors")) == len(numbers("vectors_next")) == 2


def test_nothing_else_deletes_rows_about_memories() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tables").rglob("*")):
        if path.suffix in (".py", ".sql") and path.name != "erasing.py":
            deleted = re.findall(
                r"(?:DELETE FROM|TRUNCATE) (?:\{schema\}\.)?([\w{]+)", path.read_text(encoding="utf-8")
            )
            if deleted:
                found[path.relative_to(ROOT).as_posix()] = set(deleted)
    assert found == ELSEWHERE
