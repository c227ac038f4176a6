"""Each promotion's record says when the record was produced that decided on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from schemas.settings import MemorySettings
from schemas.topics import CLOSED_AT_HEADER, Headers, Topics, route_of
from streams.intake.agent import ShortTermAgent, session_record
from streams.intake.rules.decision import Estimator
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session import SessionRules
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.kafka.rerouting import Rerouting
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import Metrics
from tables.windows.short_term import ShortTermStore
from tests.crash.chatter import Said
from tests.fuzz.way import Way
from tests.support.making import START, line

TOPICS = Topics.with_prefix("")
#: Production times are these many ms after `START`, an offset's times a thousand: nothing else looks like them.
PRODUCED = 700_000_000


class Posted(Outbox):
    """Keeps what is posted, with its headers."""

    def __init__(self) -> None:
        super().__init__()
        self.promotions: list[tuple[dict[str, Any], Headers]] = []

    async def deliver(self) -> None:
        """It is kept as soon as it is posted."""

    def post(self, topic: str, value: bytes | None, *, headers: Headers = (), **_: Any) -> None:
        if topic == TOPICS.long_term:
            self.promotions.append((orjson.loads(value or b""), headers))


@dataclass
class Record:
    """What the agent reads of a Kafka record."""

    offset: int
    value: bytes
    timestamp: int | None
    key: bytes = route_of("u", 1)[0]
    partition: int = 0
    topic: str = "conversations"
    headers: Headers = ()


def said(*values: bytes, start: int = 0) -> list[Record]:
    return [Record(start + n, value, START + PRODUCED + 1_000 * (start + n)) for n, value in enumerate(values)]


def promoted(
    memory: MemorySettings, *batches: list[Record], estimator: Estimator | None = lambda *_: 0
) -> list[Headers]:
    """The headers of what the batches of one session's records promote, in its order."""
    outbox, metrics = Posted(), Metrics()
    agent = ShortTermAgent(
        store=ShortTermStore(),
        rules=SessionRules(memory, Promoter(memory, estimator)),
        event_log=EventLog(outbox, TOPICS),
        inbox=Inbox(session_record, DeadLetters(outbox, TOPICS.dead_letters, metrics), Rerouting(outbox, metrics, 1)),
        metrics=metrics,
        clock=EventClock(),
        ratings=None,
    )
    for records in batches:
        asyncio.run(_handled(agent, records))
    return [headers for _, headers in outbox.promotions]


async def _handled(agent: ShortTermAgent, records: list[Record]) -> None:
    await agent.handle(0, records)


def moments(found: list[Headers]) -> list[int]:
    """The offsets of the records that decided."""
    return [(int(dict(headers)[CLOSED_AT_HEADER]) - START - PRODUCED) // 1_000 for headers in found]


def exchange(number: int, at: int, **fields: Any) -> list[bytes]:
    return [line(2 * number + n, "u", role, at + n, **fields) for n, role in enumerate(("user", "assistant"))]


ALL = MemorySettings.model_validate({"scoring": {"policy": "all"}})


def test_the_message_that_closes_an_exchange_decides_within_a_batch() -> None:
    """Three exchanges in one batch: the third and the fifth message close one each, and the third stays open."""
    records = said(*exchange(0, 0), *exchange(1, 10), *exchange(2, 20))
    assert moments(promoted(ALL, records)) == [2, 4]


def test_a_batch_that_brings_only_the_closing_message_decides() -> None:
    batches = said(*exchange(0, 0)), said(line(2, "u", "user", 10), start=2)
    assert moments(promoted(ALL, *batches)) == [2]


def test_a_message_after_silence_closes_what_was_before() -> None:
    """The silence is noticed with it: 121 s after the answer."""
    records = said(*exchange(0, 0), line(2, "u", "assistant", 122))
    assert moments(promoted(ALL, records)) == [2]


def test_a_record_of_silence_decides() -> None:
    silence = orjson.dumps({"type": "silence", "user_id": "u", "session_id": "u-s", "timestamp": START + 121_000})
    assert moments(promoted(ALL, said(*exchange(0, 0), silence))) == [2]


def test_the_end_of_a_session_decides_on_what_leaves() -> None:
    """Eleven would roll; these two wait for the end."""
    llm = MemorySettings.model_validate({"scoring": {"policy": "llm"}})
    end = orjson.dumps({"type": "session_end", "user_id": "u", "session_id": "u-s", "timestamp": START + 40_000})
    assert moments(promoted(llm, said(*exchange(0, 0), *exchange(1, 10), end), estimator=lambda *_: 9)) == [4, 4]


def test_the_message_that_makes_a_session_roll_decides_on_the_oldest_exchange() -> None:
    rolling = MemorySettings.model_validate({"promote_threshold": 1, "scoring": {"policy": "llm"}})
    records = said(*exchange(0, 0), *exchange(1, 10), line(4, "u", "user", 20))
    assert moments(promoted(rolling, records, estimator=lambda *_: 9)) == [4]


def test_a_record_without_a_timestamp_is_named_by_no_header() -> None:
    """Kafka's oldest format has none."""
    records = [Record(n, value, None) for n, value in enumerate([*exchange(0, 0), *exchange(1, 10)])]
    assert promoted(ALL, records) == [[]]


def test_the_worker_counts_each_promotions_age_once(tmp_path: Path) -> None:
    """Through windows, log and shard; the log read again adds nothing."""
    with Way(tmp_path) as way:
        key = b"u"
        way.take([Said("conversations", key, value) for n in range(4) for value in exchange(n, 10 * n)])
        counted = _ages(way)
        long_term = way.worker.topics.long_term
        headers = [dict(record.headers) for record in way.log.records[long_term]]
        assert [CLOSED_AT_HEADER in one for one in headers] == [True] * 3
        assert counted == 3
        again = way.log.records[long_term][0]
        way.log.append(long_term, again.key, again.value, again.headers)
        way.take([])
        assert _ages(way) == counted


def _ages(way: Way) -> float:
    (family,) = way.worker.metrics.promotion_age.collect()
    return next(sample.value for sample in family.samples if sample.name.endswith("_count"))
