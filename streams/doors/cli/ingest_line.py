"""The ingest command that `dev` and `demo` show for the user to copy."""

from __future__ import annotations

import shlex
import shutil
import sys


def ingest_line(servers: str) -> str:
    """Return an ingest command that works in another terminal.

    If `siltstone` is not on the PATH, the command begins with the path of the running `siltstone`.
    """
    called = "siltstone" if shutil.which("siltstone") else shlex.quote(sys.argv[0])
    return f"{called} ingest chats.jsonl --bootstrap-servers {servers}"
