"""A port that was given to one is given to nobody else."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import ExitStack

from streams.clients.ports import RANGE, reserved_port

#: Takes as many ports as it is told, in the order of the same seed, says which, and holds them until it may end.
OTHER_PROCESS = """
import random, sys
from contextlib import ExitStack
from streams.clients.ports import reserved_port
random.seed(7)
with ExitStack() as held:
    print(*(held.enter_context(reserved_port()) for _ in range(20)), flush=True)
    sys.stdin.read()
"""


def test_two_processes_are_never_given_the_same_port() -> None:
    """Both look in the same order: the second one passes over all that the first one holds."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        random.seed(7)
        with ExitStack() as held:
            ours = {held.enter_context(reserved_port()) for _ in range(20)}
        other.stdin.close()
    assert (len(ours), len(theirs), ours & theirs) == (20, 20, set())


def test_whoever_it_is_for_can_listen_on_it_as_often_as_they_start() -> None:
    with reserved_port() as port:
        for _ in range(2):
            with socket.create_server(("127.0.0.1", port)):
                pass


def test_a_port_that_somebody_listens_on_is_given_to_nobody() -> None:
    random.seed(7)
    first = random.sample(RANGE, len(RANGE))[0]
    with socket.create_server(("127.0.0.1", first)):
        random.seed(7)
        with reserved_port() as port:
            assert port != first


def test_it_can_be_given_again_when_the_block_has_ended() -> None:
    given = []
    for _ in range(2):
        random.seed(7)
        with reserved_port() as port:
            given.append(port)
    assert given[0] == given[1]
