"""A summary without a model: taken out of the messages, in their own words."""

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
"""In each section but the topics."""


def extracted(turns: Sequence[Turn]) -> Summary:
    """The summary of a day in Chinese, English or both; all of its text stands in the messages that it names.

    What is clearest goes first: a clause that names a problem is not looked at again for a task, and insights are
    what is left. No model is asked: turns go together by their words.
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
