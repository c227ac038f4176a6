"""Requests for summaries that wait together are answered together: each once, whatever fails or happens meanwhile."""

from __future__ import annotations

import asyncio
import errno
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import Role
from schemas.errors import ShardNotHere
from schemas.events import LONG_TERM_EVENT, LongTermEvent, Remember
from schemas.exchanges import Message
from schemas.settings import AgentsSettings, LlmSettings, MemorySettings
from schemas.settings.summaries import summary_plan
from schemas.summaries import Insight, Summary
from schemas.summary_requests import Reason
from schemas.topics import Topics, route_of
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.kafka.rerouting import Rerouting
from streams.runtime.backlog_gate import BacklogGate
from streams.shards.owned import OwnedShards
from streams.summaries import agent
from streams.summaries.agent import SummariesAgent
from streams.summaries.requests import decode, summary_request
from streams.summaries.rules import Turn
from streams.summaries.rules.drafting import Draft, Order, drafted
from streams.summaries.summariser import Malformed, Unavailable
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tables.summaries.day_files import DayFiles, written_by
from tables.summaries.pending_summaries import PendingSummaries
from tests.support.examples import examples
from tests.support.making import START

P = ParamSpec("P")
T = TypeVar("T")

TODAY, TOMORROW = date(2026, 1, 1), date(2026, 1, 2)


class Told(OwnedShards):
    """Shards that know of nothing but what was forgotten."""

    def __init__(self) -> None:
        self.forgotten: set[str] = set()
        #: Up to when (epoch ms); None: everything.
        self.until: int | None = None
        self.elsewhere = False

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.elsewhere:
            raise ShardNotHere(partition, "it is elsewhere")
        (asked,) = args
        until = self.until
        return [user in self.forgotten and (until is None or at <= until) for user, _, at in asked]  # type: ignore[return-value, attr-defined]


class SentOnly(Outbox):
    """Keeps the events that are sent instead of sending them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[LongTermEvent] = []
        self.dead = 0

    async def send(self, topic: str, value: bytes | None, **_: Any) -> Any:
        assert value is not None
        self.sent.append(LONG_TERM_EVENT.validate_json(value))

    def post(self, topic: str, value: bytes | None, **_: Any) -> None:
        self.dead += 1


class InProcess:
    """An extraction that can be held up, and that fails at orders with a word in them."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.poison = b"no such word"

    async def drafted(self, orders: Sequence[Order]) -> list[Draft | None]:
        self.calls += 1
        self.orders += orders
        await self.gate.wait()
        return [None if self.poison in b"".join(order.requests) else drafted(order) for order in orders]

    async def close(self) -> None:
        """There is no process."""


class Model:
    """A model that answers as it is told to."""

    def __init__(self) -> None:
        self.answers: list[Summary | Malformed | Unavailable] = []
        self.shown: list[list[str]] = []

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable:
        said = [message.message_id for turn in turns for message in turn.messages]
        self.shown.append(said)
        return self.answers.pop(0) if self.answers else Summary(insights=(Insight(text="new", sources=(said[0],)),))


class Room:
    """An agent with real files."""

    def __init__(self, folder: Path, model: Model | None = None, **summary: bool) -> None:
        settings = AgentsSettings.model_validate({"summary": {"fallback_dir": folder / "second", **summary}})
        self.plan = summary_plan(settings, LlmSettings(), folder, {})
        self.folder, self.files = folder, DayFiles(folder / "memory", folder / "second")
        self.shards, self.outbox, self.metrics = Told(), SentOnly(), Metrics()
        self.pending, self.extraction, self.lag, self.model = PendingSummaries(), InProcess(), 0, model
        self.intake = 0
        self.agent = SummariesAgent(
            plan=self.plan,
            folder=folder / "memory",
            summariser=model,
            extraction=self.extraction,
            memory=MemorySettings(),
            pending=self.pending,
            shards=self.shards,
            event_log=EventLog(self.outbox, Topics.with_prefix("")),
            inbox=Inbox(
                decode,
                DeadLetters(self.outbox, "dead-letters", self.metrics),
                Rerouting(self.outbox, self.metrics, 1),
            ),
            metrics=self.metrics,
            gate=BacklogGate(lambda: self.intake, 60.0),
            backlog=lambda: self.lag,
        )

    async def ask(self, *records: bytes) -> asyncio.Future[None]:
        """The agent is given the records as one batch."""
        batch = await self.agent.handle(0, [record(raw) for raw in records])
        assert batch is not None
        return batch

    async def tell(self, *records: bytes) -> None:
        """… and has answered them, or kept them."""
        await asyncio.wait_for(asyncio.shield(await self.ask(*records)), 30)

    def runs(self, user: str = "u", day: date = TODAY) -> list[str]:
        return [str(run) for run in self.files.runs(user, day)]

    def summaries(self, user: str = "u", day: date = TODAY) -> int:
        return (self.files.read(user, day) or "").count("## 📌")

    def kept(self, user: str = "u") -> dict[str, int]:
        """Runs that wait for another try, with how often they were tried."""
        return {str(one.request.run_id): one.tries for one in self.pending.of_user(0, user)}

    @property
    def outcomes(self) -> dict[str, int]:
        return {outcome: n for (outcome,), n in labelled(self.metrics.summaries).items()}


def record(raw: bytes, at: int = START + 86_400_000) -> Any:
    user = orjson.loads(raw).get("user_id", "u")
    key, partition = route_of(user, 1)
    return SimpleNamespace(
        value=raw, key=key, partition=partition, headers=(), topic="summary-requests", offset=1, timestamp=at
    )


def request(
    *said: int,
    user: str = "u",
    day: date = TODAY,
    reason: Reason = "count",
    run: int | None = None,
    word: str = "tea",
) -> bytes:
    """A request with the user's messages of these numbers."""
    messages = [
        ("s", Message(f"m{i}", Role.USER, f"I like {word} number {i}.", START + i * 1000, None, None)) for i in said
    ]
    identity = uuid.uuid4() if run is None else uuid.UUID(int=run)
    return orjson.dumps(summary_request(identity, user, day, reason, messages).model_dump(mode="json"))


def run_of(raw: bytes) -> str:
    return str(orjson.loads(raw)["run_id"])


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def modelled(tmp_path: Path) -> tuple[Room, Model]:
    model = Model()
    return Room(tmp_path, model), model


async def test_requests_for_a_day_that_come_together_are_one_summary(room: Room) -> None:
    """In which each run stands, under the messages of all."""
    first, second, third = request(1, 2), request(3), request(4, 5)
    await room.tell(first, second, third)
    assert room.runs() == [run_of(raw) for raw in (first, second, third)]
    assert room.summaries() == 1
    assert room.outcomes == {"written": 1, "coalesced": 2}
    text = room.files.read("u", TODAY) or ""
    assert all(f"sources: m{i}" in text for i in (1, 3, 5))
    assert {written_by(uuid.UUID(run), text) for run in room.runs()} == {written_by(uuid.UUID(run_of(first)), text)}


async def test_requests_that_come_while_a_summary_is_being_made_are_the_next_one(room: Room) -> None:
    room.extraction.gate.clear()
    first = await room.ask(request(1))
    await wait_for(lambda: room.extraction.calls == 1)
    rest = [await room.ask(request(i)) for i in (2, 3, 4)]
    assert not first.done()
    room.extraction.gate.set()
    await asyncio.gather(first, *rest)
    assert room.summaries() == 2
    assert room.outcomes == {"written": 2, "coalesced": 2}
    assert [len(order.requests) for order in room.extraction.orders] == [1, 3]


async def test_days_and_users_are_not_merged(room: Room) -> None:
    await room.tell(request(1), request(2, day=TOMORROW), request(3, user="v"), request(4))
    assert (room.summaries(), room.summaries(day=TOMORROW), room.summaries("v")) == (1, 1, 1)
    assert room.outcomes == {"written": 3, "coalesced": 1}


async def test_a_request_that_comes_again_is_answered_and_writes_nothing(room: Room) -> None:
    """Alone, among new ones, or twice in a batch."""
    old, new = request(1), request(2)
    await room.tell(old)
    await room.tell(old)
    await room.tell(new, old, new)
    assert room.runs() == [run_of(old), run_of(new)]
    assert [len(order.requests) for order in room.extraction.orders] == [1, 1]
    assert room.outcomes == {"written": 2, "repeated": 3}


async def test_what_another_process_answers_meanwhile_is_in_no_second_summary(room: Room) -> None:
    """The others of its group are, without its messages."""
    ours, theirs = request(1), request(2)
    room.extraction.gate.clear()
    batch = await room.ask(ours, theirs)
    await wait_for(lambda: room.extraction.calls == 1)
    room.files.append("u", TODAY, uuid.UUID(run_of(theirs)), "## 📌 theirs", room_now(room))
    room.extraction.gate.set()
    await batch
    assert sorted(room.runs()) == sorted([run_of(theirs), run_of(ours)])
    assert "sources: m2" not in (room.files.read("u", TODAY) or "")
    assert room.outcomes == {"written": 1, "repeated": 1}


async def test_of_a_forgotten_user_nothing_is_written(room: Room) -> None:
    room.shards.forgotten.add("u")
    await room.tell(request(1), request(2), request(3, user="v"))
    assert (room.runs(), room.summaries("v")) == ([], 1)
    assert room.outcomes == {"written": 1, "forgotten": 2}


async def test_a_users_forgetting_does_not_wait_for_what_is_being_made_and_nothing_of_it_is_written(
    room: Room,
) -> None:
    """A model may think for minutes. Neither file nor pending request is left."""
    room.extraction.gate.clear()
    batch = await room.ask(request(1))
    await wait_for(lambda: room.extraction.calls == 1)
    await asyncio.wait_for(room.agent.forget_user(0, "u"), 10)
    assert not batch.done()
    room.extraction.gate.set()
    await batch
    assert (room.runs(), room.kept(), room.outcomes) == ([], {}, {"forgotten": 1})
    await room.tell(later := request(2))
    assert room.runs() == [run_of(later)]


async def test_what_fails_while_its_user_is_forgotten_is_not_kept(room: Room) -> None:
    room.extraction.gate.clear()
    room.extraction.poison = b"tea"
    batch = await room.ask(request(1))
    await wait_for(lambda: room.extraction.calls == 1)
    await room.agent.forget_user(0, "u")
    room.extraction.gate.set()
    await batch
    assert (room.kept(), room.outcomes) == ({}, {"forgotten": 1})


async def test_a_day_file_that_cannot_be_read_holds_up_nothing(room: Room) -> None:
    """Its summaries go to the second place, once each, though nobody knows what stands in the first."""
    unreadable = next(iter(room.files._paths("u", TODAY)))
    unreadable.mkdir(parents=True)
    first, second = request(1), request(2)
    await room.tell(first)
    await room.tell(first, second)
    await room.tell(first, second, request(3, user="v"))
    assert room.summaries("v") == 1
    unreadable.rmdir()
    assert room.runs() == [run_of(first), run_of(second)]
    assert room.outcomes == {"written_elsewhere": 2, "written": 1, "repeated": 3}


async def test_a_users_folder_that_cannot_be_removed_stops_nobody(
    room: Room, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await room.tell(request(1))

    def refused(folder: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as broken:
        broken.setattr("tables.summaries.day_files.shutil.rmtree", refused)
        await room.agent.forget_user(0, "u")
        await room.agent.sweep()
    assert room.metrics.forgotten_folders._value.get() == 1
    assert "cannot be removed" in caplog.text
    assert room.runs() == []
    await room.agent.sweep()
    assert room.metrics.forgotten_folders._value.get() == 0
    assert not list((room.folder / "memory").glob(".forgotten-*"))


async def test_who_asks_goes_first_and_is_waited_for_by_nobody(room: Room) -> None:
    """However much is still to be taken in and embedded; what waits for the day goes with it, under its reason."""
    room.lag, room.intake = 10_000, 1_000_000
    others = [await room.ask(request(i, user=f"v{i}")) for i in range(40)]
    counted = await room.ask(request(1))
    await room.tell(request(1, 2, reason="manual"))
    assert counted.done()
    assert "Trigger: manual" in (room.files.read("u", TODAY) or "")
    assert room.extraction.orders[0].reason == "manual"
    room.lag = room.intake = 0
    await asyncio.gather(*others)


async def test_a_batch_is_processed_when_each_of_its_requests_is(room: Room) -> None:
    """A record that is no request is a dead letter, and holds up nothing."""
    room.extraction.gate.clear()
    batch = await room.ask(request(1), b"{}", request(2, user="v"))
    await wait_for(lambda: room.extraction.calls == 1)
    assert not batch.done()
    assert room.outbox.dead == 1
    room.extraction.gate.set()
    await batch
    assert await room.agent.handle(0, [record(b"{}")]) is None


async def test_what_cannot_be_summed_up_is_kept_and_costs_the_others_nothing(room: Room) -> None:
    """Not even those that it would have been one summary with; it is tried again with the user's next request."""
    bad, good = request(1, word="poison"), request(2)
    room.extraction.poison = b"poison"
    await room.tell(bad, good, request(3, user="v"))
    assert (room.runs(), room.summaries("v")) == ([run_of(good)], 1)
    assert room.kept() == {run_of(bad): 1}
    assert room.outcomes == {"written": 2, "failed": 1}
    await room.tell(request(4, day=TOMORROW))
    assert room.kept() == {run_of(bad): 2}
    room.extraction.poison = b"no such word"
    await room.tell(last := request(5))
    assert room.runs() == [run_of(good), run_of(bad), run_of(last)]
    assert room.kept() == {}


async def test_what_cannot_be_written_is_kept_and_becomes_one_summary_with_the_next(room: Room) -> None:
    for place in ("memory", "second"):
        (room.folder / place).write_text("in the way")
    first, second = request(1), request(2)
    await room.tell(first, second)
    assert room.kept() == {run_of(first): 1, run_of(second): 1}
    for place in ("memory", "second"):
        (room.folder / place).unlink()
    await room.tell(third := request(3))
    assert set(room.runs()) == {run_of(first), run_of(second), run_of(third)}
    assert (room.summaries(), room.kept()) == (1, {})


async def test_a_day_that_failed_is_made_before_the_users_next_one(room: Room) -> None:
    room.extraction.poison = b"tea"
    await room.tell(old := request(1))
    room.extraction.poison = b"no such word"
    await room.tell(new := request(2, day=TOMORROW))
    assert (room.runs(), room.runs(day=TOMORROW)) == ([run_of(old)], [run_of(new)])


async def test_the_model_sums_up_what_waits_together(tmp_path: Path) -> None:
    room, model = modelled(tmp_path)
    await room.tell(request(1, 2), request(2, 3))
    assert model.shown == [["m1", "m2", "m3"]]
    assert (room.summaries(), room.extraction.calls) == (1, 0)
    assert "new" in (room.files.read("u", TODAY) or "")


async def test_whoever_finds_nothing_left_waits_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that answer at the same time one takes the only request; the others hold up nothing."""
    room, model = modelled(tmp_path)
    monkeypatch.setattr(SummariesAgent, "_concurrency", 3)
    for i in (1, 2):
        await room.tell(request(i))
    assert model.shown == [["m1"], ["m2"]]
    await room.agent.stop()


async def test_while_the_model_is_away_requests_are_kept_together(tmp_path: Path) -> None:
    """Each has its tries; the one that was tried often enough is summed up without the model, and no other."""
    room, model = modelled(tmp_path)
    model.answers = [Unavailable("down", 1)] * 3
    first, second, third = request(1), request(2), request(3)
    for raw in (first, second):
        await room.tell(raw)
    assert room.kept() == {run_of(first): 2, run_of(second): 1}
    await room.tell(third)
    await wait_for(lambda: room.kept() == {run_of(second): 2, run_of(third): 1})
    assert room.runs() == [run_of(first)]
    await room.tell(fourth := request(4))
    assert set(room.runs()) == {run_of(raw) for raw in (first, second, third, fourth)}
    assert (room.summaries(), room.kept()) == (2, {})
    assert model.shown[-1] == ["m2", "m3", "m4"]


async def test_what_the_model_cannot_answer_is_summed_up_without_it(tmp_path: Path) -> None:
    room, model = modelled(tmp_path)
    model.answers = [Malformed("no summary")]
    await room.tell(request(1), request(2))
    assert (room.summaries(), room.extraction.calls, room.outcomes) == (1, 1, {"written": 1, "coalesced": 1})


async def test_items_are_promoted_once_for_all_requests(tmp_path: Path) -> None:
    """With the time of the newest message of them all; again where nothing could be written, under the same ids."""
    room = Room(tmp_path, promote=True)
    for place in ("memory", "second"):
        (tmp_path / place).write_text("in the way")
    await room.tell(request(1), request(5), request(3))
    for place in ("memory", "second"):
        (tmp_path / place).unlink()
    await room.tell(request(4, day=TOMORROW))
    sent = [event for event in room.outbox.sent if isinstance(event, Remember)]
    assert Counter(event.text for event in sent) == {
        f"I like tea number {i}": 1 if i == 4 else 2 for i in (1, 3, 4, 5)
    }
    assert len({event.event_id for event in sent}) == 4
    assert {event.timestamp for event in sent if "4" not in event.text} == {START + 5000}


async def test_a_long_days_oldest_messages_are_left_out_and_counted(room: Room) -> None:
    await room.tell(*(request(*range(20 * i, 20 * i + 20)) for i in range(10)))
    text = room.files.read("u", TODAY) or ""
    assert text.rstrip().endswith("Older messages that were not read: 160")
    assert room.metrics.summaries_left_out._value.get() == 160
    assert len(room.runs()) == 10


async def test_what_is_read_again_after_partitions_moved_is_answered_once(room: Room) -> None:
    """Batches of before are not acknowledged, and what was under way changes no table."""
    room.extraction.gate.clear()
    under_way = await room.ask(first := request(1))
    await wait_for(lambda: room.extraction.calls == 1)
    waiting = await room.ask(second := request(2))
    room.pending.own(frozenset({0}))
    again = await room.ask(first, second)
    assert waiting.cancelled()
    room.extraction.gate.set()
    await again
    assert under_way.cancelled()
    assert sorted(room.runs()) == sorted([run_of(first), run_of(second)])
    assert room.outcomes == {"repeated": 1, "written": 1}


async def test_requests_of_a_partition_that_has_gone_are_left_to_its_owner(room: Room) -> None:
    """The worker goes on."""
    room.shards.elsewhere = True
    batch = await room.ask(request(1))
    await asyncio.wait([batch], timeout=30)
    assert batch.cancelled()
    room.shards.elsewhere = False
    await room.tell(request(2))


async def test_a_fault_of_ours_stops_the_worker(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is acknowledged for what was being answered."""
    monkeypatch.setattr(room.files.__class__, "append", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await room.tell(request(1))


async def test_after_a_stop_nothing_is_begun(room: Room) -> None:
    batch = await room.ask(request(1))
    await room.agent.stop()
    late = await room.ask(request(2))
    await asyncio.sleep(0.05)
    assert (batch.cancelled(), late.done(), room.runs()) == (True, False, [])
    late.cancel()


async def test_more_than_may_wait_is_not_read(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their topic's next batch is taken when there is room again."""
    monkeypatch.setattr(agent, "MOST_WAITING_BYTES", 1_000)
    room.extraction.gate.clear()
    first = await room.ask(request(1))
    await wait_for(lambda: room.extraction.calls == 1)
    full = asyncio.ensure_future(room.ask(*(request(i, user=f"v{i}") for i in range(2, 9))))
    await asyncio.sleep(0.05)
    assert not full.done()
    room.extraction.gate.set()
    await asyncio.gather(first, await full)


@examples(60)
@given(st.lists(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("uv"), st.booleans()), max_size=4), max_size=6))
def test_however_they_come_every_run_is_answered_once(batches: list[list[tuple[int, str, bool]]]) -> None:
    """Again and again, together or not, with failures of the disk in between: each stands once in its user's file."""

    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            room = Room(Path(folder))
            expected: dict[str, set[str]] = {"u": set(), "v": set()}
            for place, batch in enumerate(batches):
                raws = [request(run, user=user, run=run) for run, user, _ in batch]
                room.extraction.poison = b"tea" if place % 3 == 1 else b"no such word"
                asked = await room.ask(*raws) if raws else None
                if asked is not None and any(wait for _, _, wait in batch):
                    await asyncio.wait_for(asked, 30)
                for raw, (_, user, _) in zip(raws, batch, strict=True):
                    expected[user].add(run_of(raw))
            room.extraction.poison = b"no such word"
            for user in expected:
                last = request(10, user=user, run=10)
                expected[user].add(run_of(last))
                await room.tell(last)
            for user, runs in expected.items():
                assert Counter(room.runs(user)) == Counter(runs)
                text = room.files.read(user, TODAY) or ""
                assert Counter(run for run in runs if written_by(uuid.UUID(run), text)) == Counter(runs)
                assert all(text.count(f"run: {run}") == 1 for run in runs)
            await room.agent.stop()

    asyncio.run(live())


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - it happens in another task
            await asyncio.sleep(0.005)


def room_now(room: Room) -> Any:
    return datetime.now(room.plan.timezone)


async def test_what_is_dated_ahead_and_was_asked_for_before_a_forgetting_is_not_written(room: Room) -> None:
    """Its words were said before its record was written; what was asked for afterwards is of what was said since."""
    room.shards.forgotten, room.shards.until = {"u"}, START + 1000
    for at in (START + 900, START + 1100):
        batch = await room.agent.handle(0, [record(request(7200), at)])
        assert batch is not None
        await asyncio.wait_for(batch, 30)
    assert room.outcomes == {"forgotten": 1, "written": 1}
