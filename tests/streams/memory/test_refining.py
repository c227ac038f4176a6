"""What is asked about new memories, what becomes of the answers, and what waits for whom; on a real shard."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest

from schemas.errors import ShardNotHere
from schemas.events import LONG_TERM_EVENT, Edit, Forget, LongTermEvent, Pin, Remember, Supersede
from schemas.ids import event_id
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings, SupersedeSettings
from schemas.topics import Topics
from streams.kafka.commit.outbox import Outbox
from streams.kafka.event_log import EventLog
from streams.memory import refining
from streams.memory.refining import RefiningJob
from streams.models.refiner import QUOTED_CHARS
from streams.runtime.clock import EventClock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tables.vectors.index import Vectors
from tests.support.making import START, axis, leaning, memory_of, promotion
from tests.support.waiting import until

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound=LongTermEvent)

Make = Callable[..., "Room"]

DIMENSION = 32


class OneShard(OwnedShards):
    """A real shard of partition 0, called at once; others are on another worker. `fault` is raised once."""

    def __init__(self, folder: Path, settings: LongTermSettings, model: str = "toy") -> None:
        self.shard = Shard(0, folder, model, DIMENSION, settings, LifecycleSettings())
        self.fault: BaseException | None = None

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if partition != 0:
            raise ShardNotHere(partition, "it is elsewhere")
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return method(self.shard, *args, **kwargs)


class SentOnly(Outbox):
    """Keeps the events that are sent instead of sending them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[LongTermEvent] = []

    def post(self, topic: str, value: bytes | None, **_: Any) -> None:
        assert topic == "long-term"
        assert value is not None
        self.sent.append(LONG_TERM_EVENT.validate_json(value))

    async def deliver(self) -> None:
        """It is kept as soon as it is posted."""


class Scripted:
    """A model that answers as it is told, and remembers what it was shown. While `gate` is cleared, it thinks."""

    def __init__(self) -> None:
        self.number: int | None = 1
        self.text: str | None = "better words"
        self.shown: list[list[str]] = []
        self.pause = 0.0
        self.gate = asyncio.Event()
        self.gate.set()

    async def replaced(self, new: Memory, older: Sequence[Memory]) -> int | None:
        self.shown.append([memory.text for memory in (new, *older)])
        await self.gate.wait()
        return self.number

    async def summary(self, members: Sequence[Memory]) -> str | None:
        self.shown.append([memory.text for memory in members])
        await self.gate.wait()
        return self.text

    def resumes_in(self) -> float:
        return self.pause


class Room:
    """One partition's shard, and the agent that is told of what is born in it."""

    def __init__(self, folder: Path, settings: LongTermSettings, model: str = "toy") -> None:
        self.shards = OneShard(folder, settings, model)
        self.outbox, self.metrics, self.model = SentOnly(), Metrics(), Scripted()
        self.behind = self.said = self.looks = 0
        self.agent = RefiningJob(
            refiner=self.model,
            concurrency=1,
            shards=self.shards,
            event_log=EventLog(self.outbox, Topics.with_prefix("")),
            metrics=self.metrics,
            clock=EventClock(START),
            settings=settings,
            backlog=self.backlog,
        )

    def backlog(self) -> int:
        self.looks += 1
        return self.behind

    def apply(self, event: LongTermEvent, vector: Vectors | None = None) -> list[Memory]:
        """The memories that are born of it."""
        return self.shards.shard.apply([event], {} if vector is None else {event.event_id: vector}, START).born

    def say(self, text: str, cosine: float = 1.0, *, user: str = "u", at: int = 0) -> Memory:
        """A memory whose cosine with axis 0 is given, `at` seconds after START; with others, the product of both."""
        self.said += 1
        return self.apply(event(Remember, user, at, text=text), leaning(0, self.said, cosine, DIMENSION))[0]

    def sum_up(self) -> Memory:
        """The summary of memories `text 0` and `text 1`, where a user may have three."""
        for place in range(4):
            born = self.apply(event(Remember, at=place, text=f"text {place}"), along(place))
        return born[-1]

    def held(self, memory: Memory) -> Memory:
        return next(one for one in self.shards.shard.memories_of(memory.user_id) if one.id == memory.id)

    async def ask(self, *memories: Memory) -> None:
        """Tell of these, and wait until all that waits has been asked."""
        self.agent.born(0, memories)
        async with self.running():
            pass

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Questions are asked one after the other: once one about another worker's shard is dropped, all are."""
        self.agent.start()
        yield
        self.agent.born(1, [replace(memory_of(80), kind="summary")])
        await until(lambda: labelled(self.metrics.refinements).get(("summary", "dropped")))
        await self.agent.stop()

    @contextlib.asynccontextmanager
    async def thinking(self, memory: Memory) -> AsyncIterator[None]:
        """In the block, the model has been asked about this and has not answered."""
        self.model.gate.clear()
        self.agent.born(0, [memory])
        async with self.running():
            await until(lambda: self.model.shown)
            yield
            self.model.gate.set()

    def outcomes(self, kind: str) -> dict[str, int]:
        """Without the question that `running` ends with."""
        counts = labelled(self.metrics.refinements).items()
        return {outcome: n for (of, outcome), n in counts if of == kind and (of, outcome) != ("summary", "dropped")}


def along(place: int) -> Vectors:
    return axis(place, DIMENSION)


def event(kind: type[E], user: str = "u", at: int = 0, **fields: Any) -> E:
    timestamp = START + at * 1000
    return kind.model_validate({"event_id": uuid.uuid4(), "user_id": user, "timestamp": timestamp, **fields})  # type: ignore[return-value]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Room] = []

    def room(model: str = "toy", **settings: Any) -> Room:
        made.append(Room(tmp_path / str(len(made)), LongTermSettings(**settings), model))
        return made[-1]

    yield room
    for one in made:
        one.shards.shard.close()


@pytest.fixture
def room(make: Make) -> Room:
    return make()


# What is asked


async def test_a_new_memory_is_compared_with_the_three_that_resemble_it_most(room: Room) -> None:
    """In one question, the most similar first."""
    for cosine in (0.7, 0.5, 0.9, 0.6):
        room.say(f"older {cosine}", cosine, at=1)
    await room.ask(room.say("new", at=2))
    assert room.model.shown == [["new", "older 0.9", "older 0.7", "older 0.6"]]
    assert room.outcomes("supersede") == {"asked": 1, "replaced": 1}


async def test_what_hardly_resembles_it_is_not_shown(room: Room) -> None:
    room.say("hardly similar", 0.34)
    room.say("similar enough", 0.36)
    await room.ask(room.say("new", at=1))
    assert room.model.shown == [["new", "similar enough"]]


async def test_what_is_nearly_a_copy_but_says_something_else_is_shown(room: Room) -> None:
    """Its one other number may be the news; what says the same has nothing to replace."""
    room.say("I weigh 82 kilos", 0.99)
    edited = room.say("I weigh 90 kilos", 0.7, at=1)
    new = room.say("I weigh 84 kilos", at=2)
    room.apply(event(Edit, memory_id=edited.id, text="I weigh 84 kilos!"), leaning(0, 9, 0.98, DIMENSION))
    await room.ask(new)
    assert room.model.shown == [["I weigh 84 kilos", "I weigh 82 kilos"]]


async def test_the_settings_say_how_many_and_how_similar(make: Make) -> None:
    room = make(supersede=SupersedeSettings(candidates=1, min_cosine=0.8))
    room.say("similar", 0.85)
    room.say("not similar enough", 0.75)
    room.say("very similar", 0.9)
    await room.ask(room.say("new", at=1))
    assert room.model.shown == [["new", "very similar"]]


async def test_how_similar_they_are_depends_on_the_model(make: Make) -> None:
    """For `e5`, unrelated memories have a cosine of 0.85, and Chinese ones a higher one."""
    e5 = "multilingual-e5-small-q4"
    for settings, new, older in (
        ({}, "new", ["similar"]),
        ({}, "新的", []),
        ({"supersede": SupersedeSettings(min_cosine=0.8)}, "新的", ["similar", "unrelated"]),
    ):
        room = make(e5, **settings)
        room.say("unrelated", 0.85)
        room.say("similar", 0.88)
        await room.ask(room.say(new, at=1))
        assert room.model.shown == ([[new, *older]] if older else [])


async def test_only_what_may_give_way_is_shown(room: Room) -> None:
    """Neither another user's, nor what is later, replaced or pinned, nor what cannot be shown whole."""
    room.say("another user's", 0.8, user="v")
    room.say("later", 0.8, at=9)
    replaced, pinned = room.say("replaced", 0.82), room.say("pinned", 0.84)
    room.apply(event(Supersede, memory_id=replaced.id, by=pinned.id))
    room.apply(event(Pin, memory_id=pinned.id))
    room.say("long " * QUOTED_CHARS, 0.86)
    room.say("older", 0.7)
    await room.ask(room.say("new", at=5))
    assert room.model.shown == [["new", "older"]]


async def test_what_the_user_asked_to_remember_may_give_way(room: Room) -> None:
    """It was so when it was said; a pin that somebody set since keeps it."""
    asked = [promotion(name, name).model_copy(update={"pinned": True}) for name in ("asked for", "pinned since")]
    for place, one in enumerate(asked, start=5):
        room.apply(one, leaning(0, place, 0.7, DIMENSION))
    room.apply(event(Pin, memory_id=asked[1].memory_id))
    await room.ask(room.say("new", at=5))
    assert room.model.shown == [["new", "asked for"]]


async def test_a_summary_is_not_replaced(make: Make) -> None:
    """It stands for several memories, and not all of them say the same."""
    room = make(max_memories_per_user=3)
    summary = room.sum_up()
    new = room.say("new", 0.8, at=9)
    assert room.shards.shard.resembling(new, [room.held(summary)])[0] > 0.4
    await room.ask(new)
    assert room.model.shown == []


async def test_nothing_is_asked_where_nothing_resembles_it(room: Room) -> None:
    room.say("older", 0.3)
    await room.ask(room.say("new", at=1))
    assert (room.model.shown, room.outbox.sent, room.outcomes("supersede")) == ([], [], {})


async def test_nothing_is_asked_about_what_is_gone_or_replaced_when_its_turn_comes(room: Room) -> None:
    room.say("older", 0.8)
    forgotten, replaced, newest = room.say("a", 0.9, at=1), room.say("b", 0.7, at=2), room.say("c", 0.1, at=3)
    room.apply(event(Forget, memory_id=forgotten.id))
    room.apply(event(Supersede, memory_id=replaced.id, by=newest.id))
    await room.ask(forgotten, replaced)
    assert room.model.shown == []


async def test_what_the_log_says_already_is_not_asked_again(room: Room) -> None:
    """A replay: the verdict lies behind the memories, and is in before there is time to ask."""
    old, new = room.say("older", 0.8), room.say("new", at=1)
    room.apply(event(Supersede, memory_id=old.id, by=new.id, reason="model"))
    await room.ask(old, new)
    assert room.model.shown == []


async def test_what_is_switched_off_is_not_asked(make: Make) -> None:
    off = SupersedeSettings(enabled=False)
    room = make(max_memories_per_user=3, supersede=off, summaries_by_model=False)
    summary = room.sum_up()
    room.agent.born(0, [summary, room.say("new", at=9)])
    assert room.metrics.refinements_waiting._value.get() == 0


# What becomes of the answer


async def test_a_replaced_memory_is_an_event_whose_id_follows_from_both(room: Room) -> None:
    """Asked twice, it is posted twice and applied once."""
    old, new = room.say("I live in Lyon", 0.8), room.say("I moved to Osaka", at=1)
    await room.ask(new, new)
    first, second = room.outbox.sent
    assert first == second
    assert first == Supersede(
        event_id=event_id("supersede", old.id, new.id),
        user_id="u",
        timestamp=START,
        memory_id=old.id,
        by=new.id,
        reason="model",
    )
    for posted in room.outbox.sent:
        room.apply(posted)
    assert (room.held(old).superseded_by, room.held(new).current) == (new.id, True)
    assert [done.event for done in room.shards.shard.history.of("u", old.id)] == ["superseded"]


async def test_the_number_says_which_one_is_replaced(room: Room) -> None:
    room.model.number = 2
    room.say("most similar", 0.9)
    second = room.say("second", 0.6)
    await room.ask(room.say("new", at=1))
    (posted,) = room.outbox.sent
    assert isinstance(posted, Supersede)
    assert posted.memory_id == second.id


@pytest.mark.parametrize(("number", "outcome"), [(0, "kept"), (None, "failed")])
async def test_no_verdict_and_a_verdict_for_none_change_nothing(room: Room, number: int | None, outcome: str) -> None:
    room.model.number = number
    room.say("older", 0.8)
    await room.ask(room.say("new", at=1))
    assert (room.outbox.sent, room.outcomes("supersede")) == ([], {"asked": 1, outcome: 1})


@pytest.mark.parametrize("of", ["old", "new"])
@pytest.mark.parametrize("what", ["forgotten", "replaced", "edited", "pinned"])
async def test_a_verdict_about_what_has_changed_meanwhile_is_not_posted(room: Room, of: str, what: str) -> None:
    memories = {"old": room.say("older", 0.8), "new": room.say("new", at=1), "other": room.say("other", 0.1, at=2)}
    memory = memories[of]
    edit = event(Edit, memory_id=memory.id, text="edited")
    changes: dict[str, tuple[LongTermEvent, Vectors | None]] = {
        "forgotten": (event(Forget, memory_id=memory.id), None),
        "replaced": (event(Supersede, memory_id=memory.id, by=memories["other"].id), None),
        "edited": (edit, along(20)),
        "pinned": (event(Pin, memory_id=memory.id), None),
    }
    async with room.thinking(memories["new"]):
        room.apply(*changes[what])
    assert (room.outbox.sent, room.outcomes("supersede")) == ([], {"asked": 1, "kept": 1})


# Words for summaries


@pytest.fixture
def crowded(make: Make) -> Room:
    """A user may have three memories."""
    return make(max_memories_per_user=3)


async def test_a_summary_gets_the_models_words(crowded: Room) -> None:
    """From its members' texts, oldest first; its id is that of the summary, so a replay needs no model."""
    summary = crowded.sum_up()
    await crowded.ask(summary)
    assert crowded.model.shown == [["text 0", "text 1"]]
    (posted,) = crowded.outbox.sent
    assert posted == Edit(
        event_id=event_id("summary", summary.id),
        user_id="u",
        timestamp=START,
        memory_id=summary.id,
        text="better words",
        reason="model",
    )
    crowded.apply(posted, along(20))
    assert crowded.held(summary).text == "better words"
    assert crowded.outcomes("summary") == {"asked": 1, "replaced": 1}


async def test_where_the_model_fails_a_summary_keeps_its_words(crowded: Room) -> None:
    summary = crowded.sum_up()
    crowded.model.text = None
    await crowded.ask(summary)
    assert (crowded.outbox.sent, crowded.outcomes("summary")) == ([], {"asked": 1, "failed": 1})


@pytest.mark.slow
async def test_a_summary_whose_member_is_forgotten_meanwhile_gets_no_words(crowded: Room) -> None:
    """They would hold what the user wants forgotten."""
    summary = crowded.sum_up()
    async with crowded.thinking(summary):
        crowded.apply(event(Forget, memory_id=summary.summary_of[0]))
    assert (crowded.outbox.sent, crowded.outcomes("summary")) == ([], {"asked": 1, "kept": 1})


async def test_a_summary_whose_member_was_edited_meanwhile_gets_no_words(crowded: Room) -> None:
    summary = crowded.sum_up()
    async with crowded.thinking(summary):
        crowded.apply(event(Edit, memory_id=summary.summary_of[0], text="corrected"), along(20))
    assert crowded.outbox.sent == []


async def test_a_summary_that_has_been_given_words_is_not_asked_about(crowded: Room) -> None:
    """By a person, or by the model, before a replay came to it."""
    summary = crowded.sum_up()
    crowded.apply(event(Edit, memory_id=summary.id, text="my own words"), along(20))
    await crowded.ask(summary)
    assert (crowded.model.shown, crowded.held(summary).text) == ([], "my own words")


async def test_a_summary_without_all_its_members_is_not_asked_about(crowded: Room) -> None:
    summary = crowded.sum_up()
    crowded.apply(event(Forget, memory_id=summary.summary_of[1]))
    await crowded.ask(summary)
    assert crowded.model.shown == []


# Beside the stream


@pytest.mark.slow
async def test_of_too_many_questions_the_oldest_are_dropped(room: Room) -> None:
    """Telling of new memories waits for nothing, and what waits does not grow."""
    room.say("older", 0.8)
    first, second = room.say("first", 0.1, at=1), room.say("second", at=2)
    room.agent.born(0, [first] * (refining.WAITING + 2))
    room.agent.born(0, [second])
    assert room.metrics.refinements_waiting._value.get() == refining.WAITING
    assert room.outcomes("supersede") == {"dropped": 3}
    async with room.running():
        await until(lambda: room.model.shown)
    assert room.model.shown == [["second", "older"]]


async def test_questions_about_partitions_that_moved_away_are_dropped(room: Room) -> None:
    room.say("older", 0.8)
    ours, theirs = room.say("ours", at=1), replace(memory_of(80), text="theirs")
    room.agent.born(0, [ours])
    room.agent.born(3, [theirs, theirs])
    room.agent.own(frozenset({0}))
    assert labelled(room.metrics.refinements) == {("supersede", "dropped"): 2}
    assert room.metrics.refinements_waiting._value.get() == 1


@pytest.mark.parametrize("fault", [ShardNotHere(0, "moved"), asyncio.CancelledError()], ids=["moved", "opening"])
async def test_a_shard_that_has_just_moved_is_no_failure(
    room: Room, caplog: pytest.LogCaptureFixture, fault: BaseException
) -> None:
    """Nor is one whose opening was cancelled by it; the next question is asked."""
    room.say("older", 0.8)
    first, second = room.say("first", 0.9, at=1), room.say("second", at=2)
    room.shards.fault = fault
    await room.ask(first, second)
    assert room.outcomes("supersede") == {"dropped": 1, "asked": 1, "replaced": 1}
    assert caplog.records == []


async def test_what_goes_wrong_with_one_question_keeps_no_other_from_being_asked(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.say("older", 0.8)
    first, second = room.say("first", 0.9, at=1), room.say("second", at=2)
    room.shards.fault = KeyError("what was said")
    await room.ask(first, second)
    assert room.model.shown == [["second", "first", "older"]]
    assert room.outcomes("supersede") == {"failed": 1, "asked": 1, "replaced": 1}
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert errors == ["shard 0: a memory is left as it is: KeyError"]


@pytest.mark.parametrize("reason", ["backlog", "pause"])
async def test_a_backlog_goes_first_and_a_service_is_left_alone_as_long_as_it_wants(
    room: Room, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(refining, "LOOK_AGAIN_SECONDS", 0.0)
    room.say("older", 0.8)
    if reason == "backlog":
        room.behind = refining.BACKLOG + 1
    else:
        room.model.pause = 30.0
    room.agent.born(0, [room.say("new", at=1)])
    async with room.running():
        await until(lambda: room.looks > 5)
        assert room.model.shown == []
        room.behind, room.model.pause = refining.BACKLOG, 0.0
    assert len(room.model.shown) == 1


async def test_stopping_waits_for_no_answer(room: Room) -> None:
    room.say("older", 0.8)
    room.model.gate.clear()
    room.agent.born(0, [room.say("new", at=1)])
    room.agent.start()
    await until(lambda: room.model.shown)
    async with asyncio.timeout(5):
        await room.agent.stop()
    assert room.outbox.sent == []
