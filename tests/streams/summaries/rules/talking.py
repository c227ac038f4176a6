"""Days of talk."""

from __future__ import annotations

from schemas.conversations import ChatMessage
from schemas.settings import MemorySettings
from schemas.summaries import Summary
from streams.intake.rules.exchanges import Limits
from streams.summaries.rules import Turn, extracted, turns_of
from tests.support.making import message

LIMITS = Limits.of(MemorySettings())


def day(*lines: str) -> list[ChatMessage]:
    """What is said, half a minute apart: by the assistant after "A: ", else by the user. Ids are m0, m1, …"""
    return [
        message(i, "assistant" if line.startswith("A: ") else "user", line.removeprefix("A: "), at=30 * i)
        for i, line in enumerate(lines)
    ]


def turns(*lines: str) -> list[Turn]:
    return turns_of(day(*lines), LIMITS)


def summary(*lines: str) -> Summary:
    """The summary of such a day."""
    return extracted(turns(*lines))
