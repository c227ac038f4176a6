"""What holds stands before what it updates, and the outdated is dated until then."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.events import Edit, Forget
from schemas.memories import SAID_AGAIN, SearchHit
from schemas.times import iso
from streams.recall.filtering import Filter
from streams.recall.updates import newest_first
from streams.telemetry.metrics import labelled
from tables.memories.shard import Shard
from tests.support.making import START, line, promotion
from tests.support.talk import Talk, talk

DAY = 86_400_000
OLD = promotion("my home: I live in Bergen", "0")
NEW = promotion("I just moved to Oslo", "1", at=START + 2 * DAY)
QUESTION = "Do I live in Bergen?"


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


def texts(hits: list[SearchHit]) -> list[str]:
    return [hit.memory for hit in hits]


async def test_the_newer_statement_is_first_and_the_older_one_says_until_when(here: Talk) -> None:
    await here.applied(OLD, promotion("Bergen is rainy", "2"), NEW)
    hits = await here.found(QUESTION)
    assert texts(hits) == [NEW.text, OLD.text, "Bergen is rainy"]
    assert [hit.valid_to for hit in hits] == [None, iso(START + 2 * DAY), None]
    assert [hit.updated_by for hit in hits] == [None, NEW.memory_id, None]
    assert hits[0].relevance == hits[1].relevance, "it is as relevant as what it updates"
    assert labelled(here.worker.metrics.outdated_hits) == {(): 1}
    async with here.http() as http:
        asked = {"user_id": "u", "session_id": "s", "q": QUESTION, "reference_date": "2026-01-04"}
        prompt = (await http.get("/v1/context", params=asked)).raise_for_status().json()["prompt"]
    assert "- [2026-01-03, yesterday] I just moved to Oslo\n" in prompt
    assert "- [2026-01-01, 3 days ago, until 2026-01-03] my home: I live in Bergen\n" in prompt


async def test_the_order_of_arrival_does_not_matter_and_a_forgotten_update_updates_nothing(here: Talk) -> None:
    await here.applied(NEW, OLD)
    assert texts(await here.found(QUESTION)) == [NEW.text, OLD.text]
    assert NEW.memory_id is not None
    await here.applied(Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=NEW.memory_id))
    (hit,) = await here.found(QUESTION)
    assert (hit.memory, hit.valid_to) == (OLD.text, None)


async def test_an_exchange_that_is_no_memory_yet_updates_too(here: Talk) -> None:
    await here.applied(OLD)
    await here.say(line(1, "u", "user", 86_400, content="I moved to Oslo"))
    hits = await here.found(QUESTION)
    assert [(hit.state, hit.updated_by) for hit in hits] == [("short_term", None), ("active", hits[0].id)]


async def test_a_wrong_verdict_is_undone_by_one_call(here: Talk) -> None:
    await here.applied(OLD, NEW)
    assert OLD.memory_id is not None
    undo = Edit(
        event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=OLD.memory_id, metadata={"still_holds": True}
    )
    await here.applied(undo)
    hits = await here.found(QUESTION)
    assert (texts(hits), hits[0].valid_to) == ([OLD.text, NEW.text], None)


@pytest.mark.parametrize(
    "validity", [{"valid_from": START + 90 * DAY}, {"valid_from": START, "valid_to": START + DAY}], ids=str
)
async def test_what_does_not_hold_yet_or_any_more_updates_nothing(here: Talk, validity: dict[str, int]) -> None:
    await here.applied(OLD, NEW)
    assert NEW.memory_id is not None
    await here.applied(
        Edit(event_id=uuid.uuid4(), user_id="u", timestamp=START + 3 * DAY, memory_id=NEW.memory_id, **validity)
    )
    hits = await here.found(QUESTION)
    assert (texts(hits), [hit.updated_by for hit in hits]) == ([OLD.text, NEW.text], [None, None])


async def test_what_is_not_asked_for_updates_nothing(here: Talk) -> None:
    """A filter leaves out the newer one: then nothing is known of it."""
    await here.applied(OLD, NEW)
    (hit,) = await here.found(QUESTION, filters=(Filter.of("created_at", "lt", iso(START + DAY)),))
    assert (hit.memory, hit.valid_to) == (OLD.text, None)


async def test_what_is_said_again_holds_again(here: Talk) -> None:
    """Its near-copy is merged into the older memory, whose statement is then the newest one."""
    again = promotion(OLD.text, "3", at=START + 4 * DAY)
    await here.applied(OLD, NEW)
    assert texts(await here.found(QUESTION)) == [NEW.text, OLD.text]
    await here.applied(again)
    hits = await here.found("Did I move to Oslo?")
    assert texts(hits) == [OLD.text, NEW.text]
    assert [hit.valid_to for hit in hits] == [None, iso(START + 4 * DAY)]
    assert hits[0].message_ids == ["0", "3"]


async def test_what_is_said_again_holds_again_although_a_recompute_deleted_its_body(here: Talk) -> None:
    await here.applied(OLD, NEW)
    await here.worker.shards.call(0, Shard.recompute, START + 200 * DAY, here.worker.settings.lifecycle)
    await here.applied(promotion(OLD.text, "3", at=START + 201 * DAY))
    assert texts(await here.found(QUESTION)) == [OLD.text, NEW.text]


async def test_an_edit_states_anew(here: Talk) -> None:
    """Who corrects the older memory today says what holds today."""
    await here.applied(OLD, NEW)
    assert OLD.memory_id is not None
    fields: dict[str, Any] = {"event_id": uuid.uuid4(), "user_id": "u", "timestamp": START + 9 * DAY}
    await here.applied(Edit(**fields, memory_id=OLD.memory_id, text="I live in Turin, near Bergen"))
    hits = await here.found(QUESTION)
    assert [(hit.memory, hit.valid_to) for hit in hits] == [
        ("I live in Turin, near Bergen", None),
        (NEW.text, iso(START + 9 * DAY)),
    ]


@pytest.mark.parametrize("moment", [1 << 63, 1 << 62, -5, True, "2026", START + 900 * DAY])
async def test_nobody_else_says_when_it_was_said(here: Talk, moment: object) -> None:
    """The key is ours: of a message, a promotion and a request it counts for nothing."""
    theirs = promotion("I live in Bergen, at the lake", "7").model_copy(update={"metadata": {SAID_AGAIN: moment}})
    await here.applied(theirs, NEW)
    await here.say(
        line(1, "u", "user", 2 * 86_400 + 50, content="my rent is 900 euros", metadata={SAID_AGAIN: moment})
    )
    hits = await here.found("Where do I live, Bergen, and what is my rent?")
    assert len(hits) == 3
    assert [hit.valid_to for hit in hits if hit.memory == theirs.text] == [iso(START + 2 * DAY)]


async def test_without_updates_relevance_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"memory": {"updates": "off"}}
    async with talk(tmp_path, monkeypatch, **settings) as here:
        await here.applied(OLD, NEW)
        hits = await here.found(QUESTION)
    assert (texts(hits), [hit.valid_to for hit in hits]) == ([OLD.text, NEW.text], [None, None])


@example(values=[1.0, 0.5, 0.5], given={0: 1, 1: 2})
@given(
    st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8),
    st.dictionaries(st.integers(0, 7), st.integers(0, 7), max_size=4),
)
def test_no_outdated_one_is_before_the_newer_one(values: list[float], given: dict[int, int]) -> None:
    """Not in a chain either. Whatever is not part of a pair keeps its relevance, and nothing leaves the scale.

    In a chain, a newer one that is itself outdated is a few of the smallest steps of a float32 below 1.
    """
    pairs = {old: new for old, new in given.items() if old < new < len(values)}
    relevance = np.array(values, np.float32)
    changed = newest_first(relevance, pairs)
    for old, new in pairs.items():
        assert changed[old] < changed[new] or changed[new] == 0
        assert changed[new] >= relevance[old] - (0 if new not in pairs else len(pairs) * np.float32(1e-7))
    others = [row for row in range(len(values)) if row not in {*pairs, *pairs.values()}]
    assert (changed[others] == relevance[others]).all()
    assert ((changed >= 0) & (changed <= 1)).all()
