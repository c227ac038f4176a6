"""What is worth knowing tomorrow."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary


@pytest.mark.parametrize(
    "said",
    [
        "我叫陈立，在苏州做会计，对海鲜过敏",
        "我女儿朵朵五岁",
        "我发现早睡之后效率高了很多",
        "原来早上空腹跑步效果更好",
        "My name is Lena and I'm a nurse in Graz",
        "I'm allergic to penicillin",
        "I realized that I work best in the morning",
        "It turns out the cache was stale all along",
    ],
)
def test_facts_of_the_users_life_and_conclusions_are_insights(said: str) -> None:
    """One with two facts may be two lines."""
    found = summary(said, "A: 嗯").insights
    assert all(insight.text in said for insight in found)
    assert found[0].text[:5] == said[:5]
    assert found[-1].text[-5:] == said[-5:]
    assert {insight.sources for insight in found} == {("m0",)}


@pytest.mark.parametrize(
    "said",
    [
        "你好！",
        "谢谢你的建议",
        "我女儿几岁了？",
        "如果我对海鲜过敏，就不吃",
        "A: 我叫小助手，住在云端",
        "Hello, nice to meet you!",
        "What is my name?",
        "A: My name is Botty and I live in the cloud",
        "I noticed your dog in the picture",
        "They opened a bakery in Leeds last Monday and hired ten people",
        "这些都是我上周末在成都和家人一起去过的地方",
    ],
)
def test_courtesies_questions_and_what_the_assistant_says_of_itself_are_none(said: str) -> None:
    assert summary(said).insights == ()


def test_what_the_user_asks_to_remember_comes_without_the_request() -> None:
    assert [insight.text for insight in summary("请记住，我的车牌号是苏E12345").insights] == ["我的车牌号是苏E12345"]
    assert [one.text for one in summary("Remember that my locker code is 4417.").insights] == [
        "my locker code is 4417"
    ]


@pytest.mark.parametrize("said", ["My bank PIN is 4711 and my sister Ruth has a dog", "我的银行卡密码是4711"])
def test_secrets_are_noted_only_if_the_user_asks_for_it(said: str) -> None:
    assert not any("4711" in insight.text for insight in summary(said, "A: ok").insights)
    (insight,) = summary(f"remember that {said}", "A: ok").insights
    assert "4711" in insight.text


def test_what_another_section_has_is_no_insight() -> None:
    found = summary("我喜欢辣的火锅", "A: 好", "我需要明天交房租", "A: 好", "我决定搬到成都")
    assert found.preferences
    assert found.todos
    assert found.decisions
    assert found.insights == ()


def test_what_happened_is_an_insight_beside_the_topic_that_names_it() -> None:
    """A topic only names it; what lasts is one all the same."""
    found = summary("昨天我去海边看了日出", "A: 真好", "我对花生过敏", "A: 记下了")
    assert "花生过敏" in [topic.title for topic in found.topics]
    assert [insight.text for insight in found.insights] == ["昨天我去海边看了日出", "我对花生过敏"]
