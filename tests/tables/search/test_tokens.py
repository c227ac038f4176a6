"""The token rule: what of a text is a term, and how much it weighs."""

from __future__ import annotations

import doctest

import pytest

from tables.search import tokens as room
from tables.search.tokens import has_cjk, tokens, weight


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(room).failed == 0


@pytest.mark.parametrize(
    "family",
    [
        "hike hikes hiked hiking",
        "study studies studied studying",
        "plan plans planned planning",
        "class classes class's",
        "Melanie Melanie's Melanie’s",
        "café cafe CAFE",
    ],
)
def test_the_forms_of_a_word_share_one_token(family: str) -> None:
    assert len(set(tokens(family))) == 1


def test_words_without_an_ending_stay_whole() -> None:
    assert tokens("bus string need glass 1990s b2b") == ["bus", "string", "need", "glass", "1990s", "b2b"]


def test_a_chinese_run_gives_its_pairs_and_then_its_characters() -> None:
    assert tokens("我住北京") == ["我住", "住北", "北京", "我", "住", "北", "京"]


def test_a_lone_character_is_its_own_token() -> None:
    assert tokens("猫 and 狗") == ["猫", "and", "狗"]


def test_scripts_are_cut_where_they_change() -> None:
    assert tokens("手机OPPO Reno7很好") == ["手机", "手", "机", "oppo", "reno7", "很好", "很", "好"]


def test_korean_and_japanese_survive_the_folding_of_accents() -> None:
    assert tokens("한국 がく") == ["한국", "한", "국", "がく", "が", "く"]


def test_other_scripts_are_cut_into_words_without_their_accents() -> None:
    assert tokens("Где живёт Анна?") == ["где", "живет", "анна"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("मेरी बेटी का नाम", ["मेरी", "बेटी", "का", "नाम"]),
        ("আমি খুলনায় থাকি", ["আমি", "খুলনায়", "থাকি"]),
        ("வணக்கம் சென்னை", ["வணக்கம்", "சென்னை"]),
        ("أُحِبُّ القَهْوَة", ["احب", "القهوة"]),
        ("שָׁלוֹם עוֹלָם", ["שלום", "עולם"]),
        ("می‌خواهم", ["میخواهم"]),
    ],
)
def test_marks_belong_to_their_words_and_points_are_left_out(text: str, words: list[str]) -> None:
    assert tokens(text) == [token for word in words for token in tokens(word)]
    assert len(tokens(text)) == len(words)


def test_a_script_without_spaces_gives_pairs_of_letters_with_their_marks() -> None:
    assert tokens("แพ้ถั่ว") == ["แพ้", "พ้ถั่", "ถั่ว"]
    assert set(tokens("แพ้ถั่ว")) & set(tokens("ผมแพ้ถั่วลิสง")) == set(tokens("แพ้ถั่ว"))
    assert tokens("กข 7") == ["กข", "7"]


@pytest.mark.parametrize(
    "family",
    [
        "臺北 台北",
        "高橋 髙橋",
        "渡辺 渡邊 渡邉",
        "斎藤 齋藤 齊藤",
        "歷史 历史 歴史",
        "學習 学习",
        "頭髮 头发",
        "龍 龙 竜",
    ],
)
def test_variants_of_a_character_are_one(family: str) -> None:
    assert len({tuple(tokens(word)) for word in family.split()}) == 1


def test_marks_of_repetition_zero_and_rare_characters_cut_no_word() -> None:
    assert tokens("佐々木") == ["佐々", "々木", "佐", "々", "木"]
    assert tokens("二〇年") == ["二〇", "〇年", "二", "〇", "年"]
    assert tokens("𠮷野家") == ["𠮷野", "野家", "𠮷", "野", "家"]


@pytest.mark.parametrize("text", ["", "  ", "?!。", "_", "👋"])
def test_a_text_without_words_has_no_tokens(text: str) -> None:
    assert tokens(text) == []


@pytest.mark.parametrize("token", ["what", "did", "我的", "猫", "的"])
def test_function_words_and_single_characters_weigh_a_fifth(token: str) -> None:
    assert weight(token) == 0.2


@pytest.mark.parametrize("token", ["sunris", "北京", "7"])
def test_content_weighs_one(token: str) -> None:
    assert weight(token) == 1.0


@pytest.mark.parametrize(
    ("text", "found"), [("where", False), ("Ann 喜欢", True), ("がく", True), ("где", False), ("", False)]
)
def test_cjk_is_found_anywhere_in_a_text(text: str, found: bool) -> None:
    assert has_cjk(text) is found
