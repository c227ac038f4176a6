"""The ingest command that `dev` and `demo` show for pasting."""

from __future__ import annotations

import shlex
import shutil
import sys


def ingest_line(servers: str) -> str:
    """The command for another terminal, regardless of how this one was found."""
    called = "siltstone" if shutil.which("siltstone") else shlex.quote(sys.argv[0])
    return f"{called} ingest chats.jsonl --bootstrap-servers {servers}"
