"""The one place where events become records: under their user's key, so that a user's events keep their order."""

from __future__ import annotations

import asyncio
from typing import Any

from schemas.conversations import Silence
from schemas.events import LongTermEvent
from schemas.topics import Headers, Topics, key_of
from streams.kafka.commit.outbox import Outbox
from streams.telemetry.spans import NoSpans, Spans


class EventLog:
    """Appends by way of the outbox: no offset of what caused an event is committed before the event is in the log.

    What a request or a batch causes carries the trace context of its span, where there is one.
    """

    def __init__(self, outbox: Outbox, topics: Topics, spans: Spans = NoSpans()) -> None:  # noqa: B008 - it is a value
        self._outbox, self._topics, self._spans = outbox, topics, spans

    def append(self, event: LongTermEvent, headers: Headers = ()) -> None:
        """Soon, and before any change that tables hold now is written: see `Outbox.post`."""
        value = event.model_dump_json().encode()
        self._outbox.post(self._topics.long_term, value, key=key_of(event.user_id), headers=headers)

    def append_silence(self, silence: Silence) -> None:
        value = silence.model_dump_json().encode()
        self._outbox.post(self._topics.conversations, value, key=key_of(silence.user_id))

    def append_request(self, user_id: str, request: bytes) -> None:
        """A `SummaryRequest`, which was encoded where its size was bounded."""
        headers = self._spans.outgoing() if self._spans.on else ()
        self._outbox.post(self._topics.summary_requests, request, key=key_of(user_id), headers=headers)

    async def deliver(self) -> None:
        """Send what was appended, in its order."""
        await self._outbox.deliver()

    @property
    def connected(self) -> bool:
        """Whether a broker was found."""
        return self._outbox.connected

    async def produce(self, topic: str, user_id: str, value: bytes) -> asyncio.Future[Any]:
        """For a caller who waits for the acknowledgement, and deals with a refusal: no commit waits for it."""
        headers = self._spans.outgoing() if self._spans.on else ()
        return await self._outbox.produce(topic, value, key=key_of(user_id), headers=headers)

    async def send(self, event: LongTermEvent) -> None:
        """Send now; the offset of what caused it is not committed before this is acknowledged."""
        await self._outbox.send(self._topics.long_term, event.model_dump_json().encode(), key=key_of(event.user_id))
