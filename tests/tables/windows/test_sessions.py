"""A user's sessions, the one spoken in last first: no more of them are read than are asked for."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given

from schemas.sessions import Session
from tables.windows.resident import Resident
from tables.windows.sessions import Sessions, encode_session, session_key
from tests.support.examples import examples
from tests.tables.windows.counted import Counted
from tests.tables.windows.steps import PARTITIONS, STEPS, USERS, Step, each_step

MANY = 2_000


@pytest.fixture
def kept() -> Counted:
    return Counted()


@pytest.fixture
def sessions(kept: Counted) -> Sessions:
    """Many sessions of one user, and one of another; none of them is decoded."""
    earlier = Sessions(kept=kept)
    for number in range(MANY):
        put(earlier, number)
    put(earlier, 0, user="v")
    earlier.written(earlier.drain())
    kept.read = 0
    return Sessions(kept=kept)


def put(sessions: Sessions, number: int, *, user: str = "u", at: int | None = None) -> None:
    session = Session(user, f"s{number}", offset=number, last_at=number if at is None else at)
    sessions.put(0, session_key(user, session.session_id), session)


def newest(sessions: Sessions, most: int, since: int = -1) -> list[str]:
    return [session.session_id for session in islice(sessions.spoken_in(0, "u", since), most)]


@given(STEPS)
@examples(300)
def test_whatever_happens_they_are_those_of_the_user_newest_first(steps: list[Step]) -> None:
    """Asked after each step or at the end alone."""

    def made(user: str, place: int, number: int) -> Session:
        return Session(user, f"{place}", offset=number, last_at=(7 * number + place) % 11)

    for asked_in_between in (True, False):
        sessions = Sessions()
        for number, _ in enumerate(each_step(sessions, steps, made, encode_session), 1):
            if not asked_in_between and number < len(steps):
                continue
            for partition in PARTITIONS:
                for user in USERS:
                    found = list(sessions.spoken_in(partition, user, 3))
                    assert [one.last_at for one in found] == sorted((one.last_at for one in found), reverse=True)
                    expected = [one for one in sessions.of_user(partition, user) if one.last_at > 3]
                    assert sorted(found) == sorted(expected)


def test_asked_again_no_more_are_read_than_are_asked_for(sessions: Sessions, kept: Counted) -> None:
    assert newest(sessions, 3) == ["s1999", "s1998", "s1997"]
    assert kept.read == MANY + 3  # of the first question: a row's beginning tells when
    assert newest(sessions, 5) == ["s1999", "s1998", "s1997", "s1996", "s1995"]
    assert kept.read == MANY + 3 + 2


def test_what_changes_is_followed_without_reading_the_others(sessions: Sessions, kept: Counted) -> None:
    newest(sessions, 1)
    read = kept.read
    put(sessions, 5, at=5_000)
    assert newest(sessions, 2) == ["s5", "s1999"]
    sessions.written(sessions.drain())
    put(sessions, 7, at=4_000)
    sessions.delete(0, session_key("u", "s1999"))
    assert newest(sessions, 3) == ["s5", "s7", "s1998"]
    assert kept.read == read + 1  # s1998


def test_what_is_too_old_is_not_read(sessions: Sessions, kept: Counted) -> None:
    assert newest(sessions, MANY, since=MANY - 2) == ["s1999"]
    assert kept.read == MANY + 1


def test_times_go_with_the_rows_that_nobody_asks_for(kept: Counted, sessions: Sessions) -> None:
    """A later question reads them from the kept rows again."""
    resident = Resident(1_000)
    bounded = Sessions(kept=kept, resident=resident)
    assert newest(bounded, 1) == newest(sessions, 1)
    for _ in range(4):
        list(bounded.spoken_in(0, "v", -1))
        bounded.get(0, session_key("u", "s1"))
        resident.came()
    before = kept.read
    put(bounded, 3, at=9_000)
    bounded.written(bounded.drain())
    assert newest(bounded, 2) == ["s3", "s1999"]
    assert kept.read > before + MANY
