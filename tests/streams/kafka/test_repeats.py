"""What the Kafka clients say again and again is logged once, and then counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from streams.kafka.repeats import Repeats


class Log(logging.Handler):
    """Keeps the lines that pass."""

    def __init__(self, repeats: Repeats) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(repeats)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> Iterator[Log]:
    handler = Log(Repeats(("aiokafka",), clock))
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


CLIENT = logging.getLogger("aiokafka.client")


def test_a_line_of_a_client_passes_once_and_its_repeats_are_told_after_a_minute(log: Log, clock: Clock) -> None:
    """Numbers in it do not make it another one."""
    for node in range(1, 8):
        CLIENT.error("Unable connect to node with id %s: refused", node)
        clock.now += 5
    assert log.lines == ["Unable connect to node with id 1: refused"]
    clock.now = 160.0
    CLIENT.error("Unable connect to node with id 9: refused")
    assert log.lines[1:] == ["aiokafka.client: 6 more in the last minute: Unable connect to node with id 7: refused"]


def test_repeats_are_told_with_whatever_is_logged_next(log: Log, clock: Clock) -> None:
    """Also when the client has stopped complaining."""
    CLIENT.error("refused")
    CLIENT.error("refused")
    clock.now += 61
    logging.getLogger("streams.app").error("something else")
    assert log.lines == ["refused", "aiokafka.client: 1 more in the last minute: refused", "something else"]


def test_what_was_not_repeated_for_a_minute_is_news_again(log: Log, clock: Clock) -> None:
    for _ in range(3):
        CLIENT.error("refused")
        clock.now += 61
    assert log.lines == ["refused"] * 3


def test_our_own_lines_and_different_ones_all_pass(log: Log) -> None:
    for _ in range(2):
        logging.getLogger("aiokafkaesque").error("ours")
    CLIENT.error("refused")
    CLIENT.warning("refused")
    logging.getLogger("aiokafka.conn").error("refused")
    assert log.lines == ["ours", "ours", "refused", "refused", "refused"]


def test_more_lines_than_are_counted_are_logged_as_they_come(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.kafka.repeats.MOST_LINES", 1)
    for _ in range(2):
        CLIENT.error("one")
        CLIENT.error("two")
    assert log.lines == ["one", "two", "two"]
