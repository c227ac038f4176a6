"""The summaries of a day as one: what is in it, once, in the order of the day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.summaries import MOST_TOPICS, Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules import rendered
from streams.summaries.rules.extracting import MOST_ITEMS
from streams.summaries.rules.labels import LABELS, Language
from streams.summaries.rules.merging import MergedDay, day_merged, merged
from streams.summaries.rules.parsing import Parsed
from streams.summaries.rules.rendering import TurnsOf
from streams.summaries.rules.talk import alike
from tests.streams.summaries.rules.test_rendering import FULL
from tests.support.examples import examples
from tests.support.making import START

DAY = date(2026, 1, 1)
OTHER = Summary(insights=(Insight(text="Rain fell all night", sources=("other",)),))


def day_of(*summaries: Summary) -> MergedDay:
    found = merged([Parsed(one) for one in summaries])
    assert found is not None
    return found


def text_of(summary: Summary, language: Language = "en") -> str:
    return rendered(
        summary, language=language, written_at=START, timezone=ZoneInfo("UTC"), reason="count", headed=None
    )


def markdown(texts: Sequence[str], language: Any = "auto") -> str:
    return day_merged(texts, language=language, written_at=START, timezone=ZoneInfo("UTC"), day=DAY)


def liking(text: str, *sources: str, observed: bool = False) -> Summary:
    return Summary(preferences=(Preference(text=text, observed=observed, sources=sources),))


def topic(title: str, *sources: str, turns: tuple[int, ...] = (1,)) -> Topic:
    return Topic(title=title, turns=turns, sources=sources)


# Whether there is anything to merge


@pytest.mark.parametrize("summaries", [(), (FULL,), (FULL, Summary()), (Summary(), Summary())])
def test_fewer_than_two_summaries_with_items_need_no_other_one(summaries: tuple[Summary, ...]) -> None:
    assert merged([Parsed(one) for one in summaries]) is None
    assert markdown([text_of(one) for one in summaries]) == ""


# What is said once


def test_what_several_summaries_say_is_said_once_with_the_sources_of_all() -> None:
    day = day_of(liking("I like tea with milk", "m1"), OTHER, liking("i like tea with milk.", "m1", "m9"))
    assert day.summary.preferences == (Preference(text="i like tea with milk.", sources=("m1", "m9")),)
    assert (day.summaries, day.further) == (3, 0)


def test_of_a_text_and_a_longer_one_that_includes_it_the_longer_stays_where_the_first_was() -> None:
    tasks = [
        (Todo(text="Buy milk", when="today", sources=("m1",)), Todo(text="Call Bob", sources=("m2",))),
        (Todo(text="Buy milk and fresh bread", sources=("m3",)),),
    ]
    day = day_of(*(Summary(todos=one) for one in tasks))
    assert day.summary.todos == (
        Todo(text="Buy milk and fresh bread", when="today", sources=("m1", "m3")),
        Todo(text="Call Bob", sources=("m2",)),
    )


def test_reasons_and_solutions_are_taken_from_where_they_are_said() -> None:
    """Of several, the last."""
    problem, decision = "The build fails at linking", "We use the gold linker"
    day = day_of(
        Summary(
            problems=(Problem(text=problem, sources=("m1",)),), decisions=(Decision(text=decision, sources=("m1",)),)
        ),
        Summary(problems=(Problem(text=problem, solution="Install it", sources=("m2",)),)),
        Summary(decisions=(Decision(text=decision, reason="it is fast", technical=True, sources=("m3",)),)),
    )
    assert day.summary.problems == (Problem(text=problem, solution="Install it", sources=("m1", "m2")),)
    assert day.summary.decisions == (
        Decision(text=decision, reason="it is fast", technical=True, sources=("m1", "m3")),
    )


def test_what_is_said_last_of_a_task_and_a_problem_corrects_what_was_said_before() -> None:
    """Also if the first one has the longer text."""
    jams = ("The office printer on the second floor jams", "The office printer jams")
    day = day_of(
        Summary(
            todos=(Todo(text="Call the plumber about the tap", when="Monday", sources=("m1",)),),
            problems=(Problem(text=jams[0], solution="Restart it", sources=("m2",)),),
        ),
        Summary(
            todos=(Todo(text="Call the plumber", when="Friday", sources=("m3",)),),
            problems=(Problem(text=jams[1], solution="Replace the roller", sources=("m4",)),),
        ),
    )
    assert [(one.text, one.when) for one in day.summary.todos] == [("Call the plumber about the tap", "Friday")]
    assert [(one.text, one.solution) for one in day.summary.problems] == [(jams[0], "Replace the roller")]


def test_what_is_stated_once_is_not_observed() -> None:
    day = day_of(liking("Postgres databases", "m1", observed=True), liking("Postgres databases", "m2"))
    assert [one.observed for one in day.summary.preferences] == [False]


def test_a_task_that_a_person_ticked_is_not_open() -> None:
    """However often it was noted; a new task is."""
    tasks = Summary(todos=(Todo(text="Call Bob", sources=("m2",)), Todo(text="Buy milk", sources=("m1",))))
    ticked = text_of(tasks).replace("- [ ] Call", "- [x] Call")
    text = markdown([ticked, text_of(tasks), text_of(Summary(todos=(Todo(text="Pay Bob", sources=("m5",)),)))])
    assert [line[:14].strip() for line in text.splitlines() if line.startswith("- [ ]")] == [
        "- [ ] Buy milk",
        "- [ ] Pay Bob",
    ]


# Topics


def test_a_topic_of_several_summaries_has_its_turns_in_each() -> None:
    day = day_of(
        Summary(topics=(topic("trip to Kyoto", "m1", "m2", turns=(1, 2)), topic("tax", "m3", turns=(3,)))),
        Summary(topics=(topic("Trip to Kyoto", "m8", turns=(2,)),)),
    )
    assert day.summary.topics == (
        Topic(title="trip to Kyoto", sources=("m1", "m2", "m8")),
        Topic(title="tax", sources=("m3",)),
    )
    assert day.turns == ((TurnsOf(1, (1, 2)), TurnsOf(2, (2,))), (TurnsOf(1, (3,)),))


def test_a_topic_whose_messages_another_summary_has_under_a_larger_one_is_that_one() -> None:
    """The open exchange is in two summaries. Two topics of one summary may share their messages."""
    day = day_of(
        Summary(topics=(topic("trains", "m9"),)),
        Summary(topics=(topic("trip to Kyoto", "m9", "m10", "m11"), topic("hotels", "m11"))),
    )
    assert [one.title for one in day.summary.topics] == ["trip to Kyoto", "hotels"]
    assert day.turns[0] == (TurnsOf(1, (1,)), TurnsOf(2, (1,)))


def test_the_five_topics_of_which_most_is_said_stay_in_the_order_of_the_day() -> None:
    titles = ["tea", "taxes", "trains", "hotels", "gardens", "linkers", "databases"]
    topics = [
        topic(title, *(f"{title}{i}" for i in range(1 + (place * 3) % 7))) for place, title in enumerate(titles)
    ]
    day = day_of(*(Summary(topics=(one,)) for one in topics))
    largest = sorted(topics, key=lambda one: -len(one.sources))[:MOST_TOPICS]
    assert [one.title for one in day.summary.topics] == [one.title for one in topics if one in largest]
    assert day.further == 2


# How many


def test_of_too_many_items_stated_and_repeated_ones_stay() -> None:
    """The number of the others is told."""
    names = ["tea", "rice", "jazz", "maps", "dogs", "chess", "soup", "snow", "ferns", "boats"]
    likes = [Preference(text=f"I like {name}", observed=name in ("rice", "jazz"), sources=(name,)) for name in names]
    day = day_of(Summary(preferences=tuple(likes)), liking("I like boats", "m9"), liking("I like ferns", "m9"))
    kept = [one.sources[0] for one in day.summary.preferences]
    assert kept == [name for name in names if name not in ("rice", "jazz")]
    assert (len(kept), day.further) == (MOST_ITEMS, 2)


# How it is written


def test_a_merged_day_in_english() -> None:
    first = Summary(
        topics=(topic("tea", "m1", "m2", turns=(1, 2, 3)),), insights=(Insight(text="Tom is 5", sources=("m1",)),)
    )
    second = Summary(topics=(topic("tea", "m7", turns=(2,)), topic("rain", "m8", turns=())))
    assert markdown([text_of(first), text_of(second)]) == (
        """\
# Daily summary 2026-01-01

## 📌 Main topics

- tea (turns 1–3 of summary 1; turn 2 of summary 2) <!-- sources: m1 m2 m7 -->
- rain <!-- sources: m8 -->

## 👤 Preferences

(none)

## ✅ Decisions

(none)

## 📋 To-dos

(none)

## 🔧 Problems and solutions

(none)

## 💡 Insights

- Tom is 5 <!-- sources: m1 -->

**Generated at**: 2026-01-01 00:00:00+00:00 · Merged summaries: 2
"""
    )


def test_a_merged_day_in_chinese() -> None:
    text = markdown([text_of(FULL, "zh"), text_of(FULL, "zh"), text_of(OTHER, "en")])
    assert text.splitlines()[0] == "# 每日概要 2026-01-01"
    assert "- 学习世界历史（概要 1 第 1–3、7 轮；概要 2 第 1–3、7 轮） <!-- sources: m1 m2 -->" in text.splitlines()
    assert text.splitlines()[-1] == "**生成时间**：2026-01-01 00:00:00+00:00 · 合并的概要数：3"


@pytest.mark.parametrize("language", LABELS)
def test_the_titles_are_in_the_language_of_the_settings_else_in_that_of_most_summaries(language: Language) -> None:
    texts = [text_of(FULL, language), text_of(OTHER, "en"), text_of(FULL, language)]
    assert f"## {LABELS[language].topics}" in markdown(texts)
    assert "## 📌 主要话题" in markdown(texts, "zh")


# Whatever is merged

WORD = st.sampled_from(
    ["tea", "milk", "Kyoto", "trains", "linker", "gold", "喝茶", "京都", "-", "*x*", "<b>", "not", "5"]
)
TEXT = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
IDS = st.lists(st.sampled_from([f"m{i}" for i in range(12)]), min_size=1, max_size=3, unique=True).map(tuple)
ANY = st.builds(
    Summary,
    topics=st.lists(st.builds(Topic, title=TEXT, turns=st.just((1,)), sources=IDS), max_size=5),
    preferences=st.lists(st.builds(Preference, text=TEXT, observed=st.booleans(), sources=IDS), max_size=9),
    decisions=st.lists(st.builds(Decision, text=TEXT, reason=TEXT, technical=st.booleans(), sources=IDS), max_size=2),
    todos=st.lists(st.builds(Todo, text=TEXT, when=TEXT, inferred=st.booleans(), sources=IDS), max_size=2),
    problems=st.lists(st.builds(Problem, text=TEXT, solution=TEXT, sources=IDS), max_size=2),
    insights=st.lists(st.builds(Insight, text=TEXT, sources=IDS), max_size=9),
)


@examples(200)
@given(st.lists(ANY, max_size=5))
def test_nothing_is_said_twice_and_nothing_is_made_up(summaries: list[Summary]) -> None:
    """Sections are as long as those of a single summary; what has no room is counted."""
    found = merged([Parsed(one) for one in summaries])
    if found is None:
        assert sum(one != Summary() for one in summaries) < 2
        return
    assert len(found.turns) == len(found.summary.topics) <= MOST_TOPICS
    left = 0
    for name, items in found.summary:
        of_all = [item for one in summaries for item in getattr(one, name)]
        texts = [getattr(item, "text", None) or item.title for item in items]
        said = [getattr(item, "text", None) or item.title for item in of_all]
        assert not any(alike(one, other) for one, other in combinations(texts, 2))
        assert set(texts) <= set(said)
        assert {source for item in items for source in item.sources} <= {
            id_ for item in of_all for id_ in item.sources
        }
        assert (items == ()) == (of_all == [])
        assert name == "topics" or len(items) <= MOST_ITEMS
        left += len(of_all) - len(items)
    assert found.further <= left


@examples(60)
@given(st.lists(ANY.filter(lambda one: one != Summary()), min_size=2, max_size=4))
def test_summaries_that_repeat_the_day_add_no_item(summaries: list[Summary]) -> None:
    """Each item says the same as before, at the same place."""
    found, again = day_of(*summaries), day_of(*summaries, *summaries)
    for name in ("preferences", "decisions", "todos", "problems", "insights"):
        texts, more = ([one.text for one in getattr(day.summary, name)] for day in (found, again))
        assert [text.casefold() for text in texts] == [text.casefold() for text in more]
