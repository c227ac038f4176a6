"""Nothing counts as flushed before the broker has taken all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from schemas.topics import Headers
from streams.kafka.commit.marks import END, READ, Progress
from streams.kafka.commit.outbox import Outbox, StateStore
from tables.windows.rows import Change, Rows


class Refused(KafkaError):  # type: ignore[misc]
    """What the broker answers when it does not take something."""


class Batch:
    """Records for one partition, like aiokafka's `BatchBuilder`: it takes so many, and always the first."""

    def __init__(self, room: int) -> None:
        self.room, self.records, self.closed = room, list[tuple[bytes, bytes | None]](), False

    def append(self, *, key: bytes, value: bytes | None, timestamp: int | None) -> object | None:
        assert not self.closed
        if len(self.records) >= self.room:
            return None
        self.records.append((key, value))
        return object()

    def close(self) -> None:
        self.closed = True


@dataclass
class Broker:
    """A producer whose broker acknowledges at once, unless told to hold back, or to refuse."""

    room: int = 1000
    refusing: set[bytes | str] = field(default_factory=set)
    #: Values of more bytes are refused by the client, and of more than that by the broker.
    most_sent: int = 1_000_000
    most_taken: int = 1_000_000
    #: Keys for which a whole batch is refused.
    odd: set[bytes] = field(default_factory=set)
    unreachable: bool = False
    held_back: bool = False
    log: list[tuple[str, int | None, bytes | None, bytes | None]] = field(default_factory=list)
    waiting: list[tuple[asyncio.Future[Any], Any]] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    attempts: int = 0

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None = None,
        *,
        headers: Headers,
    ) -> asyncio.Future[Any]:
        if value is not None and len(value) > self.most_sent:
            raise MessageSizeTooLargeError
        self.headers.append(headers)
        self.timestamps.append(timestamp_ms)
        self.attempts += 1
        return self._take(topic, partition, [(key, value)])

    def create_batch(self) -> Batch:
        return Batch(self.room)

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> asyncio.Future[Any]:
        await asyncio.sleep(0)  # aiokafka waits here for room in its buffer
        return self._take(topic, partition, batch.records)

    def _take(
        self, topic: str, partition: int | None, records: Sequence[tuple[bytes | None, bytes | None]]
    ) -> asyncio.Future[Any]:
        if self.unreachable:
            raise Refused(topic)
        taken: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.refusing & {topic, *(key for key, _ in records)}:
            taken.set_exception(Refused(topic))
            taken.exception()  # seen: asyncio would report it at the end, as nobody may ask again
        elif any(len(value or b"") > self.most_taken or key in self.odd for key, value in records):
            taken.set_exception(MessageSizeTooLargeError())
            taken.exception()
        else:
            at = SimpleNamespace(offset=sum((topic, partition) == record[:2] for record in self.log))
            self.log += [(topic, partition, key, value) for key, value in records]
            if self.held_back:
                self.waiting.append((taken, at))
            else:
                taken.set_result(at)
        return taken

    def acknowledge(self) -> None:
        for taken, at in self.waiting:
            taken.set_result(at)
        self.waiting.clear()

    def keys(self) -> list[bytes | None]:
        return [key for _, _, key, _ in self.log]


class Table:
    """A state store of texts."""

    def __init__(self) -> None:
        self.rows: Rows[str] = Rows(str.encode, bytes.decode)

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self.rows.restore(partition, rows)

    def own(self, partitions: frozenset[int]) -> None:
        self.rows.own(partitions)

    def drain(self) -> list[Change]:
        return self.rows.drain()

    def requeue(self, changes: Sequence[Change]) -> None:
        self.rows.requeue(changes)

    def written(self, changes: Sequence[Change]) -> None:
        self.rows.written(changes)

    def has_changes(self, partition: int) -> bool:
        return self.rows.has_changes(partition)

    def undo(self) -> None:
        self.rows.undo()


@dataclass
class Bench:
    """An outbox with the two tables, in the order in which the app adds them."""

    broker: Broker = field(default_factory=Broker)
    outbox: Outbox = field(default_factory=Outbox)
    exchanges: Table = field(default_factory=Table)
    sessions: Table = field(default_factory=Table)

    def __post_init__(self) -> None:
        self.outbox.add_table("exchanges", self.exchanges)
        self.outbox.add_table("sessions", self.sessions)
        self.outbox.connect(self.broker)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def steps(count: int = 20) -> None:
    """Let everything go on that can."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_the_tables_rows_are_a_state_store() -> None:
    rows: StateStore = Rows[str](str.encode, bytes.decode)
    assert rows.drain() == []


async def test_nothing_is_flushed_before_there_is_a_producer() -> None:
    assert not await Outbox().flush()


async def test_where_nothing_is_due_all_is_flushed(bench: Bench) -> None:
    assert await bench.outbox.flush()
    assert bench.broker.log == []


async def test_a_record_is_sent_at_once_with_all_it_has(bench: Bench) -> None:
    sent = await bench.outbox.send("t", b"v", key=b"k", partition=3, headers=[("h", b"1")])
    assert (bench.broker.log, bench.broker.headers) == ([("t", 3, b"k", b"v")], [[("h", b"1")]])
    assert sent.done()


async def test_exchanges_are_put_before_sessions_and_deleted_after_them(bench: Bench) -> None:
    """A session never points at an exchange that is not there."""
    for table in (bench.exchanges, bench.sessions):
        table.rows.put(0, b"old", "x")
    assert await bench.outbox.flush()
    bench.broker.log.clear()
    for table in (bench.sessions, bench.exchanges):
        table.rows.delete(0, b"old")
        table.rows.put(0, b"new", "y")
    assert await bench.outbox.flush()
    assert bench.broker.log == [
        ("exchanges", 0, b"new", b"y"),
        ("sessions", 0, b"new", b"y"),
        ("sessions", 0, b"old", None),
        ("exchanges", 0, b"old", None),
    ]


async def test_each_step_waits_for_the_one_before(bench: Bench) -> None:
    """Records, then exchanges, then sessions: the next is sent when the last is acknowledged."""
    bench.broker.held_back = True
    await bench.outbox.send("long-term", b"promotion", key=b"u")
    bench.exchanges.rows.put(0, b"e", "x")
    bench.sessions.rows.put(0, b"s", "x")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    for expected in ([b"u"], [b"u", b"e"], [b"u", b"e", b"s"]):
        await steps()
        assert (bench.broker.keys(), flushing.done()) == (expected, False)
        bench.broker.acknowledge()
    assert await flushing


async def test_rows_go_to_their_own_partitions(bench: Bench) -> None:
    for partition in (2, 0):
        bench.sessions.rows.put(partition, b"k", f"in {partition}")
    assert await bench.outbox.flush()
    assert sorted(bench.broker.log, key=str) == [("sessions", 0, b"k", b"in 0"), ("sessions", 2, b"k", b"in 2")]


@pytest.mark.parametrize("room", [1, 2, 3])
async def test_what_does_not_fit_into_one_batch_goes_into_the_next(room: int) -> None:
    bench = Bench(Broker(room=room))
    for number in range(7):
        bench.sessions.rows.put(0, b"%d" % number, "x")
    assert await bench.outbox.flush()
    assert bench.broker.keys() == [b"%d" % number for number in range(7)]


async def test_values_are_taken_in_one_step(bench: Bench) -> None:
    """What changes while the attempt is under way belongs to the next: the commit's offsets do not cover it."""
    bench.broker.held_back = True
    bench.exchanges.rows.put(0, b"e1", "x")
    bench.sessions.rows.put(0, b"s", "points at e1")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    bench.exchanges.rows.put(0, b"e2", "x")
    bench.sessions.rows.put(0, b"s", "points at e2")
    bench.broker.held_back = False
    bench.broker.acknowledge()
    assert await flushing
    assert bench.broker.log == [("exchanges", 0, b"e1", b"x"), ("sessions", 0, b"s", b"points at e1")]
    assert await bench.outbox.flush()
    assert bench.broker.log[2:] == [("exchanges", 0, b"e2", b"x"), ("sessions", 0, b"s", b"points at e2")]


async def test_up_to_where_records_were_read_is_written_behind_all_rows(bench: Bench) -> None:
    """Before them, it would be taken for read again where the rows are not there."""
    reached = {0: 7}
    progress = Progress(lambda: reached)
    bench.outbox.add_table("last", Rows(str.encode, bytes.decode), progress=progress)
    bench.sessions.rows.put(0, b"s", "x")
    bench.exchanges.rows.put(0, b"e", "x")
    assert await bench.outbox.flush()
    bench.exchanges.rows.delete(0, b"e")
    reached[0] = 9
    assert await bench.outbox.flush()
    assert await bench.outbox.flush()  # nothing has changed
    assert bench.broker.log == [
        ("exchanges", 0, b"e", b"x"),
        ("sessions", 0, b"s", b"x"),
        ("last", 0, READ, b"7"),
        ("exchanges", 0, b"e", None),
        ("last", 0, READ, b"9"),
    ]
    assert progress.written(0) == 9


async def test_it_is_no_older_than_the_rows_that_are_written_before_it(bench: Bench) -> None:
    """What is read while they are written is written with the next."""
    reached = {0: 7}
    progress = Progress(lambda: reached)
    bench.outbox.add_table("last", Rows(str.encode, bytes.decode), progress=progress)
    bench.broker.held_back = True
    bench.sessions.rows.put(0, b"s", "x")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    reached[0] = 8
    bench.broker.held_back = False
    bench.broker.acknowledge()
    assert await flushing
    assert progress.written(0) == 7


async def test_where_it_is_refused_it_does_not_count_as_written(bench: Bench) -> None:
    progress = Progress(lambda: {0: 7})
    bench.outbox.add_table("last", Rows(str.encode, bytes.decode), progress=progress)
    bench.broker.refusing = {"last"}
    assert not await bench.outbox.flush()
    assert progress.written(0) == 0
    bench.broker.refusing = set()
    assert await bench.outbox.flush()
    assert (progress.written(0), bench.broker.log) == (7, [("last", 0, READ, b"7")])


async def test_a_mark_lies_behind_what_is_being_written(bench: Bench) -> None:
    bench.broker.held_back = True
    bench.sessions.rows.put(1, b"s", "x")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    marking = asyncio.ensure_future(bench.outbox.mark({"sessions": [0, 1]}))
    await steps()
    bench.broker.held_back = False
    bench.broker.acknowledge()
    assert await flushing
    assert await marking == {("sessions", 0): 0, ("sessions", 1): 1}
    assert bench.broker.log[1:] == [("sessions", 0, END, None), ("sessions", 1, END, None)]


async def test_what_is_sent_while_flushing_is_due_at_the_next(bench: Bench) -> None:
    bench.broker.held_back = True
    await bench.outbox.send("t", b"1")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    first, bench.broker.waiting = bench.broker.waiting, []
    await bench.outbox.send("t", b"2")
    ((taken, at),) = first
    taken.set_result(at)
    assert await flushing
    again = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    assert not again.done()
    bench.broker.acknowledge()
    assert await again


async def test_two_attempts_do_not_overlap(bench: Bench) -> None:
    bench.broker.held_back = True
    bench.sessions.rows.put(0, b"s", "old")
    first = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    bench.sessions.rows.put(0, b"s", "new")
    second = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    assert [value for _, _, _, value in bench.broker.log] == [b"old"]
    bench.broker.held_back = False
    bench.broker.acknowledge()
    assert await first
    assert await second
    assert [value for _, _, _, value in bench.broker.log] == [b"old", b"new"]


async def test_a_refused_record_is_not_flushed_and_is_sent_again(bench: Bench) -> None:
    bench.broker.refusing = {b"u"}
    await bench.outbox.send("t", b"lost", key=b"u", headers=[("h", b"1")])
    await bench.outbox.send("t", b"taken", key=b"v")
    assert not await bench.outbox.flush()
    assert not await bench.outbox.flush()  # still refused
    bench.broker.refusing.clear()
    assert not await bench.outbox.flush()  # sent again only now
    assert await bench.outbox.flush()
    assert bench.broker.log == [("t", None, b"v", b"taken"), ("t", None, b"u", b"lost")]
    assert bench.broker.headers[-1] == [("h", b"1")]


async def test_a_refused_record_keeps_the_tables_back(bench: Bench) -> None:
    """The state says that a promotion was sent: it is not written before it was."""
    bench.broker.refusing = {b"u"}
    await bench.outbox.send("long-term", b"promotion", key=b"u")
    bench.sessions.rows.put(0, b"s", "promoted")
    assert not await bench.outbox.flush()
    assert bench.broker.log == []
    bench.broker.refusing.clear()
    assert not await bench.outbox.flush()
    assert await bench.outbox.flush()
    assert bench.broker.keys() == [b"u", b"s"]


@pytest.mark.parametrize("refused", ["exchanges", "sessions"])
async def test_changes_that_were_refused_go_back_and_are_written_again(bench: Bench, refused: str) -> None:
    bench.broker.refusing = {refused}
    bench.exchanges.rows.put(0, b"e", "x")
    bench.sessions.rows.put(0, b"s", "x")
    assert not await bench.outbox.flush()
    bench.broker.refusing.clear()
    bench.broker.log.clear()
    assert await bench.outbox.flush()
    assert bench.broker.log == [("exchanges", 0, b"e", b"x"), ("sessions", 0, b"s", b"x")]
    assert await bench.outbox.flush()
    assert len(bench.broker.log) == 2


async def test_a_deletion_that_was_refused_is_written_again(bench: Bench) -> None:
    bench.exchanges.rows.put(0, b"e", "x")
    assert await bench.outbox.flush()
    bench.exchanges.rows.delete(0, b"e")
    bench.broker.refusing = {"exchanges"}
    assert not await bench.outbox.flush()
    bench.broker.refusing.clear()
    assert await bench.outbox.flush()
    assert bench.broker.log[-1] == ("exchanges", 0, b"e", None)


async def test_a_newer_value_wins_over_one_that_goes_back(bench: Bench) -> None:
    bench.broker.held_back = True
    await bench.outbox.send("t", b"1")
    bench.sessions.rows.put(0, b"s", "old")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    bench.sessions.rows.put(0, b"s", "new")
    ((taken, _),) = bench.broker.waiting
    bench.broker.waiting.clear()
    bench.broker.held_back = False
    taken.set_exception(Refused())
    assert not await flushing
    assert await bench.outbox.flush()
    assert [value for _, _, key, value in bench.broker.log if key == b"s"] == [b"new"]


async def test_a_failure_is_logged_without_what_was_said(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.broker.refusing = {b"u"}
    await bench.outbox.send("siltstone.long-term", b"my secret", key=b"u")
    await bench.outbox.flush()
    (record,) = [record for record in caplog.records if record.name == "streams.kafka.commit.outbox"]
    assert (record.levelname, "Refused" in record.getMessage()) == ("ERROR", True)
    assert "my secret" not in record.getMessage()


async def test_a_record_that_cannot_even_be_sent_again_stays_due(bench: Bench) -> None:
    """The broker refuses it, and is then out of reach: an attempt fails, it does not raise and forget."""
    bench.broker.refusing = {b"u"}
    await bench.outbox.send("t", b"lost", key=b"u")
    await bench.outbox.send("t", b"lost too", key=b"u")
    bench.broker.unreachable = True
    for _ in range(3):
        assert not await bench.outbox.flush()
    bench.broker.unreachable = False
    bench.broker.refusing.clear()
    assert await flushed_at_last(bench.outbox)
    assert [value for _, _, _, value in bench.broker.log] == [b"lost", b"lost too"]


async def flushed_at_last(outbox: Outbox) -> bool:
    """Whether it is flushed within a few attempts."""
    for _ in range(5):
        if await outbox.flush():
            return True
    return False


async def test_a_cancelled_attempt_leaves_records_and_changes_due(bench: Bench) -> None:
    """A worker that stops cancels its commits; the last one must not pass over what they took."""
    bench.broker.held_back = True
    await bench.outbox.send("t", b"1")
    bench.sessions.rows.put(0, b"s", "x")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing
    again = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    assert not again.done()  # the record is not acknowledged yet
    assert bench.broker.keys() == [None]
    bench.broker.held_back = False
    bench.broker.acknowledge()
    assert await again
    assert bench.broker.keys() == [None, b"s"]


async def test_a_cancelled_attempt_does_not_take_the_record_back(bench: Bench) -> None:
    """It is on its way: who sent it may be waiting for its acknowledgement."""
    bench.broker.held_back = True
    sent = await bench.outbox.send("t", b"1")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    flushing.cancel()
    await steps()
    bench.broker.acknowledge()
    await sent
    assert bench.broker.keys() == [None]


async def test_what_is_posted_is_acknowledged_before_the_change_it_follows_from_is_written(bench: Bench) -> None:
    """Though nobody has delivered it: else a crash in between would lose it."""
    bench.broker.held_back = True
    bench.sessions.rows.put(0, b"s", "x")
    bench.outbox.post("long-term", b"promotion", key=b"u")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    assert (bench.broker.keys(), flushing.done()) == ([b"u"], False)
    bench.broker.acknowledge()
    await steps()
    assert bench.broker.keys() == [b"u", b"s"]
    bench.broker.acknowledge()
    assert await flushing


async def test_what_is_posted_is_sent_once_and_in_its_order(bench: Bench) -> None:
    """However many deliver at the same time."""
    for key in (b"1", b"2", b"3"):
        bench.outbox.post("long-term", b"x", key=key)
    await asyncio.gather(bench.outbox.deliver(), bench.outbox.flush(), bench.outbox.deliver())
    assert bench.broker.keys() == [b"1", b"2", b"3"]


async def test_what_could_not_be_delivered_is_delivered_later(bench: Bench) -> None:
    bench.broker.unreachable = True
    bench.outbox.post("long-term", b"x", key=b"1")
    bench.sessions.rows.put(0, b"s", "x")
    assert not await bench.outbox.flush()
    bench.broker.unreachable = False
    assert await bench.outbox.flush()
    assert bench.broker.keys() == [b"1", b"s"]


def refused_by(bench: Bench) -> list[tuple[str, bytes | None]]:
    """Topic and key of what is given up from now on."""
    given_up: list[tuple[str, bytes | None]] = []
    bench.outbox.when_refused = lambda refused: given_up.append((refused.topic, refused.key))
    return given_up


async def test_what_the_client_refuses_for_good_holds_up_nothing_behind_it(bench: Bench) -> None:
    given_up, bench.broker.most_sent = refused_by(bench), 5
    bench.outbox.post("long-term", b"much too large", key=b"1")
    bench.outbox.post("long-term", b"x", key=b"2")
    bench.sessions.rows.put(0, b"s", "x")
    assert await bench.outbox.flush()
    assert given_up == [("long-term", b"1")]
    assert bench.broker.keys() == [b"2", b"s"]


async def test_what_the_broker_refuses_for_good_is_sent_once_more_alone_and_then_given_up(bench: Bench) -> None:
    given_up, bench.broker.most_taken = refused_by(bench), 5
    bench.outbox.post("long-term", b"much too large", key=b"1")
    bench.outbox.post("long-term", b"x", key=b"2")
    bench.sessions.rows.put(0, b"s", "x")
    assert await flushed_at_last(bench.outbox)
    assert given_up == [("long-term", b"1")]
    assert bench.broker.keys() == [b"2", b"s"]
    assert bench.broker.attempts == 3


async def test_what_takes_the_place_of_a_refused_record_is_flushed_with_the_rest(bench: Bench) -> None:
    bench.broker.most_sent = 5
    bench.outbox.when_refused = lambda refused: bench.outbox.post("dead-letters", b"cut", key=refused.key)
    bench.outbox.post("long-term", b"much too large", key=b"1")
    assert await bench.outbox.flush()
    assert [(topic, value) for topic, _, _, value in bench.broker.log] == [("dead-letters", b"cut")]


async def test_a_row_that_is_refused_for_good_is_left_out_and_no_other_of_its_batch(bench: Bench) -> None:
    given_up, bench.broker.odd = refused_by(bench), {b"2"}
    for key in (b"1", b"2", b"3"):
        bench.sessions.rows.put(0, key, "x")
    assert await bench.outbox.flush()
    assert given_up == [("sessions", b"2")]
    assert bench.broker.keys() == [b"1", b"3"]
    assert await bench.outbox.flush()
    assert len(bench.broker.log) == 2


async def test_no_commit_waits_for_what_a_caller_waits_for(bench: Bench) -> None:
    """The caller is told that it was refused; whoever sends it again sends it once."""
    bench.broker.refusing = {b"u"}
    answer = await bench.outbox.produce("t", b"v", key=b"u")
    assert isinstance(answer.exception(), Refused)
    assert await bench.outbox.flush()
    assert bench.broker.log == []


async def test_a_posted_record_may_have_a_time_of_its_own(bench: Bench) -> None:
    bench.outbox.post("t", b"v", key=b"u", timestamp=1234)
    bench.outbox.post("t", b"v", key=b"u")
    await bench.outbox.deliver()
    assert bench.broker.timestamps == [1234, None]


async def test_how_long_the_broker_keeps_an_attempt_waiting_is_known() -> None:
    now = [0.0]
    bench = Bench(outbox=Outbox(lambda: now[0]))
    bench.broker.held_back = True
    assert bench.outbox.waits() == 0
    await bench.outbox.send("t", b"1")
    flushing = asyncio.ensure_future(bench.outbox.flush())
    await steps()
    now[0] += 12
    assert bench.outbox.waits() == 12
    bench.broker.acknowledge()
    assert await flushing
    assert bench.outbox.waits() == 0
