"""What `dev` and `demo` tell a reader to paste."""

from __future__ import annotations

import shlex
import shutil
import sys


def ingest_line(servers: str) -> str:
    """What to paste into another terminal, however this command was found."""
    called = "siltstone" if shutil.which("siltstone") else shlex.quote(sys.argv[0])
    return f"{called} ingest chats.jsonl --bootstrap-servers {servers}"
