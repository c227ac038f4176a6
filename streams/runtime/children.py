"""Child processes do not outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def die_with_parent(parent: int) -> None:
    """Called in a child of the process `parent`: it is killed when that dies, however that happens (Linux only).

    A parent that is dead by now gives no such signal: the child, which may have taken seconds to start, ends itself.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def ended_with(code: int) -> str:
    """A return code of `subprocess`, in words.

    >>> ended_with(-9)
    'killed by SIGKILL'
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
