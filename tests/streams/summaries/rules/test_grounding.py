"""What a model wrote, held against the conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.summaries import (
    MOST_TOPICS,
    TITLE_CHARS,
    Decision,
    Insight,
    Preference,
    Problem,
    Summary,
    Todo,
    Topic,
)
from streams.summaries.rules import grounded
from tests.streams.summaries.rules.talking import turns

TURNS = turns("one", "A: two", "three", "A: four")
IDS = st.lists(st.sampled_from(["m0", "m1", "m2", "m3", "m9", ""]), max_size=4).map(tuple)
TEXT = st.text(st.sampled_from("ab 我，。\n\t -!"), max_size=70)
SUMMARIES = st.builds(
    Summary,
    topics=st.lists(
        st.builds(Topic, title=TEXT, sources=IDS, turns=st.lists(st.integers(-1, 5), max_size=4).map(tuple)),
        max_size=8,
    ).map(tuple),
    preferences=st.lists(st.builds(Preference, text=TEXT, sources=IDS), max_size=4).map(tuple),
    decisions=st.lists(st.builds(Decision, text=TEXT, reason=TEXT, sources=IDS), max_size=4).map(tuple),
    todos=st.lists(st.builds(Todo, text=TEXT, when=TEXT, sources=IDS), max_size=4).map(tuple),
    problems=st.lists(st.builds(Problem, text=TEXT, solution=TEXT, sources=IDS), max_size=4).map(tuple),
    insights=st.lists(st.builds(Insight, text=TEXT, sources=IDS), max_size=4).map(tuple),
)


def test_an_item_without_a_message_of_the_conversation_goes() -> None:
    invented = Insight(text="invented", sources=("m9",))
    unsourced = Insight(text="unsourced", sources=())
    true = Insight(text="true", sources=("m2", "m9", "m2"))
    assert grounded(Summary(insights=(invented, unsourced, true)), TURNS).insights == (
        Insight(text="true", sources=("m2",)),
    )


def test_empty_and_repeated_items_go() -> None:
    said = [" \n", "…", "Buy milk", "buy  milk.", "Buy bread"]
    found = grounded(Summary(todos=tuple(Todo(text=text, sources=("m0",)) for text in said)), TURNS)
    assert [todo.text for todo in found.todos] == ["Buy milk", "Buy bread"]


def test_texts_become_single_lines() -> None:
    wrote = Decision(text="use\n\n# it", reason="\ta\r\nb ", sources=("m0",))
    assert grounded(Summary(decisions=(wrote,)), TURNS).decisions == (
        Decision(text="use # it", reason="a b", sources=("m0",)),
    )


def test_a_topics_turns_are_those_that_exist_and_those_of_its_sources() -> None:
    wrote = (
        Topic(title="a", turns=(2, 1, 7, 2), sources=("m0",)),
        Topic(title="b", turns=(), sources=("m3", "m2", "m9")),
        Topic(title="c", turns=(9,), sources=("m1",)),
    )
    assert [topic.turns for topic in grounded(Summary(topics=wrote), TURNS).topics] == [(1, 2), (2,), (1,)]


def test_long_titles_are_shortened_and_five_topics_stay() -> None:
    title = "The history of the old harbour, and what became of it after the war was over"
    wrote = tuple(Topic(title=f"{i} {title}", sources=("m0",)) for i in range(7))
    found = grounded(Summary(topics=wrote), TURNS).topics
    assert [topic.title for topic in found] == [f"{i} The history of the old harbour" for i in range(5)]


@given(SUMMARIES)
def test_whatever_a_model_writes_what_is_left_is_sound_and_stays_so(wrote: Summary) -> None:
    found = grounded(wrote, TURNS)
    known = {"m0", "m1", "m2", "m3"}
    items: list[Preference | Decision | Todo | Problem | Insight] = []
    items += [*found.preferences, *found.decisions, *found.todos, *found.problems, *found.insights]
    for item in items:
        assert item.text.strip()
        assert "\n" not in item.text
    for sources in [one.sources for one in items] + [topic.sources for topic in found.topics]:
        assert sources
        assert set(sources) <= known
    assert len(found.topics) <= MOST_TOPICS
    for topic in found.topics:
        assert 0 < len(topic.title) <= TITLE_CHARS
        assert topic.turns
        assert set(topic.turns) <= {1, 2}
    assert grounded(found, TURNS) == found
