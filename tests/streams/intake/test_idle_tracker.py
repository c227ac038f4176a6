"""A session that says nothing must not wait for its next message, nor stay for ever."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from schemas.conversations import Role
from schemas.exchanges import Message
from schemas.sessions import Session
from schemas.settings import MemorySettings
from schemas.times import LATEST_MS
from streams.intake.idle_tracker import IdleTracker
from tests.support.making import START

MEMORY = MemorySettings()


class Now:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def session(*, said: bool = True, ended: bool = False) -> Session:
    open_messages = (Message("m", Role.USER, "hi", START),) if said else ()
    return Session("u", "s", last_at=START, open=open_messages, ended=ended)


def noted(quiet: IdleTracker, of: Session) -> list[int]:
    """Seconds of silence that are noted now."""
    return [(silence.timestamp - START) // 1000 for silence in quiet.due(MEMORY, lambda *_: of, START)]


def heard(of: Session) -> tuple[Now, IdleTracker]:
    now = Now()
    quiet = IdleTracker(now)
    quiet.seen(0, of)
    return now, quiet


def test_two_minutes_without_a_message_are_noted_once() -> None:
    now, quiet = heard(session())
    now.seconds += 119.9
    assert noted(quiet, session()) == []
    now.seconds += 0.1
    assert noted(quiet, session()) == [120]
    now.seconds += 600
    assert noted(quiet, session()) == []


def test_half_an_hour_without_a_message_is_noted_once() -> None:
    now, quiet = heard(session())
    now.seconds += 120
    noted(quiet, session())
    now.seconds += 1680
    assert noted(quiet, session()) == [1800]
    now.seconds += 10_000
    assert noted(quiet, session()) == []


def test_a_message_begins_the_silence_anew() -> None:
    now, quiet = heard(session())
    now.seconds += 100
    quiet.seen(0, session())
    now.seconds += 100
    assert noted(quiet, session()) == []


def test_where_nothing_is_open_the_gap_needs_no_note() -> None:
    now, quiet = heard(session(said=False))
    now.seconds += 200
    assert noted(quiet, session(said=False)) == []


def test_an_ended_session_needs_no_note() -> None:
    now, quiet = heard(session(said=False, ended=True))
    now.seconds += 5000
    assert noted(quiet, session(said=False, ended=True)) == []


def test_a_session_is_gone_when_its_window_has_expired() -> None:
    """Named once; its rows get tombstones."""
    now, quiet = heard(session())
    now.seconds += 1800
    noted(quiet, session())
    now.seconds += MEMORY.ttl_seconds
    assert quiet.expired(MEMORY, START) == []
    now.seconds += 1
    assert quiet.expired(MEMORY, START) == [(0, "u", "s")]
    assert quiet.expired(MEMORY, START) == []


def test_no_silence_is_noted_beyond_the_latest_time_that_a_record_may_have() -> None:
    """A clock that is wrong by decades must not stop the worker."""
    wrong = session()._replace(last_at=LATEST_MS - 1)
    now, quiet = heard(wrong)
    now.seconds += 1800
    assert [silence.timestamp for silence in quiet.due(MEMORY, lambda *_: wrong, START)] == [LATEST_MS - 1]


def test_where_only_silence_is_known_there_is_no_time_to_note() -> None:
    """Its messages are older than the log: there is nothing to close, and nothing to end."""
    silent = Session("u", "s")
    now, quiet = heard(silent)
    now.seconds += 1800
    assert quiet.due(MEMORY, lambda *_: silent, START) == []


def test_a_session_that_is_over_is_silent_until_its_day_is_and_that_is_noted_once() -> None:
    """By the lifecycle's clock; one that can still go on is not: more of its day may be on the way."""
    midnight = START + 86_400_000
    over = session(said=False, ended=True)._replace(day_ends=midnight)
    quiet, goes_on = heard(over)[1], heard(session()._replace(day_ends=midnight))[1]
    assert quiet.due(MEMORY, lambda *_: over, midnight - 1) == []
    assert goes_on.due(MEMORY, lambda *_: session(), midnight) == []
    assert [silence.timestamp for silence in quiet.due(MEMORY, lambda *_: over, midnight)] == [midnight]
    assert quiet.due(MEMORY, lambda *_: over, midnight) == []


DAY = 86_400


def test_an_ended_session_is_gone_by_event_time_however_often_partitions_were_assigned() -> None:
    """Nothing has come for half an hour, so that what is read again after a restart is in."""
    ended = session(said=False, ended=True)
    now, quiet = heard(ended)
    expired_at = START + (MEMORY.ttl_seconds + MEMORY.session_idle_seconds) * 1000
    now.seconds += MEMORY.session_idle_seconds
    assert quiet.expired(MEMORY, expired_at - 1) == []
    quiet.clear()
    quiet.seen(0, ended)
    now.seconds += MEMORY.session_idle_seconds - 1
    assert quiet.expired(MEMORY, expired_at) == []
    now.seconds += 1
    assert quiet.expired(MEMORY, expired_at) == [(0, "u", "s")]


def test_a_session_is_not_gone_before_its_end_and_that_of_its_day_are_noted() -> None:
    """However old it is: else what was not evaluated yet would be lost."""
    late = START + 400 * DAY * 1000
    now, quiet = heard(session())
    now.seconds += MEMORY.session_idle_seconds
    assert quiet.expired(MEMORY, late) == []
    over = session(said=False, ended=True)._replace(day_ends=START + DAY * 1000)
    quiet.seen(0, over)
    now.seconds += MEMORY.session_idle_seconds
    assert len(quiet.due(MEMORY, lambda *_: over, late)) == 1
    assert quiet.expired(MEMORY, late) == []
    quiet.seen(0, over._replace(day_ends=0))
    now.seconds += MEMORY.session_idle_seconds
    assert quiet.expired(MEMORY, late) == [(0, "u", "s")]


def test_thirty_days_with_a_rebalance_each_keep_no_more_than_two_days_of_sessions() -> None:
    now = Now()
    quiet = IdleTracker(now)
    held: dict[str, Session] = {}
    kept = []
    for day in range(30):
        for number in range(20):
            name, at = f"{day}-{number}", START + (day * DAY + number * 60) * 1000
            held[name] = Session("u", name, last_at=at, ended=True)
            quiet.seen(0, held[name])
        quiet.clear()
        for one in held.values():
            quiet.seen(0, one)
        for _ in range(24):
            now.seconds += DAY / 24
            for _, _, gone in quiet.expired(MEMORY, START + int((now.seconds - 1000) * 1000)):
                del held[gone]
        kept.append(len(held))
    assert max(kept) <= 40
    assert kept[-1] == kept[2]


@pytest.mark.slow
def test_nobody_looks_at_sessions_whose_turn_it_is_not() -> None:
    """Ten thousand that are silent: each is looked at a few times, not every second."""
    now = Now()
    quiet, looked = IdleTracker(now), 0

    def looked_up(_: int, user: str, name: str) -> Session:
        nonlocal looked
        looked += 1
        return session()._replace(session_id=name)

    for number in range(10_000):
        quiet.seen(0, session()._replace(session_id=str(number)))
    pushed = counted_pushes(quiet)
    for _ in range(3_600):
        now.seconds += 1
        quiet.due(MEMORY, looked_up, START)
        quiet.expired(MEMORY, START)
    assert looked == 20_000
    assert pushed() < 100_000


def test_a_silent_session_takes_a_few_hundred_bytes() -> None:
    """Half a kilobyte at the most: its key, its entry and its turns, and no buffer that the key was written in."""
    quiet, number = IdleTracker(Now()), 5_000
    said = session()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for each in range(number):
            quiet.seen(0, said._replace(user_id=f"traced-{each}"))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(quiet) == number
    assert (after - before) / number < 640


def test_of_a_session_that_is_spoken_in_again_only_the_newest_silence_counts() -> None:
    """It was looked at before, and ended: what it was told then frees nothing of what came after."""
    now, quiet = heard(session(said=False, ended=True))
    now.seconds += MEMORY.session_idle_seconds - 1
    quiet.seen(0, session()._replace(last_at=START + DAY * 1000))
    late = START + 2 * DAY * 1000
    now.seconds += 2
    assert quiet.expired(MEMORY, late) == []
    now.seconds += 120
    assert [silence.timestamp for silence in quiet.due(MEMORY, lambda *_: session(), START)] == [START + 120_000]


def counted_pushes(quiet: IdleTracker) -> Callable[[], int]:
    """How often a session was put into a heap since."""
    count = 0

    def counting(put: Callable[..., None]) -> Callable[..., None]:
        def counted(*arguments: object) -> None:
            nonlocal count
            count += 1
            put(*arguments)

        return counted

    for name in ("_look_again", "_free_later", "_await_day"):
        setattr(quiet, name, counting(getattr(quiet, name)))
    return lambda: count
