"""What a message, a promotion and a search may cost: calls, SQL statements and bytes, which no load changes.

    python -m tests.support.budget            # what they cost now, beside tests/support/budget.toml
    python -m tests.support.budget --write    # … and note it there

Each part is measured in a process of its own, with hashes that are the same every time, so neither other tests nor
their order change a number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
import orjson

from schemas.events import Promotion
from schemas.memories import State
from schemas.settings import LifecycleSettings, LongTermSettings, Settings
from streams.app import Siltstone
from streams.kafka.commit.sends import Producer
from streams.recall.dates import ReferenceDate
from streams.recall.filtering import MOST_CONDITIONS, Condition, Filter
from streams.recall.query import Query
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tests.fuzz.way import DIMENSION as TOY_DIMENSION
from tests.fuzz.way import Log, Record, Toy
from tests.support.calls import ROOT, Calls, Statements
from tests.support.making import START, promotion
from tests.support.steps import HOSTILE_PIECES

FILE: Final = Path(__file__).with_suffix(".toml")
#: A figure may be so much above the noted one, and has to be noted again when it is so much below.
TOLERANCE, RATCHET = 0.02, 0.10
#: With another Python than it is noted with: its standard library makes a few more or fewer calls for the same work.
NOTED_WITH, TOLERANCE_ELSEWHERE = (3, 11), 0.05
NOTE: Final = "python -m tests.support.budget --write"

Figures = dict[str, float]

MEANING: Final = {
    "intake": {
        "calls": "function calls a message: decoded, in its window, decided on, flushed to the changelogs",
        "changelog_bytes": "bytes a message in the changelogs, flushed every 1,000 messages",
        "promotion_bytes": "bytes a message of promotions: keys, values and headers",
        "summary_request_bytes": "bytes a message of requests for summaries",
    },
    "long_term": {
        "calls_64": "function calls a promotion, 64 in a transaction",
        "calls_1000": "function calls a promotion, 1,000 in a transaction",
        "statements_64": "SQL statements of a transaction of 64 promotions",
        "statements_1000": "SQL statements of a transaction of 1,000 promotions",
        "bytes_64": "bytes on disk a promotion with 384 dimensions, 64 in a transaction",
        "bytes_1000": "bytes on disk a promotion with 384 dimensions, 1,000 in a transaction",
    },
    "search": {
        "calls_first": "function calls of the first search of a user with 300 memories",
        "calls_warm": "function calls of the second one, of another question",
        "calls_when": "function calls of a third one, which asks for a time",
        "statements_first": "SQL statements of the first one",
        "statements_warm": "SQL statements of the second one",
    },
    "hostile": {
        "message_calls": "function calls a message of 8 KB that was made to take long",
        "question_calls": "function calls of a search with a question of 32 KB that was made to take long",
        "filters_calls": "function calls of a search of 300 memories with as many conditions as there may be",
    },
}


def _settings(data: Path) -> Settings:
    return Settings.load(data_dir=data, kafka={"partitions": 1}, lifecycle={"clock": "event"})


# Intake

SESSIONS: Final = 40
MESSAGES: Final = 4_800
WARM: Final = 2_400
#: Records come into the log after what is in them was said (ms).
A_MONTH: Final = 2_592_000_000
BATCH: Final = 500
FLUSH_EVERY: Final = 2
SAID: Final = (
    ("How long do eggs take until they are hard?", "About nine minutes from the moment the water boils."),
    ("Thanks, that was quick.", "Tell me when you get stuck, and we go on from there."),
    ("今天天气怎么样，要带伞吗？", "上午多云，下午有小雨，出门的话最好带一把伞。"),
    ("By the way, I love chess and I have lived in Oslo since 1999.", "Good to know. I will keep it in mind."),
    ("好的，谢谢你的说明。", "不客气，有其他问题随时再问。"),
    ("What is the difference between a list and a tuple?", "A list can be changed after it was made."),
    ("Please remember that my locker opens with 90210.", "I will remember that."),
    ("列表和元组到底有什么区别？", "列表创建之后还可以修改，元组不可以。"),
    ("Could you check this paragraph for mistakes?", "There are two: a doubled letter, and a missing comma."),
    ("我的生日是五月三日，想和妹妹一起去杭州。", "听起来不错。"),
    ("Which train goes to the airport?", "The one from platform two, every twenty minutes."),
)


def conversation() -> Iterator[tuple[str, bytes]]:
    """(user, record): sessions take turns. Some records come twice, some late, and some sessions end."""
    for number in range(MESSAGES):
        session, turn = number % SESSIONS, number // SESSIONS
        user, exchange = f"user-{session // 2}", turn // 2
        late = 7 if turn % 23 == 22 else 0
        record: dict[str, Any] = {
            "user_id": user,
            "session_id": f"{user}-{session % 2}",
            "message_id": f"m-{session}-{turn}",
            "role": ("user", "assistant")[turn % 2],
            "content": SAID[(exchange * 7 + session) % len(SAID)][turn % 2],
            "timestamp": START + 1_000 * (5 * turn - late) + session,
            "agent_id": "assistant",
        }
        if session == 7 and turn % 31 == 30:
            record = {name: record[name] for name in ("user_id", "session_id", "timestamp")} | {"type": "session_end"}
        elif turn % 29 == 28:
            yield user, orjson.dumps(record)
        yield user, orjson.dumps(record)


class Batch:
    """Keeps what a batch of a producer holds."""

    def __init__(self) -> None:
        self.size = 0

    def append(
        self, *, key: bytes | None, value: bytes | None, timestamp: int | None, headers: Sequence[Any] = ()
    ) -> object:
        self.size += len(key or b"") + len(value or b"") + sum(len(name) + len(held) for name, held in headers)
        return self

    def record_count(self) -> int:
        return 1

    def close(self) -> None:
        """It holds what it holds."""


class Taken(NamedTuple):
    """What a broker says of a batch that it has taken."""

    offset: int


class Sizes(Log):
    """Takes what is sent, and knows how many bytes that is by topic."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: dict[str, int] = {}

    def create_batch(self) -> Batch:
        return Batch()

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> asyncio.Future[Any]:
        self.batches[topic] = self.batches.get(topic, 0) + batch.size
        acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.set_result(Taken(-1))
        return acknowledged

    def bytes_in(self, topic: str) -> int:
        return self.batches.get(topic, 0) + sum(
            len(record.key or b"")
            + len(record.value or b"")
            + sum(len(name) + len(held) for name, held in record.headers)
            for record in self.records[topic]
        )


def intake() -> Figures:
    """The second half of a conversation, with windows that are full of the first one."""
    return _intake(conversation(), WARM)


def _intake(said: Iterable[tuple[str, bytes]], warm: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_taken_in(Siltstone(_settings(Path(folder))), list(said), warm))


async def _taken_in(worker: Siltstone, said: Sequence[tuple[str, bytes]], warm: int) -> Figures:
    log, topics, calls = Sizes(), worker.topics, Calls()
    worker.hot.outbox.connect(cast(Producer, log))
    worker.context.stores.open(0)
    records = [
        Record(topics.conversations, offset, user.encode(), value, timestamp=START + A_MONTH + offset)
        for offset, (user, value) in enumerate(said)
    ]

    async def take(part: Sequence[Record]) -> None:
        for place in range(0, len(part), BATCH):
            if (rest := await worker.intake.short_term.handle(0, part[place : place + BATCH])) is not None:
                await rest
            if (place // BATCH) % FLUSH_EVERY == FLUSH_EVERY - 1:
                assert await worker.hot.outbox.flush()
        assert await worker.hot.outbox.flush()

    def written() -> Figures:
        promotions, requests = log.bytes_in(topics.long_term), log.bytes_in(topics.summary_requests)
        every = sum(log.bytes_in(topic) for topic in {*log.batches, *log.records})
        return {
            "changelog_bytes": every - promotions - requests,
            "promotion_bytes": promotions,
            "summary_request_bytes": requests,
        }

    with calls.watched():
        await take(records[:warm])
        before = written()
        with calls.counted():
            await take(records[warm:])
    messages = len(records) - warm
    sizes = {name: size - before[name] for name, size in written().items()}
    return {"calls": calls.total / messages} | {name: size / messages for name, size in sizes.items()}


# Long-term

DIMENSION: Final = 384
USERS: Final = 100
STORED: Final = 2_000


def long_term() -> Figures:
    """Batches into a shard that holds memories of the same users already."""
    figures: Figures = {}
    for size in (64, 1_000):
        for name, value in _applied(size).items():
            figures[f"{name}_{size}"] = value
    return figures


def _applied(size: int) -> Figures:
    events = _promotions(STORED + size)
    vectors = _vectors(events, DIMENSION)
    calls, statements = Calls(), Statements()
    with tempfile.TemporaryDirectory() as name, statements.counted():
        folder = Path(name)
        shard = Shard(0, folder, "toy", DIMENSION, LongTermSettings(), LifecycleSettings())
        for start in range(0, STORED, 500):
            shard.apply(events[start : start + 500], vectors, START, start + 500)
        before, done = _size(folder), statements.total
        with calls.watched(), calls.counted():
            applied = shard.apply(events[STORED:], vectors, START, len(events))
        assert applied.new == size
        figures = {
            "calls": calls.total / size,
            "statements": float(statements.total - done),
            "bytes": (_size(folder) - before) / size,
        }
        shard.close()
    return figures


def _promotions(count: int) -> list[Promotion]:
    return [
        promotion(
            f"user: {SAID[n % len(SAID)][0]} {n}\nassistant: {SAID[n % len(SAID)][1]}",
            f"m-{n}-0",
            f"m-{n}-1",
            user=f"user-{n % USERS}",
            at=START + 1_000 * n,
        )
        for n in range(count)
    ]


def _vectors(events: Sequence[Promotion], dimension: int) -> dict[uuid.UUID, Vectors]:
    """Far from each other: none is a near-copy."""
    drawn = np.random.default_rng(20_250_301).standard_normal((len(events), dimension), np.float32)
    units = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return {event.event_id: unit for event, unit in zip(events, units, strict=True)}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# Search

MEMORIES: Final = 300
OTHERS: Final = 700
WARM_QUESTION: Final = "In which city have I lived till now, Oslo?"
WHEN_QUESTION: Final = "Since when have I lived in Oslo?"


def search() -> Figures:
    """Of one user, among a thousand memories."""
    calls, statements = Calls(), Statements()
    with tempfile.TemporaryDirectory() as folder, statements.counted(), calls.watched():
        return asyncio.run(_search(Siltstone(_settings(Path(folder))), calls, statements))


@asynccontextmanager
async def _remembering(worker: Siltstone) -> AsyncIterator[None]:
    """A worker whose one shard holds ann's memories and those of others."""
    worker.shards.models.current._backend = Toy()
    worker.shards.models.current.start()
    worker.hot.outbox.connect(cast(Producer, Sizes()))
    worker.shards.own(frozenset({0}))
    events = _promotions(MEMORIES + OTHERS)
    events = [
        event.model_copy(update={"user_id": "ann" if place < MEMORIES else f"user-{place % USERS}"})
        for place, event in enumerate(events)
    ]
    vectors = _vectors(events, TOY_DIMENSION)
    try:
        await worker.shards.call(0, Shard.apply, events, vectors, START, len(events))
        worker.clock.observe(events[-1].timestamp)
        yield
    finally:
        await worker.shards.close()
        await worker.shards.models.current.stop()


#: Answers are dated from then, as those of the worker's API are.
ASKED: Final = ReferenceDate(START + 2 * A_MONTH, UTC)


def _asked(text: str, filters: tuple[Condition, ...] = ()) -> Query:
    return Query("ann", text, 10, frozenset(State), filters=filters, reference=ASKED)


async def _search(worker: Siltstone, calls: Calls, statements: Statements) -> Figures:
    figures: Figures = {}
    async with _remembering(worker):
        asked = (("first", "Which code opens my locker?"), ("warm", WARM_QUESTION), ("when", WHEN_QUESTION))
        for name, text in asked:
            began, done = calls.total, statements.total
            with calls.counted():
                hits = await worker.recall.search(_asked(text))
            assert len(hits) == 10
            figures |= {f"calls_{name}": calls.total - began, f"statements_{name}": statements.total - done}
            while await worker.shards.call(0, lambda shard: shard.rows.fill(256)):
                pass  # as a worker does within seconds: texts are read for times
    return {name: float(figures[name]) for name in MEANING["search"]}


# What is made to take long: patterns and parsers go over it again and again where they may

LONG_MESSAGE: Final = 8_192
LONG_QUESTION: Final = 32_768


def hostile() -> Figures:
    """Of each kind of text the same number of messages and of questions."""
    calls = Calls()
    with tempfile.TemporaryDirectory() as folder, calls.watched():
        searched = asyncio.run(_hostile_search(Siltstone(_settings(Path(folder))), calls))
    return {"message_calls": _intake(_hostile_conversation(), len(HOSTILE_PIECES))["calls"]} | searched


def _hostile_conversation() -> Iterator[tuple[str, bytes]]:
    for number in range(3 * len(HOSTILE_PIECES)):
        record = {
            "user_id": "ann",
            "session_id": "s",
            "message_id": f"m-{number}",
            "role": ("user", "assistant")[number % 2],
            "content": _repeated(HOSTILE_PIECES[number % len(HOSTILE_PIECES)], LONG_MESSAGE),
            "timestamp": START + 1_000 * number,
        }
        yield "ann", orjson.dumps(record)


def _repeated(piece: str, length: int) -> str:
    return (piece * length)[:length]


async def _hostile_search(worker: Siltstone, calls: Calls) -> Figures:
    conditions = tuple(Filter.parse(f"metadata.{number}:ne:{number}") for number in range(MOST_CONDITIONS))
    async with _remembering(worker):
        await worker.recall.search(_asked(WARM_QUESTION))
        with calls.counted():
            for piece in HOSTILE_PIECES:
                await worker.recall.search(_asked(_repeated(piece, LONG_QUESTION)))
        questions = calls.total
        with calls.counted():
            assert len(await worker.recall.search(_asked(WARM_QUESTION, conditions))) == 10
    return {
        "question_calls": questions / len(HOSTILE_PIECES),
        "filters_calls": float(calls.total - questions),
    }


# The file

PARTS: Final[dict[str, Callable[[], Figures]]] = {
    "intake": intake,
    "long_term": long_term,
    "search": search,
    "hostile": hostile,
}


def measured(part: str) -> Figures:
    """The figures of a part, in a process where nothing else happens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SILTSTONE_", "NANOBOT_"))}
    kept |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.support.budget", "--measure", part]
        done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{part} could not be measured: {done.stderr[-2_000:]}")
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def noted() -> dict[str, Figures]:
    return cast(dict[str, Figures], tomllib.loads(FILE.read_text(encoding="utf-8")))


def tolerance() -> float:
    """The share by which a figure may be above the noted one here."""
    return TOLERANCE if sys.version_info[:2] == NOTED_WITH else TOLERANCE_ELSEWHERE


def complaints(part: str, now: Figures, then: Figures, tolerance: float) -> list[str]:
    """A line for each figure that is above its budget, or so far below that the budget has to follow."""
    told = []
    for name, meaning in MEANING[part].items():
        cost, budget = now[name], then[name]
        if cost > budget * (1 + tolerance):
            told.append(f"{part}.{name} is {cost:,.2f}, above its budget of {budget:,.2f}: {meaning}")
        elif cost < budget * (1 - RATCHET):
            told.append(f"{part}.{name} is {cost:,.2f}, well below its budget of {budget:,.2f}: note it, with {NOTE}")
    return told


def document(figures: dict[str, Figures]) -> str:
    """The text of `tests/support/budget.toml`."""
    lines = [
        "# What a message, a promotion and a search may cost (`budget.py` beside). `make test` fails when one",
        f"# is {TOLERANCE:.0%} above its number, or {RATCHET:.0%} below. Note what they cost now:",
        f"# {NOTE}",
    ]
    for part, meanings in MEANING.items():
        lines += ["", f"[{part}]"]
        for name, meaning in meanings.items():
            lines += [f"# {meaning}", f"{name} = {figures[part][name]:.2f}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.budget", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help=f"note it in tests/support/{FILE.name}")
    parser.add_argument("--measure", choices=PARTS, help="one part, in this process, as JSON")
    given = parser.parse_args()
    if given.measure:
        sys.stdout.write(json.dumps(PARTS[given.measure]()))
        return
    then = noted() if FILE.exists() else {}
    now = {part: measured(part) for part in PARTS}
    for part, figures in now.items():
        for name, value in figures.items():
            sys.stdout.write(f"{part}.{name}: {then.get(part, {}).get(name, float('nan')):,.2f} → {value:,.2f}\n")
    if given.write:
        FILE.write_text(document(now), encoding="utf-8")


if __name__ == "__main__":
    main()
