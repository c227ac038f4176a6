"""The short-term window as a value, and the two tables that keep it."""

from __future__ import annotations

from datetime import UTC, date, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.conversations import Role
from schemas.events import LONG_TERM_EVENT, Parts
from schemas.exchanges import Exchange, Message
from schemas.sessions import Session
from streams.intake.agent import promotion
from streams.intake.rules.decision import Decision
from tables.windows.rows import Change
from tables.windows.sessions import decode_session, encode_session, session_key
from tables.windows.short_term import EXCHANGE_KEY, ShortTermStore, decode_exchange, encode_exchange, unexpired
from tests.support.making import START, message, spoken

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers(0, 2**53)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MESSAGES = st.builds(
    Message,
    TEXT,
    st.sampled_from(Role),
    TEXT,
    NUMBERS,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.dictionaries(TEXT, JSON, max_size=3),
)
RUNS = st.lists(MESSAGES, max_size=4).map(tuple)


@given(
    st.builds(
        Session,
        TEXT,
        TEXT,
        offset=st.integers(-1, 2**53),
        last_at=NUMBERS,
        open=RUNS,
        first=NUMBERS,
        next=NUMBERS,
        missing=st.lists(NUMBERS, max_size=3).map(tuple),
        left_at=NUMBERS,
        asked=st.lists(NUMBERS, max_size=3).map(tuple),
        pending=st.lists(NUMBERS, max_size=5).map(tuple),
        exchanges=NUMBERS,
        ended=st.booleans(),
        said=NUMBERS,
        summed_up=NUMBERS,
        day_ends=NUMBERS,
        lead=NUMBERS,
        known=NUMBERS,
        horizon=NUMBERS,
    )
)
def test_a_session_reads_back_as_it_was_written(session: Session) -> None:
    assert decode_session(encode_session(session)) == session


def test_a_session_whose_messages_are_not_dated_ahead_has_the_row_that_it_always_had() -> None:
    session = Session("u", "s", 7, last_at=START)
    assert orjson.loads(encode_session(session)) == ["u", "s", 7, START, [], 0, 0, [], 0, [], [], 0, False, 0, 0, 0]
    assert decode_session(encode_session(session)) == session


@given(st.builds(Exchange, NUMBERS, RUNS))
def test_an_exchange_reads_back_as_it_was_written(exchange: Exchange) -> None:
    assert decode_exchange(encode_exchange(exchange)) == exchange


@pytest.mark.parametrize("depth", [100, 240, 248, 249, 250, 251, 252, 253, 254, 255, 300])
def test_a_message_that_is_accepted_can_be_kept(depth: int) -> None:
    """JSON writers give up at some depth: what would pass it in a window or a promotion is refused at the door."""
    deep: Any = {}
    for _ in range(depth - 1):
        deep = {"a": deep}
    try:
        said = Message.of(message(1, metadata=deep))
    except ValidationError:
        assert depth > 100
        return
    decision = Decision(Exchange(0, (said,)), True, 100, Parts(reason="forced"))
    assert decode_session(encode_session(Session("u", "s", open=(said,)))).open == (said,)
    assert decode_exchange(encode_exchange(decision.exchange)) == decision.exchange
    event = promotion(Session("u", "s"), decision)
    assert LONG_TERM_EVENT.validate_python(orjson.loads(event.model_dump_json())) == event


@given(st.lists(st.tuples(TEXT, TEXT), unique=True, max_size=10))
def test_no_two_sessions_share_a_key(names: list[tuple[str, str]]) -> None:
    assert len({session_key(*ids) for ids in names}) == len(names)


def test_an_exchanges_key_is_no_sessions_key() -> None:
    assert EXCHANGE_KEY % (session_key("u", "s"), 1) not in {session_key("u", "s"), session_key("u", "s,1")}


def test_the_open_exchange_is_numbered_as_if_it_closed_now() -> None:
    said = Message("m", Role.USER, "hi", START)
    assert Session("u", "s", open=(said,), first=2, next=5).open_exchange == Exchange(5, (said,))


def exchange(seq: int, *ids: str) -> Exchange:
    return Exchange(seq, tuple(Message(i, Role.USER, "hi", START) for i in ids))


@pytest.fixture
def store() -> ShortTermStore:
    return ShortTermStore()


def saved(store: ShortTermStore, *exchanges: Exchange, partition: int = 0, user: str = "u") -> Session:
    session = Session(user, "s", offset=9, first=exchanges[0].seq, next=exchanges[-1].seq + 1)
    store.save(partition, session, exchanges, ())
    return session


def restarted(store: ShortTermStore) -> ShortTermStore:
    """Another worker's store, with what the changelogs hold."""
    fresh = ShortTermStore()
    for theirs, ours in ((fresh.sessions, store.sessions), (fresh.exchanges, store.exchanges)):
        for change in ours.drain():
            theirs.restore(change.partition, [(change.key, change.value)])
    return fresh


def test_a_session_that_nobody_heard_of_is_new(store: ShortTermStore) -> None:
    assert store.session(0, "u", "s") == Session("u", "s")
    assert list(store.all_sessions()) == []


def test_a_saved_session_has_its_window(store: ShortTermStore) -> None:
    session = saved(store, exchange(3, "a"), exchange(4, "b"))
    assert store.session(0, "u", "s") == session
    assert store.window(0, session) == [exchange(3, "a"), exchange(4, "b")]


def test_the_whole_window_ends_with_what_is_open(store: ShortTermStore) -> None:
    session = saved(store, exchange(3, "a"))
    assert store.whole_window(0, session) == [exchange(3, "a")]
    session = session._replace(open=exchange(4, "b").messages)
    assert store.whole_window(0, session) == [exchange(3, "a"), exchange(4, "b")]


def test_what_a_user_said_is_in_all_windows_of_the_user_closed_or_open(store: ShortTermStore) -> None:
    saved(store, exchange(0, "a", "b"))
    saved(store, exchange(0, "z"), user="v")
    (said,) = exchange(0, "c").messages
    store.save(0, Session("u", "t", open=(said,)), (), ())
    found = [(session_id, message.message_id) for session_id, message in store.said_by(0, "u")]
    assert sorted(found) == [("s", "a"), ("s", "b"), ("t", "c")]


def test_what_a_user_said_last_comes_first_of_all_sessions_and_is_bounded(store: ShortTermStore) -> None:
    """An exchange whose value is waited for is among it when it has left its window; what is too old is not."""
    for number, name in enumerate("abc"):
        closed = [spoken(seq, ("user", f"{name}{seq}"), at=100 * number + 10 * seq) for seq in range(3)]
        opened = spoken(3, ("user", f"{name} open"), at=100 * number + 30)
        last = opened.messages[-1].timestamp
        session = Session("u", name, open=opened.messages, first=1, next=3, asked=(0,), last_at=last)
        store.save(0, session, closed, ())
    store.save(0, Session("v", "a", open=exchange(0, "other").messages, last_at=START), (), ())

    def said(since: int = 0, most: int = 99) -> list[str]:
        found = store.newest_of(0, "u", START + since * 1000, most)
        return [f"{name}:{exchange.messages[0].content}" for name, exchange in found]

    of_a = ["a:a open", "a:a2", "a:a1"]
    assert said()[:4] == ["c:c open", "c:c2", "c:c1", "c:c0"]
    assert said()[-3:] == of_a  # the first one began at START, and is no newer than that
    assert said(-1)[-4:] == [*of_a, "a:a0"]
    assert said(most=2) == ["c:c open", "c:c2"]
    assert said(220) == ["c:c open"]
    assert store.newest_of(1, "u", 0, 9) == store.newest_of(0, "w", 0, 9) == []


def test_a_day_is_one_of_the_time_zone(store: ShortTermStore) -> None:
    """The same evening is the next morning further east."""
    evening = Message("m", Role.USER, "hi", 1_767_306_600_000)  # 2026-01-01 22:30 UTC
    store.save(0, Session("u", "s", open=(evening,)), (), ())
    east = timezone(timedelta(hours=2))
    assert store.said_on(0, "u", date(2026, 1, 1), UTC) == [("s", evening)]
    assert store.said_on(0, "u", date(2026, 1, 1), east) == []
    assert store.said_on(0, "u", date(2026, 1, 2), east) == [("s", evening)]


def test_saving_drops_the_exchanges_that_left(store: ShortTermStore) -> None:
    saved(store, exchange(0, "a"), exchange(1, "b"))
    store.save(0, Session("u", "s", first=1, next=3), [exchange(2, "c")], [0])
    assert [key.rpartition(b"]")[2] for _, key, _ in store.exchanges.items()] == [b"1", b"2"]


def test_a_session_writes_what_is_new_and_not_its_whole_window(store: ShortTermStore) -> None:
    saved(store, *(exchange(seq, f"m{seq}") for seq in range(20)))
    restarted(store)
    store.save(0, Session("u", "s", first=0, next=21), [exchange(20, "m20")], [])
    assert [change.key for change in store.exchanges.drain()] == [EXCHANGE_KEY % (session_key("u", "s"), 20)]


def test_the_same_session_id_of_two_users_is_two_sessions(store: ShortTermStore) -> None:
    one, two = saved(store, exchange(0, "a")), saved(store, exchange(0, "b"), user="v")
    assert store.window(0, one) != store.window(0, two)


def test_the_known_ids_are_those_of_the_window_and_the_open_exchange(store: ShortTermStore) -> None:
    session = Session("u", "s", open=(Message("c", Role.USER, "hi", START),), first=0, next=2)
    store.save(0, session, [exchange(0, "a"), exchange(1, "b")], ())
    assert store.message_ids(0, session) == {"a", "b", "c"}


def test_the_caller_keeps_the_known_ids_up_to_date(store: ShortTermStore) -> None:
    """They are worked out once, not for every batch."""
    session = saved(store, exchange(0, "a"))
    store.message_ids(0, session).add("b")
    assert store.message_ids(0, session) == {"a", "b"}


def test_dropping_a_session_leaves_tombstones_for_all_its_keys(store: ShortTermStore) -> None:
    session = saved(store, exchange(0, "a"), exchange(1, "b"))
    restarted(store)
    store.drop(0, session)
    assert store.sessions.drain() == [Change(0, session_key("u", "s"), None)]
    assert sorted(store.exchanges.drain()) == [
        Change(0, EXCHANGE_KEY % (session_key("u", "s"), seq), None) for seq in (0, 1)
    ]


def test_a_dropped_sessions_messages_are_not_known_any_more(store: ShortTermStore) -> None:
    session = saved(store, exchange(0, "a"))
    store.message_ids(0, session)
    store.drop(0, session)
    assert store.message_ids(0, Session("u", "s")) == set()


def test_another_worker_finds_the_same_windows(store: ShortTermStore) -> None:
    session = saved(store, exchange(3, "a"), exchange(4, "b"), partition=2)
    fresh = restarted(store)
    fresh.recovered()
    assert list(fresh.all_sessions()) == [(2, session)]
    assert fresh.window(2, session) == store.window(2, session)
    assert fresh.exchanges.drain() == []


def test_exchanges_that_no_session_knows_are_dropped_after_recovery(store: ShortTermStore) -> None:
    """A crash came between an exchange and its session: the records are read again, and it closes again."""
    session = saved(store, exchange(3, "a"), exchange(4, "b"))
    for orphan, owner in ((exchange(5, "c"), "u"), (exchange(2, "c"), "u"), (exchange(0, "d"), "nobody")):
        store.exchanges.put(0, EXCHANGE_KEY % (session_key(owner, "s"), orphan.seq), orphan)
    fresh = restarted(store)
    fresh.recovered()
    assert [key.rpartition(b"]")[2] for _, key, _ in fresh.exchanges.items()] == [b"3", b"4"]
    assert sorted(fresh.exchanges.drain()) == sorted(
        Change(0, EXCHANGE_KEY % (session_key(owner, "s"), seq), None)
        for owner, seq in (("u", 5), ("u", 2), ("nobody", 0))
    )
    assert fresh.message_ids(0, session) == {"a", "b"}


def test_a_row_of_a_former_owner_does_not_replace_a_newer_one(store: ShortTermStore) -> None:
    """A worker that was paused while another took over wrote what it still held."""
    key, newer, older = session_key("u", "s"), Session("u", "s", offset=9), Session("u", "s", offset=4)
    store.sessions.restore(0, [(key, encode_session(newer)), (key, encode_session(older))])
    assert store.session(0, "u", "s") == newer
    store.sessions.restore(0, [(key, encode_session(newer._replace(asked=(1,))))])
    assert store.session(0, "u", "s").asked == (1,), "an answer changes a session and moves no offset"
    store.sessions.restore(0, [(key, None), (key, encode_session(older))])
    assert store.session(0, "u", "s") == older, "what comes after a deletion has started over"


def test_a_session_goes_on_without_exchanges_that_are_lost(store: ShortTermStore) -> None:
    """They are in its window, pending, or asked about, and a former owner has deleted their rows."""
    session = saved(store, *(exchange(seq, f"m{seq}") for seq in range(5)))
    store.save(0, session._replace(first=1, next=5, pending=(2, 4), asked=(0, 3)), (), ())
    for seq in (0, 1, 2):
        store.exchanges.delete(0, EXCHANGE_KEY % (session_key("u", "s"), seq))
    fresh = restarted(store)
    assert fresh.recovered() == 3
    left = fresh.session(0, "u", "s")
    assert (left.first, left.window, left.pending, left.asked) == (3, range(3, 5), (4,), (3,))
    assert [one.seq for one in fresh.window(0, left)] == [3, 4]
    assert [change.key for change in fresh.sessions.drain()] == [session_key("u", "s")]


def test_a_session_is_found_by_its_ids_in_whichever_partition(store: ShortTermStore) -> None:
    session = saved(store, exchange(0, "a"), partition=5)
    saved(store, exchange(0, "b"), partition=1, user="v")
    assert store.find("u", "s") == (5, session)
    assert store.find("u", "elsewhere") is None
    assert store.partitions() == [1, 5]


def test_an_exchange_expires_when_its_last_message_is_as_old_as_the_window() -> None:
    """At exactly its time to live it is gone; a millisecond before it is there."""
    said = spoken(0, ("user", "hi"), ("assistant", "hello"))  # ends a second after START
    end = START + 1000 + 60_000
    assert unexpired([said], end - 1, 60) == [said]
    assert unexpired([said], end, 60) == []


def test_what_expired_goes_and_the_rest_keeps_its_order() -> None:
    old, young, younger = (spoken(seq, ("user", "hi"), at=at) for seq, at in ((0, 0), (1, 50), (2, 55)))
    assert unexpired([old, young, younger], START + 70_000, 60) == [young, younger]


def test_exchanges_are_read_in_time_order() -> None:
    """One that came too late to be placed has a higher number than those after it."""
    later, late = spoken(0, ("user", "b"), at=60), spoken(1, ("user", "a"), at=10)
    assert unexpired([later, late], START + 61_000, 86_400) == [late, later]


def test_of_a_forgotten_user_a_digest_stays_and_no_id(store: ShortTermStore) -> None:
    """Nothing that is dated before it is heard in a session that begins later, after a restart too."""
    store.note_forgotten(0, "forgotten-user", START)
    store.note_forgotten(0, "forgotten-user", START - 1)
    changes = store.sessions.drain()
    assert not any(b"forgotten-user" in change.key + (change.value or b"") for change in changes)
    fresh = ShortTermStore()
    fresh.sessions.restore(0, [(change.key, change.value) for change in changes])
    fresh.recovered()
    assert fresh.session(0, "forgotten-user", "s").horizon == START
    assert fresh.session(0, "another", "s").horizon == 0
    assert (list(fresh.all_sessions()), fresh.of_user(0, "forgotten-user")) == ([], [])


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_known_of_an_exchange_that_is_asked_about_stays(store: ShortTermStore, whole: bool) -> None:
    """It has left the window and waits for its rating. The whole partition is fitted, or the session alone."""
    key, asked, held = session_key("u", "s"), exchange(0, "a"), exchange(1, "b")
    session = Session("u", "s", first=1, next=2, asked=(0,))
    store.save(0, session, [asked, held], (), {0: asked.emptied()})
    assert (store._fit_all(0) if whole else store._fit_one(0, key)) == 0
    answered = session._replace(asked=())
    store.save(0, answered, (), [0])
    store.forget_message_ids(0, answered)
    assert store.message_ids(0, answered) == {"a", "b"}
