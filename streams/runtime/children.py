"""Child processes that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def die_with_parent(parent: int) -> None:
    """Make the system kill this process when the process `parent` ends for any reason (Linux only).

    Call this in the child. If the parent ended before this call, the system sends no signal, so the child ends
    itself.
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
