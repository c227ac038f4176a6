"""A summary as Markdown."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from schemas.summaries import Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules import rendered
from streams.summaries.rules.rendering import safe
from tests.support.examples import examples
from tests.support.making import START

FULL = Summary(
    topics=(
        Topic(title="学习世界历史", turns=(1, 2, 3, 7), sources=("m1", "m2")),
        Topic(title="做菜", turns=(5,), sources=("m5",)),
    ),
    preferences=(
        Preference(text="我喜欢简洁的回答", sources=("m1",)),
        Preference(text="用DeepSeek", observed=True, sources=("m1", "m2", "m3")),
    ),
    decisions=(
        Decision(text="我们用Postgres", reason="团队熟悉", technical=True, sources=("m1",)),
        Decision(text="我决定辞职", sources=("m2",)),
    ),
    todos=(
        Todo(text="完成报告", when="周五之前", sources=("m1",)),
        Todo(text="去医院复查", inferred=True, sources=("m2",)),
    ),
    problems=(
        Problem(text="服务报错", solution="重装依赖", sources=("m1", "m2")),
        Problem(text="网页打不开", sources=("m3",)),
    ),
    insights=(Insight(text="对花生过敏", sources=("m4",)),),
)


def written(summary: Summary, **options: Any) -> str:
    given_by_default: dict[str, Any] = {
        "language": "zh",
        "written_at": START,
        "timezone": ZoneInfo("Asia/Shanghai"),
        "reason": "count",
        "headed": date(2026, 1, 1),
    }
    return rendered(summary, **given_by_default | options)


def test_the_seven_parts_in_chinese() -> None:
    assert written(FULL) == (
        """\
# 每日概要 2026-01-01

## 📌 主要话题

- 学习世界历史（第 1–3、7 轮） <!-- sources: m1 m2 -->
- 做菜（第 5 轮） <!-- sources: m5 -->

## 👤 用户偏好

- **用户偏好**：我喜欢简洁的回答 <!-- sources: m1 -->
- **观察到的偏好**：用DeepSeek <!-- sources: m1 m2 m3 -->

## ✅ 重要决定

- **技术决定**：我们用Postgres <!-- sources: m1 -->
  - **理由**：团队熟悉
- **用户决策**：我决定辞职 <!-- sources: m2 -->

## 📋 待办事项

- [ ] 完成报告（周五之前） <!-- sources: m1 -->
- [ ] **识别到的任务**：去医院复查 <!-- sources: m2 -->

## 🔧 技术问题与解决

- **问题**：服务报错 <!-- sources: m1 m2 -->
  - **解决方案**：重装依赖
- **问题**：网页打不开 <!-- sources: m3 -->

## 💡 关键洞察

- 对花生过敏 <!-- sources: m4 -->

**生成时间**：2026-01-01 08:00:00+08:00 · 触发方式：消息计数
"""
    )


def test_the_seven_parts_in_english() -> None:
    text = written(FULL, language="en", timezone=ZoneInfo("UTC"), reason="manual")
    assert re.findall("^#+ (.+)$", text, re.MULTILINE) == [
        "Daily summary 2026-01-01",
        "📌 Main topics",
        "👤 Preferences",
        "✅ Decisions",
        "📋 To-dos",
        "🔧 Problems and solutions",
        "💡 Insights",
    ]
    for line in (
        "- 学习世界历史 (turns 1–3, 7) <!-- sources: m1 m2 -->",
        "- 做菜 (turn 5) <!-- sources: m5 -->",
        "- **Preference**: 我喜欢简洁的回答 <!-- sources: m1 -->",
        "- **Observed preference**: 用DeepSeek <!-- sources: m1 m2 m3 -->",
        "- **Technical decision**: 我们用Postgres <!-- sources: m1 -->",
        "  - **Reason**: 团队熟悉",
        "- **Decision by the user**: 我决定辞职 <!-- sources: m2 -->",
        "- [ ] 完成报告 (周五之前) <!-- sources: m1 -->",
        "- [ ] **Identified task**: 去医院复查 <!-- sources: m2 -->",
        "- **Problem**: 服务报错 <!-- sources: m1 m2 -->",
        "  - **Solution**: 重装依赖",
        "**Generated at**: 2026-01-01 00:00:00+00:00 · Trigger: manual",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(("language", "none"), [("zh", "（无）"), ("en", "(none)")])
def test_an_empty_section_keeps_its_title(language: str, none: str) -> None:
    text = written(Summary(), language=language)
    assert text.count(f"\n\n{none}\n\n") == text.count("## ") == 6


def test_an_item_without_text_is_left_out() -> None:
    empty = Summary(topics=(Topic(title=" ", sources=("m1",)),), insights=(Insight(text="\x07", sources=("m1",)),))
    assert written(empty) == written(Summary())


def test_what_is_added_to_a_file_has_no_heading() -> None:
    assert written(FULL) == f"# 每日概要 2026-01-01\n\n{written(FULL, headed=None)}"


@pytest.mark.parametrize("name", ["a b", "-->", "a--b", "x<!--y", "消息/1", "\n", "%41", "---"])
def test_ids_cannot_break_out_of_their_comment(name: str) -> None:
    (line,) = [
        line
        for line in written(Summary(insights=(Insight(text="x", sources=(name, "m2")),))).splitlines()
        if "x" in line[:3]
    ]
    comment = re.fullmatch(r"- x <!-- sources: (\S+) m2 -->", line)
    assert comment
    assert "--" not in comment[1]
    assert unquote(comment[1]) == name


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("# no heading", r"\# no heading"),
        ("- no list", r"\- no list"),
        ("1. no list", r"1\. no list"),
        ("> no quote", r"\> no quote"),
        ("two\nlines\u2028here", "two lines here"),
        ("<!-- no comment -->", "&lt;!-- no comment -->"),
        ("<b>no tag</b>", "&lt;b>no tag&lt;/b>"),
        ("a < b & c", "a < b & c"),
        ("&lt;", "&amp;lt;"),
        ("[no](link) ![no](image)", r"\[no\](link) !\[no\](image)"),
        ("*no* _emphasis_ `code` ~~x~~", r"\*no\* \_emphasis\_ \`code\` \~\~x\~\~"),
        ("snake_case and 3.5", "snake_case and 3.5"),
        (r"C:\dir\*", r"C:\dir\\\*"),
        ("bell\x07 and \x1b[31m", r"bell and \[31m"),
        ("left \u202eright", "left right"),
        ("\ud800", ""),
    ],
)
def test_text_of_users_reads_as_it_is(text: str, markdown: str) -> None:
    assert safe(text) == markdown


HOSTILE = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            [
                "# ",
                "- ",
                "1. ",
                "> ",
                "```",
                "<!--",
                "-->",
                "---",
                "\n",
                "**",
                "_",
                "[a](b)",
                "<p>",
                "|",
                "\\",
                "x",
                "&#60;",
                "=",
                "    ",
                "+ ",
                "[ ] ",
                "~",
            ]
        ),
        max_size=8,
    ).map("".join),
)


def plain(text: str) -> str:
    """What a reader sees of the text: one line without what is no character of its own."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]", "", " ".join(text.split()))


@examples(60)
@given(HOSTILE.filter(lambda text: bool(safe(text))), HOSTILE, st.lists(st.text(max_size=10), min_size=1, max_size=3))
def test_no_text_changes_the_structure(text: str, other: str, ids: list[str]) -> None:
    """A reader of CommonMark finds the same blocks as in a summary of harmless words, and the text as it was said."""
    sources = tuple(ids)

    def of(text: str, other: str) -> Summary:
        return Summary(
            topics=(Topic(title=text, turns=(1,), sources=sources),),
            preferences=(Preference(text=text, sources=sources),),
            decisions=(Decision(text=text, reason=other, sources=sources),),
            todos=(Todo(text=text, when=other, sources=sources),),
            problems=(Problem(text=other, solution=text, sources=sources),),
            insights=(Insight(text=text, sources=sources),),
        )

    markdown = MarkdownIt("commonmark")
    hostile, harmless = (
        markdown.parse(written(of(text, other))),
        markdown.parse(written(of("x", "x" if safe(other) else ""))),
    )
    assert [token.type for token in hostile] == [token.type for token in harmless]
    insight = [token for token in hostile if token.type == "inline"][-2]
    children = insight.children or []
    assert {child.type for child in children} <= {"text", "text_special", "html_inline"}
    assert [child.content for child in children if child.type == "html_inline"] == [written_sources(sources)]
    seen = "".join(child.content for child in children if child.type != "html_inline")
    assert seen.strip() == plain(text).strip()


def written_sources(sources: tuple[str, ...]) -> str:
    (line,) = [
        line
        for line in written(Summary(insights=(Insight(text="x", sources=sources),))).splitlines()
        if line[:3] == "- x"
    ]
    return line.removeprefix("- x ")
