"""A field of a memory is said once, in `schemas/memories.py`, and each other place has it, or is named here."""

from __future__ import annotations

import dataclasses

import duckdb
import pytest
from pydantic import BaseModel

from schemas.events import Remember
from schemas.exported import ExportedMemory
from schemas.memories import MEMORY_COLUMNS, Memory, MemoryFields, SearchHit
from siltstone_client import answers
from tables.database.migrations import migrate

#: Other names of fields in answers, and fields that no answer has: it is the user's, and numbers are ours.
RENAMED = {"text": "memory", "meta": "metadata"}
NOT_ANSWERED = {"seq", "user_id"}
#: Fields that come with the whole memory, not with a hit of a search.
NOT_HIT = {"last_accessed", "access_count", "summary_of"}
#: Fields that an import computes, or has from an event of its own.
NOT_EXPORTED = {"seq", "access_count", "state", "summary_of", "summarized_by", "superseded_by"}
#: Fields that do not come from who remembers.
NOT_GIVEN = {
    "seq",
    "id",
    "last_accessed",
    "access_count",
    "state",
    "pinned",
    "summary_of",
    "summarized_by",
    "superseded_by",
}


def test_each_field_has_a_column() -> None:
    assert list(MEMORY_COLUMNS) == [one.name for one in dataclasses.fields(Memory)]


@pytest.mark.parametrize("table", ["memories", "archive"])
def test_a_column_has_the_type_that_the_migrations_give_it(table: str) -> None:
    with duckdb.connect() as db:
        migrate(db, 0)
        found = {name: kind for name, kind, *_ in db.execute(f"DESCRIBE {table}").fetchall()}
    assert {name: found.get(name) for name in MEMORY_COLUMNS} == {
        name: column.type for name, column in MEMORY_COLUMNS.items()
    }


@pytest.mark.parametrize(
    ("model", "without"),
    [
        (MemoryFields, NOT_ANSWERED),
        (SearchHit, NOT_ANSWERED | NOT_HIT),
        (ExportedMemory, NOT_EXPORTED),
        (Remember, NOT_GIVEN),
    ],
)
def test_a_model_has_each_field(model: type[BaseModel], without: set[str]) -> None:
    names = RENAMED if model in (MemoryFields, SearchHit) else {"meta": "metadata"}
    wanted = {names.get(name, name) for name in MEMORY_COLUMNS if name not in without}
    assert wanted - model.model_fields.keys() == set()


@pytest.mark.parametrize(
    ("ours", "clients"), [(MemoryFields, answers.StoredMemory), (SearchHit, answers.Hit)], ids=["memory", "hit"]
)
def test_the_client_has_the_fields_of_an_answer(ours: type[BaseModel], clients: type[BaseModel]) -> None:
    assert {*ours.model_fields, *ours.model_computed_fields} == clients.model_fields.keys()
