"""The one place where events become records, keyed by user so that a user's events keep their order."""

from __future__ import annotations

import asyncio
from typing import Any

from schemas.conversations import Silence
from schemas.events import LongTermEvent
from schemas.topics import Headers, Topics, key_of
from streams.kafka.commit.outbox import Outbox
from streams.telemetry.spans import NoSpans, Spans


class EventLog:
    """Appends events to the topics through the outbox.

    So a record's offset is committed only when all events that the record caused are in the log. Requests for
    summaries, and the records of `produce`, carry the trace context of the current span, if there is one.
    """

    def __init__(self, outbox: Outbox, topics: Topics, spans: Spans = NoSpans()) -> None:  # noqa: B008 - has no state
        self._outbox, self._topics, self._spans = outbox, topics, spans

    def append(self, event: LongTermEvent, headers: Headers = ()) -> None:
        """Queue an event. It is sent before the tables' current changes are written to changelogs (`Outbox.post`)."""
        value = event.model_dump_json().encode()
        self._outbox.post(self._topics.long_term, value, key=key_of(event.user_id), headers=headers)

    def append_silence(self, silence: Silence) -> None:
        value = silence.model_dump_json().encode()
        self._outbox.post(self._topics.conversations, value, key=key_of(silence.user_id))

    def append_request(self, user_id: str, request: bytes) -> None:
        """Queue an encoded `SummaryRequest`. The caller must limit its size."""
        headers = self._spans.outgoing() if self._spans.on else ()
        self._outbox.post(self._topics.summary_requests, request, key=key_of(user_id), headers=headers)

    async def deliver(self) -> None:
        """Send all appended events to the broker, in the order in which they were appended."""
        await self._outbox.deliver()

    @property
    def connected(self) -> bool:
        """True if there is a producer, so that events can be sent."""
        return self._outbox.connected

    async def produce(self, topic: str, user_id: str, value: bytes) -> asyncio.Future[Any]:
        """Send a record, and return the future of its acknowledgement.

        The caller must await this future and handle a refusal, because no commit waits for the record.
        """
        headers = self._spans.outgoing() if self._spans.on else ()
        return await self._outbox.produce(topic, value, key=key_of(user_id), headers=headers)

    async def send(self, event: LongTermEvent) -> None:
        """Send the event now. No offset is committed before the broker has acknowledged the event."""
        await self._outbox.send(self._topics.long_term, event.model_dump_json().encode(), key=key_of(event.user_id))
