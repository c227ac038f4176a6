"""Child processes that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def die_with_parent(parent: int) -> None:
    """Call this in a child of the process `parent`: it is killed when the parent dies in any way (Linux only).

    If the parent is dead already, no signal comes: the child, which may have taken seconds to start, ends itself.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def ended_with(code: int) -> str:
    """Return a return code of `subprocess` in words.

    >>> ended_with(-9)
    'killed by SIGKILL'
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
