"""Fetched batches become transactions of their partition's shard: together, in their order, and while it is ours."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import DataDirError, ShardNotHere
from schemas.events import Archive, Forget, ForgetUser, LongTermEvent, Remember
from schemas.ids import event_id
from schemas.memories import State
from schemas.settings import Settings
from schemas.topics import key_of, partition_of
from streams.app import Siltstone
from streams.kafka.commit.ledger import Ledger
from streams.models.embedding.embedding import Side, Vectors
from streams.recall.query import Query
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.memories.shard import Shard
from tests.fuzz.way import Log, Record, Toy
from tests.support.making import START, line
from tests.support.waiting import until

PARTITIONS = 2
#: A user of each partition.
USERS = [next(name for name in "abcdefgh" if partition_of(name, PARTITIONS) == place) for place in range(PARTITIONS)]


class Held(Toy):
    """Embeds when the gate is open."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        self.asked.append(list(texts))
        await self.gate.wait()
        return await super().embed(texts, of, attempt, urgent=urgent)


class Worker:
    """A worker's own agent and shards, and what its broker would give it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lifecycle = {"clock": "event", "access_min_relevance": 0}  # to the toy model nothing is like anything
        settings = Settings.load(data_dir=folder, kafka={"partitions": PARTITIONS}, lifecycle=lifecycle)
        self.siltstone, self.model = Siltstone(settings), Held()
        self.siltstone.shards.models.current._backend = self.model
        self.siltstone.shards.models.current.start()
        self.siltstone.hot.outbox.connect(Log())  # type: ignore[arg-type]
        self.siltstone.context.gate._lag = lambda: 0
        self.agent, self.shards = self.siltstone.long_term, self.siltstone.shards
        self._offsets = [0] * PARTITIONS
        self.transactions: list[tuple[int, int]] = []
        write = Catalog.write

        def counted(catalog: Catalog, changes: Changes, now: int, position: int | None = None) -> None:
            write(catalog, changes, now, position)
            self.transactions.append((catalog.partition, len(changes.applied)))

        monkeypatch.setattr(Catalog, "write", counted)

    def assign(self) -> None:
        ours = frozenset(range(PARTITIONS))
        self.shards.own(ours)
        self.agent.own(ours)

    def fetched(self, place: int, *events: LongTermEvent) -> list[Any]:
        """These events as records that follow what was fetched of the partition before."""
        records = []
        for event in events:
            value = event.model_dump_json().encode()
            records.append(Record("long-term", self._offsets[place], key_of(event.user_id), value, partition=place))
            self._offsets[place] += 1
        return records

    async def handle(self, place: int, *events: LongTermEvent) -> Awaitable[Any]:
        return await self.agent.handle(place, self.fetched(place, *events))

    async def count(self, place: int) -> int:
        return await self.shards.call(place, Shard.count)


@pytest.fixture
async def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    made = Worker(tmp_path, monkeypatch)
    made.assign()
    yield made
    made.model.gate.set()
    await made.agent.stop()
    await made.shards.close()
    await made.siltstone.shards.models.current.stop()


def said(place: int, *names: str, **fields: Any) -> list[Remember]:
    """What the user of a partition asks to have remembered; texts differ in their direction."""
    return [
        Remember(
            event_id=event_id("test", USERS[place], name), user_id=USERS[place], timestamp=START, text=name, **fields
        )
        for name in names
    ]


async def test_batches_that_come_while_one_is_written_are_one_transaction(worker: Worker) -> None:
    batches = [await worker.handle(0, *said(0, "first"))]
    await until(lambda: worker.model.asked)
    batches += [await worker.handle(0, *said(0, name)) for name in ("tea", "milk", "bread")]
    worker.model.gate.set()
    await asyncio.gather(*batches)
    assert worker.transactions == [(0, 1), (0, 3)]
    assert await worker.shards.call(0, Shard.position) == 4


async def test_two_users_events_of_one_id_have_their_own_texts_and_vectors(worker: Worker) -> None:
    """In one fetched batch; each is in once, and found by its own text."""
    same, neighbour = uuid.uuid4(), next(name for name in map(str, range(99)) if partition_of(name, PARTITIONS) == 0)
    one, other = (
        Remember(event_id=same, user_id=user, timestamp=START, text=text)
        for user, text in ((USERS[0], "tea"), (neighbour, "bread"))
    )
    worker.model.gate.set()
    for _ in range(2):
        await (await worker.handle(0, one, other))
    for event in (one, other):
        (vector,) = await worker.model.embed([event.text], "document", 0, urgent=False)
        (memory,) = await worker.shards.call(0, Shard.memories_of, event.user_id)
        (cosine,) = await worker.shards.call(0, Shard.similarities, event.user_id, vector, [memory])
        assert (memory.id, memory.text, round(float(cosine), 4)) == (same, event.text, 1)
    assert await worker.shards.call(0, Shard.position) == 4


async def test_partitions_do_not_wait_for_each_other(worker: Worker) -> None:
    for place in range(PARTITIONS):
        await worker.handle(place, *said(place, "tea"))
    await until(lambda: len(worker.model.asked) == PARTITIONS)


async def test_what_waits_for_a_revoked_partition_is_not_applied(worker: Worker) -> None:
    """Neither what is being embedded nor what waits behind it; what is read again after it came back is."""
    waiting = [await worker.handle(0, *said(0, name)) for name in ("tea", "milk")]
    await until(lambda: worker.model.asked)
    worker.agent.revoke(frozenset({0}))
    worker.model.gate.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2
    assert (worker.transactions, await worker.count(0)) == ([], 0)
    worker._offsets[0] = 0
    worker.assign()
    await (await worker.handle(0, *said(0, "tea", "milk")))
    assert await worker.count(0) == 2


async def test_what_waits_from_an_earlier_assignment_is_not_applied_after_the_next(worker: Worker) -> None:
    """A worker that was expelled and comes back need not have been told of a revocation."""
    stale = await worker.handle(0, *said(0, "tea"))
    await until(lambda: worker.model.asked)
    worker.assign()
    worker.model.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await stale
    assert await worker.count(0) == 0


async def test_a_partition_that_is_not_ours_takes_no_batch(worker: Worker) -> None:
    worker.agent.revoke(frozenset({0}))
    with pytest.raises(ShardNotHere):
        await worker.handle(0, *said(0, "tea"))


async def test_a_full_disk_acknowledges_nothing_more(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await worker.handle(0, *said(0, "tea"))
    await until(lambda: worker.model.asked)
    behind = await worker.handle(0, *said(0, "milk"))

    def full(*_: Any, **__: Any) -> None:
        raise DataDirError(Path("shards"), "the disk is full")

    monkeypatch.setattr(Shard, "apply", full)
    worker.model.gate.set()
    outcomes = await asyncio.gather(first, behind, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DataDirError] * 2
    assert (await worker.handle(0, *said(0, "bread"))).cancelled()  # type: ignore[attr-defined]


async def test_what_one_group_forgets_it_does_not_keep_of_an_earlier_batch_of_it(worker: Worker) -> None:
    """The order of the log is the order of effects, whichever batches they came in."""
    batches = [await worker.handle(0, *said(0, "first"))]
    await until(lambda: worker.model.asked)
    noted = said(0, "until tonight", kind="short_term", session_id="s")
    forget = ForgetUser(event_id=event_id("test", "forget"), user_id=USERS[0], timestamp=START)
    later = said(0, "tea")[0].model_copy(update={"timestamp": START + 1})
    batches += [await worker.handle(0, event) for event in (noted[0], forget, later)]
    worker.model.gate.set()
    await asyncio.gather(*batches)
    assert worker.transactions == [(0, 1), (0, 2)]
    kept = await worker.shards.call(0, Shard.memories_of, USERS[0])
    assert [memory.text for memory in kept] == ["tea"]
    assert not worker.siltstone.intake.windows.notes.of_user(0, USERS[0])


async def test_a_batch_that_is_ahead_of_the_shard_is_preceded_by_what_the_log_holds_between(worker: Worker) -> None:
    missed = worker.fetched(0, *said(0, "tea", "milk"))

    async def read(partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        yield missed[start:end]

    worker.agent._read = read
    worker.model.gate.set()
    await (await worker.handle(0, *said(0, "bread")))
    kept = await worker.shards.call(0, Shard.memories_of, USERS[0])
    assert sorted(memory.text for memory in kept) == ["bread", "milk", "tea"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_however_a_partition_comes_and_goes_each_event_is_in_once_and_none_is_committed_before(
    worker: Worker, seed: int
) -> None:
    """Batches are read again from what was committed, as by the hot path, and revoked at every stage of theirs."""
    chance = random.Random(seed)
    records = worker.fetched(0, *said(0, *(f"text {n}" for n in range(60))))
    worker.model.gate.set()
    committed, ledger = 0, Ledger()

    def acknowledge(ledger: Ledger, last: int, done: asyncio.Future[Any]) -> None:
        if not done.cancelled():
            done.result()
            ledger.acknowledge(last)

    while committed < len(records):
        place = committed
        while place < len(records) and chance.random() < 0.9:
            batch = records[place : place + chance.randrange(1, 9)]
            place += len(batch)
            ledger.deliver(batch[-1].offset)
            written = asyncio.ensure_future(await worker.agent.handle(0, batch))
            written.add_done_callback(partial(acknowledge, ledger, batch[-1].offset))
            await asyncio.sleep(chance.choice([0, 0, 0.001, 0.01]))
        committed = ledger.committable() or committed
        assert await worker.shards.call(0, Shard.position) >= committed
        if chance.random() < 0.7:
            worker.agent.revoke(frozenset({0}))
            ledger = Ledger()
            worker.assign()
            await worker.agent.catch_up(0, committed)
        else:
            await asyncio.sleep(0.01)
            ledger = Ledger()
            worker.assign()
    applied = sum(events for partition, events in worker.transactions if partition == 0)
    assert (applied, await worker.shards.call(0, Shard.position)) == (len(records), len(records))


async def test_a_search_of_the_archive_in_flight_does_not_return_what_is_forgotten_meanwhile(worker: Worker) -> None:
    """The question is being embedded when the memory goes."""
    user, (tea, bread) = USERS[0], said(0, "tea", "bread")
    worker.model.gate.set()
    archived = [
        Archive(event_id=uuid.uuid4(), user_id=user, timestamp=START, memory_id=one.event_id) for one in (tea, bread)
    ]
    await (await worker.handle(0, tea, bread, *archived))
    worker.model.gate.clear()
    worker.model.asked.clear()
    search = asyncio.ensure_future(worker.siltstone.recall.search_archive(Query(user, "tea", 10, frozenset(State))))
    await until(lambda: worker.model.asked)
    await (
        await worker.handle(0, Forget(event_id=uuid.uuid4(), user_id=user, timestamp=START, memory_id=tea.event_id))
    )
    worker.model.gate.set()
    assert [hit.memory for hit in await search] == ["bread"]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_search_in_flight_does_not_return_what_is_forgotten_meanwhile(worker: Worker, whole: bool) -> None:
    """Nor counts it as accessed: the question is being embedded when the memory, or the user, goes."""
    user, (tea, bread) = USERS[0], said(0, "tea", "bread")
    worker.model.gate.set()
    await (await worker.handle(0, tea, bread))
    worker.model.gate.clear()
    worker.model.asked.clear()
    recall, query = worker.siltstone.recall, Query(user, "tea", 10, frozenset(State))
    search = asyncio.ensure_future(recall.search(query))
    await until(lambda: worker.model.asked)
    fields: dict[str, Any] = {"event_id": uuid.uuid4(), "user_id": user, "timestamp": START}
    await (await worker.handle(0, ForgetUser(**fields) if whole else Forget(**fields, memory_id=tea.event_id)))
    worker.model.gate.set()
    left = [] if whole else ["bread"]
    hits = await search
    assert [hit.memory for hit in hits] == left
    recall.count(query, hits)
    assert [event.memory_ids for event in recall._accesses.take()] == [[bread.event_id] for _ in left]


async def test_what_a_shard_is_filled_up_with_forgets_the_users_day_files_too(worker: Worker) -> None:
    """They lie where the shard was; what was written since, by whoever had the partition, stays."""
    user, moment = USERS[0], datetime(2026, 1, 1, 12, tzinfo=UTC)
    files, at = worker.siltstone.summaries.files, round(moment.timestamp() * 1000)
    for days in (0, 1):
        files.append(user, date(2026, 1, 1 + days), uuid.uuid4(), "words", moment + timedelta(days=days))
    forget = ForgetUser(event_id=uuid.uuid4(), user_id=user, timestamp=START)
    missed = worker.fetched(0, *said(0, "tea"), forget)
    missed[1].timestamp = at + 1000

    async def read(partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        yield missed[start:end]

    worker.agent._read = read
    worker.model.gate.set()
    await worker.agent.catch_up(0, 2)
    assert files.dates(user) == [date(2026, 1, 2)]
    assert await worker.count(0) == 0


async def test_a_window_forgets_what_came_before_the_command_whatever_time_the_command_has(worker: Worker) -> None:
    """A service whose clock is behind has written it; its record says when it came."""
    user, windows = USERS[0], worker.siltstone.intake.windows
    spoken = [line(i, user, "user", i) for i in range(3)]
    await worker.siltstone.intake.short_term.handle(
        0,
        [Record("conversations", i, user.encode(), raw, timestamp=START + 5000) for i, raw in enumerate(spoken)],
    )
    assert len(windows.session(0, user, f"{user}-s").open) == 3
    (forget,) = worker.fetched(0, ForgetUser(event_id=uuid.uuid4(), user_id=user, timestamp=START - 1))
    forget.timestamp = START + 1500
    await (await worker.agent.handle(0, [forget]))
    assert [message.message_id for message in windows.session(0, user, f"{user}-s").open] == [f"{user}-2"]


async def test_a_catch_up_of_an_assignment_that_is_over_says_nothing_of_the_next(worker: Worker) -> None:
    """Another worker may have had the partition in between, and have committed more."""
    missed = worker.fetched(0, *said(0, "tea"))
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def read(partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        reading.set()
        await go_on.wait()
        yield missed[start:end]

    worker.agent._read = read
    worker.model.gate.set()
    former = asyncio.create_task(worker.agent.catch_up(0, 1))
    await reading.wait()
    worker.assign()
    go_on.set()
    await former
    assert worker.agent.catching_up == [0, 1]
    assert [behind.doing for behind in worker.shards.coming_back.of(0)] == ["catching up"]


async def test_a_partition_that_goes_while_it_catches_up_stops_nothing(worker: Worker) -> None:
    missed = worker.fetched(0, *said(0, "tea"))

    async def read(partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        yield missed[start:end]
        worker.agent.own(frozenset({1}))

    worker.agent._read = read
    worker.model.gate.set()
    await worker.agent.catch_up(0, 1)
    await worker.agent.catch_up(0, 1)  # as it is tried again when the broker has not answered
    assert worker.agent.catching_up == [1]
