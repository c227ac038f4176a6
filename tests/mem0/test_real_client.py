"""mem0's own client beside a real worker: what its users do, and what they do wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import AccessSettings, Settings
from schemas.times import now_ms
from schemas.tokens import Scope, TokenRecord, issue
from streams.access.token_log import write_token
from streams.app import Siltstone
from streams.doors.cli import running
from tests.mem0.real_client import RealClient, Refused, real_client
from tests.support.waiting import until_it_is

pytestmark = pytest.mark.slow
PEANUTS = [
    {"role": "user", "content": "I am allergic to peanuts and live in Oslo."},
    {"role": "assistant", "content": "Noted."},
]
OF_ALICE: Mapping[str, Any] = {"filters": {"user_id": "alice"}}


async def test_what_is_added_is_found_listed_edited_and_deleted(settings: Settings, tmp_path: Path) -> None:
    """All ten routes; metadata names nobody, and each memory has mem0's fields."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        with real_client(worker.api.port, tmp_path) as client:
            call = client.call
            added = await call(
                "add", PEANUTS, user_id="alice", agent_id="guide", app_id="shop", metadata={"user_id": "bob"}
            )
            assert (added["status"], [one["event"] for one in added["results"]]) == ("SUCCEEDED", ["ADD"])
            (hit,) = (await call("search", "What am I allergic to?", **OF_ALICE))["results"]
            assert {"id", "memory", "score", "categories", "created_at", "updated_at"} <= hit.keys()
            assert (hit["user_id"], hit["agent_id"], hit["app_id"]) == ("alice", "guide", "shop")
            assert (hit["id"], hit["metadata"]) == (added["results"][0]["id"], {"user_id": "bob"})
            assert (await call("search", "peanuts", filters={"user_id": "bob"}))["results"] == []
            nested = {"AND": [{"user_id": "alice"}, {"OR": [{"agent_id": "x"}, {"app_id": "shop"}]}]}
            assert len((await call("search", "peanuts", filters=nested))["results"]) == 1

            await call("add", "hello there", user_id="alice", run_id="r1")
            kept = await call("add", "My sister is called Ida", user_id="alice", infer=False, metadata={"k": 1})
            (sister,) = (one["id"] for one in kept["results"])
            pages = [await call("get_all", page=page, page_size=2, **OF_ALICE) for page in (1, 2)]
            assert [page["count"] for page in pages] == [3, 3]
            assert [page["next"] is None for page in pages] == [False, True]
            listed = [one for page in pages for one in page["results"]]
            assert listed[0]["memory"] == "My sister is called Ida"
            assert [one for one in listed if one != await call("get", one["id"])] == []

            edited = await call("update", sister, text="My sister is called Ida Marie", metadata={"n": 2})
            assert (edited["memory"], edited["metadata"]) == ("My sister is called Ida Marie", {"n": 2})
            told = [(one["event"], one["old_memory"]) for one in await call("history", sister)]
            assert told == [("ADD", None), ("UPDATE", "My sister is called Ida")]
            assert [one["name"] for one in (await call("users"))["results"]] == ["alice"]

            for one in listed:
                await call("delete", one["id"])
                assert (await client.refusal("get", one["id"]))[0] == "MemoryNotFoundError"
            assert (await call("get_all", **OF_ALICE))["results"] == []
            await call("add", PEANUTS, user_id="alice")
            await call("delete_all", user_id="alice")
            assert (await call("search", "peanuts", **OF_ALICE))["results"] == []
            await wrong(client)


async def wrong(client: RealClient) -> None:
    """What cannot be done is one line, of the class that mem0's users catch."""
    cases: list[tuple[str, str, list[Any], dict[str, Any]]] = [
        ("user_id: name the user", "add", ["x"], {}),
        ("user_id: name the user", "add", ["x"], {"agent_id": "guide"}),
        ("custom_instructions: unknown field", "add", ["x"], {"user_id": "a", "custom_instructions": "y"}),
        ("metadata: app_id names the owner", "add", ["x"], {"user_id": "a", "metadata": {"app_id": "b"}}),
        ("role 'martian' is not one of", "add", [[{"role": "martian", "content": "x"}]], {"user_id": "a"}),
        ("timestamp: 'once' is not a time", "add", ["x"], {"user_id": "a", "timestamp": "once"}),
        ("a request is about one user", "search", ["x"], {"filters": {"user_id": "*"}}),
        ("the field is one of", "search", ["x"], {"filters": {"user_id": "a", "colour": "red"}}),
        ("reference_date: must be a day", "search", ["x"], {**OF_ALICE, "reference_date": "soon"}),
        ("name the user whose memories to delete", "delete_all", [], {}),
        ("memory_id: ", "get", ["no-uuid"], {}),
    ]
    for why, method, args, kwargs in cases:
        kind, message = await client.refusal(method, *args, **kwargs)
        assert (kind, why in message, "\n" in message) == ("ValidationError", True, False), message


async def test_a_token_of_one_user_opens_that_users_memories_alone(settings: Settings, tmp_path: Path) -> None:
    """Another's memory is 404, by id as well; the user may be left out; a token that only reads writes nothing."""
    settings = settings.model_copy(update={"access": AccessSettings(tokens=True)})
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        everybody, bob = await token(worker, "*"), await token(worker, "bob")
        reader = await token(worker, "bob", Scope.READ)
        port = worker.api.port
        with real_client(port, tmp_path, everybody) as all_of, real_client(port, tmp_path, bob) as own:
            for client in (all_of, own):
                await until_known(client)
            added = await all_of.call("add", "My locker has the number seven", user_id="alice", infer=False)
            (locker,) = (one["id"] for one in added["results"])
            for method, args, kwargs in [
                ("get", [locker], {}),
                ("history", [locker], {}),
                ("delete", [locker], {}),
                ("update", [locker], {"text": "mine"}),
                ("search", ["locker"], dict(OF_ALICE)),
                ("get_all", [], dict(OF_ALICE)),
                ("add", ["x"], {"user_id": "alice"}),
                ("delete_all", [], {"user_id": "alice"}),
            ]:
                assert (await own.refusal(method, *args, **kwargs))[0] == "MemoryNotFoundError", method
            assert (await all_of.call("get", locker))["user_id"] == "alice"
            await own.call("add", "I drink green tea", infer=False)
            assert [one["user_id"] for one in (await own.call("get_all", filters={}))["results"]] == ["bob"]
            assert [one["name"] for one in (await own.call("users"))["results"]] == ["bob"]
            assert [one["name"] for one in (await all_of.call("users"))["results"]] == ["alice", "bob"]
        with real_client(port, tmp_path, reader) as reading, real_client(port, tmp_path, "slt_no") as nobody:
            await until_known(reading)
            assert len((await reading.call("get_all", filters={}))["results"]) == 1
            assert (await reading.refusal("add", "x"))[0] == "AuthenticationError"
            assert "this requires a valid token" in (await nobody.refusal("made"))[1]


async def token(worker: Siltstone, users: str, *scopes: Scope) -> str:
    one = issue()
    record = TokenRecord(
        id=one.id,
        name=users,
        sha256=one.sha256,
        users=(users,),
        scopes=scopes or tuple(Scope),
        created_at=now_ms(),
    )
    await write_token(worker.settings.kafka, record)
    return one.secret


async def until_known(client: RealClient) -> None:
    """Until the worker has read of the token."""

    async def heard() -> bool:
        try:
            await client.call("made")
        except Refused:
            return False
        return True

    await until_it_is(heard)
