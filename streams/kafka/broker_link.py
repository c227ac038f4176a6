"""A worker's link to its broker: it waits for the broker at the start, and checks it while the worker runs.

The clients of Faust and aiokafka retry forever and report nothing. So this module detects missing or recreated
topics, refused access, and commits that make no progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from aiokafka.errors import KafkaError

from schemas.errors import BrokerEmptied, BrokerRefused, BrokerUnavailable, NotAllowed, SiltstoneError
from schemas.rights import not_allowed
from schemas.settings import KafkaSettings
from streams.kafka.access.refusal_watch import RefusalWatch
from streams.kafka.access.rights import require_rights, try_rights
from streams.kafka.broker_watch import BrokerWatch
from streams.kafka.clients.broker import client_options, missing_topics
from streams.kafka.clients.refusals import refusal
from streams.kafka.faust.hot_path import HotPath
from streams.kafka.stalls import Stalls
from streams.kafka.topics.contract import worker_topics
from streams.kafka.topics.watch import WATCH_SECONDS, TopicWatch
from streams.runtime.backoff import Backoff
from streams.runtime.timers import Timer, Timers
from streams.telemetry.metrics import Metrics
from tables.partition_record import record_partitions, require_partitions

log = logging.getLogger(__name__)

#: The pauses between attempts to reach the broker at the start.
BACKOFF: Final = Backoff(first=1.0, longest=30.0)
#: Seconds before a request that the broker did not answer is repeated.
RETRY_SECONDS: Final = 1.0
#: Seconds between two checks whether the broker refuses access, and whether commits make progress.
TICK_SECONDS: Final = 1.0
#: Seconds between two requests that test whether a broker of the cluster answers.
BROKER_SECONDS: Final = 3.0
#: Seconds between two checks for missing topics. A check is made only if the outbox has waited for the broker for at
#: least this time.
LOOK_SECONDS: Final = 10.0


class BrokerLink:
    """Finds the broker of a worker, and runs all checks on it.

    `recovered` returns True if the worker has recovered its tables since the last assignment of partitions. `log_ms`
    is the minimum retention of the topic `long-term` in milliseconds if checkpoints have the older events; None if
    there are no checkpoints.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        data_dir: Path,
        hot: HotPath,
        metrics: Metrics,
        recovered: Callable[[], bool],
        log_ms: int | None = None,
        tokens: bool = False,
    ) -> None:
        self._kafka, self._data_dir, self._hot, self._recovered = kafka, data_dir, hot, recovered
        self._log_ms, self._tokens = log_ms, tokens
        self._missing = ""
        self._topics = TopicWatch(kafka, data_dir / "topics.json")
        self._refused = RefusalWatch(partial(refusal, kafka, client_options(kafka)))
        self._stalls = Stalls(
            lambda: hot.not_committing() if recovered() else hot.not_marking(), kafka.stall_seconds, metrics
        )
        self._brokers = BrokerWatch(kafka)
        hot.on_reconnect.append(self._same_topics)
        hot.before_commit.append(self._same_offsets)

    @property
    def refusal(self) -> str:
        """The reason why the broker refuses access now; an empty text if it grants access or does not answer."""
        return self._refused.reason

    def amiss(self) -> list[str]:
        """Return the reasons why the worker cannot use its broker or cannot commit. The list is empty if it can."""
        reasons = []
        if self._missing:
            reasons.append(self._missing)
        elif self._recovered() and not self._hot.reaches_broker:
            reasons.append(self.refusal or str(BrokerUnavailable(self._kafka.bootstrap_servers)))
        if stalled := self._stalls.reason:
            reasons.append(stalled)
        return reasons

    async def find(self, *, patient: bool) -> None:
        """Wait until the broker answers, has all topics, and grants all rights. Create missing topics if allowed.

        If `patient`, try again while the broker does not answer, or does not allow us to read as our consumer group.
        Meanwhile, `amiss` returns the reason. Raises `SettingsError` before the first attempt if the data directory
        was made with another number of partitions; later `BrokerUnavailable`, `NotAllowed`, and the errors of
        `worker_topics`.
        """
        await asyncio.to_thread(require_partitions, self._data_dir, self._kafka.partitions)
        for attempt in itertools.count(1):
            try:
                await self._prepare_topics()
                self._missing = ""
                return
            except (NotAllowed, BrokerUnavailable) as exc:
                waits = exc.waits if isinstance(exc, NotAllowed) else not isinstance(exc, BrokerRefused)
                if not (patient and waits):
                    raise
                self._missing = str(exc)
                log.warning("%s; next attempt in %.0f s", exc, BACKOFF.after(attempt))
            await asyncio.sleep(BACKOFF.after(attempt))

    def watch(self, timers: Timers) -> None:
        """Start the timers of all checks."""
        timers.every(Timer.REFUSALS, TICK_SECONDS, self._look_for_refusal)
        timers.every(Timer.STALLS, TICK_SECONDS, self._stalls.tick)
        timers.every(Timer.BROKERS, BROKER_SECONDS, self._brokers.look)
        timers.every(Timer.TOPICS, LOOK_SECONDS, self.look_for_topics)
        timers.every(Timer.TOPIC_IDS, WATCH_SECONDS, self._watch_topics)

    async def close(self) -> None:
        self._brokers.close()
        await self._topics.close()

    async def lacking(self, exc: KafkaError) -> SiltstoneError:
        """Return the error for a right that the broker has refused while the worker was running.

        The error names all missing rights. If no right is missing now, its text asks for a restart of the worker.
        """
        tried = await try_rights(self._kafka, frozenset(self._hot.changelogs), tokens=self._tokens)
        if tried.missing:
            return not_allowed(self._kafka, tried.missing)
        return SiltstoneError(f"Kafka refused a right, and grants it now ({type(exc).__name__}): restart the worker")

    def topic_id(self, topic: str) -> str:
        """Return the id of the topic with this name; an empty text if the broker has no topic ids."""
        return self._topics.id_of(topic)

    async def look_for_topics(self) -> None:
        """Raise `BrokerEmptied` if topics are missing, because a producer waits twenty minutes for a deleted topic.

        After this error the worker restarts. It creates the missing topics, or reports the topics that the operator
        must create.
        """
        if self._hot.outbox.waits() < LOOK_SECONDS:
            return
        with contextlib.suppress(BrokerUnavailable):  # the health check reports that no broker answers
            if lost := await missing_topics(self._kafka, also=self._hot.changelogs):
                raise BrokerEmptied(lost)

    async def _prepare_topics(self) -> None:
        """Check the rights, create missing topics if we may, and compare all topics with their specifications."""
        changelogs = frozenset(self._hot.changelogs)
        tried = await require_rights(self._kafka, changelogs, tokens=self._tokens)
        await worker_topics(self._kafka, self._data_dir, self._log_ms)
        await asyncio.to_thread(record_partitions, self._data_dir, self._kafka.partitions)
        if tried.absent:
            await require_rights(self._kafka, changelogs, tokens=self._tokens)
        self._hot.started_over = await self._topics.begin()
        if self._hot.stores is not None:
            self._hot.stores.topic_ids = self._topics.ids()

    async def _look_for_refusal(self) -> None:
        await self._refused.tick(reached=not self._recovered() or self._hot.reaches_broker)

    async def _watch_topics(self) -> None:
        try:
            await self._topics.look()
            if self._hot.started_over and self._recovered() and self._hot.has_started_over():
                await self._topics.note()
                self._hot.started_over = frozenset()
        except BrokerUnavailable as exc:
            log.debug("the topics are not checked: %s", exc)  # the health check reports this error
        except SiltstoneError as exc:
            self._hot.halt(exc, "topics")

    async def _same_topics(self) -> None:
        """Raise `BrokerEmptied` if the broker has lost topics, or offsets that were committed to it."""
        while True:
            try:
                if lost := await missing_topics(self._kafka):
                    raise BrokerEmptied(lost)
                break
            except BrokerUnavailable:
                await asyncio.sleep(RETRY_SECONDS)
        await self._same_offsets()

    async def _same_offsets(self) -> None:
        if lost := await self._hot.forgotten():
            raise BrokerEmptied(lost)
