"""Which rewordings tell the same as their sentences, by their words."""

from __future__ import annotations

import pytest

from streams.language.faithful import (
    ADDED_NAME,
    ADDED_NUMBER,
    LOST_NAME,
    LOST_NUMBER,
    LOST_WORDS,
    OTHER_NEGATION,
    OTHER_TIME,
    fault_of,
    names_relative_time,
)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Lives in Oslo, works as a nurse.", ["I live in Oslo.", "I work as a nurse."]),
        ("lives in Oslo", ["I live in OSLO."]),
        ("The user's sister Ann lives in Rome.", ["My sister Ann lives in Rome."]),
        ("Ann's birthday: 3 May", ["The birthday of Ann is on 3 May."]),
        ("Phone: 555 0199", ["My phone number is 555 0199."]),
        ("Exam on 9 January at 23:00", ["My exam is on 09 January at 23:00."]),
        ("Loves green tea, not coffee", ["I love green tea.", "I don't like coffee."]),
        ("Does not eat pork", ["I don’t eat pork."]),
        ("dislikes mushrooms", ["I hate mushrooms."]),
        ("Dentist tomorrow at 10", ["I have a dentist appointment tomorrow at 10."]),
        ("喜欢绿茶", ["我喜欢喝绿茶。"]),
        ("用户的妹妹小美在北京上班", ["我妹妹小美在北京上班。"]),
        ("住在 Berlin", ["我住在Berlin。"]),
        ("大阪にいる妹の花子", ["妹の花子は大阪にいます。"]),
    ],
)
def test_the_same_facts_in_other_words_pass(text: str, sentences: list[str]) -> None:
    assert fault_of(text, sentences) == ""


@pytest.mark.parametrize(
    ("text", "sentences", "fault"),
    [
        ("Lives in Oslo, is 30", ["I live in Oslo."], ADDED_NUMBER),
        ("Has two cats", ["I have cats."], ADDED_NUMBER),
        ("Phone: 555 0198", ["My phone number is 555 0199."], ADDED_NUMBER),
        ("Phone: ٥٥٥", ["My phone number is 555 0199."], ADDED_NUMBER),
        ("有三只猫", ["我有两只猫。"], ADDED_NUMBER),
        ("Has a phone", ["My phone number is 555 0199."], LOST_NUMBER),
        ("Has cats", ["I have two cats."], LOST_NUMBER),
        ("Bob lives in Oslo", ["I live in Oslo."], ADDED_NAME),
        ("Lives in Oslo, Norway", ["I live in Oslo."], ADDED_NAME),
        ("Uses an iPhone", ["I use a phone."], ADDED_NAME),
        ("Exam on 9 February", ["My exam is on 9 January."], ADDED_NAME),
        ("妹妹小红在北京上班", ["我妹妹小美在北京上班。"], ADDED_NAME),
        ("Живёт в Осло", ["I live in Oslo."], ADDED_NAME),
        ("يعيش في", ["I live in Oslo."], ADDED_NAME),
        ("Works as a nurse", ["I work as a nurse in Oslo."], LOST_NAME),
        ("Works in Oslo", ["I live in Oslo.", "I teach children there."], LOST_WORDS),
        ("妹妹在", ["我妹妹在上班。"], LOST_WORDS),
        ("Dentist at 10", ["I have a dentist appointment tomorrow at 10."], OTHER_TIME),
        ("Dentist next week", ["I have a dentist appointment this week."], OTHER_TIME),
        ("loves tea", ["I don't love tea."], OTHER_NEGATION),
        ("does not love tea", ["I love tea."], OTHER_NEGATION),
        ("喜欢喝茶", ["我不喜欢喝茶。"], OTHER_NEGATION),
    ],
)
def test_what_is_added_lost_or_turned_round_is_found(text: str, sentences: list[str], fault: str) -> None:
    assert fault_of(text, sentences) == fault


@pytest.mark.parametrize(
    ("sentence", "relative"),
    [
        ("I moved here last week.", True),
        ("我明天去北京。", True),
        ("I live in Oslo.", False),
        ("My birthday is on 3 May.", False),
    ],
)
def test_a_time_that_depends_on_the_day_is_recognized(sentence: str, relative: bool) -> None:
    assert names_relative_time(sentence) == relative
