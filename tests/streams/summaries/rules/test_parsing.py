"""A rendered summary that is parsed again."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.summaries import Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules import Language, rendered
from streams.summaries.rules.labels import LABELS
from streams.summaries.rules.parsing import parsed, plain
from streams.summaries.rules.rendering import safe
from tests.streams.summaries.rules.test_rendering import FULL, HOSTILE
from tests.support.examples import examples
from tests.support.making import START


def written(summary: Summary, language: Language = "en") -> str:
    return rendered(
        summary, language=language, written_at=START, timezone=ZoneInfo("UTC"), reason="count", headed=None
    )


@pytest.mark.parametrize("language", LABELS)
def test_a_summary_is_what_was_rendered(language: Language) -> None:
    """In each language, with marks, turns, times, reasons and solutions."""
    read = parsed(written(FULL, language))
    assert (read.summary, read.language, read.done) == (FULL, language, ())
    assert parsed(written(Summary(), language)) == (Summary(), language, ())


@pytest.mark.parametrize("language", LABELS)
def test_line_ends_and_a_time_above_change_nothing(language: Language) -> None:
    text = f"*2026-01-01 18:30:00+08:00*\n\n{written(FULL, language)}\n---\n\n"
    assert parsed(text.replace("\n", "\r\n")).summary == FULL


@examples(200)
@given(HOSTILE)
def test_an_escaped_text_is_the_text_again(text: str) -> None:
    """But for what no line can hold: it is one line, without characters that control something."""
    assert safe(plain(safe(text))) == " ".join(safe(text).split())


SAID = HOSTILE.filter(lambda text: bool(safe(text).strip()))
IDS = st.lists(st.text(min_size=1, max_size=6).filter(str.isprintable), min_size=1, max_size=3, unique=True).map(
    tuple
)
SUMMARIES = st.builds(
    Summary,
    topics=st.lists(
        st.builds(
            Topic, title=SAID, turns=st.sets(st.integers(1, 99)).map(lambda all_: tuple(sorted(all_))), sources=IDS
        ),
        max_size=3,
    ),
    preferences=st.lists(st.builds(Preference, text=SAID, observed=st.booleans(), sources=IDS), max_size=2),
    decisions=st.lists(
        st.builds(Decision, text=SAID, reason=HOSTILE, technical=st.booleans(), sources=IDS), max_size=2
    ),
    todos=st.lists(st.builds(Todo, text=SAID, when=HOSTILE, inferred=st.booleans(), sources=IDS), max_size=2),
    problems=st.lists(st.builds(Problem, text=SAID, solution=HOSTILE, sources=IDS), max_size=2),
    insights=st.lists(st.builds(Insight, text=SAID, sources=IDS), max_size=2),
)


@examples(300)
@given(SUMMARIES, st.sampled_from(sorted(LABELS)))
def test_whatever_was_said_the_items_and_their_sources_are_read(summary: Summary, language: Language) -> None:
    """Parsed and rendered again, it stays as it is."""
    read = parsed(written(summary, language)).summary
    assert parsed(written(read, language)).summary == read
    for (_, items), (_, found) in zip(summary, read, strict=True):
        assert [one.sources for one in found] == [one.sources for one in items]
        assert [getattr(one, "observed", None) for one in found] == [getattr(one, "observed", None) for one in items]
        assert [getattr(one, "technical", None) for one in found] == [
            getattr(one, "technical", None) for one in items
        ]
        assert [getattr(one, "inferred", None) for one in found] == [getattr(one, "inferred", None) for one in items]
    assert [one.text for one in read.insights] == [plain(safe(one.text)) for one in summary.insights]


# Files that people edit


def test_what_a_person_added_is_an_item_without_sources() -> None:
    text = written(FULL).replace("## 📋 To-dos\n\n", "## 📋 To-dos\n\n* [ ] Buy milk (today)\n- Wash the car\n")
    todos = parsed(text).summary.todos
    assert todos == (
        Todo(text="Buy milk", when="today", sources=()),
        Todo(text="Wash the car", sources=()),
        *FULL.todos,
    )
    assert "- [ ] Buy milk (today)\n" in written(parsed(text).summary)


def test_a_task_that_a_person_ticked_is_done() -> None:
    text = written(FULL).replace("- [ ] 完成报告", "- [x] 完成报告")
    read = parsed(text)
    assert (read.summary.todos, read.done) == (FULL.todos[1:], FULL.todos[:1])


def test_notes_and_sections_of_a_persons_own_are_passed_over() -> None:
    text = written(FULL).replace("## 📋", "My notes.\n\n## Mine\n\n- not theirs\n  - nor this\n\n## 📋")
    assert parsed(text).summary == FULL


@pytest.mark.parametrize(
    "text", ["", "## ", "## 📌", "- ", "  - x", "no summary", "\x00", "## 📌\n\n- (turns 5–2)\n-"]
)
def test_what_is_no_summary_has_no_items(text: str) -> None:
    assert all(len(items) < 2 and not any(one.sources for one in items) for _, items in parsed(text).summary)


def test_a_range_that_no_summary_has_is_cut() -> None:
    (topic,) = parsed("## 📌 Main topics\n\n- x (turns 1–999999)").summary.topics
    assert topic.turns == tuple(range(1, 1_001))
