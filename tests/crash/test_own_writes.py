"""What a client has written it reads, at any worker, while workers are killed, paused and joined."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import pytest

from schemas.settings import Settings
from streams.kafka.clients.broker import ensure_topics
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, until
from tests.support.workers import Fleet, asked

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PARTITIONS, WORKERS, SEED = 6, 3, 11
USERS = [f"user-{n}" for n in range(8)]
WAITING = {"wait": "applied", "timeout": "5"}


@dataclass
class Told:
    """What was answered while everything moved."""

    right: Counter[str] = field(default_factory=Counter)
    moving: int = 0
    wrong: list[str] = field(default_factory=list)
    over: bool = False


class Client:
    """One user's: it writes, and asks another worker for what it has written."""

    def __init__(self, fleet: Fleet, user: str, told: Told, http: httpx.AsyncClient) -> None:
        self._fleet, self._user, self._told, self._http = fleet, user, told, http
        self._chance = random.Random(f"{SEED} {user}")
        #: Texts of memories that were acknowledged; of writes that nobody answered nothing is known.
        self.memories: list[str] = []

    async def at_work(self) -> None:
        for number in count():
            if self._told.over:
                return
            await (self._remember(number) if number % 2 else self._say(number))

    async def _remember(self, number: int) -> None:
        text = f"memory {number} of {self._user}"
        token = await self._written("/v1/memories", {"user_id": self._user, "text": text})
        if token is not None:
            self.memories.append(text)
            asking: dict[str, Any] = {"user_id": self._user, "query": text, "top_k": 1000, "include_all": True}
            answer = await self._read("POST", "/v1/search", token, json=asking | {"include_short_term": False})
            found = [hit["memory"] for hit in answer["results"]]
            self._holds("memories", self.memories, Counter(found))

    async def _say(self, number: int) -> None:
        """And its answer, so that the exchange closes."""
        said = [
            {"user_id": self._user, "session_id": "s", "message_id": f"{number}-{role}", "role": role}
            | {"content": f"{role} {number} of {self._user}"}
            for role in ("user", "assistant")
        ]
        token = await self._written("/v1/messages", said)
        if token is not None:
            asking: dict[str, Any] = {"user_id": self._user, "session_id": "s", "q": said[0]["content"]}
            answer = await self._read("GET", "/v1/context", token, params=asking)
            shown = [message["content"] for one in answer["exchanges"] for message in one["messages"]]
            self._holds("contexts", [one["content"] for one in said], Counter(shown))
            asking = {"user_id": self._user, "query": said[0]["content"], "top_k": 1000, "include_all": True}
            answer = await self._read("POST", "/v1/search", token, json=asking)
            found = "\n".join(hit["memory"] for hit in answer["results"])
            self._holds("searches", [one["content"] for one in said], Counter(found.replace(": ", "\n").split("\n")))

    def _holds(self, kind: str, expected: list[str], found: Counter[str]) -> None:
        """Each of these once, and nothing of another user's."""
        amiss = {text: found[text] for text in expected if found[text] != 1}
        foreign = [text for text in found if " of user-" in text and not text.endswith(f" of {self._user}")]
        if amiss or foreign:
            self._told.wrong.append(f"{self._user}, {kind}: {amiss}, {foreign[:3]}")
        else:
            self._told.right[kind] += 1

    async def _written(self, path: str, body: Any) -> str | None:
        """The token of what is written for sure."""
        try:
            answer = await self._http.post(f"{self._any()}{path}", json=body, params=WAITING)
        except httpx.HTTPError:  # the worker was killed: it may be in the log or not
            return None
        if answer.status_code == 503:
            self._told.moving += 1
            return None
        if answer.status_code != 202:
            self._told.wrong.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            return None
        token: str = answer.json()["token"]
        return token

    async def _read(self, method: str, path: str, token: str, **asking: Any) -> dict[str, Any]:
        """The first answer to who has this token; until then, workers say that it is not there yet."""
        headers = {"Siltstone-At-Least": token}
        while True:
            try:
                answer = await self._http.request(method, f"{self._any()}{path}", headers=headers, **asking)
            except httpx.HTTPError:
                continue
            if answer.status_code != 503:
                told: dict[str, Any] = answer.raise_for_status().json()
                return told
            self._told.moving += 1
            await asyncio.sleep(0.1)

    def _any(self) -> str:
        return f"http://127.0.0.1:{self._chance.choice(self._fleet.ports)}"


async def move_them(fleet: Fleet, told: Told, session_seconds: float) -> None:
    """A worker joins; one is paused for longer than its group waits, and goes on; one is killed, and replaced."""
    chance = random.Random(SEED)

    async def all_ready() -> None:
        await until(lambda: all(asked(port, "/readyz").get("ready") for port in fleet.ports), alive=fleet)

    async def more(answers: int) -> None:
        enough = told.right.total() + answers
        await until(lambda: told.right.total() > enough or told.wrong, alive=fleet)

    for move in ("join", "pause", "kill", "kill"):
        await more(20)
        if move == "pause":
            process = chance.choice(fleet.processes)
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(session_seconds + 3)
            process.send_signal(signal.SIGCONT)
        if move == "kill":
            await fleet.kill(chance.randrange(len(fleet.ports)))
        if move != "pause":
            fleet.start(free_port())
        await all_ready()
    await more(40)
    told.over = True


async def test_what_was_written_is_read_by_who_wrote_it_whatever_moves(settings: Settings) -> None:
    """Contexts, searches of memories and of what was just said; `wait=applied` and `at_least`."""
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS})
    settings, told = settings.model_copy(update={"kafka": kafka}), Told()
    await ensure_topics(settings.kafka)
    with Fleet(settings, WORKERS) as fleet:
        await until(lambda: all(asked(port, "/readyz").get("ready") for port in fleet.ports), alive=fleet)
        async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as http:
            clients = [Client(fleet, user, told, http) for user in USERS]
            moving = move_them(fleet, told, kafka.session_timeout_seconds)
            await asyncio.gather(moving, *(client.at_work() for client in clients))
    assert told.wrong == []
    assert set(told.right) == {"memories", "contexts", "searches"}
