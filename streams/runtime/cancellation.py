"""Cancel the work of a request on a shard's thread.

The API answers a request with 503 after some seconds. Python cannot stop the thread that still works for it, so long
loops check whether the request has been cancelled. Otherwise the other requests of the shard would wait behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkCancelled(Exception):
    """Ends the work on its thread. The caller does not see this exception, because the caller has been cancelled."""


class Cancellation:
    """Set `requested` to True, from any thread, to end the call that `run` makes."""

    def __init__(self) -> None:
        self.requested = False

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` on this thread; its `cancellable` loops check this cancellation."""
        _thread.current = self
        try:
            return work(*args, **kwargs)
        finally:
            _thread.current = None


class _Thread(threading.local):
    current: Cancellation | None = None


_thread = _Thread()


def cancellable(items: Iterable[T]) -> Iterator[T]:
    """Yield the items. Raises `WorkCancelled` when the call that loops over them is cancelled."""
    cancellation = _thread.current
    for item in items:
        if cancellation is not None and cancellation.requested:
            raise WorkCancelled
        yield item
