"""Sentences in which users tell who they are, and those that only look so."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.language import borrowed, personal, secrets_told
from streams.language.personal import SENTENCE_CHARS, facts, sentences
from streams.language.personal_fact import Part

TOLD = [
    ("My name is Anna.", Part.ABOUT, "name"),
    ("Hi, I'm Anna and I like tea.", Part.ABOUT, "name"),
    ("User's name is Anna.", Part.ABOUT, "name"),
    ("I live in Bergen.", Part.ABOUT, "home"),
    ("The user lives in Bergen.", Part.ABOUT, "home"),
    ("I'm a software engineer.", Part.ABOUT, "occupation"),
    ("I quit my job last week.", Part.ABOUT, "employer"),
    ("Well, I grew up in Turin.", Part.ABOUT, "origin"),
    ("My birthday is 3 May.", Part.ABOUT, "birthday"),
    ("My phone number is 555-1234.", Part.ABOUT, "phone number"),
    ("I'm allergic to peanuts.", Part.ABOUT, "health"),
    ("I don't eat meat.", Part.ABOUT, "health"),
    ("My sister Anna lives with us.", Part.PEOPLE, "anna"),
    ("I met my new neighbor Tom today!", Part.PEOPLE, "tom"),
    ("Rex is my dog.", Part.PEOPLE, "rex"),
    ("Oscar, my guinea pig, is asleep.", Part.PEOPLE, "oscar"),
    ("We have two kids.", Part.PEOPLE, "have"),
    ("My husband is a nurse.", Part.PEOPLE, "husband"),
    ("I'm sad, my dad passed away.", Part.PEOPLE, "dad"),
    ("I love hiking in the mountains.", Part.PREFERENCES, "likes"),
    ("I can't stand loud music.", Part.PREFERENCES, "likes"),
    ("My favorite colour is green.", Part.PREFERENCES, "likes"),
    ("I have a dentist appointment on Friday at 3pm.", Part.TASKS, "task"),
    ("The deadline is 12 March.", Part.TASKS, "task"),
    ("I need to submit the report by Monday.", Part.TASKS, "task"),
    ("Remind me to call the bank.", Part.TASKS, "task"),
    ("我叫李明，你好。", Part.ABOUT, "名字"),
    ("我住在青岛。", Part.ABOUT, "住处"),
    ("用户住在青岛。", Part.ABOUT, "住处"),
    ("我是一名老师。", Part.ABOUT, "职业"),
    ("我的生日是5月3日。", Part.ABOUT, "生日"),
    ("我对花生过敏。", Part.ABOUT, "健康"),
    ("我妹妹小美在北京上班。", Part.PEOPLE, "小美"),
    ("王强是我的同事，很热心。", Part.PEOPLE, "王强"),
    ("我家的狗叫旺财。", Part.PEOPLE, "旺财"),
    ("我有一个女儿。", Part.PEOPLE, "有"),
    ("我妈妈的生日是6月24日。", Part.PEOPLE, "妈妈"),
    ("我很喜欢听爵士乐。", Part.PREFERENCES, "喜欢"),
    ("我明天下午三点要去看牙医。", Part.TASKS, "事"),
    ("提醒我给银行打电话。", Part.TASKS, "事"),
]
TOLD += [
    ("I said that I live in Bergen.", Part.ABOUT, "home"),
    ("I drive a red Toyota.", Part.ABOUT, "car"),
    ("I speak fluent Spanish.", Part.ABOUT, "languages"),
    ("My doctor is Anna Moss.", Part.ABOUT, "doctor"),
    ("I love reading “Heidi” aloud.", Part.PREFERENCES, "likes"),
    ("Don't let me forget to call the bank.", Part.TASKS, "task"),
    ("我叫小明。", Part.ABOUT, "名字"),
    ("叫我李明。", Part.ABOUT, "名字"),
    ("我是一名翻译。", Part.ABOUT, "职业"),
    ("我单身。", Part.ABOUT, "婚姻"),
    ("别忘了明天提醒我开会。", Part.TASKS, "事"),
]
NOTHING = [
    "Do I live in Bergen?",
    "I live in hope.",
    "I love it!",
    "I love how you put that.",
    "I like your idea.",
    "I hate feeling behind.",
    "I wish I lived in Oslo.",
    "If I liked tea, I would drink it.",
    "She said I like tea.",
    "Yeah, my mom really loved flowers.",
    "I used to live in Bergen.",
    "I did use the auto mode on my phone's camera.",
    "I've got lots of kids' books.",
    "My wifi password is swordfish.",
    "My door code is 4711.",
    "Our codes are 4711 and 4712.",
    "My card number is 1234.",
    "My phone number is 4242 4242 4242 4242.",
    "My SSN is 123.",
    "My passport is X12345.",
    "My seed phrase is apple pear.",
    "I'll see you tomorrow.",
    "I'll make sure to focus on Friday.",
    "Don't forget to rest.",
    "It reminds me of her.",
    'My boss said, "I live in Paris".',
    '"I live in Oslo," said Tom.',
    "'I live in Oslo,' said Tom.",
    "Tom said: I live in Oslo.",
    "My friend says that I love drama.",
    "I dreamed that I am a doctor.",
    "I play a character: I am a doctor.",
    "Let's say I live in Oslo.",
    "Translate: I am a nurse and I live in Oslo.",
    "Dear Sir, I am a nurse, and I live in Oslo.",
    "I will not go to the dentist tomorrow.",
    "We're not going to Rome next week.",
    "I am going to bed tonight.",
    "I drive a hard bargain.",
    "I drive my wife crazy.",
    "My car is broken.",
    "My doctor is late.",
    "I speak Too much.",
    "We speak Python at work.",
    "I can't eat now, I'm busy.",
    "I never eat out.",
    "My son Sure loves it",
    "my dog Ate my homework",
    "My mother Never calls.",
    "Thanks!",
    "妈妈说：我是医生。",
    "小明说“我住在北京”。",
    "请翻译：我是医生，我喜欢北京。",
    "我是不是医生",
    "我已婚吗",
    "我明天不去开会。",
    "别提醒我明天开会。",
    "明天不用提醒我。",
    "明天早上叫我起床。",
    "我叫外卖。",
    "我叫了外卖。",
    "我叫车了。",
    "叫我女王",
    "我单身狗",
    "你喜欢喝茶吗？",
    "我喜欢你的建议。",
    "如果我住在青岛就好了。",
    "我以前喜欢喝茶。",
    "我的密码是12345。",
    "我的手机号是我的银行卡密码。",
    "我的身份证号码是12345。",
    "我的护照号码是E12345。",
    "他说我喜欢喝茶。",
    "Ich wohne in Kiel und mag Tee.",
    "",
]
#: Pairs of sentences of which the newer one replaces the older one.
REPLACED = [
    ("I live in Bergen.", "I moved to Oslo last week."),
    ("I work at Google.", "I quit my job."),
    ("I love coffee.", "I no longer like coffee."),
    ("The project deadline is 12 March.", "We moved the project deadline to 3 April."),
    ("My sister Anna is here.", "Anna is my sister, she has a dog."),
    ("我住在青岛。", "我上个月搬到了上海。"),
    ("我妈妈的生日是6月24日。", "我母亲的生日是6月25日。"),
    ("我喜欢香菜。", "我不喜欢香菜。"),
]


def test_the_examples_in_the_docstrings_hold() -> None:
    assert [doctest.testmod(one).failed for one in (borrowed, personal, secrets_told)] == [0, 0, 0]


@pytest.mark.parametrize(("sentence", "part", "key"), TOLD)
def test_what_a_sentence_tells(sentence: str, part: Part, key: str) -> None:
    assert (part, key) in {(one.part, one.key[0]) for one in facts(sentence)}


@pytest.mark.parametrize("sentence", NOTHING)
def test_what_tells_nothing(sentence: str) -> None:
    assert facts(sentence) == []


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_newer_one_has_a_key_of_the_older_one(older: str, newer: str) -> None:
    assert {one.key for one in facts(older)} & {one.key for one in facts(newer)}


def test_an_undated_plan_is_a_task_only_if_a_reminder_is_asked_for() -> None:
    assert [one.dated for one in facts("I have a meeting on Monday.")] == [True]
    assert [one.dated for one in facts("Remind me to call the bank.")] == [False]
    assert facts("I have to call the bank.") == []


@pytest.mark.parametrize("sentence", ["会议取消了，明天不开会。", "I cancelled the dentist appointment."])
def test_a_cancelled_task_is_none(sentence: str) -> None:
    assert [(one.part, one.ends) for one in facts(sentence)] == [(Part.TASKS, True)]


def test_sentences_are_whole_and_long_ones_are_passed_over() -> None:
    text = "I met Dr. Moss. [shared image: a dog] Is v1.2 out?\n我住在青岛。我喜欢茶！" + "x" * SENTENCE_CHARS + "y"
    assert list(sentences(text)) == ["I met Dr. Moss.", "Is v1.2 out?", "我住在青岛。", "我喜欢茶！"]


@given(
    st.text(alphabet="I'm we love my sister An.,!?:\n is the deadline on Monday 我喜欢妹妹小是明天要去", max_size=300)
)
def test_any_text_is_read(text: str) -> None:
    for sentence in sentences(text):
        assert 0 < len(sentence) <= SENTENCE_CHARS
        assert facts(sentence) == facts(sentence)
