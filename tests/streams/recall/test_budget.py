"""What fits into a prompt of limited length."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from schemas.memories import SearchHit
from streams.models.token_count import estimated_tokens
from streams.recall.budget import fitted
from streams.recall.context import LEAST_TOKENS
from streams.recall.prompt import Contents, LeftOut, Prompt, one_line
from tests.streams.recall.test_prompt import DAY, TODAY, hit, note, spoken
from tests.support.making import START

PROMPT = Prompt(TODAY)
WORDS = st.lists(st.sampled_from(["Oslo", "青岛", "my sister", "2026", "<b>", "\n", "extraordinarily"]), min_size=1)
TEXTS = st.lists(WORDS.map(" ".join), max_size=12)


def shown(contents: Contents, max_tokens: int) -> tuple[Contents, LeftOut, str]:
    kept, left_out = fitted(PROMPT, contents, max_tokens, "s")
    return kept, left_out, PROMPT.text(kept, left_out)


def said(text: str, *ids: str) -> SearchHit:
    return hit(text, "2026-01-01, 5 weeks ago").model_copy(update={"message_ids": list(ids)})


@given(TEXTS, TEXTS, TEXTS, st.integers(LEAST_TOKENS, 1_500))
def test_a_prompt_is_as_long_as_it_may_be_and_shows_whole_things(
    memories: list[str], notes: list[str], exchanges: list[str], most: int
) -> None:
    contents = Contents(
        [said(text, f"x{place}") for place, text in enumerate(memories)],
        [note(text, START + place) for place, text in enumerate(notes)],
        [spoken(text, START + place * DAY, place) for place, text in enumerate(exchanges)],
    )
    kept, left_out, text = shown(contents, most)
    assert estimated_tokens(text) <= most
    for whole, part, out in zip(contents, kept, left_out, strict=True):
        assert len(whole) == len(part) + out
    assert all(f"] {one_line(one.memory)}" in text for one in kept.hits)
    assert [one for one in contents.hits if one in kept.hits] == kept.hits, "in their order"
    assert kept.notes == contents.notes[len(contents.notes) - len(kept.notes) :], "the newest"
    assert kept.exchanges == contents.exchanges[len(contents.exchanges) - len(kept.exchanges) :]
    everything = estimated_tokens(PROMPT.text(contents, LeftOut(9, 9, 9)))
    lines = len(memories) + len(notes) + 4 * len(exchanges)
    if everything + 3 * lines <= most:
        assert left_out == LeftOut(), "what fits is there"


def test_the_least_length_has_room_for_the_headings() -> None:
    long = "word " * 500
    contents = Contents([said(long, "x")], [note(long, START)], [spoken(long, START)])
    kept, left_out, text = shown(contents, LEAST_TOKENS)
    assert (kept, left_out) == (Contents([], [], []), LeftOut(1, 1, 1))
    assert estimated_tokens(text) <= LEAST_TOKENS


def test_a_long_memory_does_not_keep_out_the_next_one() -> None:
    contents = Contents([said("word " * 500, "x"), said("I live in Oslo", "y")], [], [])
    kept, left_out, _ = shown(contents, 300)
    assert [one.memory for one in kept.hits] == ["I live in Oslo"]
    assert left_out == LeftOut(memories=1)


def test_a_long_conversation_leaves_half_to_memories() -> None:
    talk = [spoken("word " * 40, START + place, place) for place in range(20)]
    memories = [said(f"fact {place} " * 10, f"x{place}") for place in range(20)]
    kept, _, _ = shown(Contents(memories, [], talk), 1_000)
    of_talk = sum(estimated_tokens(PROMPT.exchange(one)) for one in kept.exchanges)
    of_memories = sum(estimated_tokens(PROMPT.memory(one)) for one in kept.hits)
    assert 0 < of_talk <= 500
    assert of_memories >= 300


def test_a_memory_is_not_shown_beside_its_exchange() -> None:
    """Unless there was no room for the exchange: then the memory stands for it."""
    talk = [spoken("I live in Oslo", START, 0), spoken("word " * 200, START + 1, 1)]
    of_first = said("I live in Oslo", "m0", "a0").model_copy(update={"session_id": "s", "id": uuid.uuid4()})
    kept, left_out, _ = shown(Contents([of_first], [], talk), 1_000)
    assert (kept.hits, len(kept.exchanges), left_out) == ([], 2, LeftOut())
    kept, left_out, text = shown(Contents([of_first], [], talk), 240)
    assert (len(kept.exchanges), text.count("I live in Oslo")) == (0, 1)
    assert kept.hits == [of_first]
    assert left_out == LeftOut(exchanges=2)
