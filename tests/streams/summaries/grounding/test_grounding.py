"""What a model wrote, held against the conversation."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from schemas.settings.agents import SummaryLanguage
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
from streams.summaries.grounding import Fault, grounded
from streams.summaries.rules import Turn
from tests.streams.summaries.rules.talking import turns

TURNS = turns("one true thing: buy milk, buy bread", "A: two, use it: a b", "three harbours, ab", "A: four 我 ab bb")
IDS = st.lists(st.sampled_from(["m0", "m1", "m2", "m3", "m9", ""]), max_size=4).map(tuple)
WORDS = ["one", "two", "four", "5", "ab", "bb", "xx", "我", "，", "…", "\n", "\t", "- ", "!", "a long word " * 5]
TEXT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
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


def checked(summary: Summary, said: list[Turn] = TURNS, language: SummaryLanguage = "auto") -> Summary:
    return grounded(summary, said, UTC, language).summary


def test_an_item_without_a_message_of_the_conversation_goes() -> None:
    invented = Insight(text="one", sources=("m9",))
    unsourced = Insight(text="two", sources=())
    true = Insight(text="three", sources=("m2", "m9", "m2"))
    found = grounded(Summary(insights=(invented, unsourced, true)), TURNS, UTC, "auto")
    assert found.summary.insights == (Insight(text="three", sources=("m2",)),)
    assert found.cut == {Fault.SOURCE: 2}


def test_empty_and_repeated_items_go() -> None:
    said = [" \n", "…", "Buy milk", "buy  milk.", "Buy bread"]
    found = grounded(Summary(todos=tuple(Todo(text=text, sources=("m0",)) for text in said)), TURNS, UTC, "auto")
    assert [todo.text for todo in found.summary.todos] == ["Buy milk", "Buy bread"]
    assert found.cut == {Fault.REPEATED: 1}


def test_nothing_is_in_two_sections_but_topics_name_what_sections_state() -> None:
    """The order is that of the rules: problems, preferences, decisions, to-dos, insights."""
    said = "buy milk and bread"
    wrote = Summary(
        topics=(Topic(title=said, sources=("m0",)),),
        decisions=(Decision(text="Buy milk and bread!", sources=("m0",)),),
        todos=(Todo(text=said, sources=("m0",)), Todo(text="buy a thing", sources=("m0",))),
        insights=(Insight(text=said, sources=("m0",)),),
    )
    found = checked(wrote)
    assert (len(found.topics), len(found.decisions), len(found.insights)) == (1, 1, 0)
    assert [todo.text for todo in found.todos] == ["buy a thing"]


def test_what_no_message_holds_goes_and_of_an_item_only_the_part() -> None:
    wrote = Summary(
        decisions=(Decision(text="use it", reason="as Ludmila said", sources=("m1",)),),
        problems=(Problem(text="use 15 harbours", solution="use it", sources=("m1",)),),
        todos=(Todo(text="buy milk", when="on Friday", sources=("m0",)),),
    )
    found = grounded(wrote, TURNS, UTC, "auto")
    assert found.summary == Summary(
        decisions=(Decision(text="use it", sources=("m1",)),), todos=(Todo(text="buy milk", sources=("m0",)),)
    )
    assert found.cut == {Fault.NAME: 1, Fault.NUMBER: 1, Fault.TIME: 1}


def test_an_item_cites_the_message_that_has_its_words() -> None:
    """Its own one if that has one of them."""
    wrote = (Todo(text="buy milk", sources=("m2",)), Todo(text="harbours and bread", sources=("m2",)))
    assert [todo.sources for todo in checked(Summary(todos=wrote)).todos] == [("m0",), ("m2",)]


def test_texts_become_single_lines() -> None:
    wrote = Decision(text="use\n\n# it", reason="\ta\r\nb ", sources=("m1",))
    assert checked(Summary(decisions=(wrote,))).decisions == (
        Decision(text="use # it", reason="a b", sources=("m1",)),
    )


def test_a_topics_turns_are_those_that_exist_and_those_of_its_sources() -> None:
    wrote = (
        Topic(title="one", turns=(2, 1, 7, 2), sources=("m0",)),
        Topic(title="four", turns=(), sources=("m3", "m2", "m9")),
        Topic(title="two", turns=(9,), sources=("m1",)),
    )
    assert [topic.turns for topic in checked(Summary(topics=wrote)).topics] == [(1, 2), (2,), (1,)]


def test_long_titles_are_shortened_and_five_topics_stay() -> None:
    title = "The history of the old harbour, and what became of it after the war was over"
    said = turns(f"{title} {' '.join('abcdefg')}")
    wrote = tuple(Topic(title=f"{i} {title}", sources=("m0",)) for i in "abcdefg")
    found = checked(Summary(topics=wrote), said).topics
    assert [topic.title for topic in found] == [f"{i} The history of the old harbour" for i in "abcde"]


@given(SUMMARIES)
def test_whatever_a_model_writes_what_is_left_is_sound_and_stays_so(wrote: Summary) -> None:
    found = checked(wrote)
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
    assert checked(found) == found
