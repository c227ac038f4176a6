"""Makes a summary without a model: the texts of its items are extracted from the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemas.summaries import Summary
from streams.summaries.rules.decisions import decisions
from streams.summaries.rules.insights import insights
from streams.summaries.rules.preferences import preferences
from streams.summaries.rules.problems import problems
from streams.summaries.rules.talk import Talk, kept
from streams.summaries.rules.todos import todos
from streams.summaries.rules.topics import topics
from streams.summaries.rules.turns import Turn

MOST_ITEMS: Final = 8
"""Maximum number of items in each section, except the topics."""


def extracted(turns: Sequence[Turn]) -> Summary:
    """Extract the summary of a day. An item's text is from the messages that it cites. Nothing is in two sections."""
    talk = Talk(turns)
    said: list[str] = []
    return Summary(
        problems=kept(problems(talk), MOST_ITEMS, said),
        preferences=kept(preferences(talk), MOST_ITEMS, said),
        decisions=kept(decisions(talk), MOST_ITEMS, said),
        todos=kept(todos(talk), MOST_ITEMS, said),
        insights=kept(insights(talk), MOST_ITEMS, said),
        topics=topics(talk),
    )
