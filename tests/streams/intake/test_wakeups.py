"""Keys come when their span has begun, and cost little until then."""

from __future__ import annotations

from streams.intake.wakeups import Turns


def test_a_key_comes_once_when_its_span_has_begun() -> None:
    turns = Turns(10)
    turns.add(25, b"later")
    turns.add(11, b"now")
    assert list(turns.until(9)) == []
    assert list(turns.until(10)) == [b"now"]
    assert list(turns.until(25)) == [b"later"]
    assert list(turns.until(1_000)) == []


def test_what_is_put_back_while_keys_are_taken_comes_the_next_time() -> None:
    turns = Turns(10)
    turns.add(15, b"early")
    for key in turns.until(12):
        turns.add(15, key)
    assert list(turns.until(12)) == [b"early"]


def test_spans_come_in_their_order() -> None:
    turns = Turns(1_000)
    for at in (3_000, 1_000, 2_000, 1_999):
        turns.add(at, b"%d" % at)
    assert list(turns.until(5_000)) == [b"1000", b"1999", b"2000", b"3000"]
