"""The one module that touches Faust's inside (faust-streaming 0.15.3, aiokafka driver).

Replaced, and why:

    Consumer._getmany            a partition's fetched records become one message, whose value is the list, those of
                                 changelogs as well; nothing that came over a new connection is used before it is
                                 known to be of the same log; offsets without a record are passed over, and told
                                 where there was one; what lies before the next offset is of a leader that lags
    Consumer._to_message         … which is entered in the partition's `Ledger`
    Consumer.ack                 acknowledges whole batches; never one that was skipped because of a rebalance
    Consumer._add_gap,
    Consumer._filter_tps_with_pending_acks,
    Consumer._new_offset         the ledger answers instead of lists of single offsets
    Consumer._commit_offsets     the outbox is flushed first: no offset without its effects; and before that, the
                                 group confirms that we are a member: what a worker that was paused holds is out of
                                 date
    Consumer.wait_first          handing a batch to an agent that has room for it makes no tasks: four of them for a
                                 batch wait for all else that is ready, and under load that was a tenth of a second
    Consumer.perform_seek        flow stops, then partitions without a commit go to their start: Faust reads
                                 between the resumption of partitions and of flow, and drops what it read
    Consumer.seek_wait           … and of changelogs, to where recovery begins: a fetch that was under way brings rows
                                 before flow resumes, which Faust would drop, and wait for them for ever
    Consumer.on_partitions_…     ledgers end with their assignment
    Stream.__aiter__             the Python iteration: the Cython one acknowledges past `Consumer.ack`
    AIOKafkaConsumerThread._create_worker_consumer   fetches are not held back for one and a half seconds, and bring
                                 no records of transactions that were aborted; commits say that they are ours
    AIOKafkaConsumerThread.Worker   a daemon: beside a dead broker it would outlive the worker
    AIOKafkaConsumerThread._highwaters   Tansu answers with the base offset of the last batch + 1, which is too early,
                                 or with an end that is not there. The end is taken from a fetch; on Apache Kafka
                                 both agree
    AIOKafkaConsumerThread._commit   … notes what the broker took: Faust notes what was refused as committed, too
    AIOKafkaConsumerThread.seek_to_committed   … asks for no partitions where there are none, and notes which offsets
                                 are not ours
    Table.apply_changelog_batch, persisted_offset, on_rebalance, on_recovery_completed
                                 rows live in a `StateStore`, by partition; they are read a fetched batch at a time,
                                 of partitions that stay only what we have not read or written ourselves
    Recovery._slurp_changelogs, _set_recovery_started
                                 no event of an earlier assignment counts as read, and an end that comes before
                                 anybody waits for it is not missed: Faust would wait for another one for ever
    Recovery._build_highwaters   a changelog ends where a mark of ours came to lie
    Recovery._build_offsets      a changelog that ends before what we have of it is another one
    TableManager.on_start        no second is waited for tables: they are there
    Recovery._wait               a broker that does not answer in time is asked again: Faust's recovery would end
    PartitionAssignor._perform_assignment, on_assignment
                                 partitions go where their state is (`assignor` says why); the address that comes
                                 with an assignment may be a former one

`check_faust` compares the sources of these methods with what this module was written for.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import aiokafka
import faust
from aiokafka.errors import IllegalStateError, KafkaError
from aiokafka.protocol.group import JoinGroupRequest
from faust.assignor.partition_assignor import PartitionAssignor
from faust.serializers.schemas import Schema
from faust.tables.base import Collection
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport import consumer as base
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.services import WaitResults
from mode.threads import WorkerThread
from yarl import URL

from schemas.errors import BrokerEmptied, FaustChanged, NotReady, SiltstoneError
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.clients.closing import stop_when_stopped
from streams.kafka.clients.header_names import FetchedRecord, take_any_header_name
from streams.kafka.clients.log_reader import ends
from streams.kafka.commit.attempts import Attempts, Failing
from streams.kafka.commit.kept_partitions import KeptPartitions
from streams.kafka.commit.ledger import Ledger
from streams.kafka.commit.marks import Progress
from streams.kafka.commit.outbox import Outbox, StateStore
from streams.kafka.commit.waiters import Waiters
from streams.kafka.faust.assignor import HeldAssignor, HeldState
from streams.kafka.faust.recovery import KeptTable, KeptTables
from streams.runtime.batch_handler import BatchHandler
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)

#: Batches that may wait in front of an agent before their partition's fetching pauses.
WAITING_BATCHES = 16

#: As many of all changelogs together, in front of their tables.
WAITING_CHANGELOG_BATCHES = 64

#: Faust resumes a changelog that recovery is done with where this is 1.
RECOVERY_BUFFER = 2

#: How long a broker may hold back a fetch that finds nothing. A node is asked one fetch at a time, so a partition
#: that is read to its buffer's end waits for one that asks others: with Faust's 1,500 ms, intake stands still.
FETCH_WAIT_MS = 50

#: The longest that a fetch waits here: it is for the partitions that were active when it began, and after a recovery
#: none of them is an agent's.
FETCH_SECONDS = 0.2

#: A leader that lags has what it lacks after moments. What it has not after so long is taken for lost.
LAGGING_SECONDS = 60.0

#: Before a leader that did not answer is asked once more.
ASK_AGAIN_SECONDS = 1.0

#: Why an attempt to commit ends before it has written anything, and at its end.
NO_MEMBER = "the group does not know this worker any more, or does not answer"
NOT_TAKEN = "the group does not take the offsets"

#: What an offset that a worker has committed comes with; who sets the group's offsets by hand leaves it out.
OURS = "siltstone"
#: With what it is tried whether that is kept.
TRIED = "siltstone?"

UNKNOWN_MEMBER_ID = JoinGroupRequest.UNKNOWN_MEMBER_ID

#: First 12 hex digits of the SHA-256 of each source that is overridden, or relied on, below.
EXPECTED_SOURCES = {
    "Consumer.getmany": "4b168d84882a",
    "Consumer._wait_next_records": "6218e1969a63",
    "Consumer._drain_messages": "44a2500309e8",
    "Consumer.ack": "5fcf41cf4515",
    "Consumer._add_gap": "4df2573ded7c",
    "Consumer._filter_tps_with_pending_acks": "f6f923977423",
    "Consumer._new_offset": "1d2c7ea89a7a",
    "Consumer._commit_offsets": "1a6979904118",
    "Consumer.perform_seek": "0e8c130ff4b0",
    "Consumer.on_partitions_revoked": "d04b7ae72c6f",
    "Consumer.on_partitions_assigned": "29ce96596f05",
    "driver.Consumer._to_message": "7c24f6511b2f",
    "driver.Consumer._new_consumer_thread": "0870ec53dea7",
    "driver.AIOKafkaConsumerThread._create_worker_consumer": "c2701bfc3e6f",
    "driver.AIOKafkaConsumerThread._wakeup_timer_in_thread": "25a1647d37d5",
    "driver.AIOKafkaConsumerThread._highwaters": "a7f4f97d9f32",
    "ThreadDelegateConsumer._getmany": "f9d47aa9010b",
    "ThreadDelegateConsumer.seek_wait": "e9db5bbc4ceb",
    "Stream.__aiter__": "e815c0e831f1",
    "Stream._py_aiter": "3a48ee257a65",
    "Collection.apply_changelog_batch": "b980a78d3ae9",
    "Collection.persisted_offset": "d473d3ab3fd6",
    "Collection.on_rebalance": "0812ad692171",
    "Collection.on_recovery_completed": "b1526fb39ea0",
    "driver.AIOKafkaConsumerThread._commit": "932852ce7a23",
    "driver.AIOKafkaConsumerThread.seek_to_committed": "775ab0adc4b0",
    "Recovery._restart_recovery": "6bd8a8558a2d",
    "Recovery._build_highwaters": "91b4cc0d3724",
    "Recovery._build_offsets": "27eec86be06c",
    "Recovery._slurp_changelogs": "7825c7e50f76",
    "Recovery._set_recovery_started": "bcfebf81ae13",
    "TableManager.on_start": "365dd25fbc0e",
    "Recovery._wait": "ec7429b70176",
    "PartitionAssignor._perform_assignment": "1e0bf2c5c8f4",
    "PartitionAssignor.on_assignment": "72f34bf053d6",
}


@functools.cache
def fingerprints() -> dict[str, str]:
    """The sources of the installed Faust, as in `EXPECTED_SOURCES`; a process has imported one, and reads it once."""
    owners = {
        "Consumer": base.Consumer,
        "ThreadDelegateConsumer": base.ThreadDelegateConsumer,
        "driver.Consumer": driver.Consumer,
        "driver.AIOKafkaConsumerThread": driver.AIOKafkaConsumerThread,
        "Stream": faust.Stream,
        "Collection": Collection,
        "Recovery": Recovery,
        "TableManager": TableManager,
        "PartitionAssignor": PartitionAssignor,
    }
    found = {}
    for name in EXPECTED_SOURCES:
        owner, method = name.rsplit(".", 1)
        function = getattr(owners[owner], method)
        source = inspect.getsource(getattr(function, "fun", function))  # a service's task wraps its function
        found[name] = hashlib.sha256(source.encode()).hexdigest()[:12]
    return found


def check_faust() -> None:
    """Raise `FaustChanged` when the installed Faust is not the one that this module overrides."""
    found = fingerprints()
    changed = [name for name, expected in EXPECTED_SOURCES.items() if found[name] != expected]
    if changed:
        raise FaustChanged(
            f"faust-streaming {faust.__version__} differs in {', '.join(changed)}: install the version that "
            "pyproject.toml pins"
        )


class _RecordsSchema(Schema[Any, Any]):
    """Keys and values reach the agent as they were fetched; agents decode, and make the dead letters."""

    def loads_key(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> Any:
        return message.key

    def loads_value(self, app: Any, message: Any, *, loads: Any = None, serializer: Any = None) -> Any:
        return message.value


class _Stream(faust.Stream[Any]):
    def __aiter__(self) -> Any:
        return self._py_aiter()


class _DaemonThread(WorkerThread):
    def __init__(self, service: Any, **kwargs: Any) -> None:
        super().__init__(service, **kwargs)
        self.daemon = True


class _Thread(driver.AIOKafkaConsumerThread):
    Worker = _DaemonThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The offsets that the broker has, as it said itself.
        self.known: dict[TP, int] = {}
        #: Where this worker has committed an offset itself.
        self.committed: set[TP] = set()
        #: Of those that were sought, what somebody else has committed, or came without a note.
        self.others: Mapping[TP, int] = {}
        #: The same where the broker keeps notes.
        self.moved: Mapping[TP, int] = {}
        self._keeps: bool | None = None

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = cast(_Transport, self.transport).hot.isolation_level
        commit = consumer.commit

        async def signed(offsets: Mapping[Any, Any]) -> None:
            await commit({tp: (committed.offset, OURS) for tp, committed in offsets.items()})

        consumer.commit = signed
        return consumer

    async def _wakeup_timer_in_thread(self) -> None:
        """Faust schedules a coroutine on the worker's loop each second; a closed loop would never await it."""
        self.last_wakeup_at = time.monotonic()
        with contextlib.suppress(RuntimeError):
            self.parent_loop.call_soon_threadsafe(int)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        ours = self.assignment()
        taken = {tp: offset for tp, offset in offsets.items() if tp in ours}
        if not taken or not await super()._commit(taken):
            return False
        self.known |= taken
        self.committed |= taken.keys()
        return True

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Raises `IllegalStateError` where partitions are revoked meanwhile."""
        consumer = self._ensure_consumer()
        if not (ours := [driver.ensure_aiokafka_TP(tp) for tp in consumer.assignment()]):
            return {}
        committed = await self.call_thread(consumer.seek_to_committed, *ours)
        self.known |= {TP(*tp): offset for tp, offset in committed.items() if offset}
        found = await self.call_thread(consumer._coordinator.fetch_committed_offsets, ours)
        self.others = {TP(*tp): by.offset for tp, by in found.items() if by.offset > 0 and by.metadata != OURS}
        self.moved = self.others if await self.call_thread(self._keeps_metadata, self.others) else {}
        return cast(Mapping[TP, int], committed)

    async def _keeps_metadata(self, offsets: Mapping[TP, int]) -> bool:
        """Whether the broker keeps what offsets come with, tried with one of these; the embedded one does not."""
        if not offsets:
            return False
        if self._keeps is None:
            consumer = self._ensure_consumer()
            tp, offset = next((driver.ensure_aiokafka_TP(tp), offset) for tp, offset in offsets.items())
            try:
                await type(consumer).commit(consumer, {tp: (offset, TRIED)})
            except KafkaError as exc:  # the partitions are moving: whoever has them next seeks them, too
                log.info("%s[%d]: whose offset it is was not found out: %s", tp.topic, tp.partition, exc)
                return False
            self._keeps = (await consumer._coordinator.fetch_committed_offsets([tp]))[tp].metadata == TRIED
        return self._keeps

    async def is_member(self) -> bool:
        """Whether the group's coordinator says, now, that we belong to the group's current generation."""
        coordinator = self._ensure_consumer()._coordinator
        if coordinator.member_id == UNKNOWN_MEMBER_ID:
            return False
        try:
            return bool(await coordinator._do_heartbeat())
        except NOT_ALLOWED:
            raise
        except KafkaError as exc:
            log.error("the group's coordinator refuses a heartbeat: %s", exc)
            return False

    async def _highwaters(self, partitions: list[TP]) -> Mapping[TP, int]:
        conf, transport = self.app.conf, cast(_Transport, self.transport)
        probe = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=driver.server_list(transport.url, transport.default_port),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            isolation_level=transport.hot.isolation_level,
            **driver.credentials_to_aiokafka_auth(conf.broker_credentials, conf.ssl_context),
        )
        try:
            await probe.start()
            asked = [driver.ensure_aiokafka_TP(tp) for tp in partitions]
            probe.assign(asked)
            return {TP(*tp): end for tp, end in (await ends(probe, asked)).items()}
        finally:
            await probe.stop()


class _Consumer(driver.Consumer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hot: HotPath = cast(_Transport, self.transport).hot
        self._ledgers: defaultdict[TP, Ledger] = defaultdict(Ledger)
        self._seeks = 0
        #: Where the last recovery began to read its changelogs, and how many have begun.
        self._restored_from: Mapping[TP, int] = {}
        self._recoveries = 0
        self._connections: dict[Any, Any] = {}
        self._expected: dict[TP, int] = {}
        self._told_lost: dict[TP, int] = {}
        self._back_since: dict[TP, float] = {}
        self.sought: set[TP] = set()
        self.from_start: set[TP] = set()

    def _new_consumer_thread(self) -> _Thread:
        return _Thread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        try:
            return await self._fetched(active_partitions, min(timeout, FETCH_SECONDS))
        except NOT_ALLOWED as exc:
            self._hot.halt(exc, "a fetch")
            await asyncio.sleep(timeout)  # it is refused at once, and would be asked for again at once
            return {}

    async def _fetched(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        seeks, recoveries = self._seeks, self._recoveries
        fetched = await super()._getmany(set(active_partitions or ()), timeout)
        if recoveries != self._recoveries:
            fetched = await self._without_rows(fetched)
        if seeks == self._seeks and (back := self._steps_back(fetched)):
            fetched = await self._without_steps_back(fetched, back)
        if gaps := self._gaps(fetched):
            await self._pass_over(gaps, fetched)
        if seeks != self._seeks:
            # Fetched across a seek: these records may lie before or after the new position.
            with contextlib.suppress(IllegalStateError):  # they are being revoked: those that come are sought then
                await self._seek_to_start()
            return {}
        if self._reconnected() and not await self._is_still_the_same_log(self._hot.on_reconnect):
            return {}
        return {
            tp: [_whole(records)]
            if records and (tp.topic in self._hot.topics or tp.topic in self._hot.changelogs)
            else records
            for tp, records in fetched.items()
        }

    async def _without_rows(self, fetched: Mapping[TP, Any]) -> Mapping[TP, Any]:
        """Changelogs are read from where recovery begins: these rows may be of before, and would be dropped."""
        rows = {tp: start for tp, start in self._restored_from.items() if tp in fetched}
        with contextlib.suppress(IllegalStateError):  # they are being revoked: whoever has them next seeks them, too
            await super().seek_wait(rows)
        return {tp: records for tp, records in fetched.items() if tp not in rows}

    def _steps_back(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, int]:
        """Where what comes lies before what is next, by the offset of that.

        A leader that has fallen behind has no such offset, and the client goes to the log's start. What still comes
        of it after a time is what there is.
        """
        now, back = time.monotonic(), {}
        for tp, expected in self._expected.items():
            if records := fetched.get(tp):
                if records[0].offset >= expected:
                    self._back_since.pop(tp, None)
                elif now < self._back_since.setdefault(tp, now) + LAGGING_SECONDS:
                    back[tp] = expected
                else:
                    self._hot.begin_anew(tp)
        return back

    async def _without_steps_back(self, fetched: Mapping[TP, Any], back: Mapping[TP, int]) -> Mapping[TP, Any]:
        for tp, expected in back.items():
            log.warning(
                "%s[%d]: its leader has no offset %d yet, and is asked again", tp.topic, tp.partition, expected
            )
        with contextlib.suppress(IllegalStateError):  # they are being revoked: those that come are sought then
            await super().seek_wait(back)
        return {tp: records for tp, records in fetched.items() if tp not in back}

    def _gaps(self, fetched: Mapping[TP, Sequence[Any]]) -> dict[TP, tuple[int, int]]:
        """Where offsets were passed that no record came of: from the one that was expected up to the next.

        Nobody but the caller takes what was fetched, so a position is where the partition's last record was.
        """
        gaps = {}
        subscription = cast(Any, self._thread)._consumer._subscription.subscription
        states = subscription and subscription.assignment
        for tp, expected in self._expected.items():
            if records := fetched.get(tp):
                reached = records[0].offset
                self._expected[tp] = records[-1].offset + 1
            else:
                state = states and states.state_value(tp)
                reached = state._position if state is not None else None
            if reached is not None and reached > expected:
                gaps[tp] = (expected, reached)
        return gaps

    async def _pass_over(self, gaps: Mapping[TP, tuple[int, int]], fetched: Mapping[TP, Sequence[Any]]) -> None:
        """Markers and aborted records are no loss; what is no longer in the log is, and is told."""
        seeks, earliest = self._seeks, await self._earliest(gaps)
        if seeks != self._seeks:
            return
        for tp, (start, end) in gaps.items():
            records = fetched.get(tp)
            begin, first = max(start, self._told_lost.get(tp, 0)), min(earliest[tp], end)
            if first > begin:  # a seek before the next commit passes the same ones again
                self._told_lost[tp] = first
                lost = Lost(tp.topic, tp.partition, begin, first, records[0].timestamp if records else None)
                for tell in self._hot.on_lost:
                    tell(lost)
            if not records:
                self._expected[tp] = end
                self._ledgers[tp].pass_over(start, end)

    async def _earliest(self, partitions: Iterable[TP]) -> Mapping[TP, int]:
        """Asked until it is answered: the partition's leader was there a moment ago."""
        while True:
            try:
                return await self.earliest_offsets(*partitions)
            except NOT_ALLOWED:
                raise
            except KafkaError as exc:
                log.error("the log's first offsets are not to be had: %s", exc)
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    def _reconnected(self) -> bool:
        """Whether a connection to a broker was made anew since the last fetch: it may be another broker."""
        connections = dict(cast(Any, self._thread)._consumer._client._conns)
        anew = any(self._connections.get(node, made) is not made for node, made in connections.items())
        self._connections |= connections
        return anew

    async def _is_still_the_same_log(self, checks: Sequence[Callable[[], Awaitable[None]]]) -> bool:
        """Where it is not, the offsets that we hold are of another one: nothing that was fetched may be used."""
        try:
            for check in checks:
                await check()
        except SiltstoneError as exc:
            self._hot.halt(exc, "the log")
        return self._hot.halted is None

    async def wait_first(self, *coros: Any, timeout: Any = None) -> WaitResults:
        first, *others = coros
        if not isinstance(first, Coroutine):
            return await super().wait_first(*coros, timeout=timeout)
        try:
            waits_for = first.send(None)
        except BaseException as ended:
            for other in others:
                if isinstance(other, Coroutine):
                    other.close()  # nobody awaits it
            if isinstance(ended, StopIteration):  # it had nothing to wait for
                return WaitResults([first], [ended.value], False)
            raise
        return await super().wait_first(_Begun(first, waits_for), *others, timeout=timeout)

    def _to_message(self, tp: TP, record: Any) -> Any:
        if tp.topic in self._hot.topics:
            self._ledgers[tp].deliver(record.offset)
        return super()._to_message(tp, record)

    def ack(self, message: Any) -> bool:
        if message.topic not in self._hot.topics:
            return super().ack(message)
        if message.acked:
            return False
        message.acked = True
        self._unacked_messages.discard(message)
        effects = self._hot.effects.pop((message.tp, message.offset), None)
        # Faust acknowledges what it skips in a rebalance, and what an agent raised on.
        if self._hot.halted or self.is_stale(message):
            return False
        ledger = self._ledgers[message.tp]
        if effects is None:
            self._processed(message, ledger)
        else:
            effects.add_done_callback(lambda done: self._effects_are_done(message, ledger, done))
        return True

    def _effects_are_done(self, message: Any, ledger: Ledger, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        if (exc := done.exception()) is not None:
            self._hot.halt(exc, f"{message.topic}[{message.partition}]@{message.offset}")
            return
        self._processed(message, ledger)

    def _processed(self, message: Any, ledger: Ledger) -> None:
        ledger.acknowledge(message.offset)
        if self._hot.waiters and self._ledgers.get(message.tp) is ledger:
            self._hot.waiters.reached(message.tp, ledger.committable() or 0)

    def is_stale(self, message: Any) -> bool:
        """Whether the partitions may have moved since the message was fetched."""
        return message.generation_id != self.app.consumer_generation_id or not self.app.flow_control.is_active()

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        if tp.topic not in self._hot.topics:
            await super()._add_gap(tp, offset_from, offset_to)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return iter([tp for tp in self._ledgers if topics is None or tp in topics or tp.topic in topics])

    def _new_offset(self, tp: TP) -> int | None:
        return self._ledgers[tp].committable()

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:
        if self._hot.halted:
            return False
        try:
            return await self._flushed_and_committed(offsets, start_new_transaction)
        except NOT_ALLOWED as exc:
            self._hot.halt(exc, "a commit")
            return False

    async def _flushed_and_committed(self, offsets: Mapping[TP, int], start_new_transaction: bool) -> bool:
        attempts = self._hot.attempts
        attempts.begin()
        ledgers = {tp: self._ledgers[tp] for tp in offsets}
        # Our partitions' next owner writes to the same changelogs: an older row must not come after a newer one.
        if not await self._thread.call_thread(cast(_Thread, self._thread).is_member):
            attempts.fail(NO_MEMBER)
            log.warning("nothing committed: %s", NO_MEMBER)
            return False
        if not await self._hot.outbox.flush():
            attempts.fail(self._hot.outbox.failure)
            return False
        if not await self._is_still_the_same_log(self._hot.before_commit):
            return False
        # Where partitions were assigned or sought meanwhile, records are read again: what they changed was undone.
        offsets = {tp: offset for tp, offset in offsets.items() if self._ledgers.get(tp) is ledgers[tp]}
        if took := await super()._commit_offsets(offsets, start_new_transaction):
            attempts.succeed()
        else:
            attempts.fail(NOT_TAKEN)
        known = cast(_Thread, self._thread).known
        self._committed_offset.update({tp: known.get(tp) for tp in offsets if tp in self._committed_offset})
        return took

    def done(self, tp: TP) -> int:
        """Records of the partition before this offset are processed."""
        return self._ledgers[tp].committable() or self.kept(tp)

    def kept(self, tp: TP) -> int:
        """Records of the partition before this offset are committed, or were there before we began."""
        return self._committed_offset.get(tp) or self._ledgers[tp].start

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self._restored_from, self._recoveries = dict(partitions), self._recoveries + 1
        await super().seek_wait(partitions)

    async def perform_seek(self) -> None:
        if self.flow_active:
            self.stop_flow()  # recovery resumes it right after this
        await self._seek_to_start()

    async def _seek_to_start(self) -> None:
        self._seeks += 1
        assignments = self._hot.assignments
        self._hot.forget_readable()
        self._expected.clear()
        self._ledgers.clear()
        self.sought.clear()
        self.from_start.clear()
        ours = {TP(*tp) for tp in self.assignment()}
        for tp in ours:
            self._committed_offset.pop(tp, None)  # what is not known any more stays as it was otherwise
        await super().perform_seek()
        self._require(assignments)
        thread = cast(_Thread, self._thread)
        for tp in ours:
            if tp.topic in self._hot.begun_anew and tp not in thread.committed:
                self._committed_offset.pop(tp, None)
                thread.known.pop(tp, None)
        uncommitted = [
            tp for tp in self.assignment() if not self._committed_offset.get(tp) and not self._is_changelog_tp(tp)
        ]
        expected = {tp: offset for tp, offset in self._committed_offset.items() if offset and tp in ours}
        for tp in (*uncommitted, *thread.others):  # whoever sets an offset back wants the records read
            self._hot.begin_anew(TP(*tp))
        if uncommitted:  # seek_to_committed() leaves these wherever they are
            starts = await self.earliest_offsets(*uncommitted)
            self._require(assignments)
            for tp, offset in starts.items():
                expected[TP(*tp)] = offset
                self._thread.seek(tp, offset)
                self._read_offset[TP(*tp)] = None
                if offset == 0:
                    self.from_start.add(TP(*tp))
        for tp, offset in expected.items():
            if tp.topic in self._hot.topics:
                self._ledgers[tp].begin(offset)
                self._expected[tp] = offset
        self.sought = ours  # what has come since is not among them, and its committed offset not known
        for call in self._hot.on_seek:
            await call()

    def _require(self, assignments: int) -> None:
        """Raise `IllegalStateError`, as a seek does, where partitions were assigned since: those are sought then."""
        if assignments != self._hot.assignments:
            raise IllegalStateError("partitions were assigned meanwhile")

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        self._hot.forget_readable()
        await super().on_partitions_revoked(revoked)
        for tp in revoked:
            self._ledgers.pop(tp, None)
            self._expected.pop(tp, None)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._hot.assignments += 1
        self._hot.forget_readable()
        self._ledgers.clear()
        self._expected.clear()
        await super().on_partitions_assigned(assigned, generation_id)


class Lost(NamedTuple):
    """Records that were deleted before they were read: offsets from `start` up to, not including, `end`.

    `next_at` is the Kafka timestamp (epoch ms) of the oldest one that is there; None where none is.
    """

    topic: str
    partition: int
    start: int
    end: int
    next_at: int | None


class Restored(NamedTuple):
    """What is held of a table's partition: so many records were read or written; its changelog begins at `start`."""

    table: str
    topic: str
    partition: int
    start: int
    rows: int


class _Begun:
    """A coroutine that was begun, and waits for a future."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> None:
        self._coroutine, self._waits_for = coroutine, waits_for

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            yield self._waits_for
        except BaseException as exc:
            self._coroutine.throw(exc)
            raise
        return (yield from self._coroutine.__await__())


def _whole(records: Sequence[Any]) -> FetchedRecord:
    """All of them as one record, which lies where the last of them does."""
    last = records[-1]
    return FetchedRecord(last.topic, last.partition, last.offset, last.timestamp, last.timestamp_type, None, records)


class _Transport(driver.Transport):
    Consumer = _Consumer
    hot: HotPath


class HotPath:
    """Installs itself in a Faust app; then topics are read in batches and tables write behind.

    hot = HotPath(app)
    hot.table("sessions", store, partitions=8)
    hot.agent("siltstone.conversations", handle)      # async def handle(partition, records)
    """

    def __init__(
        self, app: faust.App, isolation_level: str = "read_committed", stores: WindowStores | None = None
    ) -> None:
        check_faust()
        take_any_header_name()
        stop_when_stopped()
        self.app = app
        self.isolation_level = isolation_level
        self.topics: set[str] = set()
        #: The tables' topics. They are there when the app starts.
        self.changelogs: set[str] = set()
        #: How often partitions were assigned. What was read before an `await` is of the assignment of that moment.
        self.assignments = 0
        #: Topics that are another log than the group's offsets may be of: Kafka forgets those of a topic that is
        #: deleted, but perhaps after the next of its name was made. None counts before this worker commits one.
        self.begun_anew: frozenset[str] = frozenset()
        self.outbox = Outbox()
        self.outbox.on_not_allowed = partial(self.halt, where="what is due")
        #: Where the tables' rows are on the disk.
        self.stores = self.outbox.stores = stores
        #: Brings the rows of partitions that are opened, where anything is nearer than their changelogs.
        self.bring_windows: Callable[[Sequence[int]], Awaitable[None]] | None = None
        self.outbox.on_disk_failure = partial(self.halt, where="windows")
        self.attempts = Attempts()
        self._progress: dict[str, Progress] = {}
        self.effects: dict[tuple[TP, int], asyncio.Future[Any]] = {}
        self.waiters = Waiters()
        #: Of partitions in which a batch is readable and something of it is still under way: up to which offset.
        self._readable: dict[TP, int] = {}
        #: Requests to the broker that are under way, by topic: how far the log reaches.
        self._asking_ends: dict[str, asyncio.Future[dict[int, int]]] = {}
        self.on_seek: list[Callable[[], Awaitable[None]]] = []
        self.on_reconnect: list[Callable[[], Awaitable[None]]] = []
        self.before_commit: list[Callable[[], Awaitable[None]]] = []
        self.on_lost: list[Callable[[Lost], None]] = []
        self.halted: BaseException | None = None
        self._halted = asyncio.Event()
        app.conf.Stream = cast(Any, _Stream)
        app.conf.TableManager = cast(Any, KeptTables)
        app.conf.stream_buffer_maxsize = WAITING_CHANGELOG_BATCHES
        transport = _Transport(app.conf.broker_consumer, app)
        transport.hot = self
        app.transport = transport
        #: What this worker tells its group of the state that it holds.
        self.state = HeldState()
        app.conf.PartitionAssignor = cast(Any, HeldAssignor)
        cast(HeldAssignor, app.assignor).state = self.state

    def connect(self) -> None:
        """The producer has started: the outbox may send."""
        self.outbox.connect(cast(driver.Producer, self.app.producer)._ensure_producer())

    def table(
        self,
        name: str,
        store: StateStore,
        *,
        partitions: int,
        on_recovered: Callable[[], Awaitable[None]] | None = None,
        records_of: str | None = None,
    ) -> None:
        """A write-behind changelog for the store's rows, whose topic is there when the app starts.

        Tables are written in the order of these calls. No key begins with a zero byte. What this one's changelog says
        to be in the tables `records_of` a topic, the topic's agent is not given again.
        """
        progress = None
        if records_of is not None:
            progress = self._progress[records_of] = Progress(partial(self._committable, records_of))
        table = KeptTable(
            self.app,
            name=name,
            kept=store,
            halt=self.halt,
            mark=self._mark,
            progress=progress,
            on_disk=KeptPartitions(self.stores, self._bring_windows),
            partitions=partitions,
            schema=_RecordsSchema(),
            recovery_buffer_size=RECOVERY_BUFFER,
        )
        if on_recovered is not None:
            table.on_recover(on_recovered)
        self.app.tables.add(table)
        self.changelogs.add(table.changelog_topic_name)
        self.outbox.add_table(table.changelog_topic_name, store, table.positions, progress)

    async def _mark(self, changelogs: Mapping[str, Iterable[int]]) -> Mapping[tuple[str, int], int]:
        """Tried until it succeeds: without it nobody knows where the changelogs end."""
        self.attempts.begin()
        while True:
            try:
                await self.app.maybe_start_producer()
                self.connect()
                marked = await self.outbox.mark(changelogs)
            except NOT_ALLOWED as exc:
                self.halt(exc, "a changelog")
            except KafkaError as exc:
                log.error("a changelog takes nothing: %s: %s", type(exc).__name__, exc)
            else:
                self.attempts.succeed()
                return marked
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _bring_windows(self, partitions: Sequence[int]) -> None:
        if self.bring_windows is not None:
            await self.bring_windows(partitions)

    def _committable(self, topic: str) -> dict[int, int]:
        ledgers = cast(_Consumer, self.app.consumer)._ledgers
        reached = {tp.partition: ledger.committable() for tp, ledger in ledgers.items() if tp.topic == topic}
        return {partition: offset for partition, offset in reached.items() if offset is not None}

    def begin_anew(self, tp: TP) -> None:
        """Its records are those of another log."""
        if tp.topic in self._progress:
            self._progress[tp.topic].begin_anew(tp.partition)

    def agent(self, topic: str, handle: BatchHandler, *, name: str, readable_at_once: bool = False) -> None:
        """One agent, to which each fetched batch of a partition of `topic` is one event.

        `readable_at_once`: what a batch brings can be read when `handle` has returned, whatever is then awaited.
        """
        self.topics.add(topic)
        channel = self.app.topic(topic, schema=_RecordsSchema(), maxsize=WAITING_BATCHES)

        async def process(stream: Any) -> None:
            async for records in stream:
                message = stream.current_event.message
                try:
                    effects = await handle(message.partition, self._news(message.tp, records))
                    if effects is not None:
                        self.effects[message.tp, message.offset] = asyncio.ensure_future(effects)
                        if readable_at_once and not cast(_Consumer, self.app.consumer).is_stale(message):
                            self._readable[message.tp] = message.offset + 1
                            self.waiters.reached(message.tp, message.offset + 1)
                except Exception as exc:
                    if cast(_Consumer, self.app.consumer).is_stale(message):
                        log.info("%s[%d]: batch left to the next owner: %s", topic, message.partition, exc)
                    else:
                        self.halt(exc, f"{topic}[{message.partition}]@{records[0].offset}")

        self.app.agent(channel, name=name)(process)

    def _news(self, tp: TP, records: Sequence[Any]) -> Sequence[Any]:
        """Those that are not in the tables: the offset that they are read from may be an old one."""
        progress = self._progress.get(tp.topic)
        known = 0 if progress is None else progress.written(tp.partition)
        if records[0].offset >= known:
            return records
        return [record for record in records if record.offset >= known]

    def readable_before(self, topic: str, partition: int) -> int | None:
        """Everything that records before this offset bring can be read here; None where the partition is not ours."""
        consumer, tp = cast(_Consumer, self.app.consumer), TP(topic, partition)
        if tp not in consumer.sought or tp not in consumer.assignment():
            return None
        return max(consumer.done(tp), self._readable.get(tp, 0))

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait for what the record at `offset` brings; False where the partition is not ours, or moves meanwhile.

        It does not end where nobody writes such a record.
        """
        before = self.readable_before(topic, partition)
        if before is None or before > offset:
            return before is not None
        return await self.waiters.until(TP(topic, partition), offset)

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the log reaches this offset; True where the partition is not ours.

        The broker is asked where it is beyond what was heard of it, once for all who ask meanwhile.
        """
        consumer, tp = cast(_Consumer, self.app.consumer), TP(topic, partition)
        before = self.readable_before(topic, partition)
        if before is None or offset < max(before, consumer.highwater(tp) or 0):
            return True
        if (asking := self._asking_ends.get(topic)) is None:
            asking = self._asking_ends[topic] = asyncio.ensure_future(self.ends(topic))
            asking.add_done_callback(partial(self._asked_ends, topic))
        try:
            said = await asyncio.shield(asking)
        except (KafkaError, OSError) as exc:
            raise NotReady(f"how far the log reaches is not to be heard: {type(exc).__name__}; ask again") from exc
        return offset < said.get(partition, offset + 1)

    def _asked_ends(self, topic: str, asked: asyncio.Future[dict[int, int]]) -> None:
        """All who asked may have gone: then its error is no one's."""
        self._asking_ends.pop(topic, None)
        if not asked.cancelled():
            asked.exception()

    def forget_readable(self) -> None:
        """Partitions are assigned or sought anew: who waits is told so."""
        self._readable.clear()
        self.waiters.moved()

    def halt(self, exc: BaseException, where: str) -> None:
        """Nothing is acknowledged or committed from now on: what was being processed is read again later."""
        if self.halted is None:
            self.halted = exc
            if isinstance(exc, BrokerEmptied):  # whoever runs the worker says so, and starts it anew
                log.info("%s: the worker begins anew: %s", where, exc)
            elif not isinstance(exc, NOT_ALLOWED):  # which right it is, is found out, and told
                log.critical("%s: the worker stops, nothing is lost: %s: %s", where, type(exc).__name__, exc)
            self._halted.set()

    def abandon(self) -> None:
        """Faust was not stopped in time: what is cancelled from now on ends, and is not begun anew."""
        for agent in self.app.agents.values():
            if agent.supervisor is not None:  # it was not stopped yet
                agent.supervisor._stopped.set()

    async def until_halted(self) -> None:
        """Wait for a fault that must not be passed over; raises it."""
        await self._halted.wait()
        assert self.halted is not None
        raise self.halted

    @property
    def reaches_broker(self) -> bool:
        """Whether the broker that looks after our consumer group answered when it was last spoken to."""
        consumer = cast(Any, self.app.consumer)._thread._consumer
        return consumer is not None and consumer._coordinator.coordinator_id is not None

    def processed(self, topic: str, ends: Mapping[int, int] | None = None) -> int:
        """How many records of the topic are processed, from the start of the assigned partitions.

        With `ends`, of those before these offsets alone: `sum(ends.values())` when all of them are.
        """
        done = self._committable(topic)
        if ends is None:
            return sum(done.values())
        return sum(min(done.get(partition, 0), end) for partition, end in ends.items())

    async def ends(self, topic: str) -> dict[int, int]:
        """The offset after the newest record of each of our partitions of the topic, as the broker says it now."""
        consumer = cast(_Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic == topic]
        return {tp.partition: end for tp, end in (await consumer.highwaters(*ours)).items()}

    def committed(self, topic: str) -> dict[int, int]:
        """The group's offset in each of our partitions of the topic where it was sought since it was assigned."""
        consumer = cast(_Consumer, self.app.consumer)
        ours = [tp for tp in consumer.sought if tp.topic == topic and tp in consumer.assignment()]
        return {tp.partition: consumer._committed_offset.get(tp) or 0 for tp in ours}

    def read_from_start(self, topic: str) -> list[int]:
        """Our partitions of the topic of which the group has committed nothing, and all that there was is there."""
        consumer = cast(_Consumer, self.app.consumer)
        return [tp.partition for tp in consumer.from_start if tp.topic == topic]

    def has_begun_anew(self) -> bool:
        """Whether this worker has committed wherever its partitions of topics that are another log have records."""
        consumer = cast(_Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic in self.begun_anew]
        done = cast(_Thread, consumer._thread).committed
        return bool(ours) and all(tp in done or consumer.highwater(tp) == 0 for tp in ours)

    def moved(self, topic: str) -> dict[int, int]:
        """The group's offset in each of our partitions of the topic where it is none that a worker committed."""
        moved = cast(_Thread, cast(Any, self.app.consumer)._thread).moved
        return {tp.partition: offset for tp, offset in moved.items() if tp.topic == topic}

    def recovering(self) -> dict[int, tuple[int, int]]:
        """Changelog records that are read, and that there are to read, of each partition whose tables come back."""
        return cast(KeptTables, self.app.tables).kept_recovery.read_of_all()

    async def restored(self) -> list[Restored]:
        """What we hold since the last recovery, of each of our partitions of each table."""
        consumer = cast(_Consumer, self.app.consumer)
        ours = {TP(*tp) for tp in consumer.assignment()}
        tables = {
            TP(table.changelog_topic_name, partition): table
            for table in self.app.tables.values()
            if isinstance(table, KeptTable)
            for partition in range(table.partitions or 0)
        }
        found = {tp: table for tp, table in tables.items() if tp in ours}
        if not found:
            return []
        starts = await consumer._earliest(found)
        return [
            Restored(table.name, tp.topic, tp.partition, starts[tp], table.positions.rows[tp.partition])
            for tp, table in found.items()
            if tp.partition in table.positions.rows  # else it was assigned anew meanwhile, and is being read
        ]

    async def forgotten(self) -> list[str]:
        """Topics of which the broker knows a smaller committed offset than it has acknowledged to us."""
        thread = cast(Any, self.app.consumer)._thread
        told = {
            driver.ensure_aiokafka_TP(tp): offset for tp, offset in thread.known.items() if tp.topic in self.topics
        }
        if not told:
            return []
        known = await thread.call_thread(thread._consumer._coordinator.fetch_committed_offsets, list(told))
        return sorted({tp.topic for tp, offset in told.items() if tp not in known or known[tp].offset < offset})

    @property
    def generation(self) -> int:
        """That of the consumer group in which the partitions were assigned."""
        return int(self.app.consumer_generation_id)

    async def is_member(self) -> bool:
        """Whether the group says, now, that we belong to its current generation."""
        thread = cast(Any, self.app.consumer)._thread
        return bool(await thread.call_thread(thread.is_member))

    def advertise(self, url: str) -> None:
        """Where this worker serves, for the other members of its group. To be called before the app starts."""
        self.app.conf.canonical_url = URL(url)

    def owner(self, table: str, partition: int) -> str | None:
        """Where the worker serves that has this partition of the table, as the group was told last."""
        topic = self.app.tables[table].changelog_topic.get_topic_name()
        members = cast(Any, self.app.assignor).table_metadata(topic)
        return next((url.rstrip("/") for url, held in members.items() if partition in held.get(topic, ())), None)

    def lag(self) -> dict[str, int]:
        """Records of the assigned partitions that are not yet committed, by topic."""
        return self._by_topic(self.lag_by_partition())

    def lag_by_partition(self) -> dict[tuple[str, int], int]:
        """The same, by topic and partition."""
        return self._lag_from(cast(_Consumer, self.app.consumer).kept)

    def backlog(self, topic: str) -> int:
        """Records of the assigned partitions of the topic that are not yet processed."""
        return self._by_topic(self._lag_from(cast(_Consumer, self.app.consumer).done))[topic]

    def _lag_from(self, reached: Callable[[TP], int]) -> dict[tuple[str, int], int]:
        consumer = cast(_Consumer, self.app.consumer)
        return {
            (tp.topic, tp.partition): max(0, end - reached(tp))
            for tp in consumer.assignment()
            if tp.topic in self.topics and (end := consumer.highwater(tp)) is not None
        }

    def _by_topic(self, behind: Mapping[tuple[str, int], int]) -> dict[str, int]:
        totals = dict.fromkeys(self.topics, 0)
        for (topic, _), records in behind.items():
            totals[topic] += records
        return totals

    def not_committing(self) -> Failing | None:
        """Since when what is processed could not be committed; None where it can be, or nothing is."""
        consumer = cast(_Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic in self.topics]
        if not any(consumer.done(tp) > consumer.kept(tp) for tp in ours):
            return None
        topic = self.outbox.waits_for
        return self.attempts.failing(_not_taken_by(topic) if topic else "")

    def not_marking(self) -> Failing | None:
        """Since when nothing could be committed, where a changelog takes no mark: recovery does not begin."""
        topic, failing = self.outbox.waits_for, self.attempts.failing("")
        return failing._replace(reason=_not_taken_by(topic)) if failing and topic else None


def _not_taken_by(topic: str) -> str:
    return f"{topic} has not taken what is due"
