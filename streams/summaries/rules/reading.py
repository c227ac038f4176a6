"""Selects the messages that a summary of a day reads, for one or several requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from schemas.conversations import SPEAKERS
from schemas.summary_requests import Said

TOGETHER_MESSAGES: Final = 40
"""A summary for several requests may read this many messages, even if none of the requests has as many."""

MOST_MESSAGES: Final = 1_000
MOST_CHARS: Final = 200_000
"""The maximum numbers of messages, and of their characters, that a summary reads.

The newest message is always read, even if it is longer.
"""


class Reading(NamedTuple):
    """Messages in time order, and the number of older user and assistant messages that are left out."""

    said: tuple[Said, ...]
    left_out: int


def reading(requests: Sequence[Sequence[Said]]) -> Reading:
    """Return the newest messages of requests for the same day, each once.

    The maximum number of messages depends on the longest request. So a summary for many requests costs no more than
    a summary for the longest of them. The result does not depend on the order of the requests.
    """
    once: dict[tuple[str, str], Said] = {}
    for request in sorted(requests, key=_last):
        for one in request:
            once.setdefault((one.session_id, one.message.message_id), one)
    said = sorted(once.values(), key=_time)
    most = min(MOST_MESSAGES, max(TOGETHER_MESSAGES, *map(len, requests))) if requests else 0
    first, chars = len(said), 0
    while first > max(0, len(said) - most):
        chars += len(said[first - 1].message.content)
        if chars > MOST_CHARS and first < len(said):
            break
        first -= 1
    return Reading(tuple(said[first:]), sum(one.message.role in SPEAKERS for one in said[:first]))


def _time(one: Said) -> int:
    return one.message.timestamp


def _last(request: Sequence[Said]) -> list[tuple[int, str, str]]:
    return [(one.message.timestamp, one.session_id, one.message.message_id) for one in reversed(request)]
