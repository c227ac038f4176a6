"""What is to be done."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary

NAMED = [
    ("我需要完成季度报告", "完成季度报告", ""),
    ("记得提醒我给妈妈打电话", "给妈妈打电话", ""),
    ("提醒我周五上午十点开会", "开会", "周五上午十点"),
    ("你能提醒我晚上八点吃药吗？", "吃药", "晚上八点"),
    ("我得在月底前把论文改完", "把论文改完", "在月底前"),
    ("我必须尽快更新简历", "更新简历", "尽快"),
    ("待办：买机票、订酒店", "买机票、订酒店", ""),
    ("别忘了交电费", "交电费", ""),
    ("I need to finish the quarterly report", "finish the quarterly report", ""),
    ("Please remind me to call mum on Sunday.", "call mum on Sunday", ""),
    ("Could you remind me to water the plants tonight?", "water the plants tonight", ""),
    ("Tomorrow I have to pick up the kids", "pick up the kids", "Tomorrow"),
    ("Don't forget to feed the cat", "feed the cat", ""),
    ("TODO: renew passport", "renew passport", ""),
]

FOLLOWING = [
    ("我明天去医院复查", "去医院复查", "明天"),
    ("我会把合同发给李总", "把合同发给李总", ""),
    ("下周三我要去上海出差", "去上海出差", "下周三"),
    ("我打算下个月考驾照", "考驾照", "下个月"),
    ("我准备去攀登华山", "去攀登华山", ""),
    ("I'll send Peter the contract tomorrow", "send Peter the contract tomorrow", ""),
    ("I plan to visit Kyoto in spring", "visit Kyoto in spring", ""),
    ("We promised to help Tom move", "help Tom move", ""),
    ("那我去查一下签证要求", "查一下签证要求", ""),
    ("那我明天去问问房东", "问问房东", "明天"),
    ("Let me check the flight prices first", "check the flight prices first", ""),
]

PROMISED = [
    ("我明天把报价单发给你", "把报价单发给你", "明天"),
    ("好的，我会提醒你吃药", "提醒你吃药", ""),
    ("我帮你整理一份行李清单", "整理一份行李清单", ""),
    ("I'll send you a list", "send you a list", ""),
    ("Sure, I'll draft the contract for you", "draft the contract for you", ""),
    ("I will remind you to call the bank", "remind you to call the bank", ""),
]

NONE = [
    "我需要帮助",
    "我得了感冒",
    "我会游泳",
    "我会努力的",
    "我平时会去公园散步",
    "今天我去爬山了",
    "如果我明天去上海，就去看你",
    "你需要多休息",
    "我明天再来找你聊",
    "A: 我明天会提醒你",
    "I need help",
    "I have to say that was great",
    "I'll be fine",
    "I'll talk to you tomorrow",
    "I will not go there",
    "You need to sleep more",
    "A: I'll keep you posted",
    "A: I'll write to them and let you know",
    "A: I'll let you know",
    "A: I'll be around all day",
    "A: If you like, I'll send you a list",
    "A: 我会一直陪着你",
    "A: 我会努力学习的",
    "A: 我去过很多地方",
    "那我去看看吧",
    "那我去睡了",
    "Let me check",
    "Let me know",
    "Do I need to call them?",
]


@pytest.mark.parametrize(("said", "text", "when"), NAMED)
def test_what_the_user_has_to_do_is_a_task_that_begins_with_its_verb(said: str, text: str, when: str) -> None:
    (todo,) = summary(said).todos
    assert (todo.text, todo.when, todo.inferred, todo.sources) == (text, when, False, ("m0",))


@pytest.mark.parametrize(("said", "text", "when"), FOLLOWING)
def test_what_the_user_is_going_to_do_is_inferred(said: str, text: str, when: str) -> None:
    (todo,) = summary(said).todos
    assert (todo.text, todo.when, todo.inferred, todo.sources) == (text, when, True, ("m0",))


@pytest.mark.parametrize(("said", "text", "when"), PROMISED)
def test_what_the_assistant_promises_to_do_is_inferred(said: str, text: str, when: str) -> None:
    (todo,) = summary("好", f"A: {said}").todos
    assert (todo.text, todo.when, todo.inferred, todo.sources) == (text, when, True, ("m1",))


@pytest.mark.parametrize("said", NONE)
def test_what_cannot_be_ticked_off_is_none(said: str) -> None:
    assert summary(said).todos == ()


@pytest.mark.parametrize(
    ("proposed", "agreed", "text"),
    [
        ("这个不难。你可以先列一个提纲，再慢慢写。", "好的，我会试试。", "列一个提纲，再慢慢写"),
        (
            "You could write a short list of pros and cons.",
            "Okay, I'll try that.",
            "write a short list of pros and cons",
        ),
    ],
)
def test_what_the_assistant_proposes_and_the_user_agrees_to_is_inferred(
    proposed: str, agreed: str, text: str
) -> None:
    (todo,) = summary("怎么办？", f"A: {proposed}", agreed).todos
    assert (todo.text, todo.inferred, todo.sources) == (text, True, ("m1", "m2"))
    assert summary("怎么办？", f"A: {proposed}", "谢谢 thanks").todos == ()


def test_what_is_agreed_to_in_another_session_is_another_matter() -> None:
    assert summary("A: You could write a list of your plans.").todos == ()
    assert summary("Okay, I'll try that.").todos == ()


def test_what_the_user_says_they_will_do_goes_before_what_was_proposed() -> None:
    (todo,) = summary("怎么办？", "A: 你可以先看看使馆网站。", "那我去查签证要求").todos
    assert (todo.text, todo.sources) == ("查签证要求", ("m2",))


def test_a_verb_that_could_be_a_month_is_no_time() -> None:
    (todo,) = summary("I need to march in the parade with the kids").todos
    assert (todo.text, todo.when) == ("march in the parade with the kids", "")


@pytest.mark.parametrize(
    ("said", "text", "when"),
    [
        ("Bis Freitag muss ich noch die Steuer abgeben", "die Steuer abgeben", "Bis Freitag"),
        ("Antes del viernes tengo que entregar el informe", "entregar el informe", "Antes del viernes"),
        ("月曜までに介護ベッドを注文しないと", "介護ベッドを注文しないと", "月曜までに"),
        ("다음 주 금요일까지 비자 서류 내야 돼", "비자 서류 내야 돼", "다음 주 금요일까지"),
    ],
)
def test_in_other_languages_a_date_before_the_task_is_apart(said: str, text: str, when: str) -> None:
    (todo,) = summary(said, "A: ok").todos
    assert (todo.text, todo.when) == (text, when)
