"""The client asks what the API takes, and reads what it answers: both beside the API's own description, OpenAPI."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from urllib.parse import unquote

import httpx
import pytest

from schemas.settings import Settings
from siltstone_client import Memory, Retries, SiltstoneError
from siltstone_client.answers import Answer
from siltstone_client.calls import Call
from tests.support.late_api import api_of

jsonschema: Any = importlib.import_module("jsonschema")

ID: Final = "0192f0c1-2345-7000-8000-0123456789ab"
AT: Final = datetime(2026, 1, 2, tzinfo=UTC)
SAID: Final = {"role": "user", "content": "I live in Oslo", "timestamp": AT, "metadata": {"a": 1}}
#: Each method, with every argument that it has.
CALLS: Final[dict[str, Callable[[Memory], Any]]] = {
    "add": lambda m: m.add([SAID], user_id="ann", session_id="s1", wait=True),
    "search": lambda m: m.search(
        "where?", user_id="ann", top_k=3, state="cold", include_cold=True, include_all=True,
        include_short_term=False, min_relevance=0.5, filters={"importance": {"gte": 80}}, explain=True, touch=False,
        reference_date=AT, as_of=AT, timezone="Europe/Oslo", partial=True, at_least="t",
    ),
    "context": lambda m: m.context(
        user_id="ann", session_id="s1", query="where?", limit=3, memories=5, max_tokens=500, touch=False,
        include_short_term=False, reference_date=AT.date(), as_of=AT.date(), timezone="Europe/Oslo", profile=True,
        partial=True, at_least="t",
    ),
    "exchanges": lambda m: m.exchanges(user_id="ann", session_id="s1", limit=3, at_least="t"),
    "notes": lambda m: m.notes(user_id="ann", session_id="s1", at_least="t"),
    "explain": lambda m: m.explain(user_id="ann", session_id="s1", limit=3, at_least="t"),
    "end_session": lambda m: m.end_session(user_id="ann", session_id="s1", timestamp=AT, wait=1),
    "remember": lambda m: m.remember(
        "Oslo", user_id="ann", kind="short_term", session_id="s1", ttl_seconds=60, importance=50,
        metadata={"a": 1}, supersedes=[ID], agent_id="a", message_ids=["m"], memory_id=ID, event_id=ID, timestamp=AT,
        valid_from=AT, valid_to=AT, wait=True,
    ),
    "get": lambda m: m.get(ID, user_id="ann", touch=False, partial=True, at_least="t"),
    "list": lambda m: m.list(
        user_id="ann", filters=["importance:gte:80"], limit=10, after=ID, state="cold", include_cold=True,
        include_all=True, as_of=AT.date(), timezone="Europe/Oslo", partial=True, at_least="t",
    ),
    "update": lambda m: m.update(
        ID, user_id="ann", text="Oslo", metadata={"a": None}, valid_from=AT, valid_to=AT, wait=True
    ),
    "forget": lambda m: m.forget(ID, user_id="ann", wait=True),
    "forget_user": lambda m: m.forget_user(user_id="ann", wait=True),
    "forget_source": lambda m: m.forget_source("token:crawler", user_id="ann", wait=True),
    "history": lambda m: m.history(ID, user_id="ann", at_least="t"),
    "pin": lambda m: m.pin(ID, user_id="ann", wait=True),
    "unpin": lambda m: m.unpin(ID, user_id="ann", wait=True),
    "link": lambda m: m.link(ID, ID, user_id="ann", kind="k", weight=0.5, wait=True),
    "unlink": lambda m: m.unlink(ID, ID, user_id="ann", kind="k", wait=True),
    "profile": lambda m: m.profile(user_id="ann", reference_date=AT, timezone="UTC", partial=True, at_least="t"),
    "links": lambda m: m.links(ID, user_id="ann", at_least="t"),
    "related": lambda m: m.related(ID, user_id="ann", limit=3, min_similarity=0.2, at_least="t"),
    "supersede": lambda m: m.supersede(ID, by=ID, user_id="ann", wait=True),
    "summaries": lambda m: m.summaries(user_id="ann", first=date(2026, 1, 1), last=date(2026, 1, 2), at_least="t"),
    "summary": lambda m: m.summary(date(2026, 1, 2), user_id="ann", at_least="t"),
    "summarize": lambda m: m.summarize(user_id="ann", day=date(2026, 1, 2), run_id=ID, wait=True),
    "stats": lambda m: m.stats(days=3, at=AT),
    "wait_for": lambda m: m.wait_for("t", seconds=1),
}  # fmt: skip
#: Those whose route answers otherwise to another request: what each reads is the one of its name.
ONE_OF_SEVERAL: Final = {"add", "forget_user", "forget_source"}
#: What operators ask for, with the command or by HTTP; an export is a file, which `siltstone export` writes.
OF_OPERATORS: Final = {
    "/v1/archive", "/v1/archive/deprecated", "/v1/archive/search", "/v1/archive/{memory_id}/restore",
    "/v1/archive/{memory_id}", "/v1/archive/cleanup", "/v1/checkpoints", "/v1/checkpoints/{partition}",
    "/v1/erasures", "/v1/reembed", "/v1/snapshot", "/v1/stats/transitions", "/v1/stats/scores",
    "/v1/stats/pipeline", "/v1/export", "/healthz", "/readyz", "/metrics",
}  # fmt: skip
#: What mem0's own client asks for.
OF_MEM0: Final = {
    "/v1/ping/", "/v1/entities/", "/v2/entities/{kind}/{name}/", "/v1/memories/", "/v1/memories/{memory_id}/",
    "/v1/memories/{memory_id}/history/", "/v3/memories/", "/v3/memories/add/", "/v3/memories/search/",
}  # fmt: skip


class Api:
    """The description, and where in it a request belongs."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.described = described

    def operation(self, method: str, path: str) -> tuple[str, Mapping[str, Any]]:
        """Named paths before those with a parameter in the place."""
        for template in sorted(self.described["paths"], key=lambda one: one.count("{")):
            there = self.described["paths"][template].get(method.lower())
            if there and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
                return template, there
        raise AssertionError(f"the API has no {method} {path}")

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in schema:
            return self.resolved(self.described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]])
        return schema

    def kinds(self, schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """What a value may be, each kind by itself."""
        schema = self.resolved(schema)
        if parts := schema.get("anyOf") or schema.get("oneOf"):
            for part in parts:
                yield from self.kinds(part)
        else:
            yield schema


def asked(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[httpx.Request, type[Answer]]:
    """The request of a method, and what its answer is read as."""
    seen: list[httpx.Request] = []
    calls: list[Call[Any]] = []
    once = Memory._once

    def noted(self: Memory, call: Call[Any]) -> Any:
        calls.append(call)
        return once(self, call)

    def refuse(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(418, json={"detail": "seen"})

    monkeypatch.setattr(Memory, "_once", noted)
    with (
        Memory(retries=Retries(attempts=1), transport=httpx.MockTransport(refuse)) as memory,
        pytest.raises(SiltstoneError),
    ):
        CALLS[name](memory)
    return seen[0], calls[0].answer


@pytest.fixture
def api(settings: Settings) -> Api:
    return Api(api_of(settings).openapi())


def test_every_method_is_tried() -> None:
    methods = {name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if name[0] != "_"}
    assert methods - {"close"} == CALLS.keys()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_is_asked_is_what_the_api_takes(name: str, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Path, every parameter and the body; a parameter that the API does not know would be passed over in silence."""
    request, _ = asked(name, monkeypatch)
    _, operation = api.operation(request.method, request.url.raw_path.decode().partition("?")[0])
    taken = {one["name"]: one for one in operation["parameters"] if one["in"] == "query"}
    assert set(request.url.params) <= taken.keys()
    required = {given for given, one in taken.items() if one.get("required")}
    assert required <= set(request.url.params)
    if request.content:
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        given = httpx.Response(200, content=request.content).json()
        jsonschema.Draft202012Validator({**body, "components": api.described["components"]}).validate(given)
        for one in given if isinstance(given, list) else [given]:
            known = {field for kind in api.kinds(body) for field in fields_of(api, kind)}
            assert one.keys() <= known, "a field that the API does not know would be passed over in silence"


@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_is_answered_is_what_is_read(name: str, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field is one of the API's, and may be whatever it may be there."""
    request, answer = asked(name, monkeypatch)
    _, operation = api.operation(request.method, unquote(request.url.path))
    (success,) = (said for status, said in operation["responses"].items() if status[0] == "2")
    schema = success["content"]["application/json"]["schema"]
    ours = Api(answer.model_json_schema(mode="validation", ref_template="#/components/schemas/{model}"))
    ours.described = {"components": {"schemas": ours.described.get("$defs", {})}, "root": ours.described}
    whole = [kind for kind in api.kinds(schema) if kind["title"] == answer.__name__ or name not in ONE_OF_SEVERAL]
    assert whole
    for kind in whole:
        assert list(unlike(ours, ours.described["root"], api, kind, answer.__name__)) == []


def fields_of(api: Api, schema: Mapping[str, Any]) -> set[str]:
    if schema.get("type") == "array":
        return {field for kind in api.kinds(schema["items"]) for field in fields_of(api, kind)}
    return set(schema.get("properties", {}))


def unlike(
    ours: Api, mine: Mapping[str, Any], api: Api, theirs: Mapping[str, Any], at: str
) -> Iterator[tuple[str, Any]]:
    """Where what the API may answer is not what the client reads."""
    mine_by = {kind.get("type", "any"): kind for kind in ours.kinds(mine)}
    for kind in api.kinds(theirs):
        what = kind.get("type", "any")
        if "any" in mine_by or (what == "integer" and "number" in mine_by):
            continue
        if what not in mine_by:
            yield at, what
            continue
        like = mine_by[what]
        if what == "array":
            yield from unlike(ours, like["items"], api, kind["items"], f"{at}[]")
        for name, field in like.get("properties", {}).items():
            if name not in kind.get("properties", {}):
                yield f"{at}.{name}", "is none of the API's fields"
            else:
                yield from unlike(ours, field, api, kind["properties"][name], f"{at}.{name}")


def test_what_the_client_leaves_out_is_left_out_on_purpose(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = set()
    for name in CALLS:
        with monkeypatch.context() as patch:
            request, _ = asked(name, patch)
        paths.add(api.operation(request.method, unquote(request.url.path))[0])
    assert api.described["paths"].keys() - paths == OF_OPERATORS | OF_MEM0
