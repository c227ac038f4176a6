"""`siltstone demo --keep`, to which more is said: a worker with real data from a real broker."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

from schemas.settings import Settings
from streams.kafka.bulk import producing
from tests.support.making import line
from tests.support.workers import SILTSTONE

#: What cannot be read, among what can.
BROKEN = b'{"user_id": "maya", "session_id": "maya-1031", "role": "user", "content": "Biscuit is a corgi"'
UNKNOWN_ROLE = b'{"user_id": "maya", "session_id": "maya-1031", "role": "robot", "content": "beep"}'
SECONDS = 120


class Demo(NamedTuple):
    """Its dashboard's address without the path, and its broker's."""

    base: str
    kafka: str

    def produce(self, *values: bytes) -> None:
        """As any producer does. In a thread: Playwright has an event loop in this one."""

        async def send() -> None:
            async with producing(Settings.load(kafka={"bootstrap_servers": self.kafka}).kafka) as producer:
                for value in values:
                    await producer.send(b"maya", value)

        with ThreadPoolExecutor(1) as beside:
            beside.submit(asyncio.run, send()).result(SECONDS)

    def talk(self, first: int, session: str = "maya-live") -> None:
        """An exchange that is worth keeping, and one that is not."""
        said = (
            ("user", "Please remember that my violin lesson is on Thursdays at five."),
            ("assistant", "I will: Thursdays at five."),
            ("user", "Thanks!"),
            ("assistant", "You are welcome."),
            ("user", "Bye"),
        )
        self.produce(
            *(
                line(first + place, "maya", role, first + place, content=text, session_id=session)
                for place, (role, text) in enumerate(said)
            )
        )


@contextmanager
def kept_demo(folder: Path) -> Iterator[Demo]:
    """Ended at the end of the block."""
    command = [*SILTSTONE, "demo", "--keep", "--json", "--data", str(folder / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder)
    try:
        assert process.stdout is not None
        told = orjson.loads(process.stdout.readline())
        yield Demo(told["dashboard"].removesuffix("/ui"), told["kafka"])
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)
