"""Archive and cleanup of a running worker, over HTTP and on the command line, on the real broker and shards."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiokafka
import httpx
import orjson
import pytest
from click.testing import CliRunner

from schemas.events import Link, LongTermEvent, Pin, Remember
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory
from schemas.settings import CleanupSettings, Settings
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.cli import cli, running
from streams.runtime.clock import EventClock
from streams.telemetry.metrics import labelled
from tables.memories.shard import Shard
from tests.support.api import api
from tests.support.making import START, some_id
from tests.support.quick_commands import siltstone
from tests.support.waiting import until, until_it_is

#: What nobody has accessed since START has long been deprecated, and is due.
LATE = START + 300 * DAY_MS
KEY, TEA, BIKE = "The key lies under the stone.", "She drinks green tea.", "The blue bicycle is sold."


def with_cleanup(settings: Settings, **cleanup: Any) -> Settings:
    lifecycle = settings.lifecycle.model_copy(update={"cleanup": CleanupSettings(**cleanup)})
    return settings.model_copy(update={"lifecycle": lifecycle})


async def tell(worker: Siltstone, *events: LongTermEvent) -> None:
    """Into the log, in this order, and until they have had their effect."""
    done = worker.hot.processed(worker.topics.long_term)
    for event in events:
        value = event.model_dump_json().encode()
        await worker.hot.outbox.send(worker.topics.long_term, value, key=key_of(event.user_id))
    await until(lambda: worker.hot.processed(worker.topics.long_term) >= done + len(events), alive=worker)


async def keep(worker: Siltstone, *texts: str, user: str = "ann", **fields: Any) -> list[str]:
    """The ids of new memories of START."""
    events = [
        Remember(event_id=some_id(), user_id=user, timestamp=START, text=text, importance=75, **fields)
        for text in texts
    ]
    await tell(worker, *events)
    return [str(event.event_id) for event in events]


async def held(worker: Siltstone, user: str = "ann") -> set[str]:
    memories: tuple[Memory, ...] = await worker.shards.call(
        worker.context.partition_of(user), Shard.memories_of, user
    )
    return {str(memory.id) for memory in memories}


async def archived(http: httpx.AsyncClient, user: str = "ann", **params: Any) -> dict[str, str]:
    """Texts by id."""
    answer = (await http.get("/v1/archive", params={"user_id": user, **params})).raise_for_status().json()
    return {memory["id"]: memory["memory"] for memory in answer["memories"]}


def go_to(worker: Siltstone, moment: int) -> None:
    """The worker's event clock is at this moment (epoch ms), which may lie ahead of the system's."""
    assert isinstance(worker.clock, EventClock)
    worker.clock.go_to(moment)


async def until_archived(http: httpx.AsyncClient, *ids: str, user: str = "ann") -> None:
    async def so() -> bool:
        return set(await archived(http, user)) == set(ids)

    await until_it_is(so)


async def hits(http: httpx.AsyncClient, path: str, query: str, user: str = "ann") -> list[str]:
    body = {"user_id": user, "query": query} | ({} if "archive" in path else {"include_all": True})
    return [hit["memory"] for hit in (await http.post(path, json=body)).raise_for_status().json()["results"]]


async def moves(worker: Siltstone, count: int) -> list[tuple[str, str, str, str]]:
    """The first transitions on their topic: memory, from, to, reason."""
    consumer = aiokafka.AIOKafkaConsumer(
        worker.topics.transitions,
        bootstrap_servers=worker.settings.kafka.bootstrap_servers,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        found: list[tuple[str, str, str, str]] = []
        while len(found) < count:
            record = orjson.loads((await asyncio.wait_for(consumer.getone(), 20)).value)
            found.append((record["memory_id"], record["from"], record["to"], record["reason"]))
        return found
    finally:
        await consumer.stop()


async def test_what_is_archived_is_found_by_the_archive_alone(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Listed with when and why, with filters and page by page; being found there is no access."""
    key, tea, bike = await keep(worker, KEY, TEA, BIKE, metadata={"tags": ["home"]})
    answer = await http.post("/v1/archive", json={"user_id": "ann", "memory_ids": [key, tea, key]})
    assert (answer.status_code, answer.json()["archiving"]) == (202, 2)
    await until_archived(http, key, tea)
    assert await held(worker) == {bike}
    assert await hits(http, "/v1/search", "Where is the key?") == [BIKE]
    assert (await hits(http, "/v1/archive/search", "Where is the key?"))[0] == KEY
    shown = (await http.get("/v1/archive", params={"user_id": "ann", "limit": 1})).json()
    (first,) = shown["memories"]
    assert (shown["total"], shown["next"], first["reason"]) == (2, first["id"], "manual")
    assert (first["access_count"], first["archived_at"]) == (0, "2026-01-01T00:00:00.000Z")
    rest = await archived(http, after=first["id"])
    assert set(rest) == {key, tea} - {first["id"]}
    assert await archived(http, filter=["tags:contains:home", "created_at:lt:2026-01-02"]) == {key: KEY, tea: TEA}
    assert await archived(http, filter="importance:gt:80") == {}
    assert (await http.get("/v1/archive", params={"user_id": "ann", "filter": "x"})).status_code == 422


@pytest.mark.slow
async def test_what_is_restored_is_as_it_was_and_just_accessed(worker: Siltstone, http: httpx.AsyncClient) -> None:
    (key,) = await keep(worker, KEY)
    await http.post("/v1/archive", json={"user_id": "ann", "memory_id": key})
    await until_archived(http, key)
    go_to(worker, LATE)
    assert (await http.post(f"/v1/archive/{key}/restore", json={"user_id": "ann"})).status_code == 202
    await until_archived(http)
    assert await hits(http, "/v1/search", "Where is the key?") == [KEY]
    shown = (await http.get(f"/v1/memories/{key}", params={"user_id": "ann"})).json()
    assert (shown["state"], shown["last_accessed"]) == ("active", "2026-10-28T00:00:00.000Z")
    assert (await http.post(f"/v1/archive/{key}/restore", json={"user_id": "ann"})).status_code == 404
    await worker.jobs.lifecycle.recompute()
    assert await moves(worker, 2) == [(key, "active", "archived", "manual"), (key, "archived", "active", "restore")]


@pytest.mark.slow
async def test_what_is_removed_is_gone_but_for_the_audit_trail(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """From the archive alone: what lies among the memories is not removed."""
    (key,) = await keep(worker, KEY)
    assert (await http.delete(f"/v1/archive/{key}", params={"user_id": "ann"})).status_code == 404
    await http.post("/v1/archive", json={"user_id": "ann", "memory_id": key})
    await until_archived(http, key)
    assert (await http.delete(f"/v1/archive/{key}", params={"user_id": "ann"})).status_code == 202
    await until_archived(http)
    assert await held(worker) == set()
    await worker.jobs.lifecycle.recompute()
    assert await moves(worker, 2) == [(key, "active", "archived", "manual"), (key, "archived", "removed", "manual")]
    changes = (await http.get("/v1/stats/transitions", params={"days": 1})).json()["rates"]
    assert {(change["from_state"], change["to_state"]) for change in changes} == {
        ("active", "archived"),
        ("archived", "removed"),
    }


@pytest.mark.slow
async def test_what_is_another_users_is_not_there(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Neither to be archived nor, once it is, to be seen, found, restored or removed."""
    key, tea = await keep(worker, KEY, TEA)
    (own,) = await keep(worker, "Bob's own thing.", user="bob")
    for ids in ({"memory_id": key}, {"memory_ids": [own, key]}):
        assert (await http.post("/v1/archive", json={"user_id": "bob", **ids})).status_code == 404
    await http.post("/v1/archive", json={"user_id": "ann", "memory_id": key})
    await until_archived(http, key)
    assert await archived(http, "bob") == {}
    assert await hits(http, "/v1/archive/search", "Where is the key?", "bob") == []
    assert (await http.post(f"/v1/archive/{key}/restore", json={"user_id": "bob"})).status_code == 404
    assert (await http.delete(f"/v1/archive/{key}", params={"user_id": "bob"})).status_code == 404
    assert (await held(worker), await held(worker, "bob")) == ({tea}, {own})
    wrong_bodies: list[dict[str, Any]] = [{}, {"memory_id": key, "memory_ids": [tea]}, {"memory_ids": []}]
    for wrong in wrong_bodies:
        assert (await http.post("/v1/archive", json={"user_id": "ann", **wrong})).status_code == 422


@pytest.mark.slow
async def test_a_user_archives_all_that_is_deprecated(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """But for what is pinned, active or cold, and what is others'."""
    key, tea, bike = await keep(worker, KEY, TEA, BIKE)
    await keep(worker, KEY, user="bob")
    go_to(worker, LATE)
    await tell(worker, Pin(event_id=some_id(), user_id="ann", timestamp=LATE, memory_id=uuid.UUID(tea)))
    new = Remember(event_id=some_id(), user_id="ann", timestamp=LATE, text="It snows today.", importance=70)
    await tell(worker, new)
    answer = await http.post("/v1/archive/deprecated", json={"user_id": "ann"})
    assert (answer.status_code, answer.json()["archiving"]) == (202, 2)
    await until_archived(http, key, bike)
    assert await held(worker) == {tea, str(new.event_id)}
    assert await archived(http, "bob") == {}
    assert (await http.post("/v1/archive/deprecated", json={"user_id": "ann"})).json()["archiving"] == 0


async def test_what_is_due_is_archived_and_later_removed_by_itself(settings: Settings) -> None:
    """By itself, after a recompute: what is due is archived, later removed; each move is in the audit trail."""
    settings = with_cleanup(settings, enabled=True, whitelist={"tags": ["family"]}, retention_days=30)
    lifecycle = settings.lifecycle.model_copy(update={"recompute_seconds": 0.2})
    async with running.started(settings.model_copy(update={"lifecycle": lifecycle})) as worker, api(worker) as http:
        await running.until_ready(worker)
        key, tea, bike = await keep(worker, KEY, TEA, BIKE)
        (mother,) = await keep(worker, "Her mother is called Ida.", metadata={"tags": ["family"]})
        link = {"source_id": uuid.UUID(tea), "target_id": uuid.UUID(bike)}
        await tell(worker, Link(event_id=some_id(), user_id="ann", timestamp=START, **link))
        assert (await http.get("/v1/archive/cleanup")).json()["archive"] == 0
        (pinned,) = await keep(worker, "Bob is called Bob.", user="bob")
        await tell(worker, Pin(event_id=some_id(), user_id="bob", timestamp=START, memory_id=uuid.UUID(pinned)))
        go_to(worker, LATE)
        await until_archived(http, key)
        dry = (await http.get("/v1/archive/cleanup")).json()
        assert (dry["archive"], dry["remove"], dry["asked"]) == (0, 0, 0)
        assert {one["memory_id"]: one["exemption"] for one in dry["candidates"]} == {
            tea: "link",
            bike: "link",
            mother: "whitelist",
        }
        assert dry["exempt"] == {"link": 2, "whitelist": 1}
        assert (await held(worker), await held(worker, "bob")) == ({tea, bike, mother}, {pinned})
        assert (await http.get("/v1/archive", params={"user_id": "ann"})).json()["memories"][0]["reason"] == "cleanup"
        go_to(worker, LATE + 31 * DAY_MS)
        await until_archived(http)
        of_key = [move for move in await moves(worker, 6) if move[0] == key]
        assert of_key == [
            (key, "active", "deprecated", "decay"),
            (key, "deprecated", "archived", "cleanup"),
            (key, "archived", "removed", "retention"),
        ]
        assert labelled(worker.metrics.cleanup) == {("archived",): 1, ("removed",): 1}


async def test_cleanup_decides_as_of_the_recompute_before_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the clock moves in between, a memory would be archived whose state is still active."""
    async with running.started(with_cleanup(settings, enabled=True)) as worker, api(worker) as http:
        await running.until_ready(worker)
        (key,) = await keep(worker, KEY)
        recompute = worker.jobs.lifecycle.recompute

        async def then_it_is_late() -> int:
            now = await recompute()
            go_to(worker, LATE)
            return now

        monkeypatch.setattr(worker.jobs.lifecycle, "recompute", then_it_is_late)
        await worker.jobs._age()
        (tea,) = await keep(worker, TEA)  # behind what was asked for, so that it has had its effect
        assert await archived(http) == {}
        await worker.jobs._age()
        await until_archived(http, key, tea)
        await recompute()
        assert [move for move in await moves(worker, 4) if move[0] == key] == [
            (key, "active", "deprecated", "decay"),
            (key, "deprecated", "archived", "cleanup"),
        ]


async def test_cleanup_does_what_the_dry_run_said(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Where it is not enabled: for one user, then for all; what it does is what the dry run said."""
    ids = await keep(worker, KEY, TEA, BIKE)
    (bobs,) = await keep(worker, KEY, user="bob")
    go_to(worker, LATE)
    await worker.jobs.cleanup.tick(LATE)
    dry = (await http.get("/v1/archive/cleanup", params={"user_id": "bob"})).json()
    (one,) = dry["candidates"]
    assert (one["verdict"], one["cause"], one["since"][:10]) == ("archive", "deprecated", "2026-03-05")
    assert (dry["at"], dry["enabled"], dry["archive"]) == ("2026-10-28T00:00:00.000Z", False, 1)
    assert await held(worker) == set(ids)
    ordered = (await http.post("/v1/archive/cleanup", json={"user_id": "bob"})).json()
    assert ordered == {**dry, "asked": 1}
    await until_archived(http, bobs, user="bob")
    assert await held(worker) == set(ids)
    dry = (await http.get("/v1/archive/cleanup", params={"limit": 2})).json()
    assert (dry["archive"], len(dry["candidates"])) == (3, 2)
    ordered = (await http.post("/v1/archive/cleanup", json={"limit": 2})).json()
    assert ordered == {**dry, "asked": 3}
    await until_archived(http, *ids)


@pytest.mark.slow
async def test_while_it_is_paused_nothing_is_cleaned(settings: Settings) -> None:
    """Not even when it is told to; looking is allowed, and by hand anything goes."""
    settings = with_cleanup(settings, enabled=True, paused=True)
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        (key,) = await keep(worker, KEY)
        go_to(worker, LATE)
        await worker.jobs.cleanup.tick(LATE)
        refused = await http.post("/v1/archive/cleanup", json={})
        assert (refused.status_code, "lifecycle.cleanup.paused" in refused.json()["detail"]) == (409, True)
        dry = (await http.get("/v1/archive/cleanup")).json()
        assert (dry["paused"], dry["archive"], labelled(worker.metrics.cleanup)) == (True, 1, {})
        url = f"http://127.0.0.1:{worker.api.port}"
        refused_here = await siltstone("archive", "cleanup", "--url", url)
        assert (refused_here.returncode, len(refused_here.stderr.splitlines())) == (1, 1)
        assert "cleanup is paused" in refused_here.stderr
        assert "paused" in (await siltstone("archive", "cleanup", "--dry-run", "--url", url)).stdout
        await http.post("/v1/archive/deprecated", json={"user_id": "ann"})
        await until_archived(http, key)


@pytest.mark.slow
async def test_the_log_counts_what_became_deprecated(worker: Siltstone, caplog: pytest.LogCaptureFixture) -> None:
    """Which ones, at DEBUG; never a text."""
    caplog.set_level("DEBUG", "streams.memory.lifecycle")
    key, _ = await keep(worker, KEY, TEA)
    go_to(worker, LATE)
    await worker.jobs.lifecycle.recompute()
    await worker.jobs.lifecycle.recompute()
    lines = [(record.levelname, record.message) for record in caplog.records]
    shard = f"shard {worker.context.partition_of('ann')}"
    assert lines[0] == ("INFO", f"{shard}: 2 memories became deprecated")
    assert (lines[1][0], key in lines[1][1], len(lines)) == ("DEBUG", True, 2)


@pytest.mark.slow
async def test_the_commands(worker: Siltstone, http: httpx.AsyncClient) -> None:
    """Each does what its help says, as a table or as one JSON object."""
    url = f"http://127.0.0.1:{worker.api.port}"
    user = ("--user", "ann", "--url", url)

    async def run(*words: str) -> str:
        result = await siltstone("archive", *words, COLUMNS="80")
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    key, tea, bike = await keep(worker, KEY, TEA, BIKE)
    assert "has no such memories" in await run("list", *user)
    assert "No archived memory answers" in await run("search", "key", *user)
    assert orjson.loads(await run("add", key, tea, *user, "--json"))["archiving"] == 2
    await until_archived(http, key, tea)
    shown = await run("list", "--limit", "1", *user)
    assert "2 archived memories of ann" in shown
    assert "--after" in shown
    shown = await run("list", "--filter", "importance:gt:70", *user)
    assert all(text in shown for text in (KEY, key, TEA, tea))
    found = await run("search", "Where is the key?", "--explain", *user)
    assert KEY in found
    assert "BM25" in found
    assert orjson.loads(await run("search", "Where is the key?", "--json", *user))["results"][0]["id"] == key
    assert await run("restore", key, *user) == "restoring 1 memories\n"
    await until_archived(http, tea)
    assert orjson.loads(await run("remove", tea, *user, "--json"))["removing"] == 1
    await until_archived(http)
    go_to(worker, LATE)
    dry = await run("cleanup", "--dry-run", "--url", url)
    assert "is archived" in dry
    assert "2026-03-05" in dry
    assert "2 memories would be archived, 0 would be removed" in dry
    assert "does not run by itself" in dry
    assert orjson.loads(await run("cleanup", "--dry-run", "--json", *user))["archive"] == 2
    assert await held(worker) == {key, bike}
    assert "archiving 1 memories" in await run("add", bike, *user)
    await until_archived(http, bike)
    assert "1 memories are archived" in await run("cleanup", *user)
    await until_archived(http, key, bike)
    assert await run("add", "--deprecated", *user) == "archiving 0 memories\n"


@pytest.mark.parametrize(
    "words",
    [
        ["add", "--user", "ann"],
        ["add", "--user", "ann", "--deprecated", str(uuid.uuid4())],
        ["add", "--user", "ann", "no-id"],
        ["restore", "--user", "ann"],
        ["list"],
    ],
)
def test_wrong_usage_is_said(words: list[str]) -> None:
    result = CliRunner().invoke(cli, ["archive", *words])
    assert (result.exit_code, "Error: " in result.output) == (2, True)


@pytest.mark.slow
async def test_an_id_that_is_not_there_is_one_clear_line(worker: Siltstone) -> None:
    words = ["archive", "restore", str(uuid.uuid4()), "--user", "ann", "--url", f"http://127.0.0.1:{worker.api.port}"]
    result = await siltstone(*words)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert "in the archive" in result.stderr
