"""What was decided, and why."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary

TECHNICAL = [
    ("数据库我们决定用Postgres，因为团队都熟悉它", "数据库我们决定用Postgres", "团队都熟悉它"),
    ("由于预算有限，我们决定采用开源模型", "我们决定采用开源模型", "预算有限"),
    ("A: 那我们就用FAISS吧，这样部署简单", "那我们就用FAISS吧", "部署简单"),
    ("模型就用 Qwen2.5-7B 吧", "模型就用 Qwen2.5-7B 吧", ""),
    ("We'll use Postgres because the team knows it", "We'll use Postgres", "the team knows it"),
    (
        "Since the budget is small, we decided to use an open model",
        "we decided to use an open model",
        "the budget is small",
    ),
    ("A: Let's go with FAISS so that we can deploy it easily", "Let's go with FAISS", "we can deploy it easily"),
    ("We settled on DuckDB. Because it needs no server.", "We settled on DuckDB", "it needs no server"),
]

OWN = [
    ("我将使用方案A", "我将使用方案A", ""),
    ("决定今天开始戒糖", "决定今天开始戒糖", ""),
    ("我决定辞职了，因为太累", "我决定辞职了", "太累"),
    ("就这么定了，周六去露营", "就这么定了，周六去露营", ""),
    ("公司太远，所以我决定搬家", "我决定搬家", "公司太远"),
    ("I've decided to go with plan A", "I've decided to go with plan A", ""),
    ("I decided to quit smoking because of my kids", "I decided to quit smoking", "my kids"),
    ("It rained all week, so I decided to stay in", "I decided to stay in", "It rained all week"),
]

NONE = [
    "我还没决定用哪个模型",
    "要不要决定用哪个模型？",
    "这个决定很重要",
    "他决定出国",
    "如果明天下雨我就决定不去",
    "A: 你可以使用GPT-4o模型",
    "A: 我决定去爬山",
    "我平时就用Python写脚本",
    "I haven't decided yet where to go",
    "Should we use Kafka?",
    "Maybe I'll go with option B",
    "She decided to leave him",
    "If it rains, we'll use Postgres",
    "A: You could use PostgreSQL for that",
    "A: I've decided to go home",
]


@pytest.mark.parametrize(("said", "text", "reason"), TECHNICAL)
def test_the_choice_of_a_model_or_a_method_is_technical_whoever_makes_it(said: str, text: str, reason: str) -> None:
    (decision,) = summary(said).decisions
    assert (decision.text, decision.reason, decision.technical, decision.sources) == (text, reason, True, ("m0",))


@pytest.mark.parametrize(("said", "text", "reason"), OWN)
def test_what_the_user_decides_is_a_decision_with_its_reason(said: str, text: str, reason: str) -> None:
    (decision,) = summary(said).decisions
    assert (decision.text, decision.reason, decision.technical, decision.sources) == (text, reason, False, ("m0",))


@pytest.mark.parametrize("said", NONE)
def test_what_is_open_hypothetical_or_somebody_elses_is_none(said: str) -> None:
    assert summary(said).decisions == ()


def test_a_decision_is_nothing_else_as_well() -> None:
    found = summary("我决定明天开始跑步")
    assert [decision.text for decision in found.decisions] == ["我决定明天开始跑步"]
    assert (*found.todos, *found.preferences, *found.insights) == ()


@pytest.mark.parametrize(
    ("said", "text", "reason", "sources"),
    [
        (
            ("用PostgreSQL吧，因为团队都熟悉它", "A: 好的，决定使用PostgreSQL。"),
            "决定使用PostgreSQL",
            "团队都熟悉它",
            ("m1", "m0"),
        ),
        (
            ("A: 用PostgreSQL吧，因为事务支持更好。", "好的，决定使用PostgreSQL"),
            "决定使用PostgreSQL",
            "事务支持更好",
            ("m1", "m0"),
        ),
        (
            ("选哪个？", "A: 建议用PostgreSQL，因为事务支持更好。", "好的，就用它吧"),
            "用PostgreSQL",
            "事务支持更好",
            ("m1", "m2"),
        ),
        (
            ("我们决定使用PostgreSQL", "A: 为什么呢？", "因为团队都熟悉它"),
            "我们决定使用PostgreSQL",
            "团队都熟悉它",
            ("m0", "m2"),
        ),
        (
            ("Which one?", "A: I'd use PostgreSQL because the team knows it.", "Good. We'll use PostgreSQL."),
            "We'll use PostgreSQL",
            "the team knows it",
            ("m2", "m1"),
        ),
        (
            ("Which one?", "A: I'd use PostgreSQL, because the team knows it.", "OK, let's go with that."),
            "use PostgreSQL",
            "the team knows it",
            ("m1", "m2"),
        ),
        (
            ("We'll use PostgreSQL.", "A: Why?", "Because the team knows it."),
            "We'll use PostgreSQL",
            "the team knows it",
            ("m0", "m2"),
        ),
    ],
)
def test_a_reason_may_stand_in_another_turn(
    said: tuple[str, ...], text: str, reason: str, sources: tuple[str, ...]
) -> None:
    (decision,) = summary(*said).decisions
    assert (decision.text, decision.reason, decision.technical, decision.sources) == (text, reason, True, sources)


def test_a_reason_for_something_else_is_none() -> None:
    (decision,) = summary("MySQL, because the team knows it?", "A: Hm.", "We'll use PostgreSQL.").decisions
    assert decision.reason == ""


def test_a_reason_of_long_ago_is_for_something_else() -> None:
    said = ["A: PostgreSQL is fine because the team knows it.", *["嗯", "A: 嗯"] * 5, "We'll use PostgreSQL."]
    (decision,) = summary(*said).decisions
    assert decision.reason == ""


def test_a_choice_that_is_said_again_is_one_decision() -> None:
    (decision,) = summary(
        "We'll use PostgreSQL.", "A: Great, we're going with PostgreSQL because it scales."
    ).decisions
    assert (decision.text, decision.reason) == ("We'll use PostgreSQL", "it scales")
    assert decision.sources == ("m0", "m1")


def test_agreeing_to_what_is_no_tool_is_no_technical_decision() -> None:
    found = summary("What now?", "A: We could take a walk.", "OK, let's do that.").decisions
    assert not any(decision.technical for decision in found)


def test_each_decision_has_its_own_reason() -> None:
    sold, chosen = summary(
        "I decided to sell the car. We're going with PostgreSQL because the team knows it."
    ).decisions
    assert (sold.text, sold.reason) == ("I decided to sell the car", "")
    assert (chosen.text, chosen.reason) == ("We're going with PostgreSQL", "the team knows it")


def test_what_the_user_refuses_is_no_decision() -> None:
    proposal = "A: Let's go with FAISS for the index."
    assert summary("Which index?", proposal, "OK, good.").decisions
    assert summary("Which index?", proposal, "No, I don't want that.").decisions == ()


def test_a_choice_that_is_taken_back_is_another_decision() -> None:
    said = (
        "We decided to use DuckDB for the reports.",
        "A: ok",
        "We decided to use DuckDB no longer for the intake.",
    )
    assert [decision.sources for decision in summary(*said).decisions] == [("m0",), ("m2",)]


def test_a_short_answer_stands_after_what_was_asked() -> None:
    (decision,) = summary("A: Which colour do you want for the tiles, grey or white?", "grey").decisions
    assert decision.text == "colour: grey"
    assert set(decision.sources) == {"m0", "m1"}
