"""`python -m tests.crash.limited BYTES worker …`: a worker that can write no file larger than so many bytes.

To whoever writes, that is a disk that is full: the system refuses (EFBIG where a full disk says ENOSPC). It needs no
rights, and frees itself with the process.
"""

from __future__ import annotations

import resource
import signal
import sys

if __name__ == "__main__":
    _, most, *command = sys.argv
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), int(most)))
    from tests.support.toy_worker import siltstone

    siltstone(command)
