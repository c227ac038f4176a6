"""Child processes: what they find in their environment, and that they do not outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any


class SpawnedProcess(SpawnProcess):
    """A process that is started with some variables of its environment set."""

    variables: Mapping[str, str] = {}

    def start(self) -> None:
        with _environment(self.variables):
            super().start()


class Spawning(SpawnContext):
    """multiprocessing's `spawn`, for children with these variables in their environment; with `keep`, unless they
    have them already.

    A library that reads them when it is loaded needs them from the start: a child imports what its parent's main
    module imports, numpy among it, before any code of ours runs.
    """

    def __init__(self, variables: Mapping[str, str], *, keep: bool = False) -> None:
        super().__init__()
        self._variables, self._keep = variables, keep

    def Process(self, *given: Any, **named: Any) -> SpawnedProcess:  # type: ignore[override]  # noqa: N802
        process = SpawnedProcess(*given, **named)
        kept = os.environ if self._keep else {}
        process.variables = {name: value for name, value in self._variables.items() if name not in kept}
        return process


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Ours, which a child inherits, with these set. What is so already is not touched: other threads read it."""
    before = {name: os.environ.get(name) for name, value in variables.items() if os.environ.get(name) != value}
    os.environ.update({name: variables[name] for name in before})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def die_with_parent(parent: int) -> None:
    """Called in a child of the process `parent`: it is killed when that dies, however that happens (Linux only).

    A parent that is dead by now gives no such signal: the child, which may have taken seconds to start, ends itself.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
