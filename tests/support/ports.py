"""Ports for the processes of tests."""

from __future__ import annotations

import atexit
from contextlib import ExitStack

from streams.runtime.ports import reserved_port
from tests.support.untouched import lasting

_until_the_end = ExitStack()
atexit.register(_until_the_end.close)


def free_port() -> int:
    """A loopback port that no other test, in this process or beside it, is given: a worker is killed and another one
    started at the same port, so it stays reserved for as long as this process lives."""
    with lasting():
        return _until_the_end.enter_context(reserved_port())
