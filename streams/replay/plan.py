"""The plan of a replay: the ranges of offsets that the replay reads.

The plan is stored when the replay starts, so that a resumed replay reads the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.errors
import orjson

from schemas.errors import DataDirError, SiltstoneError
from schemas.rights import Right
from schemas.settings import KafkaSettings
from schemas.topics import Topics, partition_of
from streams.kafka.clients.broker import consumer_options, ensure_topics, translated
from streams.kafka.clients.log_reader import ends, records_between
from tables.paths import write_whole

EARLIEST, NOW = "earliest", "now"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a replay. `begin` and `end` are times of Kafka records in epoch ms, or `earliest` and `now`."""

    begin: int | str
    end: int | str
    users: tuple[str, ...]
    conversations: bool
    topic_prefix: str
    partitions: int

    @property
    def whole(self) -> bool:
        """True if the replay covers all users, and all records of the log."""
        return (self.begin, self.end, self.users) == (EARLIEST, NOW, ())


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets of one partition that are replayed: from `start` to `end`, without `end`.

    The records from `before` to `start` only fill the windows. Without them, an exchange that is open at `start`
    would begin at a different message than in the workers.
    """

    before: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    asked: ReplayOptions
    conversations: Mapping[int, OffsetRange]
    long_term: Mapping[int, OffsetRange]

    @property
    def partitions(self) -> list[int]:
        return sorted(self.long_term)

    @property
    def records(self) -> int:
        return sum(span.end - span.start for spans in (self.conversations, self.long_term) for span in spans.values())


async def planned(asked: ReplayOptions, folder: Path, kafka: KafkaSettings, lead_ms: int) -> Plan:
    """Return the plan that is stored in the folder. If there is none, make and store a new plan.

    The records of the last `lead_ms` milliseconds before the start are read only to fill the windows. Raises
    `BrokerUnavailable`, `DataDirError` and `SettingsError`. Raises `SiltstoneError` if the folder belongs to another
    replay, or if the topics have no records to replay.
    """
    path = folder / "plan.json"
    if path.exists():
        plan = _read(path)
        if plan.asked != asked:
            raise SiltstoneError(
                f"{folder} holds a replay that was started with other options: choose another folder"
            )
        return plan
    _prepare(folder)
    await ensure_topics(kafka.model_copy(update={"create_topics": False}))
    plan = await _looked_up(asked, kafka, lead_ms)
    if not plan.records:
        raise SiltstoneError("there is nothing to replay: the topics have no records of that time")
    _write(path, plan)
    return plan


async def _looked_up(asked: ReplayOptions, kafka: KafkaSettings, lead_ms: int) -> Plan:
    topics = Topics.with_prefix(asked.topic_prefix)
    partitions = sorted({partition_of(user, asked.partitions) for user in asked.users}) or range(asked.partitions)
    consumer = aiokafka.AIOKafkaConsumer(**consumer_options(kafka), group_id=None, enable_auto_commit=False)
    try:
        await consumer.start()

        async def spans(topic: str) -> dict[int, OffsetRange]:
            tps = {p: aiokafka.TopicPartition(topic, p) for p in partitions}
            consumer.assign(list(tps.values()))
            first = await consumer.beginning_offsets(list(tps.values()))
            last = await ends(consumer, list(tps.values()))

            async def offsets(when: int | str, lead: int = 0) -> dict[int, int]:
                if isinstance(when, str):
                    return {p: (first if when == EARLIEST else last)[tp] for p, tp in tps.items()}
                at = max(0, when - lead)
                found = await consumer.offsets_for_times(dict.fromkeys(tps.values(), at))
                hints = {p: found.get(tp) for p, tp in tps.items()}
                return {
                    p: last[tps[p]] if hint is None else await _first(kafka, tps[p], hint.offset, last[tps[p]], at)
                    for p, hint in hints.items()
                }

            before, start, end = (
                await offsets(asked.begin, lead_ms),
                await offsets(asked.begin),
                await offsets(asked.end),
            )
            return {p: OffsetRange(min(before[p], start[p]), start[p], max(start[p], end[p])) for p in tps}

        # Look up the end of `long-term` after the end of `conversations`. So the replay reads all promotions that the
        # workers had already made from the conversations that it reads.
        conversations = await spans(topics.conversations) if asked.conversations else {}
        return Plan(asked, conversations, await spans(topics.long_term))
    except (aiokafka.errors.KafkaError, TimeoutError) as exc:
        used = (Right("READ", "topic", topic) for topic in (topics.conversations, topics.long_term))
        raise await translated(kafka, exc, *used) from exc
    finally:
        await consumer.stop()


async def _first(kafka: KafkaSettings, tp: Any, start: int, end: int, at: int) -> int:
    """Return the offset of the first record, from `start` on, whose time is `at` (epoch ms) or later.

    Return `end` if all records are earlier. The records are read, because the embedded broker Tansu may answer a
    request for this offset with an offset that is too early.
    """
    if start < end:
        async with aclosing(records_between(kafka, tp.topic, tp.partition, start, end)) as batches:
            async for records in batches:
                for record in records:
                    if record.timestamp >= at:
                        return int(record.offset)
    return end


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SiltstoneError(f"{folder} is not empty, but holds no replay: choose another folder")
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc


def _write(path: Path, plan: Plan) -> None:
    try:
        write_whole(path, orjson.dumps(asdict(plan), option=orjson.OPT_NON_STR_KEYS))
    except OSError as exc:
        raise DataDirError(path.parent, exc.strerror or str(exc)) from exc


def _read(path: Path) -> Plan:
    try:
        kept = orjson.loads(path.read_bytes())
        asked = ReplayOptions(**{**kept["asked"], "users": tuple(kept["asked"]["users"])})
        spans = [
            {int(p): OffsetRange(**span) for p, span in kept[name].items()} for name in ("conversations", "long_term")
        ]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise SiltstoneError(f"{path} cannot be read ({type(exc).__name__}): choose another folder") from exc
    return Plan(asked, *spans)
