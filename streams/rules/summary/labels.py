"""What a summary says of its own, in the language of its titles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from streams.rules.summary.sentences import is_chinese
from streams.rules.summary.turns import Turn

Language = Literal["zh", "en"]


class Labels(NamedTuple):
    """Titles of the sections, marks of the items, and how they are put together."""

    heading: str
    topics: str
    preferences: str
    decisions: str
    todos: str
    problems: str
    insights: str
    none: str
    turn: str
    turns: str
    comma: str
    colon: str
    when: str
    preference: str
    observed: str
    decision: str
    technical: str
    reason: str
    inferred: str
    problem: str
    solution: str
    generated: str
    trigger: str
    by_count: str
    manual: str
    day_end: str
    left_out: str


LABELS: Final[dict[Language, Labels]] = {
    "zh": Labels(
        heading="每日概要",
        topics="📌 主要话题",
        preferences="👤 用户偏好",
        decisions="✅ 重要决定",
        todos="📋 待办事项",
        problems="🔧 技术问题与解决",
        insights="💡 关键洞察",
        none="（无）",
        turn="（第 {} 轮）",
        turns="（第 {} 轮）",
        comma="、",
        colon="：",
        when="（{}）",
        preference="用户偏好",
        observed="观察到的偏好",
        decision="用户决策",
        technical="技术决定",
        reason="理由",
        inferred="识别到的任务",
        problem="问题",
        solution="解决方案",
        generated="生成时间",
        trigger="触发方式",
        by_count="消息计数",
        manual="手动",
        day_end="每日结束",
        left_out="未读入的较早消息",
    ),
    "en": Labels(
        heading="Daily summary",
        topics="📌 Main topics",
        preferences="👤 Preferences",
        decisions="✅ Decisions",
        todos="📋 To-dos",
        problems="🔧 Problems and solutions",
        insights="💡 Insights",
        none="(none)",
        turn=" (turn {})",
        turns=" (turns {})",
        comma=", ",
        colon=": ",
        when=" ({})",
        preference="Preference",
        observed="Observed preference",
        decision="Decision by the user",
        technical="Technical decision",
        reason="Reason",
        inferred="Identified task",
        problem="Problem",
        solution="Solution",
        generated="Generated at",
        trigger="Trigger",
        by_count="message count",
        manual="manual",
        day_end="end of day",
        left_out="Older messages that were not read",
    ),
}


def language_of(turns: Iterable[Turn]) -> Language:
    """That of most of what is said."""
    said = "\n".join(message.content for turn in turns for message in turn.messages)
    return "zh" if is_chinese(said) else "en"
