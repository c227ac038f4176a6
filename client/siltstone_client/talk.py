"""A session's messages on their way into Siltstone, for adapters whose framework goes on without it.

An agent answers while memory is away: what could not be said is kept, and said with what comes next.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from siltstone_client.errors import InvalidRequest, SiltstoneError
from siltstone_client.memory import Memory
from siltstone_client.said import MOST_MESSAGES, found, injected, portions

log = logging.getLogger(__name__)

#: Of a session while no worker answers; older ones are dropped.
MOST_WAITING: Final = MOST_MESSAGES


class Talk:
    """Says messages of one session, in their order. Each has its id from the start: sent twice, it is there once."""

    def __init__(self, memory: Memory, user_id: str, session_id: str) -> None:
        self._memory, self._user_id, self._session_id = memory, user_id, session_id
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self._one_at_a_time = asyncio.Lock()

    async def say(self, messages: Iterable[tuple[str, str]]) -> None:
        """Role and text of each. What fails is a warning, never an error."""
        now = datetime.now(UTC)
        self._waiting += [
            {"role": role, "content": text, "message_id": uuid.uuid4().hex, "timestamp": now}
            for role, text in messages
        ]
        async with self._one_at_a_time:
            while going := next(portions(self._waiting), None):
                try:
                    await self._said(going)
                except SiltstoneError as exc:
                    log.warning("%d messages are said later: %s: %s", len(self._waiting), type(exc).__name__, exc)
                    return
                sent = {one["message_id"] for one in going}
                self._waiting = deque(
                    (one for one in self._waiting if one["message_id"] not in sent), maxlen=MOST_WAITING
                )

    async def _said(self, messages: Sequence[dict[str, Any]]) -> None:
        """Raises `SiltstoneError` where they are to be said later.

        Where the worker will take them never, each is said for itself, and those that it does not take are dropped.
        """
        try:
            answer = await asyncio.to_thread(
                self._memory.add, messages, user_id=self._user_id, session_id=self._session_id
            )
        except InvalidRequest as exc:
            if len(messages) == 1:
                log.warning("a message is not said, and is dropped: %s: %s", type(exc).__name__, exc)
                return
            for message in messages:
                await self._said([message])
        else:
            for one in answer.not_taken:
                log.warning("a message is not said, and is dropped: %s", one.detail)


async def recalled(
    memory: Memory, query: str, *, user_id: str, top_k: int, touch: bool, beside: str | None
) -> str | None:
    """What is remembered of the query, marked, for a model; None where that is nothing, or no worker answers."""
    try:
        hits = await asyncio.to_thread(found, memory, query, user_id=user_id, top_k=top_k, touch=touch, beside=beside)
    except SiltstoneError as exc:
        log.warning("nothing is recalled: %s: %s", type(exc).__name__, exc)
        return None
    return injected(hits)
