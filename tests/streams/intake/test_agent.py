"""Whatever the order of the log, within reason: the same exchanges, the same promotions."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.events import Forget
from schemas.exchanges import Exchange
from schemas.settings import LifecycleSettings, LongTermSettings, MemorySettings
from schemas.topics import Topics, route_of
from streams.forgetting.forgetters import Forgetters, Forgetting, Named
from streams.intake.agent import ShortTermAgent, session_record
from streams.intake.clock_skew import MOST_PRODUCERS, ClockSkew
from streams.intake.rules.advance import KNOWN_EXCHANGES
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session import SessionRules
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.kafka.rerouting import Rerouting
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tables.windows.short_term import ShortTermStore
from tests.support.examples import examples
from tests.support.making import START, axis, promotion

TOPICS = Topics.with_prefix("")
TEXTS = ("ok", "I like tea", "我的生日是五月三日", "thanks", "what is a list?")
#: How many places later than its turn a message may come.
DELAY = 5
#: When all of it is read, by the worker's clock.
NOW = START + 86_400_000
HOUR = 3_600_000


class SentOnly(Outbox):
    """Keeps what is sent instead of sending it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, bytes | None]] = []

    async def deliver(self) -> None:
        """It is kept as soon as it is posted."""

    def post(self, topic: str, value: bytes | None, **_: Any) -> None:
        self.sent.append((topic, value))


@dataclass
class Record:
    """What the agent reads of a Kafka record."""

    offset: int
    key: bytes
    value: bytes
    partition: int
    timestamp: int = NOW
    topic: str = "conversations"
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class Run:
    """One partition's agent, in memory."""

    memory: MemorySettings = field(default_factory=MemorySettings)

    def __post_init__(self) -> None:
        self.store, self.outbox, self.metrics = ShortTermStore(), SentOnly(), Metrics()
        self.agent = ShortTermAgent(
            store=self.store,
            rules=SessionRules(self.memory, Promoter(self.memory, lambda user, assistant: len(user) % 11)),
            event_log=EventLog(self.outbox, TOPICS),
            inbox=Inbox(
                session_record,
                DeadLetters(self.outbox, TOPICS.dead_letters, self.metrics),
                Rerouting(self.outbox, self.metrics, 1),
            ),
            metrics=self.metrics,
            clock=EventClock(),
            ratings=None,
            now=lambda: NOW,
        )

    def read(self, values: list[bytes], cuts: list[int]) -> Run:
        """Read the log in batches that end at these offsets."""
        records = [
            Record(offset, route_of(orjson.loads(value)["user_id"], 1)[0], value, 0)
            for offset, value in enumerate(values)
        ]
        for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
            if records[start:end]:
                asyncio.run(self._handle(records[start:end]))
        return self

    async def _handle(self, records: list[Record]) -> None:
        await self.agent.handle(0, records)

    @property
    def promotions(self) -> dict[str, Any]:
        """By memory id; each was sent once."""
        sent = [orjson.loads(value) for topic, value in self.outbox.sent if topic == TOPICS.long_term and value]
        by_id = {event["memory_id"]: event for event in sent}
        assert len(by_id) == len(sent)
        return by_id

    @property
    def exchanges(self) -> dict[str, list[Exchange]]:
        """What is in the windows, without the numbers."""
        return {
            session.user_id: [replace(exchange, seq=0) for exchange in self.store.window(partition, session)]
            for partition, session in self.store.all_sessions()
        }


@dataclass(frozen=True)
class Said:
    """A message of a conversation, and how much later than its turn it comes."""

    role: str
    text: str
    gap: int
    delay: int
    again: bool


SAID = st.builds(
    Said,
    st.sampled_from(["user", "user", "assistant", "assistant", "tool"]),
    st.sampled_from(TEXTS),
    st.integers(1, 30),
    st.integers(0, DELAY),
    st.booleans(),
)


def messages(user: str, said: list[Said]) -> list[tuple[float, bytes]]:
    """(turn in the log, record), in time order; the last one ends the session."""
    at = 0
    log: list[tuple[float, bytes]] = []
    for turn, one in enumerate(said):
        at += one.gap
        value = _record(user, at, role=one.role, content=one.text, message_id=f"{user}-{turn}")
        log.append((turn + one.delay, value))
        if one.again:
            log.append((turn + one.delay + 0.5, value))
    log.append((len(said) + DELAY + 1, _record(user, at + 1, type="session_end")))
    return log


def _said_at(value: bytes) -> int:
    return int(orjson.loads(value)["timestamp"])


def _record(user: str, at: int, **fields: Any) -> bytes:
    return orjson.dumps({"user_id": user, "session_id": "s", "timestamp": START + at * 1000, **fields})


@examples(120, few=50)
@given(st.lists(st.lists(SAID, max_size=50), min_size=1, max_size=3), st.randoms(use_true_random=False), st.data())
def test_interleaving_duplicates_and_delays_change_nothing(
    conversations: list[list[Said]], chance: Any, data: st.DataObject
) -> None:
    """Beside the ordered input, one session after the other, in one batch."""
    logs = [messages(f"u{i}", said) for i, said in enumerate(conversations)]
    ordered = [
        value for log in logs for _, value in sorted(log, key=lambda entry: orjson.loads(entry[1])["timestamp"])
    ]
    late = [[value for _, value in sorted(log, key=lambda entry: entry[0])] for log in logs]
    mixed: list[bytes] = []
    while any(late):
        log = chance.choice([log for log in late if log])
        mixed.append(log.pop(0))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(mixed)), max_size=6)))
    agreeing = MemorySettings(clock_skew_seconds=0)
    live, reference = Run(agreeing).read(mixed, cuts), Run(agreeing).read(ordered, [])
    assert live.exchanges == reference.exchanges
    assert live.promotions == reference.promotions


@examples(60)
@given(st.lists(SAID, max_size=60), st.data())
def test_a_replay_equals_the_live_run(said: list[Said], data: st.DataObject) -> None:
    """The same log, cut into other batches."""
    log = [value for _, value in sorted(messages("u", said), key=lambda entry: entry[0])]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=6)))
    live, replay = Run().read(log, cuts), Run().read(log, [])
    assert (live.exchanges, live.promotions) == (replay.exchanges, replay.promotions)


def talk(exchanges: int, start: int = 0) -> list[bytes]:
    return [
        _record("u", 10 * i + j, role=role, content="well", message_id=f"{i}-{role}")
        for i in range(start, start + exchanges)
        for j, role in enumerate(("user", "assistant"))
    ]


def written(run: Run) -> int:
    """Bytes that the next commit writes to the changelogs."""
    changes = [*run.store.exchanges.drain(), *run.store.sessions.drain()]
    return sum(len(change.key) + len(change.value or b"") for change in changes)


def test_what_a_message_writes_does_not_grow_with_the_window() -> None:
    """One exchange more, behind 4 and behind 49 in the window: the same but for the numbers' digits."""
    assert _next_costs(49) <= _next_costs(4) * 1.1


def _next_costs(exchanges: int) -> int:
    run = Run().read(talk(exchanges), [])
    written(run)
    more = [Record(2 * exchanges + i, b"u", value, 0) for i, value in enumerate(talk(1, start=exchanges))]
    asyncio.run(run._handle(more))
    return written(run)


@pytest.mark.parametrize("count", [60, 200, 700])
def test_a_sessions_rows_are_bounded_whatever_a_client_sends(count: int) -> None:
    """50 exchanges, the ids of 450 more, and one that is open with at most 16 messages."""
    run = Run().read(talk(count), [])
    ((_, session),) = run.store.all_sessions()
    assert (len(run.store.exchanges), len(session.window), len(session.open) <= 16) == (
        min(count - 1, 50 + KNOWN_EXCHANGES),
        50,
        True,
    )


def hear(run: Run, *said: tuple[int, int]) -> None:
    """User messages by their own time and that of their record, both in ms after START."""
    first = sum(session.offset + 1 for _, session in run.store.all_sessions())
    records = [
        Record(first + place, *route_of("u", 1)[:1], _message(first + place, at), 0, START + appended)
        for place, (at, appended) in enumerate(said)
    ]
    asyncio.run(run._handle(records))


def _message(place: int, at: int) -> bytes:
    fields = {"user_id": "u", "session_id": "s", "message_id": f"m{place}", "role": ("user", "assistant")[place % 2]}
    return orjson.dumps(fields | {"content": f"text {place}", "timestamp": START + at})


def kept(run: Run) -> list[str]:
    held = [exchange for _, session in run.store.all_sessions() for exchange in run.store.window(0, session)]
    opened = [session.open_exchange for _, session in run.store.all_sessions()]
    return [message.message_id for exchange in (*held, *opened) for message in exchange.messages]


@pytest.mark.parametrize("ahead", [0, HOUR, 3 * HOUR])
@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_dated_ahead_of_its_record_is_forgotten_with_what_was_there_before(
    ahead: int, restarted: bool
) -> None:
    """And what was said after the command, by the same clock, stays; another worker knows that, too."""
    run = Run()
    hear(run, *((second + ahead, second) for second in (1000, 2000, 3000, 4000, 5000, 6000)))
    if restarted:
        for table in (run.store.exchanges, run.store.sessions):
            changes = [(change.key, change.value) for change in table.drain()]
            table.own(frozenset())
            table.restore(0, changes)
    run.agent.forget_user(0, "u", START + 4500)
    assert kept(run) == ["m4", "m5"]


def test_a_forgotten_memory_leaves_the_window_decisions_and_what_later_summaries_read(tmp_path: Path) -> None:
    """With it what was merged into it as a near-copy; what is sent again under a forgotten id does not come back."""
    run = Run()
    hear(run, *((second * 1000, second * 1000) for second in range(1, 9)))
    (_, first, _), (_, copy, _), (_, other, _) = run.agent.memories_of(0, "u")
    shard = Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())
    for identity, place in ((first, 0), (copy, 0), (other, 1)):
        asked = promotion("text", str(place)).model_copy(update={"memory_id": identity, "event_id": identity})
        shard.apply([asked], {identity: axis(place)}, START)
    forget = Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START + HOUR, memory_id=first)
    shard.apply([forget], {}, START)

    async def tombstones(partition: int, memories: Sequence[Named]) -> list[bool]:
        return shard.forgotten(memories)

    asyncio.run(Forgetters(run.agent, tombstones=tombstones).follow(0, [Forgetting(forget, START + HOUR)]))
    shard.close()
    left = ["m4", "m5", "m6", "m7"]
    assert kept(run) == left
    ((_, session),) = run.store.all_sessions()
    assert [run.store.exchange(0, session, seq).memory_id("u", "s") for seq in session.named] == [other]
    assert [said.message_id for _, said in run.store.said_on(0, "u", date(2026, 1, 1), UTC)] == left
    asyncio.run(run._handle([Record(8, route_of("u", 1)[0], _message(0, 1000), 0, START + 9000)]))
    assert kept(run) == left


def test_a_record_that_is_dated_ahead_itself_came_when_it_was_read() -> None:
    """Its producer's clock sets both times; nothing comes before it is there."""
    run = Run()
    late = NOW - START
    hear(run, (late + HOUR, late + HOUR), (late + HOUR + 1000, late + HOUR + 1000))
    run.agent.forget_user(0, "u", NOW + 2000)
    assert kept(run) == []


def test_a_clock_that_is_far_ahead_harms_nobody_elses_words() -> None:
    """By a minute and a half, or a year: its message counts as of its record, and what follows is as ever."""
    run = Run()
    for ahead in (90_000, 365 * 86_400_000):
        run = Run()
        hear(run, (1000, 1000), (2000, 2000), (3000 + ahead, 3000), (4000, 4000), (5000, 5000), (6000, 6000))
        ((_, session),) = run.store.all_sessions()
        held = [[message.message_id for message in one.messages] for one in run.store.window(0, session)]
        assert held == [["m0", "m1"], ["m2", "m3"]]
        assert session.last_at == START + 6000
        assert labelled(run.metrics.clock_corrected) == {("ahead",): 1}


def test_an_end_that_is_far_ahead_is_of_its_record() -> None:
    run = Run()
    hear(run, (1000, 1000), (2000, 2000))
    ended = orjson.dumps({"type": "session_end", "user_id": "u", "session_id": "s", "timestamp": START + 10**10})
    asyncio.run(run._handle([Record(2, route_of("u", 1)[0], ended, 0, START + 3000)]))
    ((_, session),) = run.store.all_sessions()
    assert (session.ended, session.last_at) == (True, START + 3000)


def test_the_skew_of_producers_that_say_who_they_are_is_shown() -> None:
    run = Run()
    for place, (name, ahead) in enumerate([(b"phone", 10_000), (b"server", -200), (b"phone", 12_000)]):
        record = Record(place, route_of("u", 1)[0], _message(place, 1000 * place + ahead), 0, START + 1000 * place)
        record.headers = (("producer", name), ("trace", b"x"))
        asyncio.run(run._handle([record]))
    (family,) = run.metrics.clock_skew.collect()
    assert {sample.labels["producer"]: sample.value for sample in family.samples} == {"phone": 12.0, "server": -0.2}
    skew = ClockSkew(Metrics().clock_skew)
    for number in range(3 * MOST_PRODUCERS):
        skew.note((("producer", b"%d" % number),), 0, 0)
    (family,) = skew._gauge.collect()
    assert len(family.samples) == MOST_PRODUCERS
