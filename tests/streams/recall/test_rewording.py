"""Which rewordings may stand for a section's lines, and the room that they have."""

from __future__ import annotations

import uuid
from zoneinfo import ZoneInfo

import pytest

from streams.language.personal_fact import Part
from streams.models.reworder import Rewording
from streams.recall.dates import ReferenceDate
from streams.recall.profile import Line, Profile, Section, with_rewordings
from streams.recall.rewording import NotTheSame, reworded_lines
from tests.support.making import START

TODAY = ReferenceDate(START, ZoneInfo("UTC"), True)
OSLO = Line("I live in Oslo.", (uuid.UUID(int=1), uuid.UUID(int=2)), START)
NURSE = Line("I work as a nurse.", (uuid.UUID(int=2), uuid.UUID(int=3)), START + 1)
MOVED = Line("I moved to Rome last week.", (uuid.UUID(int=4),), START)
IPHONE = Line("I use an iPhone.", (uuid.UUID(int=5),), START)


def test_a_line_has_all_memories_once_those_of_the_newest_first() -> None:
    (line,) = reworded_lines(Part.ABOUT, {1: OSLO, 2: NURSE}, [Rewording((2, 1), "lives in Oslo, works as a nurse")])
    assert line.memory_ids == (uuid.UUID(int=2), uuid.UUID(int=3), uuid.UUID(int=1))
    assert (line.text, line.said_at, line.due) == ("Lives in Oslo, works as a nurse", START + 1, None)


def test_the_order_is_that_of_the_section() -> None:
    given = [Rewording((5,), "works as a nurse"), Rewording((4,), "lives in Oslo")]
    lines = reworded_lines(Part.ABOUT, {4: OSLO, 5: NURSE}, given)
    assert [line.text for line in lines] == ["Lives in Oslo", "Works as a nurse"]


def test_a_name_keeps_its_letters_at_the_beginning() -> None:
    (line,) = reworded_lines(Part.ABOUT, {1: IPHONE}, [Rewording((1,), "iPhone user")])
    assert line.text == "iPhone user"


def test_lines_with_times_of_their_own_are_not_merged() -> None:
    """The line would have the day of the newest, and \u201clast week\u201d another meaning."""
    alone = [Rewording((1,), "moved to Rome last week"), Rewording((2,), "works as a nurse")]
    assert len(reworded_lines(Part.ABOUT, {1: MOVED, 2: NURSE}, alone)) == 2
    with pytest.raises(NotTheSame, match="times of their own"):
        reworded_lines(Part.ABOUT, {1: MOVED, 2: NURSE}, [Rewording((1, 2), "moved to Rome last week, is a nurse")])


def test_tasks_are_not_merged() -> None:
    tasks = {1: Line("Buy milk.", (uuid.UUID(int=6),), START, START + 9), 2: Line("Buy tea.", (), START, START + 8)}
    with pytest.raises(NotTheSame, match="times of their own"):
        reworded_lines(Part.TASKS, tasks, [Rewording((1, 2), "buy milk, buy tea")])
    lines = reworded_lines(Part.TASKS, tasks, [Rewording((1,), "buy milk"), Rewording((2,), "buy tea")])
    assert [line.due for line in lines] == [START + 9, START + 8]


def test_where_there_is_no_room_the_last_sections_keep_the_users_words() -> None:
    profile = Profile(
        (Section(Part.ABOUT, (OSLO,)), Section(Part.PEOPLE, (NURSE,)), Section(Part.PREFERENCES, (IPHONE,))),
        whole=frozenset({OSLO.memory_ids[0], *IPHONE.memory_ids}),
    )
    longer = {
        Part.ABOUT: (Line("The user lives in the city of Oslo", OSLO.memory_ids, START),),
        Part.PEOPLE: (Line("The user works for a living as a nurse", NURSE.memory_ids, START),),
    }
    all_of_it = with_rewordings(profile, longer, TODAY)
    assert [one.reworded for one in all_of_it.sections] == [True, True, False]
    assert all_of_it.whole == {IPHONE.memory_ids[0]}, "a reworded line has all words of no memory"
    less = with_rewordings(profile, longer, TODAY, all_of_it.tokens - 1)
    assert [one.reworded for one in less.sections] == [True, False, False]
    assert less.tokens < all_of_it.tokens
    assert with_rewordings(profile, longer, TODAY, 10) is profile


def test_lines_without_a_change_are_the_users_words() -> None:
    profile = Profile((Section(Part.ABOUT, (OSLO,)),))
    assert with_rewordings(profile, {Part.ABOUT: (OSLO,)}, TODAY) is profile
