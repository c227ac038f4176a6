"""One fleet at a time: workers as processes, and clusters of several brokers, of one test on this machine.

They make each other late for their groups and their clients, and tests of one fail because of the other.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

#: A lock of the system, which lets it go when this process ends, however that happens.
PLACE: Final = Path(tempfile.gettempdir()) / f"siltstone-one-fleet-{os.getuid()}"

_ours, _turn = 0, threading.Lock()
_held: int | None = None


@contextmanager
def one_fleet() -> Iterator[None]:
    """Within the block no other process of tests runs a fleet; within a block in this one, nothing is waited for.

    It waits for as long as the others have theirs, which is a test or, for a cluster, a module of tests: minutes.
    `tests/conftest.py` enters it before a test begins, so that the test's own time limit does not run meanwhile.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _ours, _held
    with _turn:
        if _held is None:
            file = os.open(PLACE, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except BaseException:
                os.close(file)
                raise
            _held = file
        _ours += 1


def _leave() -> None:
    global _ours, _held
    with _turn:
        _ours -= 1
        if _ours == 0 and _held is not None:
            os.close(_held)
            _held = None
