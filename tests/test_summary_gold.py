"""Summaries beside gold lines: the score, and the days of `benchmarks/summary_days`."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from click.testing import CliRunner

from benchmarks import summaries
from benchmarks.evidence import summary_gold
from benchmarks.evidence.summary_gold import (
    SECTIONS,
    Count,
    GoldDay,
    compared,
    content_words,
    counted,
    matched,
    overlap,
)
from schemas.summaries import TITLE_CHARS, Decision, Insight, Problem, Summary, Todo, Topic

FOLDER: Final = Path(summary_gold.__file__).parent.parent / "summary_days"
HALVES: Final = {
    "open": {"en": 10, "zh": 10, "ja": 3, "ko": 3, "de": 3, "es": 3},
    "held_out": {"en": 10, "zh": 10, "ja": 2, "ko": 2, "de": 2, "es": 2},
}
#: Fields of a gold line beside its text.
FIELDS: Final = {
    "topics": {"messages", "alternatives"},
    "preferences": {"kind"},
    "decisions": {"reason"},
    "tasks": {"when"},
    "problems": {"solution"},
    "insights": set(),
}


def words(*texts: str) -> frozenset[str]:
    return frozenset(texts)


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Call Dr. Feld's practice on Monday!", "en", words("call", "dr", "feld", "practice", "monday")),
        ("die Kündigung an den Vermieter", "de", words("kundigung", "vermieter")),
        ("Renovación del dominio", "es", words("renovacion", "dominio")),
        ("das Café", "en", words("das", "cafe")),
        ("选石英石的台面", "zh", words("选石", "石英", "英石", "台面")),
        ("在pod加limit 2G", "zh", words("pod", "加", "limit", "2g")),
        ("母はそばアレルギー", "ja", words("母", "そば", "ばア", "アレ", "レル", "ルギ", "ギー")),
        ("결혼식은 4월", "ko", words("결혼", "혼식", "4", "월")),
        ("ＡＢＣ", "zh", words("abc")),
        ("and then it was", "en", words()),
        ("…!", "en", words()),
    ],
)
def test_content_words_of_a_line(text: str, language: str, expected: frozenset[str]) -> None:
    assert content_words(text, language) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (words("a", "b", "c"), words("a", "b"), 0.8),
        (words("a", "b"), words("a", "b", "c", "d", "e", "f"), 0.5),
        (words("a", "b"), words("a", "c"), 0.0),
        (words("a"), words("a", "b", "c"), 0.5),
        (words(), words("a"), 0.0),
        (words(), words(), 0.0),
    ],
)
def test_overlap_is_an_f_measure_and_one_common_word_is_too_few_for_longer_lines(
    one: frozenset[str], other: frozenset[str], expected: float
) -> None:
    assert overlap(one, other) == pytest.approx(expected)


def test_the_largest_overlap_is_matched_first_and_each_line_once() -> None:
    """The second found line is nearer to the gold line, so the first is wrong."""
    found = ["call the dentist tomorrow", "call the dentist", "buy stamps"]
    assert matched(found, [["call the dentist"], ["renew the passport"]], "en") == {1: 0}


def test_of_equal_overlaps_the_earlier_lines_match() -> None:
    assert matched(["red bike", "bike red"], [["red bike"]], "en") == {0: 0}
    assert matched(["red bike"], [["bike red"], ["red bike"]], "en") == {0: 0}


def test_a_gold_line_may_be_put_in_several_ways() -> None:
    """{nana, birthday} shares nothing with {family, party}, and all with the alternative."""
    assert matched(["nana's birthday"], [["family party"]], "en") == {}
    assert matched(["nana's birthday"], [["family party", "nana's birthday"]], "en") == {0: 0}


@pytest.mark.parametrize(
    ("item", "ways"),
    [
        ({"text": "a", "alternatives": ["b", "c"], "messages": [0]}, ["a", "b", "c"]),
        ({"text": "a", "reason": "b"}, ["a", "a b"]),
        ({"text": "a", "when": "b"}, ["a", "a b"]),
        ({"text": "a", "solution": "b"}, ["a"]),
    ],
)
def test_a_reason_and_a_date_may_be_in_a_line(item: dict[str, Any], ways: list[str]) -> None:
    assert summary_gold.ways_of(item) == ways


def gold_day(name: str = "en-1", language: str = "en", **gold: list[list[str]]) -> GoldDay:
    return GoldDay(name, language, (), {section: gold.get(section, []) for section in SECTIONS}, [])


def test_each_section_is_compared_for_itself() -> None:
    """The right words in another section are a wrong line there and a missed one here."""
    day = gold_day(tasks=[["call the dentist"]], insights=[["lives in Oslo"]])
    summary = Summary(
        insights=(Insight(text="I must call the dentist", sources=()), Insight(text="I live in Oslo", sources=())),
        todos=(Todo(text="buy stamps", sources=()),),
    )
    rows = compared(day, summary)
    assert rows["tasks"] == ([], ["buy stamps"], ["call the dentist"])
    # {live, oslo} and {lives, oslo} have one word in common.
    assert rows["insights"] == ([], ["I must call the dentist", "I live in Oslo"], ["lives in Oslo"])
    assert rows["topics"] == ([], [], [])


STRIP: Final = "use the same strip for the amp"
PLUG: Final = "plug the amp into the same strip"


@pytest.mark.parametrize(
    ("problem", "solution", "expected"),
    [
        ("the amp hums", PLUG, ([(PLUG, STRIP)], [], [])),
        ("the amp hums", "buy another amp", ([], ["buy another amp"], [STRIP])),
        ("the fridge hums loudly", STRIP, ([], [STRIP], [STRIP])),
        ("the amp hums", "", ([], [], [STRIP])),
    ],
)
def test_a_solution_is_right_with_its_problem_only(
    problem: str, solution: str, expected: tuple[list[Any], ...]
) -> None:
    day = gold_day(problems=[["amp hums"]])._replace(solutions=[STRIP])
    summary = Summary(problems=(Problem(text=problem, solution=solution, sources=()),))
    assert compared(day, summary)["solutions"] == expected


def test_counts_are_added_by_group_of_languages() -> None:
    topics = Summary(topics=(Topic(title="red bike", sources=()), Topic(title="blue car", sources=())))
    days = [
        gold_day("a", "en", topics=[["red bike"]]),
        gold_day("b", "de", topics=[["rotes Rad"], ["blaues Auto"], ["Boot"]]),
    ]
    counts = counted((day, compared(day, topics)) for day in days)
    assert {group: counts[group]["topics"] for group in counts} == {
        "en": Count(1, 2, 1),
        "zh": Count(0, 0, 0),
        "others": Count(0, 2, 3),
        "all": Count(1, 4, 4),
    }
    assert (counts["en"]["topics"].precision, counts["en"]["topics"].recall) == (0.5, 1.0)
    assert (counts["zh"]["topics"].precision, counts["zh"]["topics"].recall) == (None, None)


DAY: Final[dict[str, Any]] = {
    "id": "en-1",
    "language": "en",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}],
    "gold": {
        "topics": [{"text": "red bike", "messages": [0]}],
        "preferences": [],
        "decisions": [{"text": "sell the red bike", "reason": "no room"}],
        "tasks": [{"text": "call the dentist", "when": "on Monday"}, {"text": "renew the passport"}],
        "problems": [{"text": "printer is offline", "solution": "restart the router"}],
        "insights": [],
    },
}
FOUND: Final = Summary(
    topics=(Topic(title="bike", sources=()), Topic(title="hello", sources=())),
    decisions=(Decision(text="sell the bike, no room", sources=()),),
    todos=(Todo(text="call the dentist", when="Monday", sources=()),),
    problems=(Problem(text="the printer is offline", solution="restart it", sources=()),),
)
#: Right, found and gold lines. Of the solution, {restart} is one of two gold words: an F-measure of 2/3.
COUNTS: Final = {
    "topics": (1, 2, 1),
    "preferences": (0, 0, 0),
    "decisions": (1, 1, 1),
    "tasks": (1, 1, 2),
    "problems": (1, 1, 1),
    "insights": (0, 0, 0),
    "solutions": (1, 1, 1),
}


def test_the_command_prints_counts_that_can_be_computed_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "day.jsonl").write_bytes(orjson.dumps(DAY))
    monkeypatch.setattr(summaries, "extracted", lambda turns: FOUND)
    command = ["--gold", str(tmp_path / "day.jsonl"), "--lines", "--json"]
    done = CliRunner().invoke(summaries.main, command, catch_exceptions=False)
    told = done.stdout.splitlines()
    assert told[:3] == ["", "=== en-1", "topics       right   bike  = red bike"]
    assert "tasks        missed  renew the passport" in told
    assert "topics      0.50 1.00 (1 of 2, 1)" in done.stdout
    assert "preferences    –    – (0 of 0, 0)" in done.stdout
    counts = orjson.loads(told[-1])
    assert counts["days"] == 1
    for group in ("en", "all"):
        assert {row: tuple(count[key] for key in Count._fields) for row, count in counts[group].items()} == COUNTS
    assert (counts["en"]["tasks"]["precision"], counts["en"]["tasks"]["recall"]) == (1.0, 0.5)
    assert counts["en"]["insights"]["precision"] is None


def test_the_command_scores_what_the_rules_make_of_a_day(tmp_path: Path) -> None:
    """Of the task, the rules keep the words of the message; an empty day would have none."""
    said = [("user", "I need to call the dentist tomorrow."), ("assistant", "Good luck!")]
    day = DAY | {"messages": [{"role": role, "content": content} for role, content in said]}
    (tmp_path / "day.jsonl").write_bytes(orjson.dumps(day))
    command = ["--gold", str(tmp_path / "day.jsonl"), "--json"]
    done = CliRunner().invoke(summaries.main, command, catch_exceptions=False)
    counts = orjson.loads(done.stdout.splitlines()[-1])
    assert tuple(counts["en"]["tasks"][key] for key in Count._fields) == (1, 1, 2)


@pytest.mark.parametrize("both", [True, False])
def test_either_data_or_gold_is_named(tmp_path: Path, both: bool) -> None:
    (tmp_path / "day.jsonl").write_bytes(orjson.dumps(DAY))
    named = [str(tmp_path), "--gold", str(tmp_path / "day.jsonl")] if both else []
    done = CliRunner().invoke(summaries.main, named)
    assert done.exit_code == 2
    assert "name either DATA or a file of --gold" in done.stderr


def days_of(half: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (FOLDER / f"{half}.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_its_days_of_each_language(half: str) -> None:
    assert Counter(day["language"] for day in days_of(half)) == HALVES[half]
    assert len(list(summary_gold.read(FOLDER / f"{half}.jsonl"))) == sum(HALVES[half].values())


def test_no_day_or_message_of_more_than_a_greeting_is_in_both_halves() -> None:
    one, other = days_of("open"), days_of("held_out")
    assert len({day["id"] for day in one + other}) == 60
    said = [
        {m["content"] for day in half for m in day["messages"] if len(m["content"]) > 20} for half in (one, other)
    ]
    assert said[0] & said[1] == set()


@pytest.mark.parametrize("half", HALVES)
def test_days_are_as_the_readme_describes_them(half: str) -> None:
    for day in days_of(half):
        messages, gold = day["messages"], day["gold"]
        assert 8 <= len(messages) <= 20, day["id"]
        assert {m["role"] for m in messages} == {"user", "assistant"}, day["id"]
        assert len({m.get("name") for m in messages}) in ((2,) if "name" in messages[0] else (1,)), day["id"]
        assert all(m["content"].strip() for m in messages), day["id"]
        assert tuple(gold) == SECTIONS, day["id"]
        assert 1 <= len(gold["topics"]) <= 5, day["id"]
        for topic in gold["topics"]:
            assert all(len(title) <= TITLE_CHARS for title in [topic["text"], *topic.get("alternatives", [])]), topic
            assert topic["messages"] == sorted(set(topic["messages"])), topic
            assert topic["messages"][0] >= 0, topic
            assert topic["messages"][-1] < len(messages), topic
        for section, items in gold.items():
            for item in items:
                assert item.keys() - {"text"} <= FIELDS[section], item
                assert all(text.strip() == text != "" for text in item.values() if isinstance(text, str)), item
                assert content_words(item["text"], day["language"]), item
        assert {one["kind"] for one in gold["preferences"]} <= {"explicit", "observed"}, day["id"]


@pytest.mark.parametrize("half", HALVES)
def test_no_line_is_in_two_sections(half: str) -> None:
    """A topic may share words with a line that it names, but not all of them."""
    twice = []
    for day in days_of(half):
        lines = [
            (section, item["text"], content_words(item["text"], day["language"]))
            for section in SECTIONS
            for item in day["gold"][section]
        ]
        for (section, text, one), (other_section, other_text, other) in combinations(lines, 2):
            most = 1.0 if section == "topics" != other_section else 0.6
            if overlap(one, other) >= most:
                twice.append((day["id"], text, other_text))
    assert twice == []
