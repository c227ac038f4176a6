"""Since when nothing could be committed, and why."""

from __future__ import annotations

from streams.kafka.commit.attempts import Attempts, Failing


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_attempt_that_has_not_succeeded_counts() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(3):
        attempts.begin()
        attempts.fail("refused")
        clock.now += 10
    assert attempts.failing("t does not answer") == Failing(30.0, "refused")


def test_an_attempt_that_does_not_end_waits_for_a_topic() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    attempts.begin()
    clock.now += 40
    assert attempts.failing("t does not answer") == Failing(40.0, "t does not answer")


def test_an_attempt_after_one_that_was_refused_waits_for_a_topic_too() -> None:
    """What it waits for now is why, not how the one before has ended."""
    attempts = Attempts(Clock())
    attempts.begin()
    attempts.fail("refused")
    attempts.begin()
    assert attempts.failing("t has not taken it") == Failing(0.0, "t has not taken it")
    assert attempts.failing("") == Failing(0.0, "refused")
    attempts.fail("refused again")
    assert attempts.failing("t has not taken it") == Failing(0.0, "refused again")


def test_an_attempt_that_waits_for_nothing_that_is_known_waits_for_the_broker() -> None:
    attempts = Attempts(Clock())
    attempts.begin()
    assert attempts.failing("") == Failing(0.0, "the broker does not answer")


def test_what_was_committed_ends_it() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    attempts.begin()
    attempts.fail("refused")
    attempts.begin()
    attempts.succeed()
    assert attempts.failing("t does not answer") is None
    clock.now += 50
    attempts.begin()
    assert attempts.failing("t does not answer") == Failing(0.0, "t does not answer")
