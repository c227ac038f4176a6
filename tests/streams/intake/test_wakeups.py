"""Keys come when their span has begun, and cost little until then."""

from __future__ import annotations

from streams.intake.wakeups import Wakeups


def test_a_key_comes_once_when_its_span_has_begun() -> None:
    wakeups = Wakeups(10)
    wakeups.add(25, b"later")
    wakeups.add(11, b"now")
    assert list(wakeups.until(9)) == []
    assert list(wakeups.until(10)) == [b"now"]
    assert list(wakeups.until(25)) == [b"later"]
    assert list(wakeups.until(1_000)) == []


def test_what_is_put_back_while_keys_are_taken_comes_the_next_time() -> None:
    wakeups = Wakeups(10)
    wakeups.add(15, b"early")
    for key in wakeups.until(12):
        wakeups.add(15, key)
    assert list(wakeups.until(12)) == [b"early"]


def test_spans_come_in_their_order() -> None:
    wakeups = Wakeups(1_000)
    for at in (3_000, 1_000, 2_000, 1_999):
        wakeups.add(at, b"%d" % at)
    assert list(wakeups.until(5_000)) == [b"1000", b"1999", b"2000", b"3000"]
