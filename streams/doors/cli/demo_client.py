"""The last part of the output of `siltstone demo`: how to ask a question with the Python client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from streams.app import Siltstone
from streams.doors.cli import show

try:
    from siltstone_client import Memory
except ModuleNotFoundError:  # the client is a separate package, which a worker does not need
    HAS_CLIENT = False
else:
    HAS_CLIENT = True


async def show_client(worker: Siltstone, question: Mapping[str, Any], console: Console) -> None:
    """Show two lines of Python that ask the question with the client, and their output.

    Show nothing if the client is not installed or finds no memory.
    """
    if not HAS_CLIENT:
        return
    url, user, query = f"http://127.0.0.1:{worker.api.port}", question["user_id"], question["question"]

    def ask() -> str | None:
        with Memory(url) as memory:
            found = memory.search(query, user_id=user, include_short_term=False).results
        return found[0].memory if found else None

    answer = await asyncio.to_thread(ask)
    if answer is None:
        return
    console.print("The same from Python, with a running worker (from siltstone_client import Memory):", style="bold")
    console.print(escape(f">>> memory = Memory({url!r})"), soft_wrap=True)
    console.print(escape(f">>> memory.search({query!r}, user_id={user!r}).results[0].memory"), soft_wrap=True)
    console.print(show.plain(repr(answer), 200), soft_wrap=True)
    console.print()
