"""Requests that the OpenAPI allows, and others, to a real worker: it answers each as the OpenAPI says."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx
import pytest

from schemas.settings import AccessSettings, CheckpointsSettings, Settings
from schemas.topics import partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import ensure_topics
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.groups import side_by_side
from tests.support.tokens import known, made
from tests.support.waiting import PATIENCE
from tests.worker.test_moving import PARTITIONS, at_work, settled

pytestmark = pytest.mark.slow

CHECKS = ",".join(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "unsupported_method",
        "allow_header_conformance",
    ]
)
#: Of these everything is asked for every route and every way in which a parameter can be wrong; few more at random.
PHASES = ("--phases", "coverage,fuzzing", "-n", "5", "--seed", "1", "--no-shrink", "--continue-on-failure")
#: For all of them, one after the other.
SECONDS = 5 * PATIENCE
#: A word that nobody else says.
MARKER = "quincunxial"


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """With checkpoints, of which answers tell."""
    store = CheckpointsSettings(url=(tmp_path / "store").as_uri())
    return settings.model_copy(update={"checkpoints": store})


async def asked_everything(worker: Siltstone, folder: Path, *options: str) -> str:
    """All requests and answers. Fails where an answer is none that the OpenAPI has, or a route was left out."""
    report, exchanges = folder / "report.json", folder / "exchanges.yaml"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"),
        f"http://127.0.0.1:{worker.api.port}/openapi.json",
        *("--checks", CHECKS, *PHASES, *options, "--output-truncate", "false"),
        *("--report", "json,vcr", "--report-json-path", str(report), "--report-vcr-path", str(exchanges)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode()[-5000:]
    found = json.loads(report.read_bytes())
    assert (found["failures"], found["errors"]) == ([], [])
    assert found["operations"]["tested"] == found["operations"]["total"] > 50
    return exchanges.read_text()


async def test_every_answer_is_one_that_the_openapi_has(
    settings: Settings, worker: Siltstone, tmp_path: Path
) -> None:
    """Without tokens. What was asked has come to this worker, and no answer names a path of its machine."""
    said = await asked_everything(worker, tmp_path)
    assert sum(labelled(worker.metrics.messages).values()) > 0
    assert "field required" in said, "answers are not in it as they were given"
    assert "file://…/store" in said or "file://\\u2026/store" in said
    assert not [path for path in (str(settings.data_dir), str(tmp_path / "store")) if path in said]


async def test_a_token_of_one_user_sees_no_word_of_anothers_memories(settings: Settings, tmp_path: Path) -> None:
    """Whatever is asked with it. The other one's memory and session can be read by their own token, and stay."""
    settings = settings.model_copy(update={"access": AccessSettings(tokens=True)})
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        _, ann = await made(settings, "ann")
        _, bob = await made(settings, "bob")
        for headers in (ann, bob):
            await known(http, headers)
        await tell(http, ann)
        seen = await asked_everything(worker, tmp_path, "-H", f"Authorization: {bob['Authorization']}")
        assert "there is no such memory" in seen, "answers are not in it as they were given"
        assert MARKER not in seen
        await still_there(http, ann)


@pytest.mark.soak
async def test_through_another_worker_every_answer_is_one_that_the_openapi_has(
    settings: Settings, tmp_path: Path
) -> None:
    """Of two workers one is asked, about users of the other: bob's token shows no word of ann's memories."""
    tokens = AccessSettings(tokens=True)
    settings = side_by_side(settings).model_copy(update={"access": tokens, "checkpoints": CheckpointsSettings()})
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": PARTITIONS})})
    await ensure_topics(settings.kafka)
    (tmp_path / "asked").mkdir()
    async with at_work(settings, tmp_path / "one") as first, at_work(settings, tmp_path / "two") as second:
        _, theirs = await settled(first, second)
        ann, bob = [f"u{n}" for n in range(99) if partition_of(f"u{n}", PARTITIONS) in theirs][:2]
        _, of_ann = await made(settings, ann)
        _, of_bob = await made(settings, bob)
        async with api(first) as http:
            for headers in (of_ann, of_bob):
                await known(http, headers)
            await tell(http, of_ann)
            seen = await asked_everything(
                first, tmp_path / "asked", "-H", f"Authorization: {of_bob['Authorization']}"
            )
            assert MARKER not in seen
            assert sum(labelled(second.metrics.messages).values()) > 1, "nothing went on to the other worker"
            await still_there(http, of_ann)


async def tell(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """A memory and a message with the word."""
    wait = {"wait": "applied"}
    told = {"text": f"the {MARKER} key", "metadata": {"note": MARKER}}
    kept = await http.post("/v1/memories", headers=headers, params=wait, json=told)
    spoken = {"session_id": "0", "role": "user", "content": f"my {MARKER} secret"}
    heard = await http.post("/v1/messages", headers=headers, params=wait, json=spoken)
    assert [kept.json()["applied"], heard.json()["applied"]] == [True, True]


async def still_there(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """Neither forgotten nor changed by anybody."""
    (memory,) = (await http.get("/v1/memories", headers=headers)).json()["memories"]
    assert memory["memory"] == f"the {MARKER} key"
    window = (await http.get("/v1/sessions/0/exchanges", headers=headers)).json()["exchanges"]
    assert [message["content"] for one in window for message in one["messages"]] == [f"my {MARKER} secret"]
