"""`siltstone explain`, through the real worker, its HTTP API and the command: each status while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from schemas.ids import memory_id
from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import cli, running
from streams.kafka.bulk import producing
from tests.support.making import START, line
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import CLIENT_SECONDS, until

#: A session of five exchanges: who says what at which second.
SAID = (
    (0, "system", "You are kind.", 0),
    (1, "user", "hm", 200),
    (2, "assistant", "yes?", 201),
    (3, "user", "Please remember: I sing in a choir", 210),
    (4, "assistant", "I will", 211),
    (5, "user", "I like \x1b[31mtea[/bold]", 220),
    (6, "assistant", "noted", 221),
    (7, "user", "my name is Ann and I am so sad", 230),
    (8, "assistant", "oh", 231),
)


@pytest.fixture
async def service() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running_service:
        running_service.script("8")
        running_service.gate.clear()
        yield running_service


@pytest.fixture
async def worker(settings: Settings, service: OpenAIServer) -> AsyncIterator[Siltstone]:
    """Its rater is a model that has not answered yet."""
    scoring = settings.memory.scoring.model_copy(
        update={"api_key": SecretStr("sk-0"), "base_url": service.base_url, "model": "judge-1"}
    )
    memory = settings.memory.model_copy(update={"scoring": scoring})
    async with running.started(settings.model_copy(update={"memory": memory})) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


async def produce(worker: Siltstone, *lines: bytes) -> None:
    async with producing(worker.settings.kafka) as producer:
        for text in lines:
            await producer.send(orjson.loads(text)["user_id"].encode(), text)


async def explained(worker: Siltstone, user: str, session: str, **parameters: Any) -> Any:
    base = f"http://127.0.0.1:{worker.api.port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=CLIENT_SECONDS) as client:
        answer = await client.get(f"/v1/sessions/{session}/decisions", params={"user_id": user, **parameters})
        return answer.json()


async def command(worker: Siltstone, *words: str, columns: int = 120) -> Result:
    """`siltstone explain`, in a terminal of that width."""
    url = f"http://127.0.0.1:{worker.api.port}"
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return await asyncio.to_thread(runner.invoke, cli, ["explain", *words, "--url", url])


def statuses(answer: Any) -> list[str]:
    return [decision["status"] for decision in answer["decisions"]]


async def test_each_exchange_says_what_became_of_it(worker: Siltstone, service: OpenAIServer) -> None:
    """Open and waiting while the session lasts; asked about when it ends; promoted when the model has answered."""
    said = [line(i, "ann", role, at, content=text) for i, role, text, at in SAID]
    said[7] = line(7, "ann", "user", 230, content=SAID[7][2], emotion="sad")
    await produce(worker, *said)
    last = START + SAID[-1][-1] * 1000
    await until(
        lambda: worker.intake.windows.session(worker.context.partition_of("ann"), "ann", "ann-s").last_at == last,
        alive=worker,
    )

    answer = await explained(worker, "ann", "ann-s")
    assert statuses(answer) == ["unspoken", "waiting", "promoted", "waiting", "open"]
    assert [d["outlook"] for d in answer["decisions"]] == [None, "dropped", None, "asked", "promoted"]
    assert answer["decisions"][1]["waits_for"] == {"exchanges": 8, "session_ends_at": "2026-01-01T00:33:51.000Z"}
    settled = {"policy": "weighted", "judge": "judge-1", "exchanges": 3, "promote_threshold": 10, "ended": False}
    assert settled.items() <= answer.items()

    await produce(worker, line(9, "ann", "user", 240, type="session_end"))
    await until(lambda: service.under_way == 1, alive=worker)
    answer = await explained(worker, "ann", "ann-s")
    assert statuses(answer) == ["unspoken", "dropped", "promoted", "asked", "promoted"]
    assert answer["ended"]
    assert answer["decisions"][3]["importance"] is None

    service.gate.set()
    await until(
        lambda: not worker.intake.windows.session(worker.context.partition_of("ann"), "ann", "ann-s").asked,
        alive=worker,
    )
    answer = await explained(worker, "ann", "ann-s")
    tea = answer["decisions"][3]
    assert (tea["status"], tea["importance"], tea["parts"]["value"]) == ("promoted", 78, 8)
    assert tea["why"].startswith("Promoted: judge-1 gave it 8 of 10: ")
    assert tea["memory_id"] == str(memory_id("ann", "ann-s", ("ann-5", "ann-6")))
    assert statuses(await explained(worker, "ann", "ann-s", limit=1)) == ["promoted"]

    for columns in (40, 80, 160):
        shown = await command(worker, "--user", "ann", "--session", "ann-s", columns=columns)
        assert shown.exit_code == 0, shown.output
        assert max(map(len, shown.output.splitlines())) <= columns
        words = " ".join(shown.output.split())
        assert all(status in words for status in ("unspoken", "dropped", "promoted", "importance 100"))
        assert "[31mtea[/bold]" in words  # nothing of it is obeyed
        assert "\x1b" not in shown.output
    shown = await command(worker, "--user", "ann", "--session", "ann-s", "--json")
    assert orjson.loads(shown.output) == answer
    assert len(shown.output.splitlines()) == 1


async def test_a_session_that_nobody_knows_is_said_to_be_unknown(worker: Siltstone) -> None:
    assert (await explained(worker, "ann", "nowhere")) == {
        "detail": "this worker has no session nowhere of user ann: check both ids; "
        "an ended session is forgotten after 24 h without a message"
    }
    shown = await command(worker, "--user", "ann", "--session", "no/where")
    assert (shown.exit_code, "answered 404: this worker has no session no/where" in str(shown.exception)) == (
        1,
        True,
    )
    await produce(worker, line(0, "ann", "user", 0, session_id="some/where", type="session_end"))
    await until(lambda: worker.intake.windows.find("ann", "some/where"), alive=worker)
    shown = await command(worker, "--user", "ann", "--session", "some/where")
    assert (shown.exit_code, "It has no exchanges." in shown.output) == (0, True)
