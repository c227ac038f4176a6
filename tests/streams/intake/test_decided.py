"""What the short-term agent decides, writes and counts over a long log, down to the byte.

A changed digest changes what a replay of a user's topic becomes: it has to be wanted, and said in the CHANGELOG. They
were first taken before the path was made fast. They have changed:

- where an estimator judges, when it had learned and what is personal became content;
- when the user's emotions alone counted, and when sessions were taken up in the order of their keys after a restart;
  no decision changed;
- when what cannot be read was kept: the log has Greek, and no other decision changed;
- when messages without words were no messages: of the log without such, and without the two dead letters that became
  none, the digests stayed the same;
- when a repeated message was known after its exchange had left the window, and messages of differing clocks kept the
  log's order: with `clock_skew_seconds` of 0, and by default, the short log promotes 1,253 of the former 1,268, and
  nothing else; the 15 were repeated;
- when the estimator learned of work and no longer read explanations: by default the short log promotes 1,269
  exchanges instead of 1,270, and importances differ.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any, cast

import orjson
import pytest

from schemas.sessions import Session
from schemas.settings import MemorySettings, Settings
from schemas.topics import Topics
from streams.intake.agent import ShortTermAgent, session_record
from streams.intake.idle_tracker import IdleTracker
from streams.intake.ratings import Ratings
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session import SessionRules
from streams.intake.rules.summary_triggers import Triggers
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.kafka.rerouting import Rerouting
from streams.language.estimator import estimate
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import Metrics, labelled
from tables.windows.short_term import ShortTermStore
from tests.streams.intake.long_log import PARTITIONS, batches, long_log
from tests.support.making import START

TOPICS = Topics.with_prefix("")
SHORT, WHOLE = 9_000, 120_000

#: Of a short log and of a long one: posted records by topic, changelog rows by table, counters, quiet sessions.
DECIDED: dict[str, dict[int, str]] = {
    "defaults": {
        SHORT: "e0a94c96c35effa68751f58922e1f839a656e60736d72ec7a0ec8e01f775f38e",
        WHOLE: "574b965f7a7726d0477b8fa142cb2321113447f0e16f3abb17a820485c56c930",
    },
    "requests not pinned": {
        SHORT: "d66b511141e72a07765668b79bca4dc4f8163df16795f540f0f2ee25ed07d882",
        WHOLE: "b04e8a9190fd469ac34055418a45d0ec8b69582b4be128d81864e64fcd57f739",
    },
    "small window, everything kept": {
        SHORT: "e48896b9cd4f5b8498c8f5eef851023e45c6fdc37ee65b84d1f2581ff220c9eb",
        WHOLE: "4faaf9aa5e5fd8fb8d06534b4746e46b0eb14367fd8183dad15597a9bd62e342",
    },
    "asked elsewhere": {
        SHORT: "e9ee2325d12fa27e930d42c478a6ca46d03ade6b15b5d4fa8abb349ec951e9eb",
        WHOLE: "f2cb172fd538885aaf28b3b3cd790b6f6e128bafb32855e188a6c27eb67655c3",
    },
    "asked elsewhere where it matters": {
        SHORT: "892647d89a9a408f404859477c8d19145728c6ae1f928f1c29a089933463391e",
        WHOLE: "5af8e3b354bb831b60bb67a9366f0b1c25e30f5877ef209cfa6edccce371ea4d",
    },
    "short gaps": {
        SHORT: "c41a470cc940be1a789049c63a41d383e74faeda1eb407e58484690a4caf0391",
        WHOLE: "c5cb283cb717505d90ee6f1d76fa7c2628801fdc972ef6ea382a2b9af97b075e",
    },
}

VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "requests not pinned": {"pin_requests": False},
    "small window, everything kept": {
        "capacity": 3,
        "promote_threshold": 1,
        "scoring": {"policy": "all"},
        "pin_requests": False,
    },
    "asked elsewhere": {
        "capacity": 6,
        "promote_threshold": 2,
        "scoring": {"policy": "llm"},
        "pin_requests": False,
    },
    "asked elsewhere where it matters": {"promote_threshold": 3, "pin_requests": False},
    "short gaps": {
        "pin_requests": False,
        "capacity": 5,
        "promote_threshold": 4,
        "ttl_seconds": 600,
        "exchange_gap_seconds": 30,
        "session_idle_seconds": 60,
        "exchange_messages": 3,
    },
}


class Waiting:
    """Keeps what is asked in the place of `Ratings`; answers come when the test gives them."""

    def __init__(self) -> None:
        self.asked: dict[Any, Any] = {}

    def ask(self, key: Any, exchange: Any) -> None:
        self.asked.setdefault(key, exchange)

    def forget(self) -> None:
        self.asked.clear()


class Posted(Outbox):
    """Digests what is posted, by topic and in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[str, Any] = {}
        self.counts: dict[str, int] = {}

    async def deliver(self) -> None:
        """It is digested as soon as it is posted."""

    async def send(self, topic: str, value: bytes | None, **fields: Any) -> Any:
        self.post(topic, value, **fields)

    def post(self, topic: str, value: bytes | None, **fields: Any) -> None:
        seen = (
            ("key",) if topic == TOPICS.long_term else ("key", "headers")
        )  # a promotion's are no part of the decision
        where = {name: given for name, given in fields.items() if name in seen and given}
        self.digests.setdefault(topic, hashlib.sha256()).update(repr((value, sorted(where.items()))).encode())
        self.counts[topic] = self.counts.get(topic, 0) + 1


class Worker:
    """All partitions of the agent, in memory: it commits, restarts, forgets, and hears of values and of silence."""

    def __init__(self, memory: MemorySettings, elsewhere: bool) -> None:
        self.memory, self.elsewhere = memory, elsewhere
        self.outbox, self.metrics, self.clock = Posted(), Metrics(), EventClock()
        self.ended, self.rows = hashlib.sha256(), {"exchanges": hashlib.sha256(), "sessions": hashlib.sha256()}
        self.changelogs: dict[str, dict[tuple[int, bytes], bytes | None]] = {"exchanges": {}, "sessions": {}}
        self.seconds = 0.0
        self._start()

    def _start(self) -> None:
        self.store, self.ratings = ShortTermStore(), Waiting()
        estimator = None if self.elsewhere else lambda user, assistant: estimate(user, assistant).rating
        self.agent = ShortTermAgent(
            store=self.store,
            rules=SessionRules(self.memory, Promoter(self.memory, estimator), Triggers(Settings().summaries())),
            event_log=EventLog(self.outbox, TOPICS),
            inbox=Inbox(
                session_record,
                DeadLetters(self.outbox, TOPICS.dead_letters, self.metrics),
                Rerouting(self.outbox, self.metrics, PARTITIONS),
            ),
            metrics=self.metrics,
            clock=self.clock,
            ratings=cast(Ratings, self.ratings) if self.elsewhere else None,
            idle=IdleTracker(lambda: self.seconds),
        )
        self.agent.when_ended(self._note_end)

    def _note_end(self, partition: int, session: Session, at: int) -> None:
        self.ended.update(repr((partition, session.user_id, session.session_id, at)).encode())

    def commit(self) -> None:
        for name, digest in self.rows.items():
            for change in getattr(self.store, name).drain():
                digest.update(repr(tuple(change)).encode())
                self.changelogs[name][change.partition, change.key] = change.value

    async def restart(self) -> None:
        """Another worker takes over: it has the changelogs, and nothing else."""
        self._start()
        for name, rows in self.changelogs.items():
            for partition in range(PARTITIONS):
                of_partition = [(key, value) for (where, key), value in rows.items() if where == partition]
                getattr(self.store, name).restore(partition, of_partition)
        await self.agent.recovered()

    async def live(self, records: int) -> None:
        chance = random.Random(records)
        for number, batch in enumerate(batches(long_log(records))):
            self.seconds += 0.5
            await self.agent.handle(batch[0].partition, batch)
            for key in [key for key in self.ratings.asked if chance.random() < 0.5]:
                exchange = self.ratings.asked.pop(key)
                value = len(exchange.messages[0].content) % 11
                await self.agent.answered(key, None if value == 3 else value)
            if number % 3 == 2:
                self.commit()
            if number % 15 == 14:
                self.seconds += 90_000.0 if number in (29, 299) else chance.choice((1.0, 130.0, 2_000.0))
                await self.agent.note_silence(self.memory)
                self.agent.forget_expired(self.memory)
            if number % 30 == 20:
                session = chance.choice(sorted(self.store.all_sessions(), key=repr))
                until = START + chance.choice((0, 3_600_000, 90_000_000))
                self.agent.forget_user(session[0], session[1].user_id, until)
            if number % 50 == 49:
                self.commit()
                await self.restart()
        self.commit()

    @property
    def digest(self) -> str:
        counters = {
            name: labelled(getattr(self.metrics, name))
            for name in ("messages", "duplicates", "late", "rerouted", "exchanges", "decisions", "dead_letters")
        }
        whole = hashlib.sha256()
        for part in (
            *sorted((topic, digest.hexdigest()) for topic, digest in self.outbox.digests.items()),
            *sorted((name, digest.hexdigest()) for name, digest in self.rows.items()),
            self.ended.hexdigest(),
            *((name, sorted(values.items())) for name, values in counters.items()),
            self.clock.now(),
        ):
            whole.update(repr(part).encode())
        return whole.hexdigest()


@pytest.mark.parametrize("records", [SHORT, pytest.param(WHOLE, marks=[pytest.mark.slow, pytest.mark.soak])])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_is_decided_written_and_counted_as_ever(
    variant: str, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.kafka.dead_letters.now_ms", lambda: START)
    memory = Settings.model_validate({"memory": VARIANTS[variant]}).memory
    worker = Worker(memory, elsewhere=variant.startswith("asked elsewhere"))
    asyncio.run(worker.live(records))
    assert len(worker.outbox.counts) == 4, "promotions, requests, dead letters and rerouted records"
    assert worker.digest == DECIDED[variant][records]


def test_the_log_holds_what_it_is_to_hold() -> None:
    """Each kind of record, and most of them as a plain message is."""
    log = list(long_log(SHORT))
    objects = []
    for record in log:
        try:
            objects.append(orjson.loads(record.value or b""))
        except orjson.JSONDecodeError:
            continue
    named = [fields for fields in objects if isinstance(fields, dict)]
    assert {fields.get("type") for fields in named} >= {"session_end", "silence", "message", None}
    assert {len(batch) for batch in batches(iter(log))} >= {1, 2, 17, 100}
    assert sum("mood" in fields for fields in named) > 50
    assert sum("run_id" in fields for fields in named) > 50
