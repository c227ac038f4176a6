"""Sends a session's messages to Siltstone, for adapters whose framework goes on while no worker answers.

Messages that could not be sent are kept, and sent with the next messages.
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

#: The maximum number of unsent messages of a session, while no worker answers. If there are more, the oldest are
#: dropped.
MOST_WAITING: Final = MOST_MESSAGES


class Talk:
    """Sends the messages of one session in order.

    Each message gets its id before it is sent, so a message that is sent twice is stored once.
    """

    def __init__(self, memory: Memory, user_id: str, session_id: str) -> None:
        self._memory, self._user_id, self._session_id = memory, user_id, session_id
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self._one_at_a_time = asyncio.Lock()

    async def say(self, messages: Iterable[tuple[str, str]]) -> None:
        """Send messages, each a role and a text. A failure is logged as a warning, never raised."""
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
                    log.warning("%d messages wait to be sent: %s: %s", len(self._waiting), type(exc).__name__, exc)
                    return
                sent = {one["message_id"] for one in going}
                self._waiting = deque(
                    (one for one in self._waiting if one["message_id"] not in sent), maxlen=MOST_WAITING
                )

    async def _said(self, messages: Sequence[dict[str, Any]]) -> None:
        """Send messages in one request. Raises `SiltstoneError` if the messages must be sent later.

        If the worker refuses the request for good, each message is sent alone, and the refused messages are dropped.
        """
        try:
            answer = await asyncio.to_thread(
                self._memory.add, messages, user_id=self._user_id, session_id=self._session_id
            )
        except InvalidRequest as exc:
            if len(messages) == 1:
                log.warning("the worker refused a message, which is dropped: %s: %s", type(exc).__name__, exc)
                return
            for message in messages:
                await self._said([message])
        else:
            for one in answer.not_taken:
                log.warning("the worker refused a message, which is dropped: %s", one.detail)


async def recalled(
    memory: Memory, query: str, *, user_id: str, top_k: int, touch: bool, beside: str | None
) -> str | None:
    """The memories that match the query, as marked text for a model.

    This is None if no memories match, or if no worker answers.
    """
    try:
        answer = await asyncio.to_thread(
            found, memory, query, user_id=user_id, top_k=top_k, touch=touch, beside=beside
        )
    except SiltstoneError as exc:
        log.warning("no memories are recalled: %s: %s", type(exc).__name__, exc)
        return None
    return injected(answer)
