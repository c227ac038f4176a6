"""Child processes that do not outlive us."""

from __future__ import annotations

import ctypes
import signal
import sys


def die_with_parent() -> None:
    """Called in a child: it is killed when its parent dies, however that happens (Linux; elsewhere nothing)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
