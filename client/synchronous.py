"""Write the synchronous client from the asynchronous one: `python client/synchronous.py`, or `make client`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import tokenize_rt
from unasync import Rule

FOLDER: Final = Path(__file__).parent / "siltstone_client"
#: The synchronous file of each asynchronous one.
WRITTEN: Final = {"async_memory.py": "memory.py", "async_requests.py": "requests.py"}

#: A token, or a string without its outer quotes, and its replacement. unasync itself knows `__aenter__` and the like.
REPLACED: Final = {
    "AsyncMemory": "Memory",
    "AsyncRequests": "Requests",
    "async_requests": "requests",
    "AsyncClient": "Client",
    "AsyncBaseTransport": "BaseTransport",
    "AsyncRetrying": "Retrying",
    "aclose": "close",
    '""The client for asyncio. `make client` writes the synchronous one, `memory.py`, from it.""': (
        '""The synchronous client. `make client` writes it from `async_memory.py`: edit that file.""'
    ),
    '""Requests of the client for asyncio. `make client` writes the synchronous ones, `requests.py`, from it.""': (
        '""Requests of the synchronous client. `make client` writes them from `async_requests.py`: edit that file.""'
    ),
}


def synchronous(source: str, file: str) -> str:
    """The synchronous source of a file, formatted. Raises `CalledProcessError` if ruff cannot format it."""
    rule = Rule("", "", additional_replacements=REPLACED)
    written = tokenize_rt.tokens_to_src(rule._unasync_tokens(tokenize_rt.src_to_tokens(source)))
    ruff = [sys.executable, "-m", "ruff"]
    for step in (["check", "--fix", "--select=I"], ["format"]):
        command = [*ruff, *step, "--quiet", f"--stdin-filename={FOLDER / file}", "-"]
        written = subprocess.run(command, input=written, text=True, capture_output=True, check=True).stdout
    return written


def main() -> None:
    """Write the files."""
    for source, file in WRITTEN.items():
        written = synchronous((FOLDER / source).read_text(encoding="utf-8"), file)
        (FOLDER / file).write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
