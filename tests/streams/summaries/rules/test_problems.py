"""Technical problems and their solutions."""

from __future__ import annotations

import pytest

from tests.streams.summaries.rules.talking import summary

PROBLEMS = [
    "我的程序启动就报错",
    "打印机连不上WiFi",
    "npm install 一直失败，提示权限不足",
    "网页一直打不开",
    "接口返回500",
    "My laptop won't connect to the wifi",
    "The build fails with error 137",
    "I get a KeyError when I load the config",
    "The app crashed again",
    "The printer doesn't work",
]

NONE = [
    "我考试失败了",
    "我和女朋友出问题了",
    "没有报错，一切正常",
    "我写了个错误处理函数",
    "如果程序报错，就重启",
    "A: 程序报错通常是依赖没装",
    "I failed my math exam",
    "My heart is broken",
    "It works without errors now",
    "If the build fails, tell me",
    "A: Does the server crash?",
]


@pytest.mark.parametrize("said", PROBLEMS)
def test_something_technical_that_fails_is_a_problem(said: str) -> None:
    (problem,) = summary(said).problems
    assert (problem.text, problem.solution, problem.sources) == (said, "", ("m0",))


@pytest.mark.parametrize("said", NONE)
def test_other_failures_are_none(said: str) -> None:
    assert summary(said).problems == ()


@pytest.mark.parametrize(
    ("said", "solution", "sources"),
    [
        (("服务启动就报错", "A: 试试重装依赖。"), "试试重装依赖", ("m0", "m1")),
        (("服务启动就报错", "A: 试试重装依赖。", "还是不行", "A: 检查一下端口。"), "检查一下端口", ("m0", "m3")),
        (("网页打不开", "A: 试试重启路由器。", "我换了个DNS就好了"), "我换了个DNS就好了", ("m0", "m2")),
        (
            ("The build fails with error 137.", "A: That's usually memory. Raise the limit to 4 GB.", "That worked!"),
            "That's usually memory; Raise the limit to 4 GB",
            ("m0", "m1"),
        ),
        (
            ("I get a KeyError here", "A: Have you checked the file?", "The fix was to add the missing key."),
            "The fix was to add the missing key",
            ("m0", "m2"),
        ),
    ],
)
def test_what_is_proposed_or_found_is_its_solution(
    said: tuple[str, ...], solution: str, sources: tuple[str, ...]
) -> None:
    """What the user says that worked goes before what the assistant proposes; what did not help is forgotten."""
    (problem,) = summary(*said).problems
    assert (problem.solution, problem.sources) == (solution, sources)


@pytest.mark.parametrize(
    ("said", "solution"),
    [
        (
            ("The worker fails with a connection error", "A: Start the broker first.", "That fixed it!"),
            "Start the broker first",
        ),
        (("worker启动就报错，连不上Kafka", "A: 先启动broker。", "好了，解决了！"), "先启动broker"),
        (
            ("The app crashes on start.", "A: Hm.", "I deleted the old cache folder. That fixed it."),
            "I deleted the old cache folder",
        ),
        (
            ("The tests time out on CI.", "A: Hm.", "Ah, I pinned the node version, it works now."),
            "I pinned the node version",
        ),
        (
            (
                "My app crashes.",
                "A: 1. Clear the cache. 2. Reinstall the app. 3. Restart the phone.",
                "Reinstalling it worked!",
            ),
            "Reinstall the app",
        ),
        (
            (
                "The build fails with error 137.",
                "A: Try restarting docker.",
                "That didn't help, but raising the memory limit did.",
            ),
            "raising the memory limit",
        ),
        (("网页打不开", "A: 清一下缓存，或者换个浏览器。", "换了浏览器就好了"), "换了浏览器就好了"),
        (("接口返回500", "A: 看起来是连接池满了。", "果然好了"), "看起来是连接池满了"),
        (("The app crashes.", "A: Does it?", "That fixed it!"), ""),
    ],
)
def test_the_solution_is_the_step_that_helped_not_that_it_helped(said: tuple[str, ...], solution: str) -> None:
    """What the user names, or has said just before; else what was proposed, of which they may name one step."""
    (problem,) = summary(*said).problems
    assert problem.solution == solution


def test_a_solution_goes_to_the_problem_whose_words_it_uses() -> None:
    first, second = summary(
        "打印机连不上WiFi。",
        "电脑开机也会蓝屏。",
        "A: 蓝屏的话，可以先更新显卡驱动。打印机可以重启一下再试。",
    ).problems
    assert (first.text, first.solution) == ("打印机连不上WiFi", "打印机可以重启一下再试")
    assert (second.text, second.solution) == ("电脑开机也会蓝屏", "蓝屏的话，可以先更新显卡驱动")


def test_a_traceback_is_one_problem_with_what_is_said_of_it() -> None:
    said = "My script crashes:\n```\nTraceback (most recent call last):\nValueError: bad input\n```"
    (problem,) = summary(said, "A: The fix is to strip the input first.").problems
    assert (problem.text, problem.solution) == ("My script crashes", "The fix is to strip the input first")


def test_a_solution_of_hours_later_is_for_something_else() -> None:
    said = ["服务启动就报错", *["A: 嗯", "哦"] * 5, "A: 试试重装依赖。"]
    (problem,) = summary(*said).problems
    assert problem.solution == ""


def test_two_faults_in_one_message_are_two_problems() -> None:
    found = summary("The printer is jammed again. Also the VPN keeps dropping every hour.", "A: Hm.").problems
    assert [problem.text for problem in found] == ["The printer is jammed again", "the VPN keeps dropping every hour"]
