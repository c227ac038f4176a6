"""What an exchange weighs, in integer thousandths."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import Role
from schemas.exchanges import Exchange, Message
from schemas.phrases import CONTENT_KEYWORDS, FORCE_PHRASES, STRONG_EMOTIONS
from schemas.settings import MemorySettings, ScoringSettings
from streams.intake.rules import scoring
from streams.intake.rules.scoring import Scorer
from streams.language.phrases import Phrases
from tests.support.making import START, exchange, spoken


def scorer(**memory: Any) -> Scorer:
    return Scorer(MemorySettings(**memory))


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(scoring).failed == 0


@pytest.mark.parametrize(("exchanges", "fullness"), [(0, 0), (1, 30), (5, 150), (9, 270), (10, 300), (11, 300)])
def test_fullness_grows_by_30_for_each_of_ten_exchanges(exchanges: int, fullness: int) -> None:
    assert scorer().local(exchange("hm"), exchanges, leaving=False).fullness == fullness


@pytest.mark.parametrize("exchanges", [0, 1, 10, 50])
def test_an_exchange_that_leaves_counts_as_full(exchanges: int) -> None:
    assert scorer().local(exchange("hm"), exchanges, leaving=True).fullness == 300


@pytest.mark.parametrize(("threshold", "exchanges", "fullness"), [(0, 1, 300), (1, 1, 300), (3, 1, 100), (7, 1, 42)])
def test_fullness_is_the_share_of_the_threshold(threshold: int, exchanges: int, fullness: int) -> None:
    """In whole thousandths, rounded down; a threshold of 0 is always reached."""
    assert scorer(promote_threshold=threshold).local(exchange("hm"), exchanges, leaving=False).fullness == fullness


@pytest.mark.parametrize(
    "emotion",
    ["悲伤", "愤怒", "惊讶", "伤心", "难过", "生气", "sad", "angry", "surprised", "furious", "Sad", "ANGRY"],
)
def test_a_strong_emotion_weighs_200(emotion: str) -> None:
    """In both languages, however it is written."""
    assert scorer().local(exchange("hm", emotion=emotion), 1, leaving=False).sentiment == 200


@pytest.mark.parametrize("emotion", [None, "", "happy", "平静", "sadly", "a sad day"])
def test_other_emotions_weigh_nothing(emotion: str | None) -> None:
    assert scorer().local(exchange("hm", emotion=emotion), 1, leaving=False).sentiment == 0


def test_one_strong_emotion_among_all_messages_is_enough() -> None:
    said = Exchange(
        0,
        (
            Message("1", Role.USER, "hm", START, "happy"),
            Message("2", Role.USER, "hm", START, "sad"),
            Message("3", Role.ASSISTANT, "hm", START),
        ),
    )
    assert scorer().local(said, 1, leaving=False).sentiment == 200


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL, Role.SYSTEM])
def test_an_emotion_that_is_not_the_users_weighs_nothing(role: Role) -> None:
    """`user_emotion` is what the texts weigh; a speech service labels what the assistant says as well."""
    said = Exchange(0, (Message("1", Role.USER, "hm", START, "happy"), Message("2", role, "oh no", START, "sad")))
    assert scorer().local(said, 1, leaving=False).sentiment == 0
    assert said.emotions() == ["happy"]


@pytest.mark.parametrize(
    "text",
    [
        "我叫小明",
        "最喜欢猫",
        "约好周五见",
        "下周是她的生日",
        "My name is Ann",
        "my\nname",
        "I like tea",
        "She LIKED it",
        "he likes it",
        "I love you",
        "it's my birthday!",
        "allergic to nuts",
        "I promised",
        "an appointment",
        "we live in Bern",
        "I’m called Bo",
        "我like你",
    ],
)
def test_a_content_keyword_weighs_200(text: str) -> None:
    assert scorer().local(exchange(text), 1, leaving=False).content == 200


@pytest.mark.parametrize("text", ["", "unlikely", "likely", "glove", "dislike", "what is the weather?", "好的"])
def test_a_word_that_only_contains_a_keyword_weighs_nothing(text: str) -> None:
    assert scorer().local(exchange(text), 1, leaving=False).content == 0


def test_a_keyword_may_come_from_the_assistant() -> None:
    assert scorer().local(exchange("hm", "so you like tea"), 1, leaving=False).content == 200


def test_a_tools_words_weigh_nothing() -> None:
    said = spoken(0, ("user", "hm"), ("tool", "I like tea"), ("system", "please remember"), ("assistant", "ok"))
    assert scorer().local(said, 1, leaving=False).content == 0
    assert not scorer().asks_to_remember(said)


def test_a_keyword_is_not_put_together_from_two_speakers() -> None:
    said = spoken(0, ("user", "what is my"), ("assistant", "name"))
    assert scorer(scoring=ScoringSettings(content_keywords=("myname",))).local(said, 1, leaving=False).content == 0


def test_the_whole_is_the_sum_of_its_parts() -> None:
    parts = scorer().local(exchange("I like tea", emotion="sad"), 6, leaving=False)
    assert (parts.fullness, parts.sentiment, parts.content, parts.total) == (180, 200, 200, 580)


def test_a_full_window_and_a_keyword_are_exactly_500() -> None:
    """0.3 + 0.2 in floating point would be exact by luck alone."""
    assert scorer().local(exchange("I like tea"), 10, leaving=False).total == 500


@pytest.mark.parametrize("phrase", FORCE_PHRASES)
def test_each_remember_phrase_asks(phrase: str) -> None:
    assert scorer().asks_to_remember(exchange(f"{phrase.upper()}, 我 am Bo"))


def test_a_remember_phrase_may_be_broken_over_lines() -> None:
    assert scorer().asks_to_remember(exchange("please\n  remember this"))


def test_a_remember_phrase_may_be_broken_over_messages() -> None:
    assert scorer().asks_to_remember(spoken(0, ("user", "please"), ("user", "remember this")))


@pytest.mark.parametrize("text", ["I remember", "不记得了", "forget it", "unforgettable"])
def test_other_words_do_not_ask(text: str) -> None:
    assert not scorer().asks_to_remember(exchange(text))


@pytest.mark.parametrize("phrases", [(), ("",), ("  ",)])
def test_no_phrases_find_nothing(phrases: tuple[str, ...]) -> None:
    assert not Phrases(phrases).found_in("anything at all")


def test_phrases_are_taken_as_they_stand() -> None:
    """They are words, not patterns."""
    assert Phrases(["a.c"]).found_in("a.c")
    assert not Phrases(["a.c"]).found_in("abc")


@given(st.text(max_size=30), st.sampled_from(CONTENT_KEYWORDS), st.text(max_size=30))
def test_a_keyword_between_spaces_is_always_found(before: str, keyword: str, after: str) -> None:
    assert Phrases(CONTENT_KEYWORDS).found_in(f"{before} {keyword} {after}")


@given(st.text(max_size=40), st.integers(0, 20), st.booleans(), st.none() | st.sampled_from(STRONG_EMOTIONS))
def test_no_exchange_weighs_more_than_700(text: str, exchanges: int, leaving: bool, emotion: str | None) -> None:
    parts = scorer().local(exchange(text, emotion=emotion), exchanges, leaving=leaving)
    assert 0 <= parts.total == parts.fullness + parts.sentiment + parts.content <= 700


@pytest.mark.parametrize(
    "text",
    [
        "I broke my wrist while skiing.",
        "We are moving to Leeds in August.",
        "My son has asthma.",
        "我六月份被公司裁了。",
        "我儿子有哮喘。",
        "我老公在銀行上班。",
    ],
)
def test_what_is_personal_weighs_200_without_a_keyword(text: str) -> None:
    assert not Phrases(CONTENT_KEYWORDS).found_in(text)
    assert scorer().local(exchange(text), 1, leaving=False).content == 200


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("Hello there", "Hello! What can I do for you?"),
        ("How many legs does a spider have?", "Eight."),
        ("What can you do?", "I can answer questions, write and correct texts, and explain things."),
        ("你是机器人吗？", "是的，我是一个程序。"),
        ("什么是通货膨胀？", "就是物价在一段时间里持续上涨。"),
    ],
)
def test_small_talk_weighs_nothing(user: str, assistant: str) -> None:
    assert scorer().local(exchange(user, assistant), 1, leaving=False).content == 0


def test_the_value_from_which_it_is_personal_is_a_setting() -> None:
    said = exchange("I broke my wrist while skiing.")
    assert scorer(scoring=ScoringSettings(content_value=11)).local(said, 1, leaving=False).content == 0
    keyword = exchange("I like tea")
    assert scorer(scoring=ScoringSettings(content_value=11)).local(keyword, 1, leaving=False).content == 200


@pytest.mark.parametrize(
    ("assistant", "content_value", "content"), [("ok", 5, 200), ("ok", 6, 0), ("", 5, 200), ("", 6, 0)]
)
def test_what_is_estimated_at_the_value_is_personal(assistant: str, content_value: int, content: int) -> None:
    """The estimator says 5 of it, with a reply that says nothing about its speaker and without one."""
    said = exchange("I broke my wrist while skiing.", assistant)
    settings = ScoringSettings(content_value=content_value)
    assert scorer(scoring=settings).local(said, 1, leaving=False).content == content
