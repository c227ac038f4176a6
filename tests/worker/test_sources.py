"""What is said by whom: recorded, shown, filtered, and taken back, on a running worker with tokens."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from schemas.events import Remember
from schemas.settings import AccessSettings, Settings
from schemas.sources import SOURCES
from streams.app import Siltstone
from streams.doors.http.shown import command
from tests.support.mcp_client import answered, over_http
from tests.support.quick_commands import siltstone
from tests.support.tokens import known, made
from tests.support.waiting import until_it_is

pytestmark = pytest.mark.slow

APPLIED = {"wait": "applied"}
#: Of one user's, of one source.
MANY = 2_000


@pytest.fixture
def settings(settings: Settings) -> Settings:
    memory = settings.memory.model_copy(
        update={"scoring": settings.memory.scoring.model_copy(update={"policy": "all"})}
    )
    return settings.model_copy(update={"access": AccessSettings(tokens=True), "memory": memory})


async def listed(http: httpx.AsyncClient, headers: dict[str, str], *filters: str) -> list[dict[str, Any]]:
    params = httpx.QueryParams({"user_id": "ann", "include_all": "true", "filter": list(filters)})
    answer = await http.get("/v1/memories", headers=headers, params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["memories"]
    return found


async def test_what_came_by_a_token_is_recorded_and_taken_back_by_its_name(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Nobody says it of himself; what others said stays, and what is taken back does not come again."""
    (_, ann), (_, crawler) = await made(settings, "ann", name="app"), await made(settings, "*", name="crawler")
    for headers in (ann, crawler):
        await known(http, headers)

    async def remember(headers: dict[str, str], text: str, **more: Any) -> httpx.Response:
        body = {"user_id": "ann", "text": text, **more}
        return await http.post("/v1/memories", headers=headers, params=APPLIED, json=body)

    forged = {SOURCES: ["token:app"], "mood": "fine"}
    first = await remember(crawler, "Ann collects stamps from Peru", metadata=forged)
    assert first.status_code == 202, first.text
    assert (await remember(crawler, "no", sources=["token:app"])).status_code == 422
    await remember(ann, "I live in Oslo by the harbour")
    # It is not important enough to become a long-term memory when the session ends.
    note = {"kind": "short_term", "session_id": "s", "metadata": forged, "importance": 10}
    assert (await remember(crawler, "Her flight leaves at noon", **note)).status_code == 202
    for number, (role, content) in enumerate([("user", "I love tea"), ("tool", "{}"), ("assistant", "Good")]):
        said = {"user_id": "ann", "session_id": "s", "role": role, "content": content, "message_id": str(number)}
        said |= {"name": "search"} if role == "tool" else {}
        sent = await http.post(
            "/v1/messages", headers=crawler, params=APPLIED, json={**said, SOURCES: ["token:app"], "metadata": forged}
        )
        assert sent.status_code == 202, sent.text
    ended = await http.post("/v1/sessions/s/end", headers=crawler, params=APPLIED, json={"user_id": "ann"})
    assert ended.status_code == 202, ended.text
    await http.post(
        "/v1/memories", headers=ann, params=APPLIED, json={"text": "The barrier: all before it is in the shard"}
    )

    async def promoted() -> bool:
        return len(await listed(http, ann)) == 4

    await until_it_is(promoted)  # the promotion is in the log by another producer, before the barrier or after it
    by = {one["memory"].splitlines()[0]: one["source"] for one in await listed(http, ann)}
    assert by["Ann collects stamps from Peru"] == ["token:crawler"]
    assert by["I live in Oslo by the harbour"] == ["token:app"]
    assert by["I love tea"] == ["assistant", "token:crawler", "tool:search", "user"]
    for condition, count in (("tool", 1), ("tool:search", 1), ("token:crawler", 2), ("token", 4), ("user:Bob", 0)):
        assert len(await listed(http, ann, f"source:eq:{condition}")) == count, condition
    assert len(await listed(http, ann, "source:ne:token:crawler")) == 2
    path = f"/v1/memories/{first.json()['event_id']}"
    await http.patch(path, headers=ann, params=APPLIED, json={"metadata": {SOURCES: None}})
    assert (await http.get(path, headers=ann)).json()["source"] == ["token:crawler"]

    url = ("--url", f"http://127.0.0.1:{worker.api.port}")
    secret = ann["Authorization"].removeprefix("Bearer ")
    done = await siltstone(
        "forget", "--user", "ann", "--source", "token:crawler", "--yes", *url, SILTSTONE_TOKEN=secret
    )
    assert done.returncode == 0, done.stderr
    assert "2 memories" in done.stdout
    assert "1 short term memories" in done.stdout
    left = [one["memory"] for one in await listed(http, ann)]
    assert left == ["I live in Oslo by the harbour", "The barrier: all before it is in the shard"]
    assert (await remember(crawler, "again", event_id=first.json()["event_id"])).status_code == 202
    assert len(await listed(http, ann)) == 2
    again = await siltstone(
        "forget", "--user", "ann", "--source", "token:crawler", "--yes", *url, SILTSTONE_TOKEN=secret
    )
    assert (again.returncode, "has no data from source token:crawler" in again.stderr) == (1, True)
    wrong = await http.delete("/v1/memories", headers=ann, params={"source": "nobody"})
    assert wrong.status_code == 422


async def test_what_comes_by_mem0s_client_and_by_mcp_carries_the_token(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Whatever its metadata says: said, kept word by word, remembered with a tool, and edited by either."""
    (_, app), (_, plugin) = await made(settings, "ann", name="app"), await made(settings, "ann", name="plugin")
    for headers in (app, plugin):
        await known(http, headers)
    forged = {SOURCES: ["token:app"], "mood": "fine"}

    async def add(text: str, **more: Any) -> str:
        body = {"messages": [{"role": "user", "content": text}], "user_id": "ann", "metadata": forged, **more}
        done = await http.post("/v3/memories/add/", headers=plugin, json=body)
        assert done.status_code == 200, done.text
        (result,) = done.json()["results"]
        identity: str = result["id"]
        return identity

    async def sources(identity: str) -> list[str]:
        found = await http.get(f"/v1/memories/{identity}", headers=app, params={"user_id": "ann"})
        assert found.status_code == 200, found.text
        given: list[str] = found.json()["source"]
        return given

    kept = await add("My sister is called Ida", infer=False)
    assert await sources(kept) == ["token:plugin"]
    await add("I love green tea", run_id="r1")
    said = await http.post("/v1/search", headers=app, json={"query": "green tea"})
    assert said.json()["results"][0]["source"] == ["token:plugin", "user"]
    refused = await http.post(
        "/v3/memories/add/", headers=plugin, json={"messages": [{"role": "user", "content": "x"}], "source": ["a"]}
    )
    assert refused.status_code == 400
    url = f"http://127.0.0.1:{worker.api.port}"
    async with over_http(url, plugin["Authorization"].removeprefix("Bearer ")) as client:
        noted = await answered(
            client, "remember", text="The bicycle is blue", metadata=forged
        )  # it has no such parameter
        assert await sources(noted["memory_id"]) == ["token:plugin"]
    async with over_http(url, app["Authorization"].removeprefix("Bearer ")) as client:
        await answered(client, "update_memory", memory_id=noted["memory_id"], text="The bicycle is green")
    assert await sources(noted["memory_id"]) == ["token:app", "token:plugin"]
    path = f"/v1/memories/{kept}/"
    edited = await http.put(path, headers=app, json={"metadata": {SOURCES: ["user"], "mood": "well"}})
    assert edited.status_code == 200, edited.text
    assert await sources(kept) == ["token:plugin"]
    edited = await http.put(path, headers=app, json={"text": "My sister is called Ida Marie"})
    assert edited.status_code == 200, edited.text
    assert await sources(kept) == ["token:app", "token:plugin"]


async def test_thousands_of_a_source_are_forgotten_in_one_request(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """The answer says how many, and waits until none can be found; what others wrote stays."""
    _, everybody = await made(settings, "ann", name="app")
    await known(http, everybody)
    for start in range(0, MANY, 500):
        await worker.service.writes.write_all(
            [
                command(Remember, "ann", text=f"Fact {uuid.uuid4()}", sources=["token:crawler"], importance=80)
                for _ in range(start, start + 500)
            ]
        )
    kept = await http.post(
        "/v1/memories", headers=everybody, params=APPLIED | {"timeout": 60}, json={"text": "Ann lives in Oslo"}
    )
    assert kept.json()["applied"], kept.text
    done = await http.delete(
        "/v1/memories", headers=everybody, params={"source": "token:crawler", "wait": "applied", "timeout": 60}
    )
    assert done.status_code == 202, done.text
    assert (done.json()["memories"], done.json()["applied"]) == (MANY, True)
    assert [one["memory"] for one in await listed(http, everybody)] == ["Ann lives in Oslo"]
