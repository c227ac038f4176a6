"""What type checkers see of the client: they check this module, and no test runs it."""

from __future__ import annotations

from typing import assert_type

import httpx

from siltstone_client import AsyncMemory, Memory, NotFound, Retries, SiltstoneError
from siltstone_client.answers import Accepted, AcceptedMessages, Context, Found, Hit, Memories, OneMemory


def synchronous(memory: Memory) -> None:
    """Each method of the synchronous client returns its answer."""
    assert_type(memory.add({"role": "user", "content": "I live in Oslo"}, session_id="s"), AcceptedMessages)
    found = memory.search("where?", user_id="ann", filters={"importance": {"gte": 80}})
    assert_type(found, Found)
    assert_type(found.results, list[Hit])
    assert_type(found.results[0].memory, str)
    assert_type(memory.context(session_id="s").prompt, str)
    assert_type(memory.get("4f1c09ab"), OneMemory)
    assert_type(memory.list(at_least=memory.remember("x", wait=2.5)), Memories)
    with Memory(retries=Retries(attempts=1), transport=httpx.HTTPTransport()) as inner:
        assert_type(inner, Memory)


async def asynchronous(memory: AsyncMemory) -> None:
    """Each method of the asynchronous client is awaited for the same answer."""
    assert_type(await memory.search("where?"), Found)
    assert_type(await memory.context(session_id="s"), Context)
    assert_type(await memory.forget("4f1c09ab", user_id="ann", wait=True), Accepted)
    async with AsyncMemory(transport=httpx.AsyncHTTPTransport()) as inner:
        assert_type(inner, AsyncMemory)


def failing(memory: Memory) -> float | None:
    """An error has its facts as attributes."""
    try:
        memory.get("4f1c09ab")
    except NotFound as exc:
        assert_type(exc.status, int)
    except SiltstoneError:
        pass
    return None


def refused(memory: Memory, asynchronous: AsyncMemory) -> list[Hit]:
    """A checker refuses wrong calls: each `ignore` that it does not need is an error."""
    memory.search(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    memory.search("where?", state="gone")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    memory.add("I live in Oslo")  # type: ignore  # pyright: ignore
    Memory(transport=httpx.AsyncHTTPTransport())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return asynchronous.search("where?").results  # type: ignore  # pyright: ignore
