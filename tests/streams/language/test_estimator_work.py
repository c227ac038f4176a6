"""The local estimator in talk with an assistant: what users tell of their work counts, questions alone do not."""

from __future__ import annotations

import doctest

import pytest

from schemas.settings import ScoringSettings
from streams.language import estimator
from streams.language.estimator import EXPLANATION_CHARS, estimate

PERSONAL = ScoringSettings().content_value

REPORTS = [
    "The deadline moved to 9 April.",
    "The review has been postponed to Thursday.",
    "We now use Poetry instead of pip.",
    "I switched the project to Python 3.13.",
    "The budget is now 12,500 euros.",
    "We decided to drop the mobile version.",
    "The import must accept files of 2 GB.",
    "Make sure that the API never returns more than 100 rows.",
    "The unit tests pass now.",
    "I fixed the crash, the config file was missing.",
    "Our release 3.1 is planned for June.",
    "The client approved the second draft.",
    "截止日期改到四月九号了。",
    "评审推迟到周四。",
    "我们改用Poetry了，不用pip。",
    "项目升级到Python 3.13了。",
    "预算现在是一万两千五百元。",
    "我们决定不做移动端了。",
    "导入功能必须支持2GB的文件。",
    "单元测试现在都通过了。",
    "崩溃修好了，少了一个配置文件。",
    "3.1版计划六月发布。",
]

ASKED = [
    "Can you explain what a generator is?",
    "What is the difference between a list and a tuple?",
    "How do I sort a dictionary by value?",
    "how do i sort a dictionary",
    "Write a haiku about the sea.",
    "Thanks, that looks good.",
    "Make it shorter, please.",
    "What is my name?",
    "Do you remember where I live?",
    "Which database should I choose?",
    "Summarise this: I live in Rome and my sister has a bakery.",
    "Fix the grammar of this letter:\nDear Ann, I has moved to Rome.",
    "生成器是什么？能解释一下吗？",
    "列表和元组有什么区别？",
    "怎么按值排序字典？",
    "写一首关于大海的俳句。",
    "谢谢，看起来很好。",
    "再短一点。",
    "我叫什么名字？",
]

LISTED = "Sure:\n1. Install it.\n2. Call it."
CODE = "Of course:\n```\nresult = sorted(values)\n```"
LONG = "The function takes a list, and returns a new list in which the values are in their order. " * 8
UNCONCERNED = "That is done by a sorted copy, which leaves the other list as it is."


@pytest.mark.parametrize("report", REPORTS)
def test_what_users_report_decide_and_require_at_work_is_personal(report: str) -> None:
    assert estimate(report, "").rating >= PERSONAL
    assert estimate(report, "Noted.").rating >= PERSONAL


@pytest.mark.parametrize("asked", ASKED)
def test_what_users_only_ask_for_is_not_personal(asked: str) -> None:
    assert estimate(asked, "").rating < PERSONAL


@pytest.mark.parametrize("reply", [LISTED, CODE, LONG, UNCONCERNED])
@pytest.mark.parametrize("user", ["How do I sort a list?", "I use Python 3.13. How do I sort a list?"])
def test_an_explanation_makes_the_users_words_neither_worth_more_nor_less(user: str, reply: str) -> None:
    assert estimate(user, reply) == estimate(user, "")


def test_a_reply_is_an_explanation_by_its_length() -> None:
    told = "I moved to Rome with my wife last May. " * 20
    assert estimate("", told[:EXPLANATION_CHARS]).rating > 0
    assert estimate("", told[: EXPLANATION_CHARS + 1]) == estimate("", "")


def test_a_long_text_of_the_user_is_read() -> None:
    told = "I moved to Rome with my wife last May. " * 20
    assert len(told) > EXPLANATION_CHARS
    assert estimate(told, "").rating >= PERSONAL


def test_code_is_not_read() -> None:
    code = '```\nname = "Anna"\nI, my = 28, "sister"\n```'
    assert estimate(f"What does this do? {code}", "").signals == ()
    assert estimate(f"We use Django. {code} Why?", "").signals == estimate("We use Django. Why?", "").signals


@pytest.mark.parametrize(
    ("question", "bare"),
    [
        ("Since we use Postgres already, do we need a cache?", "Do we need a cache?"),
        ("I'm planning a trip to Oslo and wonder if you know a hotel?", "Do you know a hotel in Oslo?"),
        ("How long can I keep the soup I made on Sunday?", "How long can one keep soup?"),
        ("Can you suggest a lens for my Nikon Z5?", "Can you suggest a lens?"),
        ("我们已经用了Postgres，还需要缓存吗？", "还需要缓存吗？"),
        ("给我女儿推荐一本什么书好？", "推荐一本什么书好？"),
    ],
)
def test_what_a_question_tells_in_passing_counts(question: str, bare: str) -> None:
    assert estimate(question, "").rating >= PERSONAL > estimate(bare, "").rating


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(estimator).failed == 0
