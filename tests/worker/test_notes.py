"""Explicit short-term memories, on the real broker, tables, shards and HTTP: kept, shown, promoted, gone."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import orjson
import pytest
from click.testing import CliRunner
from faust.types import TP

from schemas.settings import Settings
from schemas.times import iso
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.cli import cli, running
from streams.kafka.faust.consumer import Consumer
from streams.telemetry.metrics import labelled
from tables.memories.shard import Shard
from tests.support.late_api import api_of
from tests.support.making import START, line
from tests.support.waiting import CLIENT_SECONDS, until
from tests.worker.test_pipeline import read

MINUTE = 60


class Client:
    """A chat service: it asks a worker over HTTP, and writes into its topics."""

    def __init__(self, worker: Siltstone) -> None:
        self.worker = worker
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{worker.api.port}", trust_env=False, timeout=CLIENT_SECONDS
        )

    async def remember(self, text: str, *, at: int = 0, user: str = "u", **fields: Any) -> str:
        """Have a text remembered for a while, `at` seconds after START; the event's id."""
        body = {"kind": "short_term", "session_id": f"{user}-s", "timestamp": START + at * 1000, **fields}
        taken = sum(self.notes.values())
        answer = await self.http.post("/v1/memories", json={"user_id": user, "text": text, **body})
        assert answer.status_code == 202, answer.text
        await until(lambda: sum(self.notes.values()) > taken, alive=self.worker)
        return str(answer.json()["event_id"])

    async def say(self, i: int, role: str = "user", *, at: int = 0, user: str = "u", **fields: Any) -> None:
        """A record of `conversations`, which is processed when this returns."""
        await self._process(self.worker.topics.conversations, user, line(i, user, role, at, **fields))

    async def end(self, at: int, user: str = "u") -> None:
        await self.say(0, at=at, user=user, type="session_end")

    async def event(self, kind: str, /, user: str = "u", **fields: Any) -> None:
        """An event of `long-term`, which is applied when this returns."""
        event = {"type": kind, "event_id": str(uuid.uuid4()), "user_id": user, "timestamp": START, **fields}
        await self._process(self.worker.topics.long_term, user, orjson.dumps(event))

    async def _process(self, topic: str, user: str, value: bytes) -> None:
        hot = self.worker.hot
        place = await (await hot.outbox.send(topic, value, key=key_of(user)))
        ledgers = cast(Consumer, self.worker.context.faust.consumer)._ledgers
        await until(
            lambda: (ledgers[TP(topic, place.partition)].committable() or 0) > place.offset, alive=self.worker
        )

    async def shown(self, user: str = "u", session: str = "u-s") -> list[dict[str, Any]]:
        answer = await self.http.get(f"/v1/sessions/{session}/memories", params={"user_id": user})
        assert answer.status_code == 200, answer.text
        memories: list[dict[str, Any]] = answer.json()["memories"]
        return memories

    async def texts(self, user: str = "u", session: str = "u-s") -> list[str]:
        return [note["memory"] for note in await self.shown(user, session)]

    async def context(self, user: str = "u", session: str = "u-s", q: str = "") -> dict[str, Any]:
        answer = await self.http.get("/v1/context", params={"user_id": user, "session_id": session, "q": q})
        context: dict[str, Any] = answer.raise_for_status().json()
        return context

    async def lasting(self, user: str = "u") -> list[str]:
        """Texts of the user's long-term memories."""
        memories = await self.worker.shards.call(self.worker.context.partition_of(user), Shard.memories_of, user)
        return [memory.text for memory in memories]

    async def until_lasting(self, *texts: str, user: str = "u") -> None:
        async with asyncio.timeout(30):
            while sorted(await self.lasting(user)) != sorted(texts):  # noqa: ASYNC110 - the shard tells nobody
                await asyncio.sleep(0.02)

    @property
    def notes(self) -> dict[str, int]:
        return {effect: n for (effect,), n in labelled(self.worker.metrics.notes).items()}


@contextlib.asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Client]:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        client = Client(worker)
        yield client
        await client.http.aclose()


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[Client]:
    async with started(settings) as ready:
        yield ready


def with_memory(settings: Settings, **memory: Any) -> Settings:
    return settings.model_copy(update={"memory": settings.memory.model_copy(update=memory)})


async def test_a_short_term_memory_is_shown_with_its_session(client: Client) -> None:
    """Typed, with its expiry; in the context, its prompt, and on the command line too."""
    event_id = await client.remember("buy milk", at=5, ttl_seconds=MINUTE, importance=40, metadata={"shop": "x"})
    note = {
        "id": event_id,
        "type": "short_term",
        "memory": "buy milk",
        "importance": 40,
        "created_at": iso(START + 5_000),
        "expires_at": iso(START + 65_000),
        "session_id": "u-s",
        "metadata": {"shop": "x"},
    }
    assert await client.shown() == [note]
    context = await client.context()
    assert context["notes"] == [note]
    assert "] buy milk\n" in context["prompt"]
    assert await client.lasting() == []
    said = await asyncio.to_thread(
        CliRunner().invoke,
        cli,
        ["context", "--user", "u", "--session", "u-s", "--url", str(client.http.base_url)],
    )
    assert (said.exit_code, "] buy milk" in said.output) == (0, True)
    assert 'siltstone_notes_total{effect="kept"} 1.0' in (await client.http.get("/metrics")).text
    pipeline = (await client.http.get("/v1/stats/pipeline")).json()
    assert (pipeline["notes"], pipeline["dead_letters"]) == ({"kept": 1}, 0)


async def test_a_long_term_memory_can_be_posted(client: Client) -> None:
    """It is found by a search; sent again with the same event id, it is the same memory."""
    text = "Ann drinks tea in the morning."
    body = {"user_id": "u", "text": text, "timestamp": START, "event_id": str(uuid.uuid4())}
    for _ in range(2):
        answer = await client.http.post("/v1/memories", json=body)
        assert (answer.status_code, answer.json()["event_id"]) == (202, body["event_id"])
    await client.until_lasting(text)
    found = await client.http.post("/v1/search", json={"user_id": "u", "query": "What does Ann drink?"})
    (hit,) = found.json()["results"]
    importance = client.worker.service.importance.of(text, short_term=False)
    assert (hit["id"], hit["importance"], hit["session_id"]) == (body["event_id"], importance, None)
    assert 70 < importance < 100
    assert client.notes == {}


async def test_a_wrong_request_is_refused(settings: Settings) -> None:
    """Misspelt fields too: a time to live that is not read would be a day."""
    transport = httpx.ASGITransport(api_of(settings))  # nothing is written, so nothing needs to run
    api = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
    for wrong in (
        *(fields for fields, _ in BAD),
        {"text": ""},
        {"ttl": 60},
        {"timestamp": "soon"},
        {"event_id": "mine"},
        {"user_id": ""},
    ):
        answer = await api.post("/v1/memories", json={"user_id": "u", "text": "x", **wrong})
        assert answer.status_code == 422, wrong


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "short_term"}, "a short-term memory belongs to a session: session_id is missing"),
    ({"kind": "short_term", "session_id": "s1", "topic": "tea"}, "a short-term memory has none"),
    ({"ttl_seconds": 60}, "ttl_seconds is for kinds short_term and item"),
    ({"kind": "short_term", "session_id": "s", "ttl_seconds": 0}, "ttl_seconds: Input should be greater than"),
    ({"kind": "short_term", "session_id": "s", "importance": 101}, "importance: Input should be less than"),
    ({"kind": "eternal"}, "kind: Input should be 'long_term', 'short_term' or 'item'"),
]


async def test_bad_events_are_dead_letters_with_a_plain_reason(client: Client) -> None:
    """They disturb nothing: the good one behind them is kept."""
    for fields, _ in BAD:
        await client.event("remember", text="x", **fields)
    await client.remember("good")
    letters = await read(client.worker.settings, client.worker.topics.dead_letters, len(BAD))
    for letter, (_, reason) in zip(letters, BAD, strict=True):
        headers = {name: value.decode() for name, value in letter.headers}
        assert headers["error.type"] == "invalid_fields"
        assert reason in headers["error.message"]
    assert await client.texts() == ["good"]


async def test_an_expired_memory_is_in_no_answer(client: Client) -> None:
    """By the event clock, to the millisecond; later it is dropped."""
    await client.remember("a minute", ttl_seconds=MINUTE)
    await client.remember("a day")
    await client.say(1, at=59, user="other")
    assert sorted(await client.texts()) == ["a day", "a minute"]
    await client.say(2, at=60, user="other")
    assert await client.texts() == ["a day"]
    context = await client.context()
    assert [note["memory"] for note in context["notes"]] == ["a day"]
    assert "a minute" not in context["prompt"]
    client.worker.notes.forget_expired()
    assert client.notes == {"kept": 2, "expired": 1}


async def test_another_user_sees_nothing(client: Client) -> None:
    """Not even in a session of the same name; and may use the same ids."""
    mine = str(uuid.uuid4())
    for user in ("u", "v"):
        await client.remember(f"of {user}", user=user, session_id="shared", memory_id=mine, importance=90)
    assert await client.texts("u", "shared") == ["of u"]
    assert await client.texts("v", "shared") == ["of v"]
    assert await client.texts("w", "shared") == []
    await client.event("forget", user="w", memory_id=mine)
    await client.event("forget", user="v", memory_id=mine)
    assert (await client.texts("u", "shared"), await client.texts("v", "shared")) == (["of u"], [])
    assert (await client.context("v", "shared"))["notes"] == []


async def test_at_the_sessions_end_important_ones_become_long_term_once(client: Client) -> None:
    """They are found by a search then, and all of the session's are in no answer about it any more."""
    await client.say(1, at=0)
    event_id = await client.remember("Ann's flight leaves from gate 23.", importance=70)
    await client.remember("small talk", importance=69)
    await client.remember("over soon", importance=100, ttl_seconds=9)
    assert await client.lasting() == []
    await client.end(at=10)
    await client.until_lasting("Ann's flight leaves from gate 23.")
    memories = {"user_id": "u", "query": "Which gate?", "include_short_term": False}
    found = await client.http.post("/v1/search", json=memories)
    assert [hit["id"] for hit in found.json()["results"]] == [event_id]
    assert await client.texts() == []
    context = await client.context(q="Which gate?")
    assert context["notes"] == []
    assert context["prompt"].count("gate 23") == 1
    await client.say(2, at=20)
    await client.end(at=30)
    assert client.notes == {"kept": 3, "promoted": 1}


async def test_what_is_personal_needs_no_importance_to_outlive_its_session(client: Client) -> None:
    """Content analysis gives it one, over HTTP and in the log."""
    await client.say(1, at=0)
    await client.remember("我对花生过敏")
    await client.remember("hello there")
    fields: dict[str, Any] = {"kind": "short_term", "session_id": "u-s", "timestamp": START}
    await client.event("remember", text="My daughter Sofia starts school on August 18.", **fields)
    await client.end(at=10)
    await client.until_lasting("我对花生过敏", "My daughter Sofia starts school on August 18.")


async def test_silence_that_a_later_message_shows_is_an_end(client: Client) -> None:
    """And the session goes on at once."""
    await client.say(1, at=0)
    await client.remember("important", importance=80)
    await client.say(2, at=29 * MINUTE)
    assert client.notes == {"kept": 1}
    await client.say(3, at=59 * MINUTE)
    await client.until_lasting("important")


async def test_silence_that_lasts_is_an_end_even_where_nothing_was_said(settings: Settings) -> None:
    async with started(with_memory(settings, session_idle_seconds=1)) as client:
        await client.remember("important", importance=80)
        await client.until_lasting("important")


async def test_what_comes_after_its_sessions_end_is_promoted_at_once(client: Client) -> None:
    """The two topics know no order between them."""
    await client.say(1, at=0)
    await client.end(at=10)
    await client.remember("important", at=5, importance=80)
    await client.until_lasting("important")


async def test_a_forgotten_memory_is_gone_from_session_and_long_term(client: Client) -> None:
    event_id = await client.remember("secret", importance=100)
    await client.remember("other", at=11)
    await client.end(at=10)
    await client.until_lasting("secret")
    await client.event("forget", memory_id=event_id)
    assert (await client.lasting(), await client.texts()) == ([], ["other"])
    await client.remember("secret", event_id=event_id, importance=100)
    assert (await client.lasting(), await client.texts()) == ([], ["other"])


async def test_a_forgotten_user_has_none_left(client: Client) -> None:
    """But for what is asked for later."""
    await client.remember("old", importance=100)
    await client.remember("elsewhere", session_id="t")
    await client.remember("ahead of its time", at=20)
    await client.end(at=25)
    await client.until_lasting("old")
    await client.event("forget_user", timestamp=START + 10_000)
    assert (await client.lasting(), await client.texts(), await client.texts(session="t")) == ([], [], [])
    await client.remember("new", at=30)
    assert await client.texts() == ["new"]


async def test_a_note_is_written_after_the_session_that_it_names(settings: Settings) -> None:
    """And, as tables are emptied in the reverse order, deleted before it."""
    names = [topic.split("-")[-2] for topic, *_ in Siltstone(settings).hot.outbox._tables]
    assert names[:3] == ["exchanges", "sessions", "notes"]


async def test_a_worker_that_takes_over_has_them(settings: Settings) -> None:
    """What was forgotten, expired or promoted before stays so."""
    async with started(settings) as first:
        await first.say(1, at=0)
        await first.remember("kept", at=11)
        important = await first.remember("promoted", importance=90)
        gone = await first.remember("forgotten", importance=90)
        await first.remember("a minute", ttl_seconds=MINUTE)
        await first.event("forget", memory_id=gone)
        await first.end(at=10)
        await first.until_lasting("promoted")
        await first.say(1, at=MINUTE, user="other")
        before = await first.shown()
    async with started(settings) as second:
        assert await second.shown() == before
        assert [note["memory"] for note in before] == ["kept"]
        await second.remember("promoted", importance=90, event_id=important)
        await second.say(2, at=70)
        await second.end(at=80)
        assert await second.lasting() == ["promoted"]
        assert "promoted" not in second.notes


async def test_a_partition_that_moves_takes_them_along(settings: Settings) -> None:
    """A second worker joins: each user's memory is with the worker that owns the user's partition."""
    users = [f"user-{n}" for n in range(16)]
    async with started(settings) as first:
        for user in users:
            await first.remember(f"of {user}", user=user)
        async with started(settings) as second:
            both = (first.worker, second.worker)
            await until(lambda: len(first.worker.shards.partitions()) < settings.kafka.partitions, alive=both)
            await running.until_ready(first.worker)
            await running.until_ready(second.worker)
            moved = set(second.worker.shards.partitions())
            assert moved
            for user in users:
                owner = second if second.worker.context.partition_of(user) in moved else first
                assert await owner.texts(user, f"{user}-s") == [f"of {user}"]
                other = first if owner is second else second
                assert await other.texts(user, f"{user}-s") == [f"of {user}"]  # the owner's answer
