"""Work for whoever waits for it: on a shard's thread it ends at its next step where nobody does any more.

A request waits for some seconds, and is answered 503 then. What it has asked for would go on, and hold up all others
of its shard.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class NobodyAsks(Exception):
    """It is not known outside of the thread: nobody waits for the answer."""


class Asker:
    """Whoever waits for what one call works out."""

    def __init__(self) -> None:
        self.gone = False

    def ask(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(…)`, on this thread."""
        _here.asker = self
        try:
            return work(*args, **kwargs)
        finally:
            _here.asker = None


class _Here(threading.local):
    asker: Asker | None = None


_here = _Here()


def while_asked(items: Iterable[T]) -> Iterator[T]:
    """The items, as long as somebody waits for what is made of them. Raises `NobodyAsks`."""
    asker = _here.asker
    for item in items:
        if asker is not None and asker.gone:
            raise NobodyAsks
        yield item
