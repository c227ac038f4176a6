"""Makes a summary without a model: the texts of its items are extracted from the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from schemas.summaries import Summary
from streams.summaries.rules.decisions import decisions
from streams.summaries.rules.insights import insights
from streams.summaries.rules.preferences import observed, stated
from streams.summaries.rules.problems import problems
from streams.summaries.rules.talk import Talk, kept
from streams.summaries.rules.todos import following, named
from streams.summaries.rules.topics import topics
from streams.summaries.rules.turns import Turn

MOST_ITEMS: Final = 8
"""Maximum number of items in each section, except the topics."""


def extracted(turns: Sequence[Turn]) -> Summary:
    """Extract the summary of a day in Chinese, English or both. An item's text is from the messages that it cites.

    The kinds of items that are easiest to recognise are extracted first. For example, a clause that names a problem
    cannot become a task. Insights are extracted last, from the remaining sentences. Turns are grouped into topics by
    their words, without a model.
    """
    talk = Talk(turns)
    broken = kept(problems(talk), MOST_ITEMS)
    decided = kept(decisions(talk), MOST_ITEMS)
    tasks = list(named(talk))
    liked = list(stated(talk))
    tasks += following(talk)
    facts, events = insights(talk)
    return Summary(
        topics=topics(talk),
        preferences=kept([*liked, *observed(talk)], MOST_ITEMS),
        decisions=decided,
        todos=kept(tasks, MOST_ITEMS),
        problems=broken,
        insights=kept([*facts, *events], MOST_ITEMS),
    )
