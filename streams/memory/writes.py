"""Writes of the entry points: produces records, and can wait until their effects can be read on this worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack

from schemas.errors import BrokerUnavailable, ConsistencyTokenError, NotReady, ShardNotHere
from schemas.events import LongTermEvent, SummaryRequest
from schemas.places import Place
from schemas.rights import Right, not_allowed
from schemas.settings import KafkaSettings
from schemas.topics import Topics
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.event_log import EventLog
from streams.memory.read_your_writes import ReadYourWrites
from streams.shards.user_shards import WAIT_SECONDS, UserShards
from streams.telemetry.health import Health
from streams.telemetry.spans import Spans


class Writes:
    """Writes messages, events and summary requests of clients to the topics."""

    def __init__(
        self,
        *,
        kafka: KafkaSettings,
        topics: Topics,
        event_log: EventLog,
        effects: ReadYourWrites,
        users: UserShards,
        health: Health,
        spans: Spans,
    ) -> None:
        self._kafka, self._topics, self._event_log, self._effects = kafka, topics, event_log, effects
        self._users, self._health, self._spans = users, health, spans

    async def applied(
        self, user_id: str, seconds: float | None, write: Callable[[], Awaitable[Sequence[Place]]]
    ) -> tuple[Sequence[Place], bool | None]:
        """Call `write`, which produces records, and wait up to `seconds` until their effects can be read.

        Return the places of the records, and True if their effects can be read, else False. If `seconds` is None, do
        not wait, and return None instead. Before anything is written, raises `ShardNotHere` if another worker has the
        user's partition, and `NotReady` if too many callers wait. If the partition moves later, the result is False.
        """
        if seconds is None:
            return await write(), None
        self._users.partition_here(user_id)
        with self._effects.reserved():
            places = await write()
            try:
                return places, await self._effects.until(places, seconds)
            except ShardNotHere:
                return places, False

    async def has_reached(self, places: Sequence[Place], seconds: float, user_id: str | None = None) -> None:
        """Wait until the effects of the records at these places can be read on this worker.

        With `user_id`, the places must be in that user's partition. Raises `ConsistencyTokenError` if a place belongs
        to another log or partition, `NotReady` if the wait takes longer than `seconds`, and `ShardNotHere` if another
        worker owns a place's partition, or if the partition moves.
        """
        keyed = {self._topics.conversations, self._topics.long_term, self._topics.summary_requests}
        partitions = self._kafka.partitions
        own = None if user_id is None else self._users.partition_of(user_id)
        for place in places:
            if place.topic not in keyed or place.partition >= partitions:
                raise ConsistencyTokenError("at_least: a token is of another log: ask the cluster that it came from")
            if own is not None and place.partition != own:
                raise ConsistencyTokenError(
                    f"at_least: a token is of another user: this one's records lie in partition {own}"
                )
        if places:
            with self._effects.reserved():
                await self._effects.are_written(places, WAIT_SECONDS)
                if not await self._effects.until(places, seconds):
                    where = ", ".join(map(str, places))
                    raise NotReady(f"the write at {where} cannot be read after {seconds:g} s; ask again")

    async def add_message(self, user_id: str, message: bytes) -> Place:
        """Produce a chat message, or a session's end, as JSON. Raises the errors of `write`."""
        (place,) = await self._produce(self._topics.conversations, (user_id, message))
        return place

    async def add_messages(self, messages: Sequence[tuple[str, bytes]]) -> list[Place]:
        """Produce messages, each with its user id, in order.

        Raises the errors of `write`. After an error, some of the messages may be in the log.
        """
        return await self._produce(self._topics.conversations, *messages)

    async def write(self, event: LongTermEvent) -> Place:
        """Append an event to the topic `long-term`, and return its place. The event takes effect a moment later.

        Raises `BrokerUnavailable` if no broker has been found yet, `NotAllowed` if the worker has no right to write,
        `NotReady` with the reason if the broker refuses the worker now, and `TimeoutError` if it does not answer.
        """
        value = event.model_dump_json(exclude_none=True).encode()
        with self._spans.writing(self._users.partition_of(event.user_id), event):
            (place,) = await self._produce(self._topics.long_term, (event.user_id, value))
        return place

    async def write_all(self, events: Sequence[LongTermEvent]) -> list[Place]:
        """Append events of one user together, in order.

        Raises the errors of `write`. After an error, some of the events may be in the log.
        """
        records = [(one.user_id, one.model_dump_json(exclude_none=True).encode()) for one in events]
        with ExitStack() as spans:
            for one in events:
                spans.enter_context(self._spans.writing(self._users.partition_of(one.user_id), one))
            return await self._produce(self._topics.long_term, *records)

    async def request_summary(self, request: SummaryRequest) -> Place:
        """Produce a request for a summary, and return its place. Raises the errors of `write`."""
        value = request.model_dump_json().encode()
        (place,) = await self._produce(self._topics.summary_requests, (request.user_id, value))
        return place

    async def produce_again(self, topic: str, user_id: str, value: bytes, seconds: float) -> tuple[Place, bool]:
        """Produce a repaired dead letter. Return its place, and True if its effect can be read within `seconds`.

        Return False instead of True if another worker owns the partition. Raises the errors of `write`.
        """
        (place,) = await self._produce(topic, (user_id, value))
        try:
            with self._effects.reserved():
                return place, await self._effects.until([place], seconds)
        except ShardNotHere:
            return place, False

    async def _produce(self, topic: str, *records: tuple[str, bytes]) -> list[Place]:
        """Produce pairs of user id and value, in order, and wait until the broker has acknowledged all of them."""
        if not self._event_log.connected:
            raise BrokerUnavailable(self._kafka.bootstrap_servers)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                sent = [await self._event_log.produce(topic, user_id, value) for user_id, value in records]
                taken = await asyncio.gather(*map(asyncio.shield, sent))
        except NOT_ALLOWED as exc:
            raise not_allowed(self._kafka, [Right("WRITE", "topic", topic)]) from exc
        except TimeoutError as exc:
            if self._health.refusal:
                raise NotReady(self._health.refusal) from exc
            raise
        return [Place(record.topic, record.partition, record.offset) for record in taken]
