"""The page on summaries shows what the rules make of its conversations."""

from __future__ import annotations

import re
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from streams.summaries.rules import extracted
from streams.summaries.rules.labels import language_of
from streams.summaries.rules.rendering import rendered
from tests.docs.pages import ROOT
from tests.streams.summaries.rules.talking import turns

EXAMPLE: Final = re.compile(
    r"^### (?P<title>[^\n]+)\n\n```text\n(?P<said>.*?)\n```\n\n```markdown\n(?P<summary>.*?)\n```",
    re.MULTILINE | re.DOTALL,
)
EXAMPLES: Final = list(EXAMPLE.finditer((ROOT / "docs" / "summaries.md").read_text(encoding="utf-8")))


def test_there_is_one_in_each_language() -> None:
    assert [example["title"] for example in EXAMPLES] == [
        "An English day",
        "一天的中文对话",
        "日本語の一日",
        "한국어 하루",
        "Ein deutscher Tag",
        "Un día en español",
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=["en", "zh", "ja", "ko", "de", "es"])
def test_a_conversation_has_the_summary_that_the_page_shows(example: re.Match[str]) -> None:
    lines = [line.replace("user: ", "", 1).replace("assistant: ", "A: ", 1) for line in example["said"].splitlines()]
    spoken = turns(*lines)
    markdown = rendered(
        extracted(spoken),
        language=language_of(spoken),
        written_at=0,
        timezone=ZoneInfo("UTC"),
        reason="manual",
        headed=None,
    )
    sections, _, _ = re.sub(r" <!--.*?-->", "", markdown).rpartition("\n\n**")
    assert sections == example["summary"]
