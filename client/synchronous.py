"""Write the synchronous modules from the asynchronous ones: `python client/synchronous.py`, or `make client`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import tokenize_rt
from unasync import Rule

FOLDER: Final = Path(__file__).parent / "siltstone_client"
#: The modules to read, and those to write.
MODULES: Final = {FOLDER / f"async_{name}.py": FOLDER / f"{name}.py" for name in ("connection", "memory")}

#: A token, or a string without its outer quotes, and its replacement. unasync itself knows `__aenter__` and the like.
REPLACED: Final = {
    "AsyncConnection": "Connection",
    "AsyncMemory": "Memory",
    "async_connection": "connection",
    "AsyncClient": "Client",
    "AsyncBaseTransport": "BaseTransport",
    "AsyncRetrying": "Retrying",
    "aclose": "close",
    '""The client for asyncio. `make client` writes the synchronous one, `memory.py`, from it.""': (
        '""The synchronous client. `make client` writes it from `async_memory.py`: edit that file.""'
    ),
    '""The client\'s connection for asyncio. `make client` writes the synchronous one, `connection.py`, from it.""': (
        '""The synchronous connection. `make client` writes it from `async_connection.py`: edit that file.""'
    ),
}


def synchronous(source: str) -> str:
    """The source of a synchronous module, formatted. Raises `CalledProcessError` if ruff cannot format it."""
    rule = Rule("", "", additional_replacements=REPLACED)
    written = tokenize_rt.tokens_to_src(rule._unasync_tokens(tokenize_rt.src_to_tokens(source)))
    ruff = [sys.executable, "-m", "ruff"]
    for step in (["check", "--fix", "--select=I"], ["format"]):
        command = [*ruff, *step, "--quiet", f"--stdin-filename={FOLDER / 'memory.py'}", "-"]
        written = subprocess.run(command, input=written, text=True, capture_output=True, check=True).stdout
    return written


def main() -> None:
    """Write the modules."""
    for read, written in MODULES.items():
        written.write_text(synchronous(read.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
