"""Whether a test leaves its process as it found it: its settings, and what it has running.

`Settings` are compared with those before, and put back. Of `Running`, a test's threads and children may take a moment
to end; a child that does not is killed, a thread or an open file cannot be ended from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

#: What threads, children and files may take to end, on a busy machine; and how long it is watched before the garbage
#: collector runs, which takes longer than most tests.
PATIENCE_SECONDS: Final = 30.0
COLLECT_SECONDS: Final = 0.05
#: pytest sets the first for each phase of a test, scikit-learn the others when it is imported.
_FOREIGN: Final = ("PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")
#: matplotlib keeps open what it has drawn with.
_FONTS: Final = "/site-packages/matplotlib/mpl-data/fonts/"
#: Standard input, output and error.
_STANDARD: Final = frozenset("012")
#: All but SIGALRM, which pytest-timeout takes for a test, and gives back when one fails.
_SIGNALS: Final = tuple(number for number in signal.Signals if number < 32 and number != signal.SIGALRM)

Handler = Callable[[int, FrameType | None], Any] | int | None
Logger = tuple[int, bool, bool, tuple[logging.Handler, ...], tuple[Any, ...]]


def umask() -> int:
    """The process's; there is no way to read it but to set it."""
    found = os.umask(0o077)
    os.umask(found)
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    """The process-wide settings that a test can change."""

    umask: int
    folder: str
    environment: dict[str, str]
    handlers: dict[int, Handler]
    disabled: int
    loggers: dict[str, Logger]
    collector: tuple[bool, tuple[int, int, int]]
    switch_seconds: float
    policy: Any

    @classmethod
    def now(cls) -> Self:
        environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return cls(
            umask(),
            _folder(),
            environment,
            {number: signal.getsignal(number) for number in _SIGNALS},
            logging.root.manager.disable,
            _loggers(),
            (gc.isenabled(), gc.get_threshold()),
            sys.getswitchinterval(),
            _policy(),
        )

    def put_back(self) -> list[str]:
        """What is not as it was when these were read, and is again now."""
        now = Settings.now()
        if now == self:  # as after most tests
            return []
        left = []
        if now.umask != self.umask:
            left.append(f"the umask {now.umask:#05o} (it was {self.umask:#05o})")
            os.umask(self.umask)
        if now.folder != self.folder:
            left.append(f"the working directory {now.folder}")
            os.chdir(self.folder)
        left += self._environment(now)
        for number, before in self.handlers.items():
            if now.handlers[number] != before:
                left.append(f"a handler of {signal.Signals(number).name}: {now.handlers[number]!r}")
                if before is not None:  # the interpreter's own, which Python cannot set
                    signal.signal(number, before)
        left += self._logging(now)
        if now.collector != self.collector:
            left.append(f"the garbage collector {now.collector} (it was {self.collector})")
            (gc.enable if self.collector[0] else gc.disable)()
            gc.set_threshold(*self.collector[1])
        if now.switch_seconds != self.switch_seconds:
            left.append(f"the interpreter's switch interval {now.switch_seconds} s")
            sys.setswitchinterval(self.switch_seconds)
        if now.policy is not self.policy:
            left.append(f"the event-loop policy {now.policy!r}")
            set_policy(self.policy)
        return left

    def _environment(self, now: Settings) -> list[str]:
        changed = {
            name
            for name in self.environment.keys() | now.environment.keys()
            if self.environment.get(name) != now.environment.get(name)
        }
        for name in changed:
            if name in self.environment:
                os.environ[name] = self.environment[name]
            else:
                del os.environ[name]
        return [f"the variable {name}" for name in sorted(changed)]

    def _logging(self, now: Settings) -> list[str]:
        left = []
        if now.disabled != self.disabled:
            left.append(f"logging.disable({now.disabled})")
            logging.disable(self.disabled)
        for name, before in self.loggers.items():
            if (after := now.loggers[name]) != before:
                left.append(f"the logger {name or 'root'}: {_changed(before, after)}")
                logger = logging.getLogger(name)
                logger.setLevel(before[0])
                logger.propagate, logger.disabled = before[1:3]
                logger.handlers[:], logger.filters[:] = before[3:]
        for name in now.loggers.keys() - self.loggers.keys() - _lasting_loggers:
            if level := now.loggers[name][0]:
                left.append(f"the logger {name}: level {level}")
                logging.getLogger(name).setLevel(logging.NOTSET)
        return left


@dataclass(frozen=True, slots=True)
class Running:
    """What a process has: open files, threads, children."""

    files: frozenset[tuple[int, str]]
    threads: frozenset[threading.Thread]
    children: frozenset[int]

    @classmethod
    def now(cls) -> Self:
        return cls(frozenset(_files()), frozenset(threading.enumerate()), frozenset(_children()))

    def left(self) -> Self:
        """What there is now and was not then, unless it lasts."""
        now = Running.now()
        return type(self)(
            now.files - self.files - _lasting.files,
            frozenset(one for one in now.threads - self.threads - _lasting.threads if one.is_alive()),
            now.children - self.children - _lasting.children,
        )

    def __bool__(self) -> bool:
        return bool(self.files or self.threads or self.children)

    def ended(self, patience: float = PATIENCE_SECONDS) -> list[str]:
        """Wait until all has ended that there was not then; names the rest, of which it kills the children."""
        if not (left := self.left()):
            return []
        began, collected, pause = time.monotonic(), False, 0.001
        while left and time.monotonic() < began + patience:
            if not collected and time.monotonic() > began + COLLECT_SECONDS:
                collected = True
                gc.collect()
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
            left = self.left()
        named = [
            *(f"the open file {number} -> {target}{_peer(number)}" for number, target in sorted(left.files)),
            *(f"the thread {one.name}" for one in left.threads),
            *(f"the child {child}: {_command(child)}" for child in sorted(left.children)),
        ]
        for child in left.children:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        _keep(left)  # it is named once
        return named


#: What was begun for more than one test.
_lasting = Running(frozenset(), frozenset(), frozenset())
#: Those that libraries make, with levels of their own, when they are imported there.
_lasting_loggers: set[str] = set()


@contextlib.contextmanager
def lasting() -> Iterator[None]:
    """What begins within the block stays for other tests, or as long as the process: no test has to end it."""
    before, loggers = Running.now(), _loggers().keys()
    yield
    _lasting_loggers.update(_loggers().keys() - loggers)
    _keep(before.left())


def _keep(began: Running) -> None:
    global _lasting
    _lasting = Running(
        _lasting.files | began.files, _lasting.threads | began.threads, _lasting.children | began.children
    )


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "(which is no more)"


def _policy() -> Any:
    """As it is set, without making one."""
    return getattr(asyncio.events, "_event_loop_policy", None)


def set_policy(policy: Any) -> None:
    """Python 3.14 warns of whoever sets one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop_policy(policy)


def _loggers() -> dict[str, Logger]:
    every: list[tuple[str, Any]] = [("", logging.root), *logging.root.manager.loggerDict.copy().items()]
    return {
        name: (one.level, one.propagate, one.disabled, tuple(one.handlers), tuple(one.filters))
        for name, one in every
        if isinstance(one, logging.Logger)
    }


def _changed(before: Logger, after: Logger) -> str:
    names = ("level", "propagate", "disabled", "handlers", "filters")
    return ", ".join(
        f"{name} {new!r} (it was {old!r})" for name, old, new in zip(names, before, after, strict=True) if old != new
    )


def _files() -> Iterator[tuple[int, str]]:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - at every test, twice
        # What pytest captures goes to others while fixtures of a module end.
        if name in _STANDARD:
            continue
        with contextlib.suppress(OSError):  # it was closed, as the one that this list was read from
            target = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
            if _FONTS not in target:
                yield int(name), target


def _peer(number: int) -> str:
    """Whom an open file talks to, where it is a connection."""
    with contextlib.suppress(OSError):
        connection = socket.socket(fileno=number)
        try:
            return f" to {connection.getpeername()}"
        finally:
            connection.detach()
    return ""


def _children() -> Iterator[int]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return  # there is none, as in most tests, and reading takes long
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            yield from map(int, (thread / "children").read_text().split())


def _command(child: int) -> str:
    try:
        words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return words or f"{Path(f'/proc/{child}/comm').read_text().strip()}, which has ended, and was not waited for"
    except OSError:
        return "it has ended"
