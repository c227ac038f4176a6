"""A worker among requests that are made to take long: each is answered, with no 5xx, and in bounded work.

Whatever one may bring: a question, filters, headers, cookies, ids, messages, arguments of tools, bodies of mem0.
Nine minutes of each kind in `make soak`, some seconds where a commit's sample has it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import httpx
import orjson
import pytest

from schemas.settings import Settings
from streams.doors.cli import running
from streams.recall.filtering import OPERATORS
from tests.support import soak
from tests.support.api import api
from tests.support.hostile_ids import HOSTILE
from tests.support.steps import HOSTILE_PIECES

pytestmark = [pytest.mark.slow, pytest.mark.soak]

#: Seconds of each kind, where all of the soak runs and in a sample.
SECONDS, SAMPLE_SECONDS = 540.0, 20.0
#: Of the processor, for one request: a hundred times what the largest one takes.
WORK_SECONDS: Final = 5.0
LONGEST: Final = 32_768

Ask = Callable[[httpx.AsyncClient, random.Random], Any]


def text(chance: random.Random, most: int = LONGEST) -> str:
    """What patterns and parsers take longest for: a few pieces, each many times."""
    length, found = chance.choice((0, 1, 30, most // 8, most)), list[str]()
    while sum(map(len, found)) < length:
        piece = chance.choice((*HOSTILE_PIECES, *HOSTILE))
        found.append(piece * chance.randint(1, 1 + length // len(piece)))
    return "".join(found)[:length]


def name(chance: random.Random) -> str:
    return chance.choice((chance.choice(HOSTILE), text(chance, 256) or "u", "ann"))


def value(chance: random.Random, depth: int = 0) -> Any:
    """JSON of any shape, up to fifty levels."""
    kind = chance.choice(("text", "number", "none", "list", "object") if depth < 50 else ("text", "number"))
    match kind:
        case "text":
            return text(chance, 200)
        case "number":
            return chance.choice((0, -1, 1e308, 2**63, True))
        case "none":
            return None
        case "list":
            return [value(chance, depth + 1) for _ in range(chance.choice((0, 1, 3)))]
        case _:
            return {text(chance, 20): value(chance, depth + 1) for _ in range(chance.choice((0, 1, 3)))}


def condition(chance: random.Random) -> str:
    field = chance.choice(("importance", "tags", "metadata.a", "session_id", "created_at", text(chance, 40)))
    return f"{field}:{chance.choice((*OPERATORS, text(chance, 9)))}:{orjson.dumps(value(chance)).decode()}"[:LONGEST]


def nested(chance: random.Random, depth: int = 0) -> Any:
    """mem0's filters; of most all is right but their size."""
    if depth > 30 or chance.random() < 0.4:
        if chance.random() < 0.01:
            return {chance.choice(("user_id", "importance", text(chance, 20))): value(chance, 45)}
        return chance.choice(
            ({"importance": {"gte": 1}}, {"metadata": {"a": 7}}, {"run_id": {"contains": text(chance, 99)}})
        )
    inner = [nested(chance, depth + 1) for _ in range(chance.choice((1, 1, 2, 70)) if depth < 3 else 1)]
    key = chance.choice(("AND", "OR", "NOT"))
    return {key: inner if chance.random() < 0.9 else inner[0]}


async def question(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    if chance.random() < 0.5:
        return await http.post("/v1/search", json={"user_id": "ann", "query": text(chance), "explain": True})
    if chance.random() < 0.2:
        return await http.get("/v1/profile", params={"user_id": "ann", "reference_date": text(chance, 12)})
    profile = chance.random() < 0.5
    params = {"user_id": "ann", "session_id": "s", "q": text(chance, 2_000), "profile": str(profile)}
    return await http.get("/v1/context", params=params)


async def filters(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    given = [condition(chance) for _ in range(chance.choice((0, 1, 5, 64, 100)))]
    if chance.random() < 0.7:
        return await http.post("/v1/search", json={"user_id": "ann", "query": "tea", "filters": given})
    return await http.get("/v1/memories", params={"user_id": "ann", "filter": [one[:200] for one in given[:20]]})


def printable(said: str) -> bytes:
    """What a header may have."""
    return bytes(byte for byte in said.encode() if 32 <= byte < 127 or byte > 159).strip()


async def headers(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    known = (
        "Authorization",
        "Siltstone-At-Least",
        "Origin",
        "traceparent",
        "Accept",
        "If-None-Match",
        "Content-Type",
    )
    given = [
        (chance.choice(known).encode(), printable(text(chance, 8_000))) for _ in range(chance.choice((1, 3, 30)))
    ]
    return await http.get(
        chance.choice(("/v1/memories?user_id=ann", "/v1/applied", "/ui", "/healthz")), headers=given
    )


async def cookies(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    said = printable(chance.choice(("siltstone=", "a=", "")) + text(chance, 60_000).replace("a", '="\\073'))
    return await http.get(chance.choice(("/ui/overview", "/ui/login", "/ui/me")), headers=[(b"Cookie", said)])


async def ids(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    user, session, memory = name(chance), quote(name(chance), safe=chance.choice(("", "/"))), quote(name(chance))
    method, path = chance.choice(
        (
            ("GET", f"/v1/sessions/{session}/exchanges"),
            ("POST", f"/v1/sessions/{session}/end"),
            ("GET", f"/v1/memories/{memory}"),
            ("DELETE", f"/v1/memories/{memory}"),
            ("GET", f"/v1/summaries/{memory}"),
            ("DELETE", f"/v2/entities/user/{session}/"),
        )
    )
    body = orjson.dumps({"user_id": user}) if method == "POST" else b""
    return await http.request(
        method, path, params={"user_id": user}, content=body, headers={"Content-Type": "application/json"}
    )


async def messages(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    said = [
        {
            "user_id": "ann",
            "session_id": name(chance),
            "role": chance.choice(("user", "assistant", "tool", text(chance, 9))),
            "content": text(chance),
            "timestamp": chance.choice((1, 2**41, "2026-01-01", text(chance, 40))),
            text(chance, 20): value(chance),
        }
        for _ in range(chance.choice((1, 1, 5)))
    ]
    return await http.post("/v1/messages", json=said)


async def tools(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    tool = chance.choice(
        ("remember", "search_memory", "get_context", "get_profile", "list_memories", "forget_memory", text(chance, 9))
    )
    arguments = {"user_id": "ann", "query": text(chance), "text": text(chance), text(chance, 9): value(chance)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return await http.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})


async def mem0(http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    filters = {"AND": [{"user_id": "ann"}, nested(chance)]}
    path, body = chance.choice(
        (
            ("/v3/memories/search/", {"query": text(chance) or "tea", "filters": filters}),
            ("/v3/memories/", {"filters": filters}),
            (
                "/v3/memories/add/",
                {"user_id": "ann", "messages": [{"role": "user", "content": text(chance) or "tea"}]},
            ),
            ("/v3/memories/add/", {"user_id": "ann", "messages": value(chance)}),
        )
    )
    return await http.post(path, json=body)


async def answered(ask: Ask, http: httpx.AsyncClient, chance: random.Random) -> httpx.Response:
    """A header that HTTP does not allow is refused at once, and the connection closed with the rest of it unread.

    The system then resets it, now and then before the refusal was read; the worker goes on.
    """
    try:
        answer: httpx.Response = await ask(http, chance)
    except (httpx.ReadError, httpx.WriteError):
        assert ask in (headers, cookies)
        answer = await http.get("/healthz")
    return answer


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("ask", [question, filters, headers, cookies, ids, messages, tools, mem0])
async def test_every_request_is_answered_in_bounded_work(
    settings: Settings, pytestconfig: pytest.Config, ask: Ask
) -> None:
    seconds = SECONDS if pytestconfig.getoption("--soak") == soak.ALL else SAMPLE_SECONDS
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        for n in range(50):
            remembered = {"user_id": "ann", "text": f"I like tea number {n}", "metadata": {"a": n, "tags": ["x"]}}
            (await http.post("/v1/memories", json=remembered)).raise_for_status()
        (await http.post("/v1/memories?wait=applied", json=remembered)).raise_for_status()
        over = asyncio.get_running_loop().time() + seconds
        seed = 0
        while asyncio.get_running_loop().time() < over:
            chance, seed = random.Random(seed), seed + 1
            worked = time.process_time()
            answer = await answered(ask, http, chance)
            worked = time.process_time() - worked
            assert answer.status_code < 500, f"seed {seed - 1}: {answer.status_code} {answer.text[:500]}"
            assert worked < WORK_SECONDS, f"seed {seed - 1}: {worked:.1f} s of the processor"
        assert worker.health.ready
