"""MCP of a running worker: its own client, over HTTP and through `siltstone mcp`."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import count
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from schemas.settings import AccessSettings, Settings
from schemas.tokens import Scope
from schemas.topics import partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import EmbeddedBroker, ensure_topics
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.support.mcp_client import answered, over_http, over_stdio, read, refused, told
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone
from tests.support.tokens import known, made
from tests.worker.test_moving import PARTITIONS, at_work, settled
from tests.worker.test_replay import settings_of

#: The worker is shared by the tests, each of which has users of its own.
pytestmark = pytest.mark.asyncio(loop_scope="module")

FEW_PARTITIONS = 2
EXPECTED_FAILURES = Path(__file__).parent / "mcp_expected_failures.yaml"
#: With a Node.js of its own: the suite takes a newer one than some distributions have.
CONFORMANCE = (
    *("npx", "--yes", "-p", "node@22.23.3", "-p", "@modelcontextprotocol/conformance@0.1.16"),
    "conformance",
)


@pytest.fixture(scope="module")
def shared_settings(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = settings_of(broker, tmp_path_factory.mktemp("mcp"))
    kafka = settings.kafka.model_copy(update={"partitions": FEW_PARTITIONS})
    return settings.model_copy(update={"kafka": kafka, "access": AccessSettings(tokens=True)})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(shared_settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(shared_settings) as worker:
        await running.until_ready(worker)
        yield worker


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http_of_all(shared: Siltstone) -> AsyncIterator[httpx.AsyncClient]:
    async with api(shared) as client:
        yield client


def url_of(worker: Siltstone) -> str:
    return f"http://127.0.0.1:{worker.api.port}"


async def token(worker: Siltstone, http: httpx.AsyncClient, users: str, *scopes: Scope) -> str:
    """One that the worker knows of."""
    _, headers = await made(worker.settings, users, *scopes)
    await known(http, headers)
    return headers["Authorization"].removeprefix("Bearer ")


def connected(way: str, url: str, secret: str) -> AbstractAsyncContextManager[Client]:
    if way == "stdio":
        return over_stdio(url, secret)
    return over_http(url, secret, mode=way)


@pytest.mark.parametrize("way", ["auto", "legacy", "stdio"])
async def test_what_is_remembered_is_found_shown_corrected_and_forgotten(
    shared: Siltstone, http_of_all: httpx.AsyncClient, way: str
) -> None:
    """Each write can be read when it is answered. `auto` is the protocol without a handshake, `legacy` with one."""
    user = f"ann-{way}"
    secret = await token(shared, http_of_all, user)
    async with connected(way, url_of(shared), secret) as client:
        assert len((await client.list_tools()).tools) == 10
        noted = await answered(client, "remember", text="I live in Oslo", session_id="s1", importance=90)
        assert noted["applied"]
        one = noted["memory_id"]
        (hit,) = (await answered(client, "search_memory", query="where do I live?"))["results"]
        assert (hit["id"], hit["memory"], hit["importance"]) == (one, "I live in Oslo", 90)
        shown = await told(client, "search_memory", query="where do I live?", user_id=user)
        mark = re.search(r"^=== [0-9a-f]{32} ===$", shown, re.MULTILINE)
        assert mark is not None
        assert f"{one}] " in shown.split(mark[0])[1], "what was stored stands between the marks"
        assert "I live in Oslo" in (await answered(client, "get_context", session_id="s2", query="home"))["prompt"]
        listed = await answered(client, "list_memories", limit=1)
        assert ([memory["id"] for memory in listed["memories"]], listed["total"]) == ([one], 1)
        assert (await answered(client, "update_memory", memory_id=one, text="I live in Bergen"))["applied"]
        assert (await answered(client, "get_memory", memory_id=one))["memory"] == "I live in Bergen"
        history = await answered(client, "memory_history", memory_id=one)
        assert [event["event"] for event in history["events"]][:2] == ["created", "edited"]
        assert history["events"][1]["details"]["before"]["text"] == "I live in Oslo"
        gone = await answered(client, "forget_memory", memory_id=one)
        assert (gone["applied"], gone["was_memory"]) == (True, True)
        assert "has no memory" in await refused(client, "get_memory", memory_id=one)
        again = await answered(client, "forget_memory", memory_id=one)
        assert (again["applied"], again["was_memory"]) == (True, False)
        assert await told(client, "search_memory", query="where do I live?") == "No memory answers this."


async def test_a_days_summary_is_shown_and_the_newest_where_none_is_named(
    shared: Siltstone, http_of_all: httpx.AsyncClient
) -> None:
    secret = await token(shared, http_of_all, "sam")
    headers = {"Authorization": f"Bearer {secret}"}
    said = {"role": "user", "content": "I prefer short answers.", "timestamp": "2026-01-02T10:00:00Z"}
    wait = {"wait": "applied", "timeout": "20"}
    async with over_http(url_of(shared), secret) as client:
        assert "no daily summary yet" in await refused(client, "daily_summary")
        written = await http_of_all.post(
            "/v1/messages", json={**said, "session_id": "s"}, headers=headers, params=wait
        )
        assert written.json()["applied"]
        asked = {"date": "2026-01-02"}
        written = await http_of_all.post("/v1/summaries", json=asked, headers=headers, params=wait)
        assert written.json()["applied"], written.text
        newest = await answered(client, "daily_summary")
        assert newest["date"] == "2026-01-02"
        assert "short answers" in newest["markdown"]
        assert newest == await answered(client, "daily_summary", date="2026-01-02")
        assert "no summary of 2026-01-01" in await refused(client, "daily_summary", date="2026-01-01")


async def test_another_users_memory_is_none_and_is_not_changed(
    shared: Siltstone, http_of_all: httpx.AsyncClient
) -> None:
    """Not by its id either, with a token of several users."""
    theirs, mine = await token(shared, http_of_all, "eve"), await token(shared, http_of_all, "bob,cleo")
    async with over_http(url_of(shared), theirs) as client:
        one = (await answered(client, "remember", text="The spare key lies under the blue stone"))["memory_id"]
    async with over_http(url_of(shared), mine) as client:
        assert await refused(client, "get_memory", memory_id=one, user_id="eve") == "there is no such memory"
        for tool, more in (("get_memory", {}), ("memory_history", {}), ("update_memory", {"text": "mine"})):
            assert "has no memory" in await refused(client, tool, memory_id=one, user_id="bob", **more)
        assert not (await answered(client, "forget_memory", memory_id=one, user_id="bob"))["was_memory"]
        assert (await answered(client, "search_memory", query="spare key", user_id="bob"))["results"] == []
    async with over_http(url_of(shared), theirs) as client:
        assert (await answered(client, "get_memory", memory_id=one))["memory"].startswith("The spare key")


async def test_without_a_valid_token_nobody_is_shown_a_tool(
    shared: Siltstone, http_of_all: httpx.AsyncClient
) -> None:
    for headers in ({}, {"Authorization": "Bearer slt_0011223344556677_no"}):
        answer = await http_of_all.post("/mcp", json={}, headers=headers)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


async def test_the_command_ends_with_one_line_where_it_cannot_serve(shared: Siltstone) -> None:
    """No worker, no token, no MCP: standard output stays empty, for it is the protocol's."""
    absent = await siltstone("mcp", "--url", f"http://127.0.0.1:{free_port()}")
    unknown = await siltstone("mcp", "--url", url_of(shared), SILTSTONE_TOKEN="slt_0011223344556677_no")
    for ended, said in ((absent, "siltstone dev"), (unknown, "siltstone token add")):
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
        assert said in ended.stderr
        assert "0011223344556677" not in ended.stderr


async def test_the_command_ends_with_its_input(shared: Siltstone, http_of_all: httpx.AsyncClient) -> None:
    secret = await token(shared, http_of_all, "ann")
    ended = await siltstone("mcp", "--url", url_of(shared), SILTSTONE_TOKEN=secret)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize("way", ["auto", "legacy", "stdio"])
async def test_who_a_user_is_is_a_resource_of_a_token_of_one_user(
    shared: Siltstone, http_of_all: httpx.AsyncClient, way: str
) -> None:
    """It has the text of the tool, and says if there is nothing yet. Ids of any form are addresses."""
    user = f"安妮/ann {way}"
    async with connected(way, url_of(shared), await token(shared, http_of_all, user)) as client:
        (shown,) = (await client.list_resources()).resources
        assert shown.uri == f"siltstone://users/{quote(user, safe='')}/profile"
        assert await read(client, shown.uri) == "Nothing is known of who the user is yet."
        noted = await answered(client, "remember", text="I live in Oslo")
        told_of = await read(client, shown.uri)
        assert "About the user:\n- [" in told_of
        assert "I live in Oslo" in told_of
        assert told_of == await told(client, "get_profile")
        await answered(client, "forget_memory", memory_id=noted["memory_id"])
        assert await read(client, shown.uri) == "Nothing is known of who the user is yet."


@pytest.mark.parametrize("way", ["auto", "stdio"])
async def test_a_token_of_several_users_reads_the_profiles_of_these_alone(
    shared: Siltstone, http_of_all: httpx.AsyncClient, way: str
) -> None:
    secret = await token(shared, http_of_all, f"dan-{way},fay-{way}")
    async with connected(way, url_of(shared), secret) as client:
        await answered(client, "remember", text="I live in Bergen", user_id=f"fay-{way}")
        assert (await client.list_resources()).resources == []
        (form,) = (await client.list_resource_templates()).resource_templates
        assert "I live in Bergen" in await read(client, form.uri_template.replace("{user_id}", f"fay-{way}"))
        assert "Nothing is known" in await read(client, form.uri_template.replace("{user_id}", f"dan-{way}"))
        for uri, said in (
            ("siltstone://users/gil/profile", "there is no such memory"),
            ("siltstone://users/fay/diary", "Unknown resource: siltstone://users/fay/diary"),
        ):
            with pytest.raises(MCPError) as failed:
                await client.read_resource(uri)
            assert (failed.value.code, str(failed.value)) == (INVALID_PARAMS, said)


@pytest.mark.slow
async def test_a_worker_that_goes_is_said_in_the_answers(settings: Settings) -> None:
    """The command stays: the worker may come back, and knows nothing of sessions."""
    async with AsyncExitStack() as stack:
        async with running.started(settings) as worker:
            await running.until_ready(worker)
            url = url_of(worker)
            client = await stack.enter_async_context(over_stdio(url))
            await answered(client, "remember", text="I live in Oslo", user_id="ann")
        gone = await refused(client, "search_memory", query="x", user_id="ann")
        assert gone.startswith(f"no worker answers at {url}")
        for failing in (client.list_resources(), client.read_resource("siltstone://users/ann/profile")):
            with pytest.raises(MCPError, match=f"^no worker answers at {url}"):
                await failing
        http = settings.http.model_copy(update={"port": int(url.rpartition(":")[2])})
        async with running.started(settings.model_copy(update={"http": http})) as worker:
            await running.until_ready(worker)
            assert "Oslo" in await told(client, "search_memory", query="where?", user_id="ann")
            assert "Oslo" in await read(client, "siltstone://users/ann/profile")


@pytest.mark.slow
async def test_a_tool_about_another_workers_user_is_answered_by_that_worker(
    settings: Settings, tmp_path: Path
) -> None:
    settings = side_by_side(settings)
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS})
    settings = settings.model_copy(update={"kafka": kafka})
    await ensure_topics(kafka)
    async with at_work(settings, tmp_path / "one") as first, at_work(settings, tmp_path / "two") as second:
        _, theirs = await settled(first, second)
        user = next(f"user-{n}" for n in count() if partition_of(f"user-{n}", PARTITIONS) in theirs)
        async with over_http(url_of(first)) as client:
            one = await answered(client, "remember", text="I live in Oslo", user_id=user)
            assert one["applied"]
            (hit,) = (await answered(client, "search_memory", query="where?", user_id=user))["results"]
            assert "Oslo" in await read(client, f"siltstone://users/{user}/profile")
        (memory,) = await second.service.of_user(user)
        assert str(memory.id) == one["memory_id"] == hit["id"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npx") is None, reason="npx, of Node.js, is not installed")
async def test_the_conformance_suite_finds_what_is_expected_and_nothing_else(settings: Settings) -> None:
    """All of its scenarios pass but those in the file, where the reasons stand."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        asked = ["--url", f"{url_of(worker)}/mcp", "--expected-failures", str(EXPECTED_FAILURES)]
        process = await asyncio.create_subprocess_exec(
            *CONFORMANCE, "server", *asked, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-4000:]
    assert b"tools-list: 1 passed" in said
    assert b"resources-list: 1 passed" in said
