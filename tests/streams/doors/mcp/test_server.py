"""Whom MCP shows which tools and resources, and what it refuses: by its own client, of a worker that does not run."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import httpx2
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from schemas.settings import AccessSettings, HttpSettings, Settings
from schemas.tokens import Scope, TokenRecord, issue
from streams.access.admission import Admission
from streams.access.known_tokens import KnownTokens
from streams.app import Siltstone
from streams.doors.application import build
from streams.doors.http.policies import TOOLS
from tests.support.late_api import api_of
from tests.support.mcp_client import over_http, refused

ROOT = Path(__file__).parents[4]
WORKER = "http://127.0.0.1:8000"
READING = {name for name, scope in TOOLS.items() if scope is Scope.READ}
NO_ID = str(uuid.UUID(int=0))


@asynccontextmanager
async def asking(api: FastAPI, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        api.router.lifespan_context(api),
        over_http(WORKER, token, mode=mode, transport=httpx2.ASGITransport(api)) as client,
    ):
        yield client


def guarded(settings: Settings, users: str, *scopes: Scope) -> tuple[FastAPI, str]:
    """An API that asks for tokens, and the secret of one."""
    made, tokens = issue(), KnownTokens(lambda: 0)
    tokens.take(
        TokenRecord(
            id=made.id, name="t", sha256=made.sha256, users=tuple(users.split(",")), scopes=scopes, created_at=0
        )
    )
    tokens.complete = True
    worker = Siltstone(settings.model_copy(update={"access": AccessSettings(tokens=True)}))
    return build(worker.service, worker.forwarding, Admission(tokens)), made.secret


async def test_every_tool_has_a_policy_and_says_whether_it_only_reads(settings: Settings) -> None:
    async with asking(api_of(settings)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == TOOLS.keys()
    assert len(tools) == 10
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations is not None}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == READING
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {"update_memory", "forget_memory"}
    assert all(tool.description and tool.title and tool.output_schema for tool in tools.values())
    kinds = {
        kind["type"] for tool in tools.values() for kind in tool.input_schema["properties"].values() if "type" in kind
    }
    assert kinds == {"string", "integer", "boolean"}, "parameters are flat"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_that_reads_is_shown_what_reads_and_refused_what_writes(settings: Settings, mode: str) -> None:
    api, secret = guarded(settings, "ann", Scope.READ)
    async with asking(api, secret, mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        refusal = "this requires a token with the scope write"
        assert await refused(client, "remember", text="I live in Oslo") == refusal
        assert await refused(client, "forget_memory", memory_id=NO_ID) == refusal


@pytest.mark.parametrize(("users", "named"), [("ann", False), ("ann,bob", True), ("*", True)])
async def test_the_user_is_a_parameter_where_the_token_does_not_say_it(
    settings: Settings, users: str, named: bool
) -> None:
    api, secret = guarded(settings, users, *Scope)
    async with asking(api, secret) as client:
        schemas = [tool.input_schema for tool in (await client.list_tools()).tools]
        for schema in schemas:
            assert ("user_id" in schema["properties"]) == named
            assert ("user_id" in schema["required"]) == named
        if named:
            assert await refused(client, "list_memories") == "user_id: is missing"


@pytest.mark.parametrize("users", ["ann", "ann,bob"])
async def test_another_users_memories_are_none(settings: Settings, users: str) -> None:
    """Whether there is such a user, or such a memory, nobody is told."""
    api, secret = guarded(settings, users, *Scope)
    async with asking(api, secret) as client:
        given = {"text": "no", "query": "no", "session_id": "s", "memory_id": NO_ID}
        for tool in (await client.list_tools()).tools:
            arguments = {name: given[name] for name in tool.input_schema["required"] if name in given}
            assert await refused(client, tool.name, **arguments, user_id="cleo") == "there is no such memory"


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("remember", {}, "text: is missing"),
        ("remember", {"text": None}, "text: is missing"),
        ("remember", {"text": ""}, "text: string should have at least 1 character"),
        ("remember", {"text": 7}, "text: should be a valid string"),
        ("remember", {"text": "a", "importance": 101}, "importance: should be less than or equal to 100"),
        ("remember", {"text": "a" * 40_000}, "text: must be at most 32768 bytes of UTF-8"),
        ("search_memory", {"query": ""}, "query: string should have at least 1 character"),
        ("search_memory", {"query": "a", "top_k": "many"}, "top_k: should be a valid integer"),
        ("search_memory", {"query": "a", "top_k": 0}, "top_k: should be greater than or equal to 1"),
        ("search_memory", {"query": "a", "user_id": ["ann"]}, "user_id: must be text"),
        ("search_memory", {"query": "a", "user_id": "a" * 257}, "user_id: string should have at most 256 characters"),
        ("get_memory", {"memory_id": "../stats"}, "memory_id: must be a UUID"),
        ("daily_summary", {"date": "yesterday"}, "date: should be a valid date"),
    ],
)
async def test_what_cannot_be_used_is_refused_in_a_line_that_names_it(
    settings: Settings, tool: str, arguments: dict[str, object], line: str
) -> None:
    async with asking(api_of(settings)) as client:
        assert (await refused(client, tool, **{"user_id": "ann", **arguments})).startswith(line)


@pytest.mark.parametrize(
    ("tool", "needed", "optional"),
    [
        ("search_memory", {"query": "a"}, ("top_k", "include_cold", "include_all")),
        ("remember", {"text": "a"}, ("importance", "session_id")),
        ("list_memories", {}, ("limit", "after", "include_cold", "include_all")),
        ("get_context", {"session_id": "s"}, ("query", "profile")),
        ("get_profile", {}, ("reference_date",)),
        ("daily_summary", {}, ("date",)),
    ],
)
async def test_empty_optional_parameters_and_unknown_ones_are_not_given(
    settings: Settings, tool: str, needed: dict[str, str], optional: tuple[str, ...]
) -> None:
    """Workflow tools add fields of their own to a call, and send a form's empty fields as they are."""
    async with asking(api_of(settings)) as client:
        plain = await refused(client, tool, user_id="ann", **needed)
        assert plain == "shard 0: its partition is on another worker, or moving; ask again"
        for empty in ("", None):
            filled = dict.fromkeys(optional, empty) | {"toolCallId": "call_1", "sessionId": empty}
            assert await refused(client, tool, user_id="ann", **needed, **filled) == plain


async def test_a_tool_that_there_is_not_is_an_error_of_the_protocol(settings: Settings) -> None:
    async with asking(api_of(settings)) as client:
        with pytest.raises(MCPError, match="Unknown tool: drop_tables"):
            await client.call_tool("drop_tables", {})


@pytest.mark.parametrize("user", ["ann", "a/b", "two words", "安妮", "..", "/etc", "50%", "%2F", "?x=1#y"])
async def test_a_token_of_one_user_is_shown_that_users_profile(settings: Settings, user: str) -> None:
    """Its address has the user's id percent-encoded, and can be read as it is listed."""
    api, secret = guarded(settings, user, Scope.READ)
    async with asking(api, secret) as client:
        (shown,) = (await client.list_resources()).resources
        assert shown.uri == f"siltstone://users/{user if user == '..' else quote(user, safe='')}/profile"
        assert (shown.mime_type, shown.title) == ("text/plain", "Who the user is")
        with pytest.raises(MCPError, match=r"^shard \d: its partition is on another worker, or moving; ask again"):
            await client.read_resource(shown.uri)


@pytest.mark.parametrize("users", ["ann,bob", "*"])
async def test_of_several_users_only_the_form_of_the_address_is_shown(settings: Settings, users: str) -> None:
    api, secret = guarded(settings, users, Scope.READ)
    async with asking(api, secret) as client:
        assert (await client.list_resources()).resources == []
        (form,) = (await client.list_resource_templates()).resource_templates
        assert form.uri_template == "siltstone://users/{user_id}/profile"


@pytest.mark.parametrize(
    ("uri", "code", "message"),
    [
        ("siltstone://users/cleo/profile", INVALID_PARAMS, "there is no such memory"),
        ("siltstone://users//profile", INVALID_PARAMS, "there is no such memory"),
        ("siltstone://users/ann/profile", INTERNAL_ERROR, "shard 0: its partition is on another worker, or moving;"),
        ("siltstone://users/ann/memories", INVALID_PARAMS, "Unknown resource: siltstone://users/ann/memories"),
        ("siltstone://users/ann/x/profile", INVALID_PARAMS, "Unknown resource: siltstone://users/ann/x/profile"),
        ("file:///etc/passwd", INVALID_PARAMS, "Unknown resource: file:///etc/passwd"),
    ],
)
async def test_a_resource_that_cannot_be_read_is_an_error_of_the_protocol(
    settings: Settings, uri: str, code: int, message: str
) -> None:
    """The words are those of the tool `get_profile`."""
    api, secret = guarded(settings, "ann", *Scope)
    async with asking(api, secret) as client:
        with pytest.raises(MCPError) as failed:
            await client.read_resource(uri)
    assert failed.value.code == code
    assert str(failed.value).startswith(message)


async def test_an_address_without_a_usable_id_is_refused_in_a_line_that_names_it(settings: Settings) -> None:
    async with asking(api_of(settings)) as client:
        for user, line in (("", "at least 1 character"), ("a" * 257, "at most 256 characters")):
            with pytest.raises(MCPError, match=f"^user_id: string should have {line}"):
                await client.read_resource(f"siltstone://users/{user}/profile")


async def test_a_token_that_does_not_read_is_shown_no_profile(settings: Settings) -> None:
    api, secret = guarded(settings, "ann", Scope.WRITE)
    async with asking(api, secret) as client:
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        with pytest.raises(MCPError, match=r"^this requires a token with the scope read$"):
            await client.read_resource("siltstone://users/ann/profile")


async def test_what_nobody_foresaw_is_told_without_its_text(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker's log has where it happened, and its text neither."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("slt_secret")

    worker = Siltstone(settings)
    monkeypatch.setattr(worker.service, "search", broken)
    async with asking(build(worker.service, worker.forwarding)) as client:
        told = await refused(client, "search_memory", query="a", user_id="ann")
    assert told == "ZeroDivisionError: the worker's log says more"
    assert "POST /v1/search: ZeroDivisionError < " in caplog.text
    assert "slt_secret" not in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1:8000"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "memory.example"}, 200),
        ({"Host": "memory.example:443"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "https://memory.example"}, 200),
        ({"Origin": "https://evil.example"}, 403),
    ],
)
async def test_other_hosts_and_their_pages_are_turned_away(
    settings: Settings, headers: dict[str, str], status: int
) -> None:
    """One may be allowed (`http.allowed_hosts`)."""
    http = settings.http.model_copy(update={"allowed_hosts": ("memory.example",)})
    api = api_of(settings.model_copy(update={"http": http}))
    async with api.router.lifespan_context(api), raw(api) as asked:
        assert (await asked.post("/mcp", json=PING, headers=headers)).status_code == status


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def raw(api: FastAPI) -> httpx.AsyncClient:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url=WORKER, headers=headers)


async def test_there_is_no_stream_to_listen_to_and_no_session_to_end(settings: Settings) -> None:
    api = api_of(settings)
    async with api.router.lifespan_context(api), raw(api) as asked:
        answers = [await asked.get("/mcp"), await asked.delete("/mcp")]
        assert {(one.status_code, one.headers["Allow"]) for one in answers} == {(405, "POST")}
        assert "mcp-session-id" not in (await asked.post("/mcp", json=PING)).headers


async def test_it_answers_while_the_api_lives_and_begins_once(settings: Settings) -> None:
    """What it keeps running ends with the API; an application that is restarted has its own."""
    api = api_of(settings)
    async with raw(api) as asked:
        for _ in range(2):
            async with api.router.lifespan_context(api):
                assert (await asked.post("/mcp", json=PING)).status_code == 200
            assert (await asked.post("/mcp", json=PING)).status_code == 500


async def test_who_does_not_want_it_has_no_address_for_it(settings: Settings) -> None:
    api = api_of(settings.model_copy(update={"http": HttpSettings(mcp=False)}))
    async with api.router.lifespan_context(api), raw(api) as asked:
        assert (await asked.post("/mcp", json=PING)).status_code == 404


def test_no_command_imports_mcp_before_it_serves() -> None:
    """It takes half a second."""
    program = (
        "import pkgutil, sys; from streams.doors.cli import COMMANDS\n"
        "for place in COMMANDS.values(): pkgutil.resolve_name(f'streams.doors.cli.{place}')\n"
        "sys.exit('mcp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT).returncode == 0
