"""What an adapter could not say while memory was away is said afterwards, in portions that a worker takes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

import orjson
import pytest

from siltstone_client.answers import AcceptedMessages, NotTaken
from siltstone_client.errors import InvalidRequest, Unreachable
from siltstone_client.memory import Memory
from siltstone_client.said import MOST_BYTES, MOST_MESSAGES, PORTION_BYTES, portions
from siltstone_client.talk import Talk
from streams.doors.http.body_limits import MAX_BODY_BYTES


class Worker:
    """Takes messages as the API does: none without words, and no body that is too large. It may be away."""

    def __init__(self) -> None:
        self.away = False
        self.requests = 0
        self.took: list[str] = []

    def add(self, messages: Sequence[dict[str, Any]], *, user_id: str, session_id: str) -> AcceptedMessages:
        self.requests += 1
        if self.away:
            raise Unreachable("nobody listens", sent=False)
        if len(orjson.dumps(messages)) > MAX_BODY_BYTES:
            raise InvalidRequest(413, "the body is larger than 8388608 bytes")
        if any(message["content"] == "refused" for message in messages):
            raise InvalidRequest(422, "content: no")
        wrong = [place for place, message in enumerate(messages) if message["content"] == "too long"]
        self.took += [message["content"] for place, message in enumerate(messages) if place not in wrong]
        not_taken = [NotTaken(index=place, kind="invalid_fields", detail="content: 32 KiB") for place in wrong]
        return AcceptedMessages(accepted=[], token=None, not_taken=not_taken)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def talk(worker: Worker) -> Talk:
    return Talk(cast(Memory, worker), "ann", "s")


async def test_an_outage_with_much_said_ends_with_all_of_it_said(worker: Worker, talk: Talk) -> None:
    """Of 32 KB each, as many as wait would be four times what a body may have."""
    texts = [f"{number} ".ljust(MOST_BYTES, "x") for number in range(MOST_MESSAGES)]
    worker.away = True
    for start in range(0, len(texts), 100):
        await talk.say(("user", text) for text in texts[start : start + 100])
    assert worker.took == []
    worker.away, worker.requests = False, 0
    await talk.say([])
    assert worker.took == texts
    assert worker.requests <= 2 * len(texts) * MOST_BYTES / PORTION_BYTES


async def test_what_is_refused_for_good_is_dropped_and_the_others_are_said(
    worker: Worker, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await talk.say([("user", "a"), ("user", "refused"), ("assistant", "b")])
    assert worker.took == ["a", "b"]
    assert "the worker refused a message, which is dropped: InvalidRequest: content: no" in caplog.text
    worker.requests = 0
    with caplog.at_level(logging.WARNING):
        await talk.say([("user", "too long"), ("user", "c")])
    assert (worker.took, worker.requests) == (["a", "b", "c"], 1)
    assert "the worker refused a message, which is dropped: content: 32 KiB" in caplog.text


async def test_an_outage_in_the_middle_says_nothing_twice(worker: Worker, talk: Talk) -> None:
    worker.away = True
    await talk.say([("user", "a"), ("user", "b")])
    worker.away = False
    await talk.say([("user", "c")])
    await talk.say([("user", "d")])
    assert worker.took == ["a", "b", "c", "d"]


def test_portions_are_all_of_it_in_its_order() -> None:
    records = [{"content": "é" * (n * 1000 % 40_000), "n": n} for n in range(2500)]
    parts = list(portions(records))
    assert [one for part in parts for one in part] == records
    assert all(len(part) <= MOST_MESSAGES for part in parts)
    assert all(len(orjson.dumps(part)) < MAX_BODY_BYTES for part in parts)
    assert list(portions([])) == []
    huge = {"content": "x" * (PORTION_BYTES + 1)}
    assert list(portions([huge, huge])) == [[huge], [huge]]
