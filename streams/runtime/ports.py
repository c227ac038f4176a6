"""A loopback port for a process that will be started."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator

#: Below the ports of outgoing connections (Linux: from 32,768, macOS: from 49,152), so that no connection made while
#: our process starts takes its port.
RANGE = range(20_000, 32_768)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nothing listens on; until the block ends, no other caller of this function gets it.

    Without a reservation, two processes that search at the same time could find the same port. So a UDP socket holds
    it meanwhile: it does not prevent listening on the TCP port of that number, leaves no file, and ends with this
    process, however that ends.
    """
    for port in random.sample(RANGE, len(RANGE)):
        with contextlib.ExitStack() as held:
            holder = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            probe = socket.socket()
            try:
                holder.bind(("127.0.0.1", port))
                with probe:
                    probe.bind(("127.0.0.1", port))
            except OSError:  # reserved, or listened on
                probe.close()
                continue
            yield port
            return
    raise OSError(f"no loopback port from {RANGE.start} to {RANGE.stop - 1} is free")
