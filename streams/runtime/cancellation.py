"""Cancel the work of a request on a shard's thread.

If a request takes too many seconds, the API answers it with 503. Python cannot stop the thread that still works for
the request. So long loops check whether the request has been cancelled, otherwise other requests to the shard would
wait for work whose result is not needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkCancelled(Exception):
    """Ends cancelled work on its thread.

    The caller does not see this exception, because the caller has been cancelled.
    """


class Cancellation:
    """The cancellation of the call that `run` makes. To end the call, set `requested` to True, from any thread."""

    def __init__(self) -> None:
        self.requested = False

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` on this thread. When `requested` becomes True, the `cancellable` loops in `work` end."""
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
