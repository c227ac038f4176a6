"""The fixed words of a rendered summary, such as the titles of its sections, by language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from streams.language.scripts import script_of
from streams.summaries.rules.turns import Turn

Language = Literal["zh", "en", "ja", "ko"]


class Labels(NamedTuple):
    """Titles of the sections, marks of the items, and the punctuation between them."""

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
    turn_of: str
    turns_of: str
    semicolon: str
    summaries: str
    further: str


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
        turn_of="概要 {0} 第 {1} 轮",
        turns_of="概要 {0} 第 {1} 轮",
        semicolon="；",
        summaries="合并的概要数",
        further="仅见于这些概要的条目",
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
        turn_of="turn {1} of summary {0}",
        turns_of="turns {1} of summary {0}",
        semicolon="; ",
        summaries="Merged summaries",
        further="Items that only they have",
    ),
    "ja": Labels(
        heading="毎日のまとめ",
        topics="📌 主な話題",
        preferences="👤 ユーザーの好み",
        decisions="✅ 重要な決定",
        todos="📋 やること",
        problems="🔧 技術的な問題と解決",
        insights="💡 気づき",
        none="（なし）",
        turn="（{} 番目のやり取り）",
        turns="（{} 番目のやり取り）",
        comma="、",
        colon="：",
        when="（{}）",
        preference="ユーザーの好み",
        observed="見受けられた好み",
        decision="ユーザーの決定",
        technical="技術的な決定",
        reason="理由",
        inferred="見つかった作業",
        problem="問題",
        solution="解決",
        generated="作成日時",
        trigger="きっかけ",
        by_count="メッセージ数",
        manual="手動",
        day_end="一日の終わり",
        left_out="読まれなかった以前のメッセージ",
        turn_of="まとめ {0} の {1} 番目のやり取り",
        turns_of="まとめ {0} の {1} 番目のやり取り",
        semicolon="；",
        summaries="まとめられた数",
        further="元のまとめだけにある項目",
    ),
    "ko": Labels(
        heading="하루 요약",
        topics="📌 주요 주제",
        preferences="👤 사용자 선호",
        decisions="✅ 중요한 결정",
        todos="📋 할 일",
        problems="🔧 기술 문제와 해결",
        insights="💡 핵심 통찰",
        none="(없음)",
        turn=" ({}번째 대화)",
        turns=" ({}번째 대화)",
        comma=", ",
        colon=": ",
        when=" ({})",
        preference="사용자 선호",
        observed="관찰된 선호",
        decision="사용자의 결정",
        technical="기술적 결정",
        reason="이유",
        inferred="찾은 작업",
        problem="문제",
        solution="해결",
        generated="작성 시각",
        trigger="계기",
        by_count="메시지 수",
        manual="수동",
        day_end="하루의 끝",
        left_out="읽지 않은 이전 메시지",
        turn_of="요약 {0}의 {1}번째 대화",
        turns_of="요약 {0}의 {1}번째 대화",
        semicolon="; ",
        summaries="합친 요약 수",
        further="원래 요약에만 있는 항목",
    ),
}


def language_of(turns: Iterable[Turn]) -> Language:
    """Return the language of most of the text: Chinese, Japanese or Korean, else English."""
    said = "\n".join(message.content for turn in turns for message in turn.messages)
    return script_of(said) or "en"
