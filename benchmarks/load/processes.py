"""Processor time and memory of the worker's processes, the broker's and our own, from Linux's `/proc`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, NamedTuple

TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
#: The helper that Python starts with a pool of processes; it does no work.
TRACKER: Final = b"resource_tracker"


class Used(NamedTuple):
    """Processor seconds since the process began, and its resident memory now, in MB."""

    cpu_s: float
    rss_mb: float


class Processes:
    """What each process has used between two moments.

    A worker's children have the names with which it starts them, such as `embedding` and `summaries`.
    """

    def __init__(self, worker: int, broker: int | None) -> None:
        self._worker, self._broker = worker, broker
        self._begun = self._look()
        self._peak = {pid: used.rss_mb for pid, used in self._begun.items()}

    def look(self) -> None:
        """Record how much memory is in use; call it regularly."""
        for pid, used in self._look().items():
            self._peak[pid] = max(self._peak.get(pid, 0.0), used.rss_mb)

    def used(self) -> tuple[dict[str, float], dict[str, float]]:
        """Processor seconds since the start, and the peak of resident MB, by process."""
        self.look()
        now = self._look()
        cpu: dict[str, float] = {}
        rss: dict[str, float] = {}
        for name, pid in self._named(now).items():
            begun = self._begun.get(pid, Used(0, 0))
            cpu[name] = round(now[pid].cpu_s - begun.cpu_s, 2)
            rss[name] = round(self._peak[pid], 1)
        return cpu, rss

    def _named(self, now: dict[int, Used]) -> dict[str, int]:
        ours = {"worker": self._worker, "producer": os.getpid(), "broker": self._broker}
        names = {name: pid for name, pid in ours.items() if pid in now}
        return names | {_name(pid): pid for pid in now if pid not in names.values()}

    def _look(self) -> dict[int, Used]:
        ours = [self._worker, os.getpid(), *([] if self._broker is None else [self._broker])]
        found = {}
        for pid in (*ours, *_children(self._worker)):
            with contextlib.suppress(OSError):  # the process has ended
                found[pid] = _used(pid)
        return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return [child for child in found if TRACKER not in _command(child)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _name(pid: int) -> str:
    """The name with which a worker has started the process, the last argument of its command line."""
    *_, name = _command(pid).rstrip(b"\0").split(b"\0")
    return name.decode() or f"child-{pid}"


def _used(pid: int) -> Used:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Used((int(fields[11]) + int(fields[12])) / TICKS_A_SECOND, pages * PAGE_BYTES / 1e6)
