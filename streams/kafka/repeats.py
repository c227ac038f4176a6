"""Reduces repeated log lines of the Kafka clients: the first line is logged, and its repeats are counted."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

log = logging.getLogger(__name__)

#: Seconds for which the repeats of a line are counted. Then the number of repeats is logged.
COUNTED_SECONDS = 60.0
#: Maximum number of different lines that are counted at the same time. Further lines are logged, but not counted.
MOST_LINES = 1000
#: Lines that differ only in numbers (ids of nodes, offsets, ports) count as equal.
NUMBER: Final = re.compile(r"\d+")


class Repeats(logging.Filter):
    """A filter of a log handler. Of equal lines of `loggers`, it passes the first one, and drops and counts the rest.

    Once a minute, the number of dropped lines is logged by this module's logger, together with the first log line
    after the minute. Several threads may call the filter at the same time.
    """

    def __init__(self, loggers: Sequence[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._loggers = tuple(loggers)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._counted: dict[tuple[str, int, str], _Line] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._monotonic()
        with self._lock:
            over = self._take_over(now)
            passes = self._passes(record, now)
        for line in over:
            log.log(line.level, "%s: %d more in the last minute: %s", line.logger, line.repeats, line.text)
        return passes

    def _passes(self, record: logging.LogRecord, now: float) -> bool:
        if not any(record.name == name or record.name.startswith(f"{name}.") for name in self._loggers):
            return True
        text = record.getMessage()
        key = (record.name, record.levelno, NUMBER.sub("0", text))
        if (line := self._counted.get(key)) is not None:
            line.repeats, line.text = line.repeats + 1, text
            return False
        if len(self._counted) < MOST_LINES:
            self._counted[key] = _Line(record.name, record.levelno, text, now + COUNTED_SECONDS)
        return True

    def _take_over(self, now: float) -> list[_Line]:
        """Return the lines that were repeated in a minute that is now over, and start a new minute for them.

        Forget the lines that were not repeated.
        """
        ended = [(key, line) for key, line in self._counted.items() if line.until <= now]
        repeated = []
        for key, line in ended:
            del self._counted[key]
            if line.repeats:
                repeated.append(line)
                self._counted[key] = _Line(line.logger, line.level, line.text, now + COUNTED_SECONDS)
        return repeated


class _Line:
    """A line that was logged, and the number of its repeats. Repeats are counted until the monotonic time `until`."""

    __slots__ = ("level", "logger", "repeats", "text", "until")

    def __init__(self, logger: str, level: int, text: str, until: float) -> None:
        self.logger, self.level, self.text, self.until, self.repeats = logger, level, text, until, 0
