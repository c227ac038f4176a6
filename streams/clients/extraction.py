"""`python -m streams.clients.extraction SECONDS`: makes summaries for `ExtractionProcess`, until its input ends.

A summary that takes more than so many seconds of CPU time ends the process (SIGPROF), whatever it is stuck in.

A frame is eight bytes with the length of the pickle that follows: a list of `Order` in, a list as long of `Draft`,
or `Failed`, out.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import IO, Any, NamedTuple

from streams.clients.children import die_with_parent
from streams.rules.summary.drafting import Draft, Order, drafted

#: A summary yields to intake where cores are short. Lower still, and beside a steady load nobody would see one.
EXTRACTION_NICE = 10
LENGTH_BYTES = 8


class Failed(NamedTuple):
    """A summary could not be made; the exception's type alone, for its text may quote what was said."""

    exception: str


def frame(content: Any) -> bytes:
    """What goes through the pipe."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(pickled).to_bytes(LENGTH_BYTES) + pickled


def serve(asked: IO[bytes], told: IO[bytes], seconds: float) -> None:
    """Answer each frame, until there is none; no summary takes longer, in seconds of CPU time, and is survived."""
    while head := asked.read(LENGTH_BYTES):
        orders: list[Order] = pickle.loads(asked.read(int.from_bytes(head)))
        told.write(frame([_made_within(seconds, order) for order in orders]))
        told.flush()


def _made_within(seconds: float, order: Order) -> Draft | Failed:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return _made(order)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _made(order: Order) -> Draft | Failed:
    try:
        return drafted(order)
    except Exception as exc:
        return Failed(type(exc).__name__)


if __name__ == "__main__":
    die_with_parent(os.getppid())  # where it is dead already, the pipe says so
    os.nice(EXTRACTION_NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the worker, which ends this process
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what anything prints is no answer
    serve(sys.stdin.buffer, answers, float(sys.argv[1]))
