"""`python -m streams.kafka.embedded.journal.process FILE SECONDS PARENT`: the store beside the embedded broker.

It says `ready PORT`, or in one line why it ends, on its standard output, and ends with its standard input.
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

#: The journal is rewritten at a start when so much was added, and it is so many times as long as what was kept.
GROWN_BYTES: Final = 4 * 1024 * 1024
GROWN: Final = 2
#: From this length on it is told that it has grown.
TOLD_BYTES: Final = 1024 * 1024 * 1024
#: What it came to then, and when that was.
KEPT: Final = "journal/kept"
DAY_MS: Final = 24 * 3_600_000


def opened(path: Path, now: int | None = None) -> Objects:
    """The journal, ready for another broker at this time (epoch ms). Raises `JournalError`."""
    now = now_ms() if now is None else now
    objects = Objects(path)
    if objects.cut:
        log.warning("%s: its last %d bytes were not whole, and are in %s", path, objects.cut, objects.cut_to.name)
    if _is_due(objects, now):
        try:
            objects.rewrite(reduced(objects, now))
            objects.put(KEPT, b"%d" % objects.length)
        except JournalError as exc:  # it takes room beside the old one, which is as good
            log.warning("%s; it stays as long as it is", exc)
    elif objects.find(KEPT) is None:
        objects.put(KEPT, b"%d" % objects.length)
    mend(objects)
    objects.sync()
    return objects


def _is_due(objects: Objects, now: int) -> bool:
    """It has grown much, or there may be something too old or replaced in it for a day."""
    last = objects.find(KEPT)
    return _has_grown(objects) or (last is not None and now - last.when > DAY_MS)


def _has_grown(objects: Objects) -> bool:
    last = objects.find(KEPT)
    kept = int(objects.read(last)) if last else 0
    return objects.length > max(GROWN * kept, kept + GROWN_BYTES)


async def serve(path: Path, seconds: float) -> None:
    """Until standard input ends. Raises `JournalError`."""
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
        """Nothing comes but its end."""
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
    """What is put is on the disk within these seconds; half of them are the disk's. Raises `JournalError`.

    While the broker runs, it is only ever appended to: that the next start makes it shorter is said once.
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
    # Stopping a service signals all of its processes, but the worker still has to settle with the broker then.
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
