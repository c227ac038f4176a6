"""Who asks to have something remembered, or summed up, and who only talks of it."""

from __future__ import annotations

import doctest

import pytest

from schemas.phrases import FORCE_PHRASES, SUMMARY_PHRASES
from schemas.settings import MemorySettings
from streams.intake.rules.scoring import Scorer
from streams.language import asking
from streams.language.asking import FOR_A_SUMMARY, TO_REMEMBER
from streams.language.phrases import Phrases
from tests.support.making import exchange

REMEMBERED = Scorer(MemorySettings())
SUMMED_UP = Phrases(SUMMARY_PHRASES, FOR_A_SUMMARY)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(asking).failed == 0


def test_what_is_read_is_among_the_phrases() -> None:
    assert set(TO_REMEMBER) <= set(FORCE_PHRASES)


@pytest.mark.parametrize(
    "text",
    [
        "别忘了我对花生过敏",
        "你别忘了我的生日是五月五号",
        "別忘了我不吃辣",
        "不要忘记我下周搬家",
        "記住我叫小明",
        "請記住我住在台北",
        "請記得我不吃牛肉",
        "幫我記住車位是 B12",
        "记得我不吃香菜",
        "记得提醒我明天九点开会",
        "记得明天提醒我开会，好吗？",
        "明天早上八点记得叫我起床",
        "你要记得我对青霉素过敏",
        "你能记得我对花生过敏吗？",
        "一定要记住，我的血型是 O 型",
        "我要你记住这个号码：4711",
        "能不能记住我不吃辣？",
        "帮我记得车停在三楼",
        "我叫小明，记住了",
        "Remember my birthday is May 5.",
        "Please remember my sister's name is Ida",
        "Hey, remember my flight leaves at nine",
        "I want you to remember my blood type: O negative",
        "Could you remember my daughter's name is Sofia?",
        "Could you remember that I eat no meat?",
        "could you remember I'm on night shift this week",
        "Can you remember that I'm vegan?",
        "Would you remember my order: oat flat white?",
        "Remember that I'm allergic to nuts, ok?",
        "And remember that we moved to Oslo",
        "my locker is 4711 remember that",
        "You should remember that I never drink",
        "Don't forget I start on Monday",
        "Write it down so I don't forget: the code is 9",
    ],
)
def test_these_ask_to_remember(text: str) -> None:
    assert REMEMBERED.asks_to_remember(exchange(text))


@pytest.mark.parametrize(
    "text",
    [
        "你还记得吗",
        "你还记得我的生日吗？",
        "你记得我叫什么名字",
        "你记得我叫什么吗？",
        "記得我的名字嗎？",
        "还记得我上次说的餐厅吗",
        "我记得小时候住在海边",
        "记得小时候奶奶做的饺子",
        "记得有一次我们去爬山",
        "我不记得密码了",
        "妈妈还记得我爱吃的菜",
        "你记住了吗？",
        "我记住了",
        "我一定要记住这些单词",
        "他让我记住这些",
        "我没记住老师的话",
        "怎么才能记住单词？",
        "你能记住多少单词？",
        "妈妈说别忘了带伞",
        "do you remember my name?",
        "Do you still remember my sister?",
        "You remember my brother Tom",
        "Can you remember my name?",
        "Remember my birthday?",
        "Remember that restaurant by the lake?",
        "Do you remember that restaurant?",
        "I remember my grandmother's kitchen",
        "I can't remember my password",
        "I need to remember my keys",
        "people remember my face",
        "I remember that day well",
        "remember that time we got lost in Rome",
        "I remember that.",
        "It made me remember that I was young",
        "Could you remember what I told you?",
        "How could you remember my name?",
        "I don't forget a face",
    ],
)
def test_these_do_not(text: str) -> None:
    assert not REMEMBERED.asks_to_remember(exchange(text))


@pytest.mark.parametrize("phrase", ["请记住", "帮我记住", "记一下", "請記住", "please remember"])
def test_what_the_texts_name_asks_whatever_stands_around_it(phrase: str) -> None:
    assert REMEMBERED.asks_to_remember(exchange(f"我也不知道 {phrase} 这件事吗？"))


def test_phrases_of_the_settings_are_taken_as_they_stand() -> None:
    """What somebody has set is no riddle: the words that are found count."""
    own = Scorer(MemorySettings(force_phrases=("remember me", "notiere")))
    assert own.asks_to_remember(exchange("do you remember me?"))
    assert own.asks_to_remember(exchange("ich notiere nichts"))
    assert not own.asks_to_remember(exchange("remember my name"))


@pytest.mark.parametrize(
    "text",
    [
        "今天的对话总结一下",
        "把今天的对话总结一下吧",
        "请把今天的对话总结一下，谢谢",
        "能总结一下今天吗？",
        "總結今天的對話",
        "给我今天的总结",
        "give me a daily summary",
        "Can you give me a daily summary, please?",
        "Could you give me today's summary?",
        "I'd like you to summarize today",
        "please summarise our conversation today",
        "总结今天的对话",
        "生成每日概要",
    ],
)
def test_these_ask_for_a_summary(text: str) -> None:
    assert SUMMED_UP.found_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "不用总结今天的对话",
        "别总结今天的对话",
        "我总结今天的对话花了一小时",
        "你总结今天的对话了吗？",
        "为什么总结今天的对话",
        "don't summarize today",
        "did you summarize today?",
        "how do I summarize today's meeting?",
        "My boss wants me to give a daily summary",
        "she asked for a daily summary",
        "今天的对话很有意思",
    ],
)
def test_these_ask_for_none(text: str) -> None:
    assert not SUMMED_UP.found_in(text)
