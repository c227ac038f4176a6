"""`python -m streams.kafka.embedded.journal.process FILE SECONDS PARENT`: runs the embedded broker's store.

It prints `ready PORT`, or one line with the reason why it ends. It ends when its standard input ends. SECONDS is the
maximum time until a put is on the disk, and PARENT is the process id of the parent.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Final

from schemas.errors import JournalError
from schemas.times import now_ms
from streams.kafka.embedded.journal.listing import Listings
from streams.kafka.embedded.journal.objects import Objects
from streams.kafka.embedded.journal.reduction import mend, reduced
from streams.kafka.embedded.journal.requests import Connection
from streams.runtime.children import die_with_parent

log = logging.getLogger(__name__)

#: A start rewrites the journal if it has grown since the last rewrite by more than `GROWN_BYTES` bytes, and to more
#: than `GROWN` times its length.
GROWN_BYTES: Final = 4 * 1024 * 1024
GROWN: Final = 2
#: A running process logs the growth of the journal only if the journal has more bytes than this.
TOLD_BYTES: Final = 1024 * 1024 * 1024
#: The key of the object with the journal's length after the last rewrite. The object's time is the time of that
#: rewrite.
KEPT: Final = "journal/kept"
DAY_MS: Final = 24 * 3_600_000


def opened(path: Path, now: int | None = None) -> Objects:
    """Open the journal for a new broker at time `now` (epoch ms), and rewrite it if necessary (`_is_due`).

    Raises `JournalError`.
    """
    now = now_ms() if now is None else now
    objects = Objects(path)
    if objects.cut:
        log.warning(
            "%s: its last %d bytes were incomplete, and are now in %s", path, objects.cut, objects.cut_to.name
        )
    if _is_due(objects, now):
        try:
            objects.rewrite(reduced(objects, now))
            objects.put(KEPT, b"%d" % objects.length)
        except JournalError as exc:  # for instance on a full disk; the journal can be used without a rewrite
            log.warning("%s; it is not rewritten for now", exc)
    elif objects.find(KEPT) is None:
        objects.put(KEPT, b"%d" % objects.length)
    mend(objects)
    objects.sync()
    return objects


def _is_due(objects: Objects, now: int) -> bool:
    """True if the journal has grown much, or was last rewritten more than a day ago.

    In both cases it may have records that are too old, or were replaced.
    """
    last = objects.find(KEPT)
    return _has_grown(objects) or (last is not None and now - last.when > DAY_MS)


def _has_grown(objects: Objects) -> bool:
    last = objects.find(KEPT)
    kept = int(objects.read(last)) if last else 0
    return objects.length > max(GROWN * kept, kept + GROWN_BYTES)


async def serve(path: Path, seconds: float) -> None:
    """Serve the journal to the embedded broker until standard input ends. Raises `JournalError`."""
    loop = asyncio.get_running_loop()
    objects = opened(path)
    listings = Listings(objects)
    over: asyncio.Future[None] = loop.create_future()

    def failed(exc: JournalError) -> None:
        if not over.done():
            over.set_exception(exc)

    server = await loop.create_server(lambda: Connection(objects, listings, failed), "127.0.0.1", 0)
    say(f"ready {server.sockets[0].getsockname()[1]}")

    def ended() -> None:
        """End the server. The parent never writes to the standard input, so a readable input means its end."""
        loop.remove_reader(sys.stdin.fileno())
        if not over.done():
            over.set_result(None)

    loop.add_reader(sys.stdin.fileno(), ended)
    syncing = asyncio.ensure_future(_sync(objects, seconds))
    try:
        await asyncio.wait([over, syncing], return_when=asyncio.FIRST_COMPLETED)
        await (over if over.done() else syncing)
        objects.close()
    finally:
        syncing.cancel()


async def _sync(objects: Objects, seconds: float) -> None:
    """Write each put to the disk within `seconds`: sync every `seconds / 2`, and leave the other half to the disk.

    While the broker runs, the file only grows. If it has grown much, log once that the next start rewrites it. Raises
    `JournalError`.
    """
    told = False
    while True:
        await asyncio.sleep(seconds / 2)
        await asyncio.to_thread(objects.sync)
        if not told and objects.length > TOLD_BYTES and _has_grown(objects):
            told = True
            log.warning("%s has %d MB: the next start rewrites it", objects.path, objects.length >> 20)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    path, seconds, parent = sys.argv[1:]
    die_with_parent(int(parent))
    # A service manager sends its stop signal to all processes of a service. While the worker stops, it still needs
    # the broker, and the broker needs this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(serve(Path(path), float(seconds)))
    except JournalError as exc:
        say(f"{exc.reason}\t{exc.todo}")
        sys.exit(1)


if __name__ == "__main__":
    main()
