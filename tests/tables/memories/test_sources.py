"""Who said it, through all that becomes of a memory: near-copies, summaries, edits, and metadata that lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.events import Edit, Forget, LongTermEvent, Promotion, Remember
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.sources import SOURCES, sources_in
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

CRAWLER, APP = ["token:crawler"], ["token:app"]


def opened(folder: Path, limit: int = 0) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(max_memories_per_user=limit), LifecycleSettings())


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    made = opened(tmp_path)
    yield made
    made.close()


def apply(shard: Shard, one: LongTermEvent, place: int = 0) -> None:
    shard.apply([one], {one.event_id: axis(place)}, START)


def said(text: str, message: str, *sources: str) -> Promotion:
    return promotion(text, message).model_copy(update={"sources": list(sources)})


def noted(text: str, *sources: str) -> Remember:
    return event(Remember, text=text, sources=list(sources))


def by(memory: Memory) -> list[str]:
    return sources_in(memory.meta, memory.kind)


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (said("x", "a", "assistant", "tool:search"), said("x", "b"), ["assistant", "tool:search", "user"]),
        (said("x", "a"), said("x", "b", *CRAWLER, "user"), ["assistant", "token:crawler", "user"]),
        (noted("x", *CRAWLER), noted("x"), ["token:crawler", "user"]),
        (said("x", "a"), said("x", "b"), ["assistant", "user"]),
    ],
)
def test_a_near_copys_sources_are_those_of_both(
    shard: Shard, first: LongTermEvent, second: LongTermEvent, both: list[str]
) -> None:
    """Of those of which nothing is recorded, the usual ones count."""
    apply(shard, first)
    apply(shard, second)
    (memory,) = shard.memories_of("u")
    assert by(memory) == both


def test_a_summary_has_the_sources_of_all_its_members_and_goes_with_any(tmp_path: Path) -> None:
    """It is forgotten with a member, and the members of others hold again."""
    shard = opened(tmp_path, limit=2)
    first = noted("red", *CRAWLER)
    events: list[LongTermEvent] = [first, noted("green", *APP), said("blue", "m", "tool:search", "user")]
    for place, one in enumerate(events):
        apply(shard, one, place)
    wholes = [one for one in shard.memories_of("u") if one.kind == "summary"]
    assert wholes
    for whole in wholes:
        members = [one for one in shard.memories_of("u") if one.id in whole.summary_of]
        assert by(whole) == sorted({source for one in members for source in by(one)})
    apply(shard, event(Forget, memory_id=first.event_id))
    left = shard.memories_of("u")
    assert not any("token:crawler" in by(one) for one in left)
    assert {one.text for one in left if one.kind != "summary"} == {"green", "blue"}
    shard.close()


def test_who_edits_a_text_is_among_its_sources_and_who_edits_metadata_is_not(shard: Shard) -> None:
    one = noted("x")
    apply(shard, one)
    apply(shard, event(Edit, memory_id=one.event_id, metadata={"mood": "fine"}, sources=APP))
    assert by(shard.memories_of("u")[0]) == ["user"]
    apply(shard, event(Edit, memory_id=one.event_id, text="y", sources=CRAWLER))
    apply(shard, event(Edit, memory_id=one.event_id, text="z"))
    (memory,) = shard.memories_of("u")
    assert (memory.text, by(memory)) == ("z", ["token:crawler", "user"])


@pytest.mark.parametrize("forged", [APP, None, "token:app"])
def test_metadata_says_nothing_of_who_wrote_it(shard: Shard, forged: object) -> None:
    """Neither of a new memory nor by an edit."""
    one = event(Remember, text="x", sources=CRAWLER, metadata={SOURCES: forged, "mood": "fine"})
    apply(shard, one)
    apply(shard, event(Edit, memory_id=one.event_id, metadata={SOURCES: forged}))
    (memory,) = shard.memories_of("u")
    assert (by(memory), memory.meta["mood"]) == (CRAWLER, "fine")
