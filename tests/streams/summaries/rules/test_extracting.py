"""The extractive summary as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.summaries import MOST_TOPICS, TITLE_CHARS, Summary
from streams.summaries.rules import extracted, turns_of
from streams.summaries.rules.extracting import MOST_ITEMS
from streams.summaries.rules.sentences import ITEM_CHARS
from streams.summaries.rules.turns import Turn
from tests.streams.summaries.rules.talking import LIMITS, day, summary, turns
from tests.support.calls import Calls
from tests.support.examples import examples
from tests.support.making import message

PIECES = [
    *(
        "我喜欢",
        "我决定",
        "我需要",
        "提醒我",
        "明天",
        "使用",
        "Postgres",
        "报错",
        "电脑",
        "试试",
        "重启",
        "因为",
        "所以",
    ),
    *(
        "好的，我会试试",
        "你可以",
        "简短一点",
        "方案A",
        "如果",
        "我女儿",
        "对花生过敏",
        "《加油！》",
        "吗",
        "叫",
        "说",
        "“",
    ),
    *("I like ", "I've decided to ", "I need to ", "remind me to ", "tomorrow ", "use ", "the server ", "crashes "),
    *("because ", "so ", "you could ", "I'll try that ", "try ", "to restart ", "coffee ", "my name is ", "if "),
    *(
        "，",
        "。",
        "！",
        "？",
        ", ",
        ". ",
        "! ",
        "? ",
        "\n",
        "- ",
        "```\n",
        "[image: x] ",
        "…",
        "(",
        ")",
        " - ",
        ": ",
        "：",
        "\t",
    ),
]
SAID = st.one_of(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join), st.text(max_size=40))
DAYS = st.lists(st.tuples(st.booleans(), SAID), max_size=8)


_PARTS = re.compile(": |：")
"""A decision of few words has two parts of two messages: what was asked about, and the answer."""


def one_line(text: str) -> str:
    return " ".join(text.split())


def texts(found: Summary) -> list[tuple[str, tuple[str, ...]]]:
    """Everything that a summary says, with the ids of the messages that are to say it."""
    return [
        *((topic.title, topic.sources) for topic in found.topics),
        *((preference.text, preference.sources) for preference in found.preferences),
        *((one, decision.sources) for decision in found.decisions for one in _PARTS.split(decision.text)),
        *((decision.reason, decision.sources) for decision in found.decisions),
        *((text, todo.sources) for todo in found.todos for text in (todo.text, todo.when)),
        *((problem.text, problem.sources) for problem in found.problems),
        *(
            (step, one.sources)
            for one in found.problems
            for part in one.solution.split("；")
            for step in part.split("; ")
        ),
        *((insight.text, insight.sources) for insight in found.insights),
    ]


@examples(300)
@given(DAYS)
@example([(False, "Postgres? "), (True, "我决定")])
def test_whatever_is_said_a_summary_is_taken_from_it(said: list[tuple[bool, str]]) -> None:
    messages = [message(i, "user" if user else "assistant", text or "?", at=i) for i, (user, text) in enumerate(said)]
    spoken = turns_of(messages, LIMITS)
    found = extracted(spoken)
    content = {f"m{i}": one_line(said.content) for i, said in enumerate(messages)}
    for text, sources in texts(found):
        assert sources
        assert any(text in content[source] for source in sources), text
        assert "\n" not in text
        assert len(text) <= ITEM_CHARS
    assert len(found.topics) <= MOST_TOPICS
    assert all(0 < len(topic.title) <= TITLE_CHARS for topic in found.topics)
    assert {number for topic in found.topics for number in topic.turns} <= {turn.number for turn in spoken}
    assert all(preference.text for preference in found.preferences)
    assert all(todo.text for todo in found.todos)
    assert all(problem.text for problem in found.problems)
    assert all(decision.text for decision in found.decisions)
    assert all(insight.text for insight in found.insights)


def test_a_chinese_day() -> None:
    found = summary(
        "早上好！以后请用中文回答我，我喜欢简洁的回答。",
        "A: 好的。",
        "我的服务启动就报错，提示 ModuleNotFoundError。",
        "A: 试试先执行 pip install -r requirements.txt。",
        "数据库我们决定用Postgres，因为团队都熟悉它。对了，我需要在周五之前完成接口文档。",
        "A: 没问题。",
        "我明天去医院复查。我女儿朵朵五岁，对花生过敏。",
        "A: 记下了。",
    )
    assert {(3,), (4,)} <= {topic.turns for topic in found.topics}
    assert [one.text for one in found.preferences] == ["以后请用中文回答我", "我喜欢简洁的回答"]
    assert [(one.text, one.reason) for one in found.decisions] == [("数据库我们决定用Postgres", "团队都熟悉它")]
    assert [(one.text, one.when) for one in found.todos] == [("完成接口文档", "在周五之前"), ("去医院复查", "明天")]
    assert [one.solution for one in found.problems] == ["试试先执行 pip install -r requirements.txt"]
    assert [one.text for one in found.insights] == ["我女儿朵朵五岁，对花生过敏"]


def test_each_message_is_read_in_its_own_language() -> None:
    found = summary("我喜欢简洁的回答", "A: Ok.", "I need to renew my passport", "A: 好的", "我对花生过敏")
    assert [one.text for one in found.preferences] == ["我喜欢简洁的回答"]
    assert [one.text for one in found.todos] == ["renew my passport"]
    assert [one.text for one in found.insights] == ["我对花生过敏"]


def test_a_day_of_courtesies_has_an_empty_summary() -> None:
    assert summary("你好！", "A: 你好！有什么可以帮你？", "谢谢，再见", "A: 再见！") == Summary()


def test_a_day_without_turns_has_an_empty_summary() -> None:
    assert extracted([]) == Summary()


def test_a_section_keeps_what_is_worth_most_in_the_order_of_the_day() -> None:
    things = ["jazz", "rain", "chess", "olives", "trains", "maps", "soup", "skiing", "poetry", "my sister's cat Momo"]
    found = summary(*[f"I like {thing}" for thing in things]).preferences
    assert len(found) == MOST_ITEMS
    assert found[-1].text == "I like my sister's cat Momo"
    assert [int(one.sources[0][1:]) for one in found] == sorted(int(one.sources[0][1:]) for one in found)


def test_an_item_that_says_less_than_another_gives_way() -> None:
    found = summary("I need to call the bank", "A: ok", "I need to call the bank about the loan").todos
    assert [one.text for one in found] == ["call the bank about the loan"]
    assert set(found[0].sources) == {"m0", "m2"}


def test_a_message_may_carry_metadata() -> None:
    said = [message(0, content="I like tea a lot", metadata={"mood": ["good"]})]
    assert extracted(turns_of(said, LIMITS)).preferences


def test_the_same_day_gives_the_same_summary() -> None:
    said = [line for i in range(30) for line in (f"I have read about thing {i} and I like it more", "A: ok")]
    assert summary(*said) == summary(*said)


@pytest.mark.slow
def test_twice_the_turns_cost_little_more_than_twice_as_much() -> None:
    """What compares each turn with each other would cost four times as much."""
    said = [
        "昨天我去了附近的公园慢跑了一个小时，感觉非常舒畅，下次我可以带上朋友一起去。",
        "A: 听起来很棒！你可以先从两公里开始，慢慢加量，也要注意安全。还有什么想聊的吗？",
        "I usually read the history textbook, and sometimes I discuss it with my teachers. Any other advice?",
        "A: You could try listening to podcasts. They help you to remember what you read, and they are fun.",
    ] * 100
    spoken = turns_of(day(*said), LIMITS)
    assert len(spoken) == 200
    assert calls(spoken) < 2.5 * calls(spoken[:100])


def calls(spoken: Sequence[Turn]) -> int:
    """The function calls that a summary takes, once the words are read from their files."""
    extracted(spoken[:2])
    made = Calls()
    with made.watched(), made.counted():
        extracted(spoken)
    return made.total


def test_turns_are_what_topics_count() -> None:
    assert [turn.number for turn in turns("a", "A: b", "c", "A: d")] == [1, 2]
