"""A memory's history as mem0 shows it: worked out from what was there before each edit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.doors.mem0.reading import paged, past
from tables.memories.catalog.changes import Done
from tests.support.making import START, memory_of

NOW = replace(memory_of(80), text="lives in Rome")


def edit(at: int, **before: Any) -> Done:
    return Done(NOW.id, "u", START + at, "edited", {"reason": "manual", "before": before})


def test_each_edit_has_the_text_before_and_after() -> None:
    done = [
        edit(1, text="lives in Oslo"),
        Done(NOW.id, "u", START + 2, "pinned", {}),
        edit(3, metadata={"mood": None}),
        edit(4, text="lives in Bergen", metadata={}),
    ]
    told = [(one["event"], one["old_memory"], one["new_memory"]) for one in past(NOW, done)]
    assert told == [
        ("ADD", None, "lives in Oslo"),
        ("UPDATE", "lives in Oslo", "lives in Bergen"),
        ("UPDATE", "lives in Bergen", "lives in Bergen"),
        ("UPDATE", "lives in Bergen", "lives in Rome"),
    ]
    assert len({one["id"] for one in past(NOW, done)}) == 4
    assert past(NOW, done) == past(NOW, done), "ids stay"


def test_another_wording_is_an_update_and_the_same_words_are_none() -> None:
    merged = [
        Done(NOW.id, "u", START + 1, "merged", {"importance": 80}),
        Done(NOW.id, "u", START + 2, "merged", {"importance": 82, "before": {"text": "Lives in Rome!"}}),
        Done(NOW.id, "u", START + 3, "merged", {"importance": 84, "text": "i live in rome"}),
    ]
    told = [(one["event"], one["old_memory"], one["new_memory"]) for one in past(NOW, merged)]
    assert told == [("ADD", None, "Lives in Rome!"), ("UPDATE", "Lives in Rome!", "lives in Rome")]


def test_pages_name_the_next_and_the_previous_one() -> None:
    middle = paged([], 25, "/x/", 2, 10)
    assert (middle["previous"], middle["next"]) == ("/x/?page=1&page_size=10", "/x/?page=3&page_size=10")
    assert (paged([], 20, "/x/", 2, 10)["next"], paged([], 0, "/x/", 1, 10)["previous"]) == (None, None)
