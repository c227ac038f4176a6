"""Notes are kept with their session, promoted at its end, and gone when they expire or are forgotten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ShardNotHere
from schemas.events import LONG_TERM_EVENT, Forget, ForgetUser, LongTermEvent, Remember
from schemas.sessions import Session
from schemas.settings import LifecycleSettings, LongTermSettings, MemorySettings
from schemas.topics import Topics
from streams.intake.session_notes import SessionNotes, promoted
from streams.kafka.commit.outbox import Outbox
from streams.kafka.event_log import EventLog
from streams.runtime.clock import EventClock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tables.windows.session_notes import Note, encode_note, note_key
from tables.windows.short_term import ShortTermStore
from tests.support.examples import examples
from tests.support.making import START

P = ParamSpec("P")
T = TypeVar("T")

HOUR = 3600


class OneShard(OwnedShards):
    """A real shard of partition 0, called at once."""

    def __init__(self, folder: Path) -> None:
        self.shard = Shard(0, folder, "toy", 8, LongTermSettings(), LifecycleSettings())

    def partitions(self) -> list[int]:
        return [0]

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if partition != 0:
            raise ShardNotHere(partition, "it is elsewhere")
        return method(self.shard, *args, **kwargs)


class SentOnly(Outbox):
    """Keeps the events that are sent instead of sending them."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[LongTermEvent] = []

    async def deliver(self) -> None:
        """It is kept as soon as it is posted."""

    def post(self, topic: str, value: bytes | None, **_: Any) -> None:
        assert topic == "long-term"
        assert value is not None
        self.sent.append(LONG_TERM_EVENT.validate_json(value))


class Room:
    """One partition's agent, with a real shard beside it and a changelog that is written when told to."""

    def __init__(self, shards: OneShard, **memory: Any) -> None:
        self.shards, self.outbox, self.metrics, self.clock = shards, SentOnly(), Metrics(), EventClock()
        self.memory = MemorySettings(**memory)
        self.opened: list[str] = []
        self.changelogs: tuple[dict[bytes, bytes | None], ...] = ({}, {})
        self.restart()

    def restart(self) -> None:
        """Another worker takes over: it has what the changelogs hold."""
        self.store = ShortTermStore()
        self.agent = SessionNotes(
            store=self.store,
            shards=self.shards,
            event_log=EventLog(self.outbox, Topics.with_prefix("")),
            metrics=self.metrics,
            clock=self.clock,
            memory=self.memory,
            important=70.0,
            opened=lambda _, session: self.opened.append(session.session_id),
        )
        self.store.sessions.restore(0, self.changelogs[0].items())
        self.store.notes.restore(0, self.changelogs[1].items())

    def write(self) -> None:
        for changelog, rows in zip(self.changelogs, (self.store.sessions, self.store.notes), strict=True):
            changelog.update({change.key: change.value for change in rows.drain()})  # type: ignore[attr-defined]

    def take(self, *events: LongTermEvent) -> Room:
        """As the long-term agent does it: first the shard, then the notes."""
        lasting = [event for event in events if not isinstance(event, Remember)]
        self.shards.shard.apply(self.shards.shard.unapplied(lasting), {}, START)
        asyncio.run(self.agent.take(0, events))
        return self

    def session(self, *, ended: bool = False, at: int = 0, user: str = "u") -> Session:
        """Session s was last spoken in at `at` seconds after START."""
        known = Session(user, "s", last_at=START + at * 1000, ended=ended)
        self.store.save(0, known, (), ())
        return known

    def end(self, at: int, user: str = "u") -> None:
        """Session s ends."""
        self.agent.session_ended(0, self.session(ended=True, at=at, user=user), START + at * 1000)

    def texts(self, session: str = "s", user: str = "u") -> list[str]:
        return [note.text for note in self.store.notes.of_session(0, user, session)]

    def expired(self, at: int) -> list[str]:
        """Texts of the user's notes that have expired `at` seconds after START."""
        notes = self.store.notes.of_user(0, "u")
        return sorted(note.text for note in notes if note.expires_at <= START + at * 1000)

    @property
    def sent(self) -> list[str]:
        return [event.text for event in self.outbox.sent if isinstance(event, Remember)]

    @property
    def effects(self) -> dict[str, int]:
        return {effect: n for (effect,), n in labelled(self.metrics.notes).items()}


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[OneShard]:
    with one_shard(tmp_path / "0") as opened:
        yield opened


@contextmanager
def one_shard(folder: Path) -> Iterator[OneShard]:
    opened = OneShard(folder)
    try:
        yield opened
    finally:
        opened.shard.close()


@pytest.fixture
def room(shards: OneShard) -> Room:
    return Room(shards)


def asks(text: str, *, at: int = 0, user: str = "u", session: str = "s", **fields: Any) -> Remember:
    """A short-term memory, `at` seconds after START; its event's id follows from its text."""
    return Remember.model_validate(
        {
            "event_id": uuid.uuid5(uuid.NAMESPACE_OID, text),
            "user_id": user,
            "timestamp": START + at * 1000,
            "kind": "short_term",
            "text": text,
            "session_id": session,
            **fields,
        }
    )


def forget(event: Remember, user: str = "u") -> Forget:
    return Forget(event_id=uuid.uuid4(), user_id=user, timestamp=START, memory_id=event.memory_id or event.event_id)


def forget_user(at: int, user: str = "u") -> ForgetUser:
    return ForgetUser(event_id=uuid.uuid4(), user_id=user, timestamp=START + at * 1000)


def test_a_note_has_what_was_asked_for_and_when_it_expires(room: Room) -> None:
    event = asks("buy milk", at=5, ttl_seconds=60, importance=30, metadata={"shop": "x"}, agent_id="a")
    room.take(event)
    (note,) = room.store.notes.of_session(0, "u", "s")
    created = START + 5000
    assert note == Note(
        event.event_id, event.event_id, "u", "s", "buy milk", 30.0, created, created + 60_000, "a", {"shop": "x"}
    )


def test_without_a_time_to_live_it_has_the_windows(shards: OneShard) -> None:
    room = Room(shards, ttl_seconds=7).take(asks("x"))
    (note,) = room.store.notes.of_session(0, "u", "s")
    assert note.expires_at - note.created_at == 7000


def test_its_id_is_the_memory_id_where_one_is_given(room: Room) -> None:
    mine = uuid.uuid4()
    room.take(asks("x", memory_id=mine))
    assert [note.id for note in room.store.notes.of_session(0, "u", "s")] == [mine]


def test_other_events_are_no_notes(room: Room) -> None:
    asyncio.run(room.agent.take(0, [asks("x", kind="long_term")]))
    assert len(room.store.notes) == 0


@pytest.mark.parametrize(
    "again",
    [
        {"memory_id": uuid.UUID(int=1)},
        {"event_id": asks("y").event_id},
        {"event_id": asks("y").event_id, "session_id": "t"},
    ],
    ids=["event", "id", "id, session"],
)
def test_the_same_event_or_id_again_changes_nothing(room: Room, again: dict[str, Any]) -> None:
    """Not even in another session of the user's."""
    event = asks("x", memory_id=uuid.uuid4())
    room.take(event, event)
    room.take(event.model_copy(update={"text": "another", **again}))
    assert [note.text for note in room.store.notes.of_user(0, "u")] == ["x"]
    assert room.effects == {"kept": 1, "repeated": 2}


def test_another_user_may_have_the_same_id(room: Room) -> None:
    mine = uuid.uuid4()
    room.take(asks("ours", memory_id=mine), asks("theirs", memory_id=mine, user="v"))
    room.end(at=1)
    assert (room.texts(), room.texts(user="v")) == (["ours"], ["theirs"])


def test_the_partition_of_another_worker_takes_nothing(room: Room) -> None:
    with pytest.raises(ShardNotHere):
        asyncio.run(room.agent.take(1, [asks("x")]))
    assert len(room.store.notes) == 0


def test_a_session_keeps_its_newest_notes(shards: OneShard) -> None:
    """By their time, not by their coming; other sessions do not count."""
    room = Room(shards, notes=2).take(asks("third", at=3), asks("else", session="t"), asks("second", at=2))
    room.take(asks("first", at=1))
    assert room.texts() == ["second", "third"]
    room.take(asks("fourth", at=4))
    assert room.texts() == ["third", "fourth"]
    assert room.texts("t") == ["else"]
    assert room.effects["crowded_out"] == 2


def test_a_user_has_no_more_notes_than_so_many_in_all_sessions(shards: OneShard) -> None:
    """The oldest leave, a tenth of them at a time, so that the next do not have them all looked through again."""
    room = Room(shards, notes_of_user=20)
    room.take(*(asks(f"{n}", session=f"s{n}", at=n, importance=70.0 if n == 1 else 10.0) for n in range(21)))
    assert sorted(int(note.text) for note in room.store.notes.of_user(0, "u")) == list(range(3, 21))
    assert (room.sent, room.effects["crowded_out"]) == (["1"], 3)
    room.take(*(asks(f"{n}", session="s", at=n) for n in (21, 22)))
    assert len(room.store.notes.of_user(0, "u")) == 20


def test_a_note_that_comes_is_compared_with_no_other(shards: OneShard, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a user has: nothing of theirs is read for it but the notes of its session."""
    room = Room(shards, notes_of_user=5_000)
    room.take(*(asks(f"{n}", session=f"s{n}", at=n) for n in range(1_000)))
    walked, of_partition = list[bytes](), type(room.store.notes).of_partition

    def counted(self: Any, partition: int, beginning: bytes = b"") -> Any:
        for found in of_partition(self, partition, beginning):
            walked.append(found[0])
            yield found

    monkeypatch.setattr(type(room.store.notes), "of_partition", counted)
    room.take(*(asks(f"new {n}", session=f"t{n}", at=2_000 + n) for n in range(100)))
    assert len(walked) == 100


def test_an_important_note_is_promoted_when_others_crowd_it_out(shards: OneShard) -> None:
    room = Room(shards, notes=1).take(asks("important", importance=70), asks("small", at=1), asks("new", at=2))
    assert (room.texts(), room.sent) == (["new"], ["important"])


def test_important_notes_are_promoted_at_the_sessions_end(room: Room) -> None:
    """Those of at least 70, and of this session."""
    room.session()
    room.take(asks("69", importance=69.9), asks("70", importance=70), asks("default"))
    room.take(asks("elsewhere", importance=100, session="t"), asks("theirs", importance=100, user="v"))
    assert room.sent == []
    room.end(at=10)
    assert room.sent == ["70"]
    assert room.texts() == [note.text for note in room.store.notes.of_session(0, "u", "s")]
    assert sorted(room.texts()) == ["69", "70", "default"]


def test_a_note_is_promoted_once(room: Room) -> None:
    """Whether the session ends again, or the worker has changed in between."""
    room.take(asks("x", importance=100))
    room.end(at=10)
    room.end(at=20)
    room.write()
    room.restart()
    room.end(at=30)
    assert room.sent == ["x"]
    assert room.effects["promoted"] == 1


def test_a_note_that_is_promoted_twice_after_all_is_the_same_event(room: Room) -> None:
    """The worker was killed before the note's row said so; the shard knows the event."""
    room.take(asks("x", importance=100))
    room.write()
    room.end(at=10)
    room.restart()
    room.end(at=10)
    first, second = room.outbox.sent
    assert first == second


def test_the_promotion_carries_the_note(room: Room) -> None:
    """Its id, so that one `forget` means both, and its time, so that `forget_user` means it too."""
    event = asks("x", at=5, importance=80, metadata={"a": [1]}, agent_id="bot", memory_id=uuid.uuid4())
    room.take(event)
    room.end(at=10)
    (sent,) = room.outbox.sent
    assert isinstance(sent, Remember)
    assert sent.event_id not in (event.event_id, event.memory_id)
    assert sent.model_dump(exclude={"event_id"}) == {
        **event.model_dump(exclude={"event_id"}),
        "kind": "long_term",
        "ttl_seconds": None,
    }


def test_two_users_notes_of_the_same_id_are_promoted_by_two_events() -> None:
    mine = uuid.uuid4()
    ours, theirs = (Note(mine, mine, user, "s", "x", 80.0, START, START + 1) for user in ("u", "v"))
    assert promoted(ours).event_id != promoted(theirs).event_id


def test_an_expired_note_is_not_promoted(room: Room) -> None:
    """Expired when the session ends, to the millisecond."""
    room.session()
    room.take(asks("gone", importance=100, ttl_seconds=10), asks("there", importance=100, ttl_seconds=11))
    room.end(at=10)
    assert room.sent == ["there"]


def test_an_important_note_that_comes_after_its_sessions_end_is_promoted_at_once(room: Room) -> None:
    room.session(ended=True, at=60)
    room.take(asks("late", importance=70), asks("small"), asks("expired", importance=70, ttl_seconds=60))
    assert room.sent == ["late"]
    room.take(asks("late", importance=70))
    assert room.sent == ["late"]


def test_an_important_note_opens_a_session_in_which_nothing_was_said(room: Room) -> None:
    """Silence can then end it. One that is there is left as it is, and a small note needs no end."""
    room.take(asks("small", session="t"))
    assert room.opened == []
    room.take(asks("x", at=7, importance=70), asks("y", at=9, importance=70))
    assert room.store.session(0, "u", "s") == Session("u", "s", last_at=START + 7000)
    assert room.opened == ["s"]
    spoken = room.session(at=30)
    room.take(asks("z", at=40, importance=70))
    assert room.store.session(0, "u", "s") == spoken
    assert room.opened == ["s"]


def test_a_session_of_which_only_silence_is_known_is_opened_too(room: Room) -> None:
    room.store.save(0, Session("u", "s", offset=4), (), ())
    room.take(asks("x", importance=70))
    assert room.store.session(0, "u", "s") == Session("u", "s", offset=4, last_at=START)


def test_expired_notes_are_dropped_and_others_stay(room: Room) -> None:
    room.take(asks("minute", ttl_seconds=60), asks("hour", ttl_seconds=HOUR))
    room.clock.observe(START + 59_999)
    room.agent.forget_expired()
    assert sorted(room.texts()) == ["hour", "minute"]
    room.clock.observe(START + 60_000)
    room.agent.forget_expired()
    assert room.texts() == ["hour"]
    assert room.effects["expired"] == 1


def test_who_looks_for_expired_notes_does_not_look_at_the_others(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor at those that came back from the changelog, once they are ordered."""
    room.take(*(asks(f"hour {n}", ttl_seconds=HOUR, session=f"s{n}") for n in range(20)))
    room.write()
    room.restart()
    room.agent.forget_expired()
    room.take(*(asks(f"minute {n}", ttl_seconds=60 + n, session=f"m{n}") for n in range(3)))
    room.clock.observe(START + 61_000)
    looked_at: list[bytes] = []
    get = room.store.notes.get

    def noted(partition: int, key: bytes) -> Note | None:
        looked_at.append(key)
        return get(partition, key)

    monkeypatch.setattr(room.store.notes, "items", lambda: pytest.fail("all are looked at"))
    monkeypatch.setattr(room.store.notes, "get", noted)
    room.agent.forget_expired()
    assert room.effects["expired"] == 2
    assert len(set(looked_at)) == 2
    looked_at.clear()
    room.agent.forget_expired()
    assert looked_at == []


def test_an_expired_note_waits_for_the_end_that_may_still_promote_it(room: Room) -> None:
    """The clock may be hours ahead of a log that is read after a standstill."""
    room.session()
    room.take(asks("important", importance=70, ttl_seconds=60), asks("small", ttl_seconds=60))
    room.clock.observe(START + HOUR * 1000)
    room.agent.forget_expired()
    assert room.texts() == ["important"]
    room.end(at=30)
    room.agent.forget_expired()
    assert (room.texts(), room.sent) == ([], ["important"])


def test_an_expired_note_does_not_wait_for_a_session_that_is_gone(room: Room) -> None:
    room.session()
    room.take(asks("important", importance=70, ttl_seconds=60))
    room.store.drop(0, room.store.session(0, "u", "s"))
    room.clock.observe(START + HOUR * 1000)
    room.agent.forget_expired()
    assert room.texts() == []


def test_another_workers_notes_are_not_dropped(room: Room) -> None:
    """A copy of its table may be here, in case that it fails; the tombstones would be written into its changelog."""
    room.take(asks("x", ttl_seconds=60))
    (note,) = room.store.notes.of_session(0, "u", "s")
    room.store.notes.restore(1, [(note_key(note), encode_note(note))])
    room.clock.observe(START + HOUR * 1000)
    room.agent.forget_expired()
    assert (room.texts(), room.store.notes.of_session(1, "u", "s")) == ([], [note])


def test_notes_expire_when_their_session_ends(room: Room) -> None:
    """The promoted ones too; those of another session, or asked for later, do not."""
    room.session()
    room.take(asks("small"), asks("important", importance=100), asks("elsewhere", session="t"), asks("later", at=11))
    room.end(at=10)
    assert room.expired(at=10) == ["important", "small"]
    room.agent.forget_expired()
    assert (room.texts(), room.texts("t"), room.sent) == (["later"], ["elsewhere"], ["important"])


def test_a_note_that_comes_after_the_end_of_its_session_has_expired(room: Room) -> None:
    """One that was asked for after the end is of what follows."""
    room.session(ended=True, at=60)
    room.take(asks("small", at=5), asks("important", at=5, importance=100), asks("after", at=61))
    assert room.expired(at=60) == ["important", "small"]


def test_an_end_that_was_written_without_its_notes_ends_them_after_a_crash(room: Room) -> None:
    room.take(asks("small"))
    room.write()
    room.session(ended=True, at=10)
    room.changelogs[0].update({change.key: change.value for change in room.store.sessions.drain()})
    room.restart()
    room.agent.recovered()
    assert room.expired(at=10) == ["small"]


def test_a_note_outlives_a_session_that_nothing_is_known_of_any_more(room: Room) -> None:
    """Its own expiry is what ends it then."""
    room.session()
    room.take(asks("x"))
    room.store.drop(0, room.store.session(0, "u", "s"))
    room.agent.forget_expired()
    assert room.texts() == ["x"]


def test_a_forgotten_note_is_gone_and_stays_gone_when_replayed(room: Room) -> None:
    gone, kept = asks("gone", importance=100), asks("kept")
    room.take(gone, kept)
    room.take(forget(gone))
    assert room.texts() == ["kept"]
    room.take(gone)
    room.end(at=1)
    assert (room.texts(), room.sent) == (["kept"], [])
    assert room.effects["forgotten"] == room.effects["removed"] == 1


def test_within_a_batch_forgetting_acts_whatever_comes_first(room: Room) -> None:
    one, other = asks("one"), asks("other")
    room.take(forget(one), one, other, forget(other))
    assert room.texts() == []


def test_a_note_is_forgotten_by_its_memory_id_and_not_by_its_events(room: Room) -> None:
    event = asks("x", memory_id=uuid.uuid4())
    room.take(event)
    room.take(forget(event.model_copy(update={"memory_id": None})))
    assert room.texts() == ["x"]
    room.take(forget(event))
    assert room.texts() == []


def test_forgetting_a_user_takes_the_notes_before_it_in_the_log(room: Room) -> None:
    """Dated ahead or not; and those after it that are dated before it."""
    room.take(asks("old", at=1), asks("older", session="t"), asks("ahead", at=3), asks("theirs", user="v"))
    room.take(asks("beside", at=9), forget_user(at=2), asks("late", at=2), asks("new", at=3))
    assert (room.texts(), room.texts("t"), room.texts(user="v")) == (["new"], [], ["theirs"])


def test_nobody_forgets_anothers_note(room: Room) -> None:
    event = asks("x")
    room.take(event, forget(event, user="v"), forget_user(at=10, user="v"))
    assert room.texts() == ["x"]


def test_the_event_clock_is_as_late_as_the_newest_note(room: Room) -> None:
    """Before a restart and after it: what has expired does not come back."""
    room.take(asks("x", at=40))
    assert room.clock.now() == START + 40_000
    room.write()
    room.clock = EventClock()
    room.restart()
    room.agent.recovered()
    assert room.clock.now() == START + 40_000


ASKED = st.builds(
    lambda number, at, importance, user: asks(f"{user} {number}", at=at, importance=importance, user=user),
    st.integers(0, 9),
    st.integers(0, 20),
    st.sampled_from([50, 70]),
    st.sampled_from(["u", "v"]),
)


@pytest.mark.slow
@examples(40)
@given(st.lists(ASKED, max_size=25, unique_by=lambda event: event.text), st.data())
def test_cuts_redeliveries_and_crashes_change_nothing(events: list[Remember], data: st.DataObject) -> None:
    """Beside one undisturbed batch: the same notes are kept, and the same events are sent."""
    with TemporaryDirectory() as folder, one_shard(Path(folder)) as shards:
        undisturbed = Room(shards, notes=3).take(*events)
        room, start, committed = Room(shards, notes=3), 0, 0
        while start < len(events):
            end = start + data.draw(st.integers(1, 5))
            room.take(*events[start:end])
            start = end
            match data.draw(st.sampled_from(["go on", "commit", "write", "crash"])):
                case "commit":
                    room.write()
                    committed = start
                case "write":
                    room.write()
                case "crash":
                    room.restart()
                    start = committed
        for user in ("u", "v"):
            undisturbed.end(at=30, user=user)
            room.end(at=30, user=user)
            assert room.texts(user=user) == undisturbed.texts(user=user)
    once = {event.event_id: event for event in room.outbox.sent}
    assert once == {event.event_id: event for event in undisturbed.outbox.sent}
    assert all(event == once[event.event_id] for event in room.outbox.sent)


@pytest.mark.slow
@examples(30)
@given(st.lists(ASKED, min_size=1, max_size=12, unique_by=lambda event: event.text), st.data())
def test_what_is_forgotten_is_gone_however_often_the_log_is_read(events: list[Remember], data: st.DataObject) -> None:
    log: list[LongTermEvent] = list(events)
    gone = data.draw(st.sets(st.sampled_from(range(len(events)))))
    for place in gone:
        log.insert(data.draw(st.integers(0, len(log))), forget(events[place], user=events[place].user_id))
    with TemporaryDirectory() as folder, one_shard(Path(folder)) as shards:
        room = Room(shards).take(*log)
        for event in log[data.draw(st.integers(0, len(log) - 1)) :]:
            room.take(event)
    left = sorted(note.text for user in ("u", "v") for note in room.store.notes.of_user(0, user))
    assert left == sorted(event.text for place, event in enumerate(events) if place not in gone)
