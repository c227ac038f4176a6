"""`python -m streams.runtime.calls FD PARENT NICENESS NAME`: runs the function calls that arrive over a socket.

It is the child of a `CalledProcess`: it answers one call after the other, until the socket is closed. NAME is for
those who look at the list of processes.

A frame consists of eight bytes, which give the length of a pickle, and of this pickle. For a call it is (function,
arguments), and for the answer it is (True, result) or (False, exception).
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
    """Return the content as a frame for the socket."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(pickled).to_bytes(LENGTH_BYTES) + pickled


def serve(asked: IO[bytes], told: IO[bytes]) -> None:
    """Read calls from `asked`, and write their answers to `told`, until the input ends."""
    while head := asked.read(LENGTH_BYTES):
        told.write(answered(asked.read(int.from_bytes(head))))
        told.flush()


def answered(call: bytes) -> bytes:
    """Run the pickled function call, and return a frame with its result or its exception."""
    try:
        function, arguments = pickle.loads(call)
        return frame((True, function(*arguments)))
    except Exception as exc:
        return _raised(exc)


def _raised(exc: Exception) -> bytes:
    """Return the frame of an exception. An exception that cannot be pickled and unpickled is replaced by its name."""
    try:
        raised = frame((False, exc))
        pickle.loads(raised[LENGTH_BYTES:])
    except Exception:
        return frame((False, RuntimeError(type(exc).__name__)))
    return raised


if __name__ == "__main__":
    descriptor, parent, niceness = map(int, sys.argv[1:4])
    die_with_parent(parent)
    os.nice(niceness)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # otherwise functions could print into the parent's stdout
    with socket.socket(fileno=descriptor) as connection:
        serve(connection.makefile("rb"), connection.makefile("wb"))
