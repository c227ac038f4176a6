"""What becomes of a memory when it is said again in other words: its id, its newest wording, its history."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Edit, Forget, LongTermEvent, Promotion, Remember, Touch
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.applied import Applied
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tests.support.examples import examples
from tests.support.making import START, axis, leaning, promotion
from tests.tables.commands import event

Said = tuple[Promotion | Remember, Vectors]


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", 8, LongTermSettings(), LifecycleSettings())


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    with closing(opened(tmp_path)) as shard:
        yield shard


def say(shard: Shard, *said: Said) -> Applied:
    """In one batch."""
    vectors = {one.event_id: vector for one, vector in said}
    return shard.apply([one for one, _ in said], vectors, START)


def merges(shard: Shard, memory_id: uuid.UUID) -> list[dict[str, Any]]:
    """What the history tells of each near-copy's words."""
    done = [one for one in shard.history.of("u", memory_id) if one.event == "merged"]
    return [{name: one.details[name] for name in ("before", "text") if name in one.details} for one in done]


def in_batches(shard: Shard, said: Sequence[Said], cuts: Sequence[int]) -> None:
    for begin, end in pairwise([0, *cuts, len(said)]):
        say(shard, *said[begin:end])


@pytest.mark.parametrize("cuts", [(), (1,)])
def test_the_newest_wording_is_kept_and_the_history_has_the_older(shard: Shard, cuts: Sequence[int]) -> None:
    """Stored or of the same batch; the memory keeps its id, and is found by the newest wording's vector."""
    first = promotion("I row", "a", importance=90)
    again = promotion("i row!", "b", "a", importance=75, at=START + 1)
    in_batches(shard, [(first, axis(0)), (again, leaning(0, 1, 0.96))], cuts)
    (memory,) = shard.memories_of("u")
    assert (memory.id, memory.text, memory.importance) == (first.memory_id, "i row!", 92)
    assert (memory.message_ids, memory.created_at, memory.last_accessed) == (("a", "b"), START, START + 1)
    assert merges(shard, first.memory_id) == [{"before": {"text": "I row"}}]
    assert shard.similarities("u", leaning(0, 1, 0.96), [memory]).tolist() == pytest.approx([1])
    assert shard.history.last_edits("u") == {first.memory_id: START + 1}
    assert shard.in_step()


def test_the_same_words_again_are_no_change_of_wording(shard: Shard) -> None:
    first = promotion("I row", "a")
    say(shard, (first, axis(0)))
    (before,) = shard.memories_of("u")
    say(shard, (promotion("I row", "b"), axis(0)))
    (after,) = shard.memories_of("u")
    assert (after.seq, merges(shard, first.memory_id)) == (before.seq, [{}])


def test_what_was_said_before_and_is_read_later_does_not_take_the_newer_wordings_place(shard: Shard) -> None:
    """A backfill of old topics."""
    newer = promotion("I row!", "b", at=START + 9)
    say(shard, (newer, axis(0)))
    say(shard, (promotion("i row", "a"), axis(0)))
    (memory,) = shard.memories_of("u")
    assert (memory.text, memory.message_ids) == ("I row!", ("b", "a"))
    assert merges(shard, newer.memory_id) == [{"text": "i row"}]
    assert shard.history.last_edits("u") == {}


def test_an_exchange_that_is_remembered_in_plain_words_names_no_speakers(shard: Shard) -> None:
    """The names are those of the text: a search leaves them out of the question."""
    first = promotion("User: I row", "a").model_copy(update={"speakers": ["Ann"], "metadata": {"mood": "calm"}})
    plain = event(Remember, text="I row", at=START + 1)
    say(shard, (first, axis(0)), (plain, axis(0)))
    (memory,) = shard.memories_of("u")
    assert (memory.text, memory.kind, memory.meta.get("speakers")) == ("I row", "exchange", None)
    assert (memory.meta["mood"], memory.meta["promotion"]["total"]) == ("calm", 1000)


def test_a_memory_in_other_words_is_named_edited_and_accessed_as_before(shard: Shard) -> None:
    first, again = promotion("I row", "a"), promotion("i row!", "b")
    say(shard, (first, axis(0)))
    say(shard, (again, axis(0)))
    shard.apply([event(Touch, memory_ids=[again.memory_id])], {}, START)
    edit = event(Edit, memory_id=again.memory_id, text="I swim")
    shard.apply([edit], {edit.event_id: axis(3)}, START)
    (memory,) = shard.memories_of("u")
    assert (memory.id, memory.text, memory.access_count) == (first.memory_id, "I swim", 1)
    assert [one.event for one in shard.history.of("u", first.memory_id)] == ["merged", "edited"]


FORMS = ("I row", "i row.", "I row!", "User: I row", "I do not row", "i don't row!")
SPOKEN = st.lists(
    st.tuples(st.sampled_from(FORMS), st.sampled_from([1.0, 0.99, 0.97, 0.93, 0.9]), st.integers(0, 3)), max_size=9
)


def held(shard: Shard) -> list[tuple[Memory, list[float], list[dict[str, Any]]]]:
    memories = shard.memories_of("u")
    cosines = shard.similarities("u", leaning(0, 2, 0.5), memories).tolist() if memories else []
    histories = [[{**one.details, "event": one.event} for one in shard.history.of("u", m.id)] for m in memories]
    return list(zip(memories, cosines, histories, strict=True))


@given(SPOKEN, st.sets(st.integers(0, 9)))
@examples(60)
def test_it_is_the_same_however_batches_are_cut(
    tmp_path_factory: pytest.TempPathFactory, spoken: list[tuple[str, float, int]], cuts: set[int]
) -> None:
    """Of which memory a text is a near-copy depends on words and vectors that a batch may have changed."""
    said: list[Said] = [
        (promotion(text, f"m{n}", at=START + late), leaning(0, 1, cosine))
        for n, (text, cosine, late) in enumerate(spoken)
    ]
    results = []
    for places in ((), sorted(place for place in cuts if place < len(said))):
        with closing(opened(tmp_path_factory.mktemp("shard"))) as shard:
            in_batches(shard, said, places)
            results.append(held(shard))
    assert results[0] == results[1]


@pytest.mark.parametrize("cuts", [(), (1,)])
def test_a_longer_exchange_replaces_the_one_that_it_begins_with(shard: Shard, cuts: Sequence[int]) -> None:
    """The last question of an export has its answer in the next one: it is in one memory, under its first id."""
    question = promotion("Which boat did I buy?", "q1", "q2")
    whole = promotion("Which boat did I buy?\nThe Seagull.", "q1", "q2", "a", at=START)
    in_batches(shard, [(question, axis(0)), (whole, axis(3))], cuts)
    (memory,) = shard.memories_of("u")
    assert (memory.id, memory.text, memory.message_ids) == (question.memory_id, whole.text, ("q1", "q2", "a"))
    assert merges(shard, question.memory_id) == [{"before": {"text": question.text}}]
    other = promotion("Which boat did he buy?\nThe Gull.", "q2", "a")
    elsewhere = whole.model_copy(update={"session_id": "t", "event_id": uuid.uuid4(), "memory_id": uuid.uuid4()})
    in_batches(shard, [(other, axis(5)), (elsewhere, axis(6))], ())
    assert len(shard.memories_of("u")) == 3, "one that begins otherwise, or elsewhere, is another"
    assert shard.in_step()


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])
def test_a_longer_exchange_than_a_forgotten_one_stays_forgotten(shard: Shard, cuts: Sequence[int]) -> None:
    question = promotion("Which boat did I buy?", "q")
    forget = Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START + 1, memory_id=question.memory_id)
    whole = promotion("Which boat did I buy?\nThe Seagull.", "q", "a")
    events: list[LongTermEvent] = [question, forget, whole]
    vectors = {question.event_id: axis(0), whole.event_id: axis(3)}
    for begin, end in pairwise([0, *cuts, 3]):
        shard.apply(events[begin:end], vectors, START)
    assert not shard.memories_of("u")
    shard.apply([promotion("The Seagull.", "a")], {promotion("The Seagull.", "a").event_id: axis(4)}, START)
    assert len(shard.memories_of("u")) == 1
