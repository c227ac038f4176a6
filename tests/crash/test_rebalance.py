"""Three workers, kills and joins while messages flow and questions are asked: nothing lost, doubled or wrong."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import httpx
import pytest

from schemas.settings import Settings
from schemas.topics import partition_of
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS, PATIENCE, until, until_it_is
from tests.support.workers import Fleet, asked, sources

pytestmark = [pytest.mark.slow, pytest.mark.soak]

MESSAGES, USERS, PARTITIONS, WORKERS = 50_000, 100, 8, 3
KILLS = 4
SEED = 7
#: One memory is of up to sixteen messages, so that embedding is not what everything waits for.
SESSION_MESSAGES = MESSAGES // USERS
ONE_OF_EACH_PARTITION = {partition_of(f"user-{n}", PARTITIONS): f"user-{n}" for n in range(USERS)}.values()


@dataclass
class Answers:
    """What was answered while everything moved."""

    right: int = 0
    moving: int = 0
    wrong: list[str] = field(default_factory=list)
    seen: dict[str, set[str]] = field(default_factory=dict)

    def take(self, user: str, answer: httpx.Response) -> None:
        if answer.status_code == 503:
            self.moving += 1
            return
        if answer.status_code != 200:
            self.wrong.append(f"{user}: {answer.status_code} {answer.text[:200]}")
            return
        found = {message for hit in answer.json()["results"] for message in hit["message_ids"]}
        foreign = {message for message in found if not message.startswith(f"{user}-")}
        lost = self.seen.get(user, set()) - found
        if foreign or lost:
            self.wrong.append(f"{user}: foreign {sorted(foreign)[:3]}, no longer there {sorted(lost)[:3]}")
        else:
            self.right += 1
        self.seen[user] = self.seen.get(user, set()) | found


async def ask_all_the_while(fleet: Fleet, answers: Answers) -> None:
    """Any worker that is up, about any user's memories: what was there once stays there."""
    chance = random.Random(SEED)
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        while True:
            user, port = f"user-{chance.randrange(USERS)}", chance.choice(fleet.ports)
            body = {"user_id": user, "query": "message", "top_k": 1000, "include_all": True}
            body["include_short_term"] = False
            with contextlib.suppress(httpx.HTTPError):  # it was killed
                answers.take(user, await client.post(f"http://127.0.0.1:{port}/v1/search", json=body))
            await asyncio.sleep(0.05)


async def say(settings: Settings) -> set[str]:
    """All messages, at a pace that leaves time for kills; their ids."""
    said = set()
    async with producing(settings.kafka) as producer:
        for i in range(SESSION_MESSAGES):
            for user in (f"user-{n}" for n in range(USERS)):
                role = "user" if i % 16 < 8 else "assistant"
                await producer.send(user.encode(), line(i, user, role, i))
                said.add(f"{user}-{i}")
            await asyncio.sleep(0.1)
        for user in (f"user-{n}" for n in range(USERS)):
            await producer.send(user.encode(), line(0, user, "user", SESSION_MESSAGES, type="session_end"))
    return said


async def answered(client: httpx.AsyncClient, url: str) -> bool:
    return (await client.get(url)).status_code == 200


async def kill_and_join(fleet: Fleet, taken_over: list[float]) -> None:
    """Kill a worker, wait until the others answer for all, and start another in its place."""
    chance = random.Random(SEED)
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(3, 8))
        await fleet.kill(chance.randrange(len(fleet.ports)))
        begun = time.monotonic()
        async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
            for user in ONE_OF_EACH_PARTITION:
                url = f"http://127.0.0.1:{fleet.ports[0]}/v1/memories?user_id={user}&limit=1"
                await until_it_is(partial(answered, client, url), alive=fleet)
        taken_over.append(time.monotonic() - begun)
        fleet.start(free_port())
        await until(lambda: all(asked(port, "/readyz").get("ready") for port in fleet.ports), alive=fleet)


async def test_nothing_is_lost_doubled_or_wrong_while_workers_come_and_go(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS})
    settings = settings.model_copy(update={"kafka": kafka})
    await ensure_topics(settings.kafka)
    answers, taken_over = Answers(), list[float]()
    with Fleet(settings, WORKERS) as fleet:
        await until(
            lambda: all(asked(port, "/readyz").get("ready") for port in fleet.ports), alive=fleet, seconds=180
        )
        asking = asyncio.ensure_future(ask_all_the_while(fleet, answers))
        said, _ = await asyncio.gather(say(settings), kill_and_join(fleet, taken_over))
        await until(
            lambda: all(set(asked(port, "/v1/stats/pipeline")["lag"].values()) == {0} for port in fleet.ports),
            alive=fleet,
            seconds=300,
        )
        await until(lambda: answers.right > 100 or asking.done(), seconds=300)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        for process in fleet.processes:
            process.send_signal(signal.SIGTERM)
        for process in fleet.processes:
            assert process.wait(PATIENCE) == 0
    counted: Counter[str] = sources(settings)
    with capsys.disabled():
        print(  # noqa: T201  (the times are what one wants to see)
            f"\n{MESSAGES} messages, {KILLS} kills, {answers.right} right answers, {answers.moving} times 503, "
            f"taken over after {', '.join(f'{seconds:.1f}' for seconds in taken_over)} s"
        )
    assert answers.wrong == []
    assert answers.right > 100
    assert said - counted.keys() == set()
    assert {message: times for message, times in counted.items() if times != 1} == {}
