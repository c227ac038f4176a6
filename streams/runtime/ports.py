"""Reserves a free loopback port for a process that will be started."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator

#: The ports to choose from. They lie below the ports of outgoing connections (Linux: from 32,768, macOS: from
#: 49,152). Otherwise a connection that is made while our process starts could take the port of that process.
RANGE = range(20_000, 32_768)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a free loopback port. No other caller of this function gets this port until the block ends.

    Without a reservation, two processes that search at the same time could find the same port. So a UDP socket is
    bound to the port until the block ends. This socket does not prevent listening on the TCP port of the same number,
    leaves no file, and is closed by the system when this process ends for any reason.
    """
    for port in random.sample(RANGE, len(RANGE)):
        with contextlib.ExitStack() as held:
            holder = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            probe = socket.socket()
            try:
                holder.bind(("127.0.0.1", port))
                with probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:  # another caller has reserved the port, or a process listens on it
                probe.close()
                continue
            yield port
            return
    raise OSError(f"no loopback port from {RANGE.start} to {RANGE.stop - 1} is free")
