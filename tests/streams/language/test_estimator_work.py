"""The local estimator in talk with an assistant: what users tell of their work counts, questions alone do not."""

from __future__ import annotations

import doctest

import pytest

from schemas.settings import ScoringSettings
from streams.language import estimator
from streams.language.estimator import EXPLANATION_CHARS, READ_CHARS, estimate

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


@pytest.mark.parametrize(
    "told",
    [
        "Recommend a book for my daughter: Mia just turned five, she adores dinosaurs, and we moved to Oslo in June.",
        "Recommend a book: Mia is my daughter, she just turned five, and we moved to Bergen last month.",
        "Find a good gift for my wife: Anna is a potter. We got engaged in June. I work as a nurse at the hospital.",
        "Fix the bug: it crashes. Our deadline moved to Friday 12 June and we decided to use Postgres 16.",
        "Fix this bug: it crashes. Our deadline moved to Friday 12 June and we decided to use Postgres 16.",
        "Recommend a fix for this: the import crashes. Our deadline moved to Friday 12 June.",
        "Correct the email address: it is now anna@example.org. I moved to Rome.",
        "推荐一本书：我女儿刚满五岁，喜欢恐龙，我们上个月搬到了北京。",
        "修复这个错误：程序崩溃。我们的截止日期改到六月十二日，决定用Postgres 16。",
    ],
)
def test_what_a_request_tells_after_its_colon_counts(told: str) -> None:
    assert estimate(told, "").rating >= PERSONAL


OWN_WORDS = "My name is Anna. I live in Oslo. My daughter Mia is 5 years old."


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        ("Translate this: hola.", f"\nAlso, {OWN_WORDS}"),
        ("Translate this:hola.", f"\nAlso, {OWN_WORDS}"),
        ("Translate this:\n\nI live in Rome with my wife.", f"\n{OWN_WORDS}"),
        ('Translate this: "I live in Rome with my wife".', f" {OWN_WORDS}"),
        ("Translate this: “I live in Rome with my wife.”", f" {OWN_WORDS}"),
        ('Fix the bug: "I live in Rome with my wife" is shown twice.', f" {OWN_WORDS}"),
        ("Fix this code:\n```\ni = 'my wife in Rome'\n```", f"\n{OWN_WORDS}"),
        ("Fix this code: ```i = 'my wife in Rome'```", f" {OWN_WORDS}"),
        ("翻译这句话：你好。", "\n另外，我叫安娜，我住在奥斯陆。我女儿五岁。"),
    ],
)
def test_only_the_text_that_is_to_be_worked_on_is_not_read(asked: str, own: str) -> None:
    assert estimate(asked, "").rating < PERSONAL
    assert estimate(asked + own, "").rating >= PERSONAL


@pytest.mark.parametrize(
    "asked",
    [
        "Translate into German: I live in Rome with my wife.",
        "Please proofread this: I live in Rome. My wife Anna has a bakery. We moved in June.",
        "Translate this: “I live in Rome. My wife Anna has a bakery.",
        "Improve the grammar: I lives in Rome with my wife Anna.",
        "Explain this poem line by line: I lived in Rome with my love Anna.",
        "Fix this code: for i in range(10) print(my_wife)",
        "Continue: I lived in Rome with my love Anna.",
    ],
)
def test_a_text_that_is_to_be_worked_on_is_not_read_to_the_end_of_its_line(asked: str) -> None:
    assert estimate(asked, "").rating < PERSONAL


@pytest.mark.parametrize(
    "told",
    [
        "It fails with ``` here. My name is Anna, I live in Oslo and I'm allergic to nuts.",
        "```x = 1``` works, ``` does not. My name is Anna, I live in Oslo and I'm allergic to nuts.",
        "它报错 ``` 这里。我叫安娜，我住在奥斯陆。",
    ],
)
def test_what_follows_a_fence_that_is_not_closed_is_text(told: str) -> None:
    assert estimate(told, "").rating >= PERSONAL


@pytest.mark.parametrize("beyond", [4, 3, 2, 1, 0, -1])
def test_a_fence_is_closed_even_beyond_what_is_read(beyond: int) -> None:
    code = "Why? ```" + "my name is Anna and I live in Oslo\n" * 80
    assert estimate(code[: READ_CHARS - beyond] + "``` ", "").signals == ()


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(estimator).failed == 0
