"""The phrases of a clause that name something."""

from __future__ import annotations

import subprocess
import sys

import pytest

from schemas.summaries import TITLE_CHARS
from streams.summaries.rules.noun_phrases import MOST_CLAUSE_CHARS, read_clause
from streams.summaries.rules.tagging import tongue_of


def named(clause: str) -> list[str]:
    return [phrase.text for phrase in read_clause(clause, tongue_of(clause)).phrases]


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("The plumber fixed our old boiler on Sunday", ["plumber", "old boiler"]),
        ("She's repairing the neighbour's fence", ["neighbour", "neighbour's fence", "fence"]),
        ("my name's Rosa", ["name", "Rosa"]),
        ("We love the harbour", ["harbour"]),
        ("I don't plan to visit", []),
        ("Could you read my cover letter?", ["cover letter"]),
        ("the roof of the barn is wet", ["roof", "roof of the barn", "barn"]),
        ("nothing happened last week", []),
        ("Sounds good", []),
    ],
)
def test_english_phrases_are_nouns_with_what_stands_before_them(clause: str, found: list[str]) -> None:
    assert named(clause) == found


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("我昨天参观了一家陶瓷博物馆", ["陶瓷博物馆"]),
        ("窗台上放着一大包猫粮", ["窗台", "猫粮"]),
        ("这本诗集一共四十六页", ["诗集"]),
        ("我把照片存在那块黑色硬盘里", ["照片", "黑色硬盘"]),
        ("说件气人的事", []),
        ("厨房的水管漏水了", ["厨房", "厨房的水管", "水管"]),
        ("我真的觉得很不错", []),
        ("想写一个Python脚本", ["Python脚本"]),
    ],
)
def test_chinese_phrases_begin_with_no_measure_word_and_end_at_a_word(clause: str, found: list[str]) -> None:
    assert named(clause) == found


def test_japanese_phrases_are_runs_of_nouns() -> None:
    assert "冷蔵庫の音" in named("新しい冷蔵庫の音がうるさい")


@pytest.mark.parametrize(
    ("clause", "some", "none"),
    [
        (
            "ich habe die Tomaten im Garten gesetzt",
            {"Tomaten", "Garten", "Tomaten im Garten"},
            {"die Tomaten", "ich"},
        ),
        ("die Spülmaschine pumpt nicht mehr ab", {"Spülmaschine"}, {"Spülmaschine pumpt", "pumpt"}),
        ("tomaten setze ich im garten", {"tomaten", "garten"}, {"ich"}),
        ("마당에서 토마토를 키워", {"마당", "토마토"}, {"마당에서", "토마토를", "키워"}),
        (
            "mi hermano tiene la reserva de hotel en Soria",
            {"reserva de hotel", "Soria"},
            {"la reserva", "tiene", "de hotel"},
        ),
    ],
)
def test_in_other_languages_words_that_no_list_has_are_nouns(clause: str, some: set[str], none: set[str]) -> None:
    found = set(named(clause))
    assert some <= found
    assert not none & found


@pytest.mark.parametrize("piece", ["the old mill of ", "time ", "Ruth and ", "'s ", "会议的", "一个", "的", "a"])
def test_of_a_long_clause_the_beginning_is_read_and_no_phrase_is_too_long(piece: str) -> None:
    clause = piece * 2_000
    assert all(len(phrase) <= TITLE_CHARS for phrase in named(clause))
    assert named(clause) == named(clause[:MOST_CLAUSE_CHARS])


def test_the_libraries_are_not_loaded_with_the_rules() -> None:
    """A worker imports the rules; only the process that makes summaries reads words."""
    script = (
        "import sys; import streams.app, streams.summaries.extraction_process, streams.summaries.rules;"
        "print({'rjieba', 'textblob', 'nltk', 'suzume'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"
