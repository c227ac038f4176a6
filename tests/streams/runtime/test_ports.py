"""A port that was given to one is given to nobody else."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress

import pytest

from streams.runtime.ports import RANGE, reserved_port

#: Takes as many ports as it is told, in the order of the same seed, says which, and holds them until it may end.
OTHER_PROCESS = """
import random, sys
from contextlib import ExitStack
from streams.runtime.ports import reserved_port
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


@pytest.fixture
def only_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The one port that can be given. It is below the usual range: no other test, here or beside, asks for it."""
    for port in random.SystemRandom().sample(range(10_000, RANGE.start), 1_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            monkeypatch.setattr("streams.runtime.ports.RANGE", range(port, port + 1))
            return port
    raise AssertionError("none of a thousand ports is free")


def test_a_port_that_a_server_listens_on_is_not_given(only_port: int) -> None:
    with (
        socket.create_server(("127.0.0.1", only_port)),
        pytest.raises(OSError, match=f"no loopback port from {only_port} to {only_port} is free"),
        reserved_port(),
    ):
        pass


def test_it_can_be_given_again_when_the_block_has_ended(only_port: int) -> None:
    for _ in range(2):
        with reserved_port() as port, pytest.raises(OSError, match="is free"), reserved_port():
            pass
        assert port == only_port
