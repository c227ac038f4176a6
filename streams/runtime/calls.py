"""`python -m streams.runtime.calls FD PARENT NICENESS`: calls the functions that it is told over a socket.

It is the other end of a `CalledProcess`: one call after the other, each answered in its turn, until the socket ends.

A frame is eight bytes with the length of the pickle that follows: (function, arguments) in; out, whether it returned,
and what it returned or raised.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
from typing import IO, Any

from streams.runtime.children import die_with_parent

LENGTH_BYTES = 8


def frame(content: Any) -> bytes:
    """What goes through the socket."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(pickled).to_bytes(LENGTH_BYTES) + pickled


def serve(asked: IO[bytes], told: IO[bytes]) -> None:
    """Answer each frame, until there is none."""
    while head := asked.read(LENGTH_BYTES):
        told.write(answered(asked.read(int.from_bytes(head))))
        told.flush()


def answered(call: bytes) -> bytes:
    """The frame that answers this one's content."""
    try:
        function, arguments = pickle.loads(call)
        return frame((True, function(*arguments)))
    except Exception as exc:
        return _raised(exc)


def _raised(exc: Exception) -> bytes:
    """Some exceptions cannot be pickled, others not be made of their pickle."""
    try:
        raised = frame((False, exc))
        pickle.loads(raised[LENGTH_BYTES:])
    except Exception:
        return frame((False, RuntimeError(type(exc).__name__)))
    return raised


if __name__ == "__main__":
    descriptor, parent, niceness = map(int, sys.argv[1:])
    die_with_parent(parent)
    os.nice(niceness)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the parent's output is its own
    with socket.socket(fileno=descriptor) as connection:
        serve(connection.makefile("rb"), connection.makefile("wb"))
