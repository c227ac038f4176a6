"""A day's messages as turns."""

from __future__ import annotations

from streams.summaries.rules import turns_of
from tests.streams.summaries.rules.talking import LIMITS, day, turns
from tests.support.making import START, message


def test_a_turn_is_what_the_user_says_and_the_answer_to_it() -> None:
    first, second = turns("hi", "are you there?", "A: yes", "good")
    assert [said.message_id for said in first.messages] == ["m0", "m1", "m2"]
    assert [said.message_id for said in second.messages] == ["m3"]


def test_turns_are_counted_over_the_day_in_the_order_in_which_they_began() -> None:
    """Two sessions at the same time are cut one by one."""
    said = [
        message(0, at=0, session_id="a"),
        message(1, at=10, session_id="b"),
        message(2, "assistant", at=20, session_id="a"),
        message(3, at=30, session_id="a"),
        message(4, "assistant", at=40, session_id="b"),
    ]
    found = turns_of(list(reversed(said)), LIMITS)
    assert [(turn.number, turn.session_id) for turn in found] == [(1, "a"), (2, "b"), (3, "a")]
    assert [[said.message_id for said in turn.messages] for turn in found] == [["m0", "m2"], ["m1", "m4"], ["m3"]]


def test_only_user_and_assistant_speak() -> None:
    said = [message(0, "system"), message(1, at=200), message(2, "tool", at=201), message(3, "assistant", at=202)]
    (turn,) = turns_of(said, LIMITS)
    assert [said.message_id for said in turn.messages] == ["m1", "m3"]


def test_two_minutes_of_silence_begin_another_turn() -> None:
    assert len(turns_of([message(0, at=0), message(1, at=120)], LIMITS)) == 2
    assert len(turns_of([message(0, at=0), message(1, at=119)], LIMITS)) == 1


def test_a_message_that_comes_again_is_counted_once() -> None:
    assert len(turns_of([*day("hi", "A: hello"), *day("hi")], LIMITS)) == 1


def test_a_message_without_an_id_gets_one() -> None:
    (turn,) = turns_of([message(0, message_id=None)], LIMITS)
    assert turn.messages[0].message_id
    assert turn.messages[0].timestamp == START


def test_a_day_without_messages_has_no_turns() -> None:
    assert turns_of([], LIMITS) == []
