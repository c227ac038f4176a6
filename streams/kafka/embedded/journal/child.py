"""Starts the process that stores the embedded broker's data, and watches it from the parent process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.errors import JournalError
from streams.kafka.embedded.journal import BUCKET
from streams.runtime.children import ended_with

#: Maximum seconds for the journal's process to sync its file and exit. After this time, the process is killed.
END_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class JournalProcess:
    """The journal's running process, which serves the store at a loopback port, and the broker's settings for it."""

    path: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"s3://{BUCKET}/"

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """Return the broker's environment: `around` with the settings of this store.

        Settings of any other store are removed, and no proxy is used for this store.
        """
        kept = {name: value for name, value in around.items() if not name.upper().startswith("AWS_")}
        return {
            **kept,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            "AWS_ENDPOINT": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_SKIP_SIGNATURE": "true",
            "AWS_ACCESS_KEY_ID": BUCKET,
            "AWS_SECRET_ACCESS_KEY": BUCKET,
            "AWS_REGION": "local",
        }

    def check(self) -> None:
        """Raise `JournalError` if the journal's process has ended."""
        if (code := self.process.poll()) is not None:
            assert self.process.stdout is not None
            raise _why(self.path, self.process.stdout.read().decode(), code)


@contextlib.contextmanager
def journal_process(path: Path, seconds: float) -> Iterator[JournalProcess]:
    """Run the journal's process until the `with` block ends. Raises `JournalError` if the process does not start.

    If this process ends, the journal's process ends as well.
    """
    search = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-m", "streams.kafka.embedded.journal.process", str(path), str(seconds), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search},
        process_group=0,  # Ctrl-C must not reach the new process
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = process.stdout.readline().decode()
        if not said.startswith("ready "):
            raise _why(path, said, process.wait())
        yield JournalProcess(path, int(said.split()[1]), process)
    finally:
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _why(path: Path, said: str, code: int) -> JournalError:
    reason, _, todo = said.strip().partition("\t")
    if not todo:
        return JournalError(path, f"its process has ended ({ended_with(code)})", "start again")
    return JournalError(path, reason, todo)
