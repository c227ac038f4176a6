"""Tokens for a running worker, made and revoked by the command, over real HTTP and the real topic."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import httpx
import orjson
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

from schemas.errors import TokenRefused
from schemas.settings import AccessSettings, Settings
from schemas.times import now_ms
from schemas.tokens import Scope, TokenRecord
from schemas.topic_specs import tokens_spec
from streams.access.known_tokens import KnownTokens
from streams.access.token_log import TokenFollower, all_tokens, write_token
from streams.app import Siltstone
from streams.doors.http.policies import POLICIES, About
from streams.doors.mcp.endpoint import McpEndpoint
from tests.support.quick_commands import siltstone
from tests.support.tokens import bearing, known, made
from tests.support.waiting import until, until_it_is

pytestmark = pytest.mark.slow

#: What is not written in JSON is refused before anybody asks for a token.
JSON = {"Content-Type": "application/json"}
#: No operations of the HTTP API: MCP describes them in its own way.
MCP = {f"{method} {McpEndpoint.path}" for method in McpEndpoint.methods}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"access": AccessSettings(tokens=True)})


async def test_every_route_has_a_policy_and_none_answers_without_a_token(
    worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """A route that nobody has thought of is no way in."""
    described = (await http.get("/openapi.json")).json()["paths"]
    templates = {template: re.sub(r":\w+\}", "}", template) for template in POLICIES}
    policies = {templates[name]: policy for name, policy in POLICIES.items()}
    routes = {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}
    assert routes <= policies.keys(), "streams/doors/http/policies.py lacks a route"
    beside = {
        name for name, one in policies.items() if one.about is About.PUBLIC or name.split()[1].startswith("/ui")
    }
    undescribed = policies.keys() - routes
    assert undescribed == MCP | beside, "tests/streams/doors/http/test_policies.py has those of the dashboard"
    for route in sorted(routes | MCP):
        method, _, path = route.partition(" ")
        path = re.sub(r"\{memory_id\}", str(uuid.uuid4()), path)
        path = path.replace("{partition}", "0").replace("{date}", "2026-01-01").replace("{session_id}", "s")
        answer = await http.request(method, path, headers=JSON, params={"user_id": "ann"})
        assert (answer.status_code == 401) != (policies[route].about is About.PROBE), route


async def test_a_token_opens_its_users_memories_and_no_others(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    """Said, found, and found by nobody else; the user may be left out, and metadata names nobody."""
    _, ann = await made(settings, "ann")
    _, both = await made(settings, "bob,cleo")
    _, reader = await made(settings, "ann", Scope.READ)
    _, everybody = await made(settings, "*")
    for headers in (ann, both, reader, everybody):
        await known(http, headers)
    text = {"text": "I live in Oslo", "metadata": {"user_id": "bob"}}
    written = await http.post("/v1/memories", headers=ann, json=text)
    assert written.status_code == 202
    path = f"/v1/memories/{written.json()['event_id']}"

    async def there() -> bool:
        return (await http.get(path, headers=ann)).status_code == 200

    await until_it_is(there)
    found = (await http.post("/v1/search", headers=ann, json={"query": "Oslo"})).json()["results"]
    assert [hit["memory"] for hit in found] == ["I live in Oslo"]
    assert (await http.get("/v1/memories", headers=everybody, params={"user_id": "ann"})).json()["total"] == 1

    others = [
        await http.get(path, headers=both, params={"user_id": "ann"}),
        await http.get("/v1/memories", headers=both, params={"user_id": "ann"}),
        await http.get("/v1/memories", headers=both, params=[("user_id", "ann"), ("user_id", "bob")]),
        await http.get("/v1/memories", headers=both, params={"user_id": "nobody-at-all"}),
        await http.post("/v1/search", headers=both, json={"query": "Oslo", "userId": "ann", "user_id": "bob"}),
        await http.delete(path, headers=both, params={"user_id": "ann"}),
        await http.post("/v1/memories", headers=both, json={"user_id": "ann", "text": "no"}),
    ]
    assert {(answer.status_code, answer.text) for answer in others} == {(404, '{"detail":"there is no such memory"}')}

    assert (await http.post("/v1/search", headers=both, json={"query": "Oslo"})).status_code == 422
    twice = b'{"query": "Oslo", "user_id": "ann", "user_id": "bob"}'
    answer = await http.post("/v1/search", headers={**both, **JSON}, content=twice)
    assert answer.status_code in (200, 422)
    assert b"I live" not in answer.content
    assert (await http.delete(path, headers=reader)).status_code == 403
    for way in ("/v1/stats/states", "/v1/checkpoints", "/v1/reembed"):
        assert (await http.get(way, headers=ann)).status_code == 403
        assert (await http.get(way, headers=everybody)).status_code == 200
    assert (await http.get("/readyz")).status_code == 200


async def test_a_revocation_holds_while_the_topic_is_read_anew(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that goes no further. The topic is read as an uncompacted one; Tansu compacts at once."""
    before, revoked = await made(settings, "ann")
    _, valid = await made(settings, "bob")
    await write_token(settings.kafka, before.model_copy(update={"revoked_at": now_ms()}))
    tokens, getmany = KnownTokens(now_ms), AIOKafkaConsumer.getmany
    filled, again, fails = list[set[str]](), set[AIOKafkaConsumer](), asyncio.Event()

    async def half_of_it(consumer: AIOKafkaConsumer, *places: Any, timeout_ms: int) -> Any:
        if not fails.is_set():
            return await getmany(consumer, *places, timeout_ms=timeout_ms)
        if again and consumer not in again:
            again.add(consumer)
            value = before.model_dump_json().encode()
            return {places[0]: [SimpleNamespace(key=before.id.encode(), value=value)]}
        again.add(consumer)
        raise KafkaConnectionError("the broker has gone")

    def fill(records: Mapping[str, TokenRecord]) -> None:
        filled.append(set(records))
        tokens.fill(records)

    def told(identity: str, record: TokenRecord | None) -> None:
        assert record is not None
        tokens.take(record)

    def opens(headers: dict[str, str]) -> bool:
        with suppress(TokenRefused):
            return bool(tokens.principal(headers["Authorization"].removeprefix("Bearer ")))
        return False

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", half_of_it)
    follower = TokenFollower(settings.kafka, fill, told)
    follower.start()
    try:
        await until(lambda: filled)
        fails.set()
        await until(lambda: len(again) == 3)  # what failed, and two that have read a half since
        assert (opens(revoked), opens(valid), len(filled)) == (False, True, 1)
        fails.clear()
        await until(lambda: len(filled) == 2)
        assert (opens(revoked), opens(valid)) == (False, True)
    finally:
        await follower.close()


async def test_a_revocation_is_known_without_a_restart(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    record, headers = await made(settings, "ann")
    await known(http, headers)
    await write_token(settings.kafka, record.model_copy(update={"revoked_at": now_ms()}))

    async def refused() -> bool:
        return (await http.get("/v1/memories", headers=headers)).status_code == 401

    await until_it_is(refused)
    kept = await all_tokens(settings.kafka)
    assert [one.revoked_at is None for one in kept if one.id == record.id] == [False]
    assert headers["Authorization"].split("_")[2] not in orjson.dumps([one.model_dump() for one in kept]).decode()


def test_the_topic_keeps_the_newest_of_each_token(settings: Settings) -> None:
    spec = tokens_spec(settings.kafka)
    assert (spec.partitions, spec.configs()["cleanup.policy"]) == (1, "compact")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_another_address_than_loopback_takes_tokens(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from schemas.errors import SettingsError

    monkeypatch.setenv("SILTSTONE_HTTP__HOST", host)
    with pytest.raises(SettingsError, match=r"access\.tokens to true") as caught:
        Settings.load()
    assert len(caught.value.problems) == 1
    monkeypatch.setenv("SILTSTONE_ACCESS__TOKENS", "true")
    assert Settings.load().http.host == host


async def test_the_command_shows_a_secret_once_and_takes_it_from_the_environment(
    settings: Settings, worker: Siltstone, http: httpx.AsyncClient
) -> None:
    prefix = {"SILTSTONE_KAFKA__TOPIC_PREFIX": settings.kafka.topic_prefix}
    servers = ("--bootstrap-servers", settings.kafka.bootstrap_servers)
    new = await siltstone("token", "add", "--name", "a", "--users", "ann", "--scopes", "read", *servers, **prefix)
    assert new.returncode == 0, new.stderr
    secret = new.stdout.strip()
    await known(http, bearing(secret))
    url = ("--url", f"http://127.0.0.1:{worker.api.port}")
    assert (await siltstone("list", "--user", "ann", *url)).returncode == 1
    assert (await siltstone("list", "--user", "ann", *url, SILTSTONE_TOKEN=secret)).returncode == 0
    gone = await siltstone("token", "revoke", secret.split("_")[1], *servers, **prefix)
    assert gone.returncode == 0, gone.stderr
    shown = await siltstone("token", "list", "--json", *servers, **prefix)
    (one,) = orjson.loads(shown.stdout)["tokens"]
    assert (one["users"], one["revoked_at"] is None, secret in shown.stdout) == (["ann"], False, False)
