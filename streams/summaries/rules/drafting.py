"""Makes the text of a summary from the records of its requests: the steps that need neither a disk nor a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from schemas.settings.agents import SummaryLanguage
from schemas.summaries import Decision, Preference, Summary
from schemas.summary_requests import Reason, said_in
from streams.intake.rules.exchanges import Limits
from streams.summaries.rules.extracting import extracted
from streams.summaries.rules.labels import language_of
from streams.summaries.rules.reading import reading
from streams.summaries.rules.rendering import rendered
from streams.summaries.rules.turns import Turn, turns_in


class Order(NamedTuple):
    """The order to make one summary. `requests` are the records of the requests that the summary answers.

    Messages are cut into exchanges by the `limits`. `written_at` is in epoch ms.
    """

    requests: tuple[bytes, ...]
    limits: Limits
    language: SummaryLanguage
    timezone: ZoneInfo
    reason: Reason
    written_at: int


class Item(NamedTuple):
    """A preference or a decision, with the ids of its messages, and the title of the topic to which they belong."""

    text: str
    sources: tuple[str, ...]
    topic: str | None = None


class Draft(NamedTuple):
    """The draft of a summary.

    `text` is the Markdown for the file of the day, or "" if there are no turns. `items` are the preferences and
    decisions, which may become memories. `left_out` is the number of older messages that were not read.
    """

    text: str
    items: tuple[Item, ...] = ()
    left_out: int = 0


class Read(NamedTuple):
    """The turns of which a summary is made, and the number of older messages that were left out."""

    turns: Sequence[Turn]
    left_out: int


def read(order: Order) -> Read:
    """Read the turns that an order's requests contain."""
    found = reading([said_in(raw) for raw in order.requests])
    return Read(turns_in(found.said, order.limits), found.left_out)


def drafted(order: Order) -> Draft:
    """Make the draft of a summary without a model."""
    found = read(order)
    return written(extracted(found.turns), found, order)


def written(summary: Summary, found: Read, order: Order) -> Draft:
    """Return the draft of a summary, rendered as Markdown, of the turns that were read."""
    if not found.turns:
        return Draft("")
    text = rendered(
        summary,
        language=language_of(found.turns) if order.language == "auto" else order.language,
        written_at=order.written_at,
        timezone=order.timezone,
        reason=order.reason,
        headed=None,
        left_out=found.left_out,
    )
    items: list[Preference | Decision] = [*summary.preferences, *summary.decisions]
    return Draft(
        text, tuple(Item(item.text, item.sources, _topic_of(item, summary)) for item in items), found.left_out
    )


def _topic_of(item: Preference | Decision, summary: Summary) -> str | None:
    """Return the title of the first topic that has a message of the item; None if no topic has one."""
    said = set(item.sources)
    return next((topic.title for topic in summary.topics if not said.isdisjoint(topic.sources)), None)
