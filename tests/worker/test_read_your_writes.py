"""What was written can be read when a write that waited is answered, and by whoever has its token."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import orjson
import pytest

from schemas.places import Place
from schemas.settings import LlmSettings, Settings
from schemas.times import now_ms
from schemas.topics import partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import ensure_topics
from streams.memory.read_your_writes import ReadYourWrites
from streams.models.embedding.embedding import Embedding, Side, Vectors
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.support.late_api import api_of
from tests.support.openai_server import OpenAIServer
from tests.support.quick_commands import siltstone
from tests.support.waiting import until

WAIT = {"wait": "applied", "timeout": "20"}
HEADER = "Siltstone-At-Least"
#: They begin something of the whole worker, and write nothing of a user.
OF_THE_WORKER = ("/v1/archive/cleanup", "/v1/checkpoints/{partition}", "/v1/reembed")


def said(i: int = 0, user: str = "u", **fields: Any) -> dict[str, Any]:
    content = f"I keep {i + 3} bees in Oslo"
    return {"user_id": user, "session_id": "s", "role": "user", "content": content, **fields}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """What is written is not embedded before this is set; questions are."""
    gate, embed = asyncio.Event(), Embedding.embed

    async def patiently(model: Embedding, texts: Sequence[str], of: Side) -> Vectors:
        if of == "document":
            await gate.wait()
        return await embed(model, texts, of)

    monkeypatch.setattr(Embedding, "embed", patiently)
    return gate


async def found(http: httpx.AsyncClient, user: str = "u", **more: Any) -> list[str]:
    body = {"user_id": user, "query": "bees in Oslo", "touch": False, "include_all": True}
    answer = (await http.post("/v1/search", json=body, **more)).raise_for_status().json()
    return [hit["memory"] for hit in answer["results"]]


async def test_each_write_that_waited_can_be_read_at_once(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Forty times with nothing in between: messages, memories, edits, pins, notes, links, forgetting."""
    for i in range(20):
        written = await http.post("/v1/messages", json=said(i), params=WAIT)
        assert (written.status_code, written.json()["applied"]) == (202, True)
        shown = (await http.get("/v1/sessions/s/exchanges", params={"user_id": "u"})).json()["exchanges"]
        assert shown[-1]["messages"][-1]["content"] == said(i)["content"]
    assert said(19)["content"] in " ".join(await found(http))
    ids = []
    for i in range(20):
        text = f"My {i}. bee is called {chr(97 + i) * 4}"
        written = (await http.post("/v1/memories", json={"user_id": "u", "text": text}, params=WAIT)).json()
        assert written["applied"] is True
        ids.append(written["event_id"])
        one = await http.get(f"/v1/memories/{ids[-1]}", params={"user_id": "u"})
        assert one.status_code == 200, one.text
    path, user = f"/v1/memories/{ids[0]}", {"user_id": "u"}
    await http.patch(path, json={**user, "text": "No bee at all"}, params=WAIT)
    assert (await http.get(path, params=user)).json()["memory"] == "No bee at all"
    await http.put(f"{path}/pin", params={**user, **WAIT})
    assert (await http.get(path, params=user)).json()["pinned"] is True
    await http.delete(f"{path}/pin", params={**user, **WAIT})
    assert (await http.get(path, params=user)).json()["pinned"] is False
    note = {**user, "text": "buy honey", "kind": "short_term", "session_id": "s", "ttl_seconds": 60}
    await http.post("/v1/memories", json=note, params=WAIT)
    assert [one["memory"] for one in (await http.get("/v1/sessions/s/memories", params=user)).json()["memories"]] == [
        "buy honey"
    ]
    await http.post("/v1/archive", json={**user, "memory_id": ids[1]}, params=WAIT)
    assert [one["id"] for one in (await http.get("/v1/archive", params=user)).json()["memories"]] == [ids[1]]
    await http.post(f"/v1/archive/{ids[1]}/restore", json=user, params=WAIT)
    assert (await http.get("/v1/archive", params=user)).json()["total"] == 0
    await http.delete(path, params={**user, **WAIT})
    assert (await http.get(path, params=user)).status_code == 404
    await http.delete("/v1/memories", params={**user, **WAIT})
    assert await found(http) == []


async def test_a_list_is_answered_in_its_order_and_with_one_token(worker: Siltstone, http: httpx.AsyncClient) -> None:
    messages = [said(i, message_id=f"m{i}", role=("user", "assistant")[i % 2]) for i in range(10)]
    written = (await http.post("/v1/messages", json=messages, params=WAIT)).json()
    assert [one["event_id"] for one in written["accepted"]] == [f"m{i}" for i in range(10)]
    offsets = [one["offset"] for one in written["accepted"]]
    assert offsets == list(range(offsets[0], offsets[0] + 10))
    assert written["token"] == written["accepted"][-1]["token"]
    assert written["applied"] is True
    shown = (await http.get("/v1/sessions/s/exchanges", params={"user_id": "u"})).json()["exchanges"]
    assert [m["message_id"] for one in shown for m in one["messages"]] == [f"m{i}" for i in range(10)]
    assert (await http.post("/v1/messages", json=[])).status_code == 422
    several = [said(user="u"), said(user="v")]
    refused = await http.post("/v1/messages", json=several, params=WAIT)
    assert (refused.status_code, "of one user" in refused.json()["detail"]) == (422, True)
    taken = (await http.post("/v1/messages", json=several)).json()
    assert (taken["token"], len(taken["accepted"]), "applied" in taken) == (None, 2, False)


async def test_a_read_with_a_token_waits_for_what_was_written(settings: Settings, held: asyncio.Event) -> None:
    """It is 503 while that takes too long, and answered when it can be read; so is the write that waits."""
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        body = {"user_id": "u", "text": "I keep bees in Oslo"}
        late = await http.post("/v1/memories", json=body, params={"wait": "applied", "timeout": "0.2"})
        assert (late.status_code, late.json()["applied"]) == (202, False)
        token = late.json()["token"]
        place = Place(*(late.json()[name] for name in Place._fields))
        assert Place.of_token(token) == place
        no = await http.get("/v1/memories", params={"user_id": "u", "timeout": "0.2"}, headers={HEADER: token})
        assert (no.status_code, no.headers["retry-after"]) == (503, "1")
        assert str(place) in no.json()["detail"]
        assert await found(http) == []
        asked = [
            asyncio.create_task(found(http, headers={HEADER: token}, params={"timeout": "20"})),
            asyncio.create_task(found(http, params={"at_least": token, "timeout": "20"})),
        ]
        applied = asyncio.create_task(http.get("/v1/applied", params={"at_least": token, "timeout": "20"}))
        await until(lambda: len(worker.hot.waiters) == 3, alive=worker)
        assert not any(task.done() for task in asked)
        held.set()
        assert await asyncio.gather(*asked) == [[body["text"]]] * 2
        assert (await applied).json() == {"applied": True}
        assert not worker.hot.waiters
        assert await found(http, headers={HEADER: f"{token}, {token}"}) == [body["text"]]


async def test_a_token_that_is_damaged_or_of_others_is_refused_in_a_line(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    topic, own = worker.topics.long_term, worker.context.partition_of("u")
    refused = {
        "nonsense": "damaged",
        Place(topic, own, 0).token[:-2]: "damaged",
        Place("other.long-term", own, 0).token: "another log",
        Place(worker.topics.transitions, own, 0).token: "another log",
        Place(topic, 9_999, 0).token: "another log",
        Place(topic, (own + 1) % worker.context.partitions, 0).token: "another user",
        ",".join([Place(topic, own, 0).token] * 65): "65 tokens",
    }
    for token, why in refused.items():
        for answer in (
            await http.get("/v1/context", params={"user_id": "u", "session_id": "s", "at_least": token}),
            await http.post("/v1/search", json={"user_id": "u", "query": "x"}, headers={HEADER: token}),
        ):
            detail = answer.json()["detail"]
            assert (answer.status_code, why in detail, "\n" in detail) == (422, True, False), (token, detail)
    assert (await http.get("/v1/applied")).status_code == 422


async def test_who_waits_while_partitions_move_is_told_so(settings: Settings, held: asyncio.Event) -> None:
    """A read is 503. A write is in the log, so it is 202 and not applied: written again, it would be twice."""
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        body = {"user_id": "u", "text": "I keep bees"}
        writing = asyncio.create_task(http.post("/v1/memories", json=body, params=WAIT))
        await until(lambda: len(worker.hot.waiters) == 1, alive=worker)
        token = (await http.post("/v1/memories", json={**body, "text": "And wasps"})).json()["token"]
        reading = asyncio.create_task(
            http.get("/v1/memories", params={"user_id": "u", "at_least": token, "timeout": "20"})
        )
        await until(lambda: len(worker.hot.waiters) == 2, alive=worker)
        worker.hot.forget_readable()
        written, read = await writing, await reading
        assert (written.status_code, written.json()["applied"]) == (202, False)
        assert (read.status_code, read.headers["retry-after"]) == (503, "1")
        held.set()


async def test_where_too_many_wait_nothing_is_written(
    worker: Siltstone, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.service.writes, "_effects", ReadYourWrites(worker.hot, most=0))
    answer = await http.post("/v1/messages", json=said(), params=WAIT)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    ends = await worker.hot.ends(worker.topics.conversations)
    assert not any(ends.values())


@pytest.mark.parametrize("path", ["/v1/applied", "/v1/memories"])
async def test_nobody_waits_for_what_was_never_written(worker: Siltstone, http: httpx.AsyncClient, path: str) -> None:
    """Whatever its checksum says: it would hold a place for as long as it likes."""
    place = Place(worker.topics.long_term, partition_of("u", worker.context.partitions), 2**62)
    answer = await http.get(path, params={"user_id": "u", "at_least": place.token, "timeout": "60"})
    assert (answer.status_code, "there is no record at" in answer.text) == (503, True)
    assert len(worker.hot.waiters) == 0


async def test_what_was_written_before_a_restart_is_read_after_it(settings: Settings) -> None:
    """The position of a partition is known from the offsets that are committed."""
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        tokens = [
            (await http.post("/v1/messages", json=said(), params=WAIT)).json()["token"],
            (await http.post("/v1/memories", json={"user_id": "u", "text": "Bees"}, params=WAIT)).json()["token"],
        ]
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        asked = {"user_id": "u", "session_id": "s", "at_least": ",".join(tokens), "timeout": "5"}
        answer = await http.get("/v1/context", params=asked)
        assert (answer.status_code, len(answer.json()["exchanges"])) == (200, 1)


@pytest.mark.slow
async def test_the_users_worker_waits_whichever_is_asked(settings: Settings, tmp_path: Any) -> None:
    """Both for writes and for reads: of two workers, each is asked about a user of either."""
    settings = side_by_side(settings)
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": 2})})
    await ensure_topics(settings.kafka)
    users = [next(f"u{i}" for i in range(99) if partition_of(f"u{i}", 2) == partition) for partition in (0, 1)]
    of_one = settings.model_copy(update={"data_dir": tmp_path / "one"})
    of_two = settings.model_copy(update={"data_dir": tmp_path / "two"})
    async with running.started(of_one) as one, running.started(of_two) as two:
        await until(
            lambda: one.health.ready and two.health.ready and len(one.shards.partitions()) == 1, alive=(one, two)
        )
        async with api(one) as first, api(two) as second:
            for user in users:
                for here, there, text in ((first, second, "bees in Oslo"), (second, first, "a piano in Porto")):
                    written = await here.post("/v1/messages", json=said(user=user), params=WAIT)
                    assert (written.status_code, written.json()["applied"]) == (202, True), written.text
                    memory = (await here.post("/v1/memories", json={"user_id": user, "text": text})).json()
                    assert text in await found(
                        there, user, headers={HEADER: memory["token"]}, params={"timeout": "20"}
                    )


def test_the_api_tells_of_it(settings: Settings) -> None:
    """Every write that is answered with a place takes `wait`; every read of a user takes `at_least`."""
    paths = api_of(settings).openapi()["paths"]
    for path, methods in paths.items():
        for method, route in methods.items():
            names = {one["name"] for one in route.get("parameters", ())}
            of_user = {"name": "user_id", "required": True}
            if "202" in route["responses"] and path not in OF_THE_WORKER:
                assert {"wait", "timeout"} <= names, (method, path)
            elif method == "get" and any(of_user.items() <= one.items() for one in route.get("parameters", ())):
                assert {"at_least", HEADER, "timeout"} <= names, (method, path)


async def test_a_message_can_be_read_while_a_model_is_still_asked_about_another(settings: Settings) -> None:
    """Its batch counts as processed, and is committed, only when the model has answered."""
    async with OpenAIServer() as server:
        server.gate.clear()
        llm = LlmSettings.model_validate({"api_key": "sk-test", "base_url": server.base_url, "model": "judge"})
        settings = settings.model_copy(update={"llm": llm})
        async with running.started(settings) as worker, api(worker) as http:
            await running.until_ready(worker)
            at = now_ms()
            message = said(message_id="m", content="I like tea number 1", timestamp=at)
            await http.post("/v1/messages", json=message, params=WAIT)
            ended = await http.post("/v1/sessions/s/end", json={"user_id": "u"}, params=WAIT)
            assert ended.json()["applied"] is True
            await until(lambda: len(server.received) > 0, alive=worker)
            topic, place = worker.topics.conversations, ended.json()["partition"]
            assert worker.hot.committed(topic)[place] <= ended.json()["offset"]
            read = {"user_id": "u", "at_least": ended.json()["token"], "timeout": "0"}
            assert (await http.get("/v1/sessions/s/exchanges", params=read)).status_code == 200
            server.gate.set()


async def test_ingest_waits_until_its_file_is_taken_in(
    worker: Siltstone, http: httpx.AsyncClient, tmp_path: Any
) -> None:
    """For as long as it may; then it says so, and nothing is lost."""
    kafka, file = worker.settings.kafka, tmp_path / "chat.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps(said(i, user=f"u{i % 3}", message_id=f"m{i}")) for i in range(30)))
    options = ("--bootstrap-servers", kafka.bootstrap_servers, "--url", f"http://127.0.0.1:{worker.api.port}")
    names = {"SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix}
    done = await siltstone("ingest", str(file), "--wait", *options, **names)
    assert done.returncode == 0, done.stderr
    assert sum(labelled(worker.metrics.messages).values()) == 30


async def test_a_command_that_waits_in_vain_says_what_and_where(settings: Settings, held: asyncio.Event) -> None:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        url = ("--user", "u", "--url", f"http://127.0.0.1:{worker.api.port}")
        late = await siltstone("remember", "I keep bees", "--timeout", "0.2", *url)
        assert late.returncode == 1
        assert "it was not remembered within 0.2 s; it may still happen" in late.stderr
        assert f"{worker.topics.long_term}[{worker.context.partition_of('u')}]@0" in late.stderr
        at_once = await siltstone("remember", "I keep wasps", "--no-wait", "--json", *url)
        assert (at_once.returncode, "applied" in orjson.loads(at_once.stdout)) == (0, False)
        held.set()
