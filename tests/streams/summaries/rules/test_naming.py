"""The phrases of a clause that name something."""

from __future__ import annotations

import pytest

from schemas.summaries import TITLE_CHARS
from streams.summaries.rules.naming import names
from streams.summaries.rules.word_classes import MOST_CLAUSE_CHARS, word_classes
from tests.support.calls import Calls


def named(clause: str, *, opening: bool = True) -> list[str]:
    chinese = any(char > "\u2e7f" for char in clause)
    return [name.text for name in names(clause, chinese=chinese, opening=opening)]


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("My sister fixed the old bike on Sunday", ["sister", "old bike"]),
        ("I am learning to bake", ["learning to bake"]),
        ("We like tea and cakes", ["tea and cakes", "tea"]),
        ("She moved to Oslo", ["Oslo"]),
        ("She wants to sail", []),
        ("It was so windy", []),
        ("That makes sense", []),
        ("time management is hard", ["time management"]),
        ("A lot of people came", []),
        ("Sounds good, Ruth", []),
        ("I talked with Ruth", ["Ruth"]),
    ],
)
def test_english_names_are_nouns_and_what_is_done_to_them(clause: str, found: list[str]) -> None:
    assert named(clause) == found


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("我昨天去参观了一家陶瓷博物馆", ["参观", "陶瓷博物馆"]),
        ("我妈妈的电话是13900000000", ["妈妈的电话", "妈妈", "电话"]),
        ("茶艺交流会的地点是苏州", ["茶艺交流会的地点", "茶艺交流会", "苏州"]),
        ("首都的会议很重要", ["首都的会议", "首都", "会议"]),
        ("我真的觉得很不错", []),
        ("想写一个Python脚本", ["Python脚本"]),
    ],
)
def test_chinese_names_are_what_is_left_between_the_words_that_a_clause_is_cut_at(
    clause: str, found: list[str]
) -> None:
    """The characters of a word that is held together cut nothing: 都 in 首都, 会 in 会议."""
    assert named(clause) == found


def test_a_name_that_is_only_called_is_none_and_one_word_is_worth_less_than_several() -> None:
    shares = {name.text: name.share for name in names("the clay oven of Ruth", chinese=False, opening=True)}
    assert shares["clay oven of Ruth"] == 1
    (alone,) = names("the oven", chinese=False, opening=True)
    assert alone.share < 1


@pytest.mark.parametrize(
    "piece", ["the old mill of ", "time ", "Ruth and ", "going to bake ", "的", "会议的", "一个", "a"]
)
def test_a_long_clause_costs_no_more_calls_and_no_name_is_too_long(piece: str) -> None:
    """Of a long clause the beginning is read."""
    clause = piece * 2_000
    chinese = piece[0] >= "\u4e00"
    assert all(len(name.text) <= TITLE_CHARS for name in names(clause, chinese=chinese, opening=True))
    assert calls(clause, chinese=chinese) == calls(clause[:MOST_CLAUSE_CHARS], chinese=chinese)


def calls(clause: str, *, chinese: bool) -> int:
    """The function calls that its names take, once the words are read from their files."""
    list(names(clause, chinese=chinese, opening=True))
    made = Calls()
    with made.watched(), made.counted():
        list(names(clause, chinese=chinese, opening=True))
    return made.total


def test_both_languages_have_their_word_classes() -> None:
    assert "clay" not in word_classes("naming_en.txt")["verb"]
    assert "首都" in word_classes("naming_zh.txt")["held"]
