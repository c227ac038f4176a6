"""A session that says nothing must not wait for its next message."""

from __future__ import annotations

from schemas.messages import LATEST_MS, Message, Role
from schemas.settings import MemorySettings
from streams.agents.short_term import QuietSessions
from tables.short_term import Session
from tests.making import START

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


def noted(quiet: QuietSessions, of: Session) -> list[int]:
    """Seconds of silence that are noted now."""
    return [(silence.timestamp - START) // 1000 for silence in quiet.due(MEMORY, lambda *_: of, START)]


def heard(of: Session) -> tuple[Now, QuietSessions]:
    now = Now()
    quiet = QuietSessions(now)
    quiet.heard(0, of)
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
    quiet.heard(0, session())
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
    assert quiet.expired(MEMORY) == []
    now.seconds += 1
    assert quiet.expired(MEMORY) == [(0, "u", "s")]
    assert quiet.expired(MEMORY) == []


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
