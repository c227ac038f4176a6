"""Sends bad records, with their coordinates, to the dead-letters topic, so that they do not stop the processing."""

from __future__ import annotations

import logging
from typing import Any

from schemas.dead_letters import DeadLetter
from schemas.errors import BadRecord
from schemas.record_values import REASON_CHARS
from schemas.times import iso, now_ms
from schemas.topic_specs import MAX_VALUE_BYTES
from streams.kafka.commit.outbox import Outbox
from streams.kafka.commit.sends import RefusedRecord
from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

MAX_KEY_BYTES = 64 * 1024
#: If the broker refuses a dead letter, its value is cut to this number of bytes, because the topic may accept less
#: than `MAX_VALUE_BYTES`. In practice, no topic has a lower limit than this number.
LEAST_VALUE_BYTES = 512 * 1024
#: The partition and the offset in the dead letter of a refused record, because such a record is in no topic.
NOWHERE = -1


class DeadLetters:
    """Sends bad records to the dead-letters topic, and counts them."""

    def __init__(self, outbox: Outbox, topic: str, metrics: Metrics) -> None:
        self._outbox, self._topic, self._metrics = outbox, topic, metrics

    def send(self, record: Any, error: BadRecord) -> None:
        """Post a dead letter with the record's original bytes, its coordinates and the error.

        Key and value are cut to a size that a broker accepts, because the content of a compressed record can have any
        size.
        """
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        log.warning("%s is a dead letter: %s", where, error.kind)
        letter = DeadLetter(
            source_topic=record.topic,
            source_partition=record.partition,
            source_offset=record.offset,
            error_type=error.kind,
            error_message=str(error)[:REASON_CHARS],
            failed_at=iso(now_ms()),
        )
        key = None if record.key is None else record.key[:MAX_KEY_BYTES]
        value = None if record.value is None else record.value[:MAX_VALUE_BYTES]
        if key is value is None:
            key = b""  # aiokafka does not send a record that has neither key nor value
        self._outbox.post(self._topic, value, key=key, headers=letter.headers())
        self._metrics.dead_letters.labels(record.topic, error.kind).inc()

    def pass_over(self) -> None:
        """Count a message without words. It is not a bad record, so no dead letter is posted."""
        self._metrics.wordless.inc()

    def keep_refused(self, refused: RefusedRecord) -> None:
        """Post a dead letter for a record that the broker refused for good, with its topic but without an offset.

        If the broker refuses a dead letter, its value is cut to `LEAST_VALUE_BYTES`, and the dead letter is posted
        again. If the value is already that short, only the coordinates of the bad record are logged.
        """
        topic, key, value, _, error = refused
        why = type(error).__name__
        self._metrics.refused.labels(topic, why).inc()
        if topic == self._topic:
            self._cut(refused)
            return
        log.error("%s: the broker refuses a record of %d bytes for good: %s", topic, len(value or b""), why)
        letter = DeadLetter(
            source_topic=topic,
            source_partition=NOWHERE,
            source_offset=NOWHERE,
            error_type="refused",
            error_message=str(error)[:REASON_CHARS],
            failed_at=iso(now_ms()),
        )
        self._outbox.post(
            self._topic,
            None if value is None else value[:MAX_VALUE_BYTES],
            key=b"" if key is None else key[:MAX_KEY_BYTES],
            headers=letter.headers(),
        )

    def _cut(self, refused: RefusedRecord) -> None:
        found = dict(refused.headers)
        topic, partition, offset = (found[f"source.{name}"].decode() for name in ("topic", "partition", "offset"))
        where = f"{topic}[{partition}]@{offset}"
        if refused.value is None or len(refused.value) <= LEAST_VALUE_BYTES:
            log.error("%s: the broker refuses its dead letter, too: %s", where, type(refused.error).__name__)
            return
        log.warning("%s: its dead letter is cut to %d bytes", where, LEAST_VALUE_BYTES)
        self._outbox.post(self._topic, refused.value[:LEAST_VALUE_BYTES], key=refused.key, headers=refused.headers)
