"""A client that reads its own writes sends the newest token of each user and topic, and waits for as long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from schemas.settings import Settings
from siltstone_client import AsyncMemory, Memory, NotYetApplied
from siltstone_client.own_writes import HEADER, MOST_USERS
from streams.app import Siltstone
from streams.doors.cli import running

NAMES = ("bees", "cats", "dogs")


class Log:
    """Answers writes with places, one after the other, and reads with nothing; keeps what was asked."""

    def __init__(self, applied: bool | None = None) -> None:
        self.seen, self.applied, self.offsets = list[httpx.Request](), applied, iter(range(1000))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        match request.method, request.url.path:
            case "POST", "/v1/messages":
                one = self.place("said")
                return httpx.Response(202, json={"accepted": [one], "token": one["token"]})
            case "POST", "/v1/search":
                return httpx.Response(200, json={"results": [], "better_elsewhere": {}})
            case "DELETE", "/v1/memories" if "source" in request.url.params:
                counts = {"memories": 1, "exchanges": 0, "short_term_memories": 0}
                named = {"user_id": "ann", "source": "tool", "token": f"forgotten{next(self.offsets)}"}
                return httpx.Response(202, json={**counts, **named})
            case "POST" | "DELETE", _:
                return httpx.Response(202, json={**self.place("kept"), "applied": self.applied})
            case _:
                return httpx.Response(200, json={"memories": [], "total": 0, "next": None})

    def place(self, topic: str) -> dict[str, Any]:
        offset = next(self.offsets)
        return {"event_id": "e", "topic": topic, "partition": 0, "offset": offset, "token": f"{topic}{offset}"}

    @property
    def sent(self) -> str | None:
        """With the newest request."""
        header: str | None = self.seen[-1].headers.get(HEADER)
        return header


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def memory(log: Log) -> Iterator[Memory]:
    with Memory(read_your_writes=True, transport=httpx.MockTransport(log)) as made:
        yield made


def test_a_read_is_sent_with_the_newest_write_of_its_user_and_each_topic(memory: Memory, log: Log) -> None:
    memory.remember("a", user_id="ann")
    memory.remember("b", user_id="ann")
    assert log.sent is None
    memory.add({"role": "user", "content": "c"}, user_id="ann", session_id="s")
    memory.remember("d", user_id="bob")
    memory.search("?", user_id="ann")
    assert log.sent == "kept1,said2"
    assert log.seen[-1].extensions["timeout"]["read"] == 15.0
    memory.list(user_id="bob")
    assert log.sent == "kept3"
    memory.list(user_id="eve")
    assert log.sent is None


def test_a_forgotten_source_is_waited_for_too(memory: Memory, log: Log) -> None:
    """Its answer has a token, but no place."""
    memory.remember("a", user_id="ann")
    memory.forget_source("tool", user_id="ann")
    memory.forget_source("tool", user_id="ann")
    memory.list(user_id="ann")
    assert log.sent == "kept0,forgotten2"


def test_it_is_asked_for(log: Log) -> None:
    with Memory(transport=httpx.MockTransport(log)) as memory:
        memory.remember("a", user_id="ann")
        memory.search("?", user_id="ann")
    assert log.sent is None


def test_a_write_that_waited_in_vain_is_waited_for() -> None:
    log = Log(applied=False)
    with Memory(read_your_writes=True, transport=httpx.MockTransport(log)) as memory:
        with pytest.raises(NotYetApplied):
            memory.forget("00000000-0000-0000-0000-000000000001", user_id="ann", wait=1)
        memory.list(user_id="ann")
    assert log.sent == "kept0"


def test_no_more_users_are_kept_than_may_be(memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("siltstone_client.own_writes.MOST_USERS", 2)
    assert MOST_USERS > 2
    for user in ("ann", "bob", "ann", "eve"):
        memory.remember("a", user_id=user)
    memory.list(user_id="bob")
    assert log.sent is None
    memory.list(user_id="ann")
    assert log.sent == "kept2"


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


async def test_beside_a_worker_each_read_sees_what_was_written(worker: Siltstone) -> None:
    url = f"http://127.0.0.1:{worker.api.port}"
    async with AsyncMemory(url, timeout=20, read_your_writes=True) as memory:
        for number in range(3):
            await memory.remember(f"Fact number {number} is about {NAMES[number]}", user_id="ann")
            assert (await memory.list(user_id="ann")).total == number + 1
