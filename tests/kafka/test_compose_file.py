"""What docker-compose.yml tells its broker, its topics' script and its worker works, started without containers."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doctor.access import check_access
from streams.doctor.finding import Outcome
from streams.doors.cli import running
from streams.kafka.bulk import producing
from tests.kafka.cluster import Cluster, Node, cluster
from tests.kafka.source import Distribution, Source
from tests.support.api import api
from tests.support.making import line
from tests.support.tokens import known, made
from tests.support.waiting import until
from tests.test_compose import SERVICES, environment, interpolated, worker_settings


def properties(node: Node) -> dict[str, str]:
    """As the image makes them of its environment, with loopback ports and folders in the places of containers'."""
    given = environment("kafka")
    named = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in given.items()}
    places = {
        "INTERNAL://:19092": f"INTERNAL://127.0.0.1:{node.ports['BROKER']}",
        "HOST://:9092": f"HOST://127.0.0.1:{node.ports['CLIENT']}",
        "CONTROLLER://:29093": f"CONTROLLER://127.0.0.1:{node.ports['CONTROLLER']}",
        "kafka:19092": f"127.0.0.1:{node.ports['BROKER']}",
        "127.0.0.1:9092": f"127.0.0.1:{node.ports['CLIENT']}",
        "localhost:29093": f"127.0.0.1:{node.ports['CONTROLLER']}",
        "/var/lib/kafka/data": str(node.folder / "log"),
    }
    return {name: _placed(value, places) for name, value in named.items()}


def _placed(value: str, places: dict[str, str]) -> str:
    for there, here in places.items():
        value = value.replace(there, here)
    return value


@pytest.fixture(scope="module")
def composed(source: Source) -> Iterator[Cluster]:
    with cluster(source, told=properties) as brokers:
        yield brokers


async def test_a_worker_of_the_compose_file_works_on_its_broker_with_its_topics(
    composed: Cluster, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(source, Distribution):
        pytest.skip("the script of the topics is run with a distribution's tools")
    await asyncio.to_thread(topics_are_made, composed, source.tools)
    await a_message_is_taken_in(here(worker_settings(monkeypatch), composed, tmp_path))


async def test_with_tokens_its_api_is_on_every_address_and_asks_for_them(
    composed: Cluster, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is the script's; the image's health check brings no token, and needs none."""
    if not isinstance(source, Distribution):
        pytest.skip("the script of the topics is run with a distribution's tools")
    await asyncio.to_thread(topics_are_made, composed, source.tools)
    switched = {"SILTSTONE_ACCESS__TOKENS": "true", "SILTSTONE_HTTP__HOST": "0.0.0.0"}
    settings = here(worker_settings(monkeypatch, switched), composed, tmp_path)
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        assert (await http.get("/readyz")).status_code == 200
        assert (await http.get("/v1/memories", params={"user_id": "u"})).status_code == 401
        _, token = await made(settings, "*")
        await known(http, token)
        assert (await http.get("/v1/memories", params={"user_id": "u"}, headers=token)).status_code == 200
    (counted,) = await check_access(settings)
    assert (counted.outcome, counted.what) == (Outcome.OK, "1 valid token, 0 expired, 0 revoked")


def here(settings: Settings, composed: Cluster, folder: Path) -> Settings:
    """The settings of the file, with this machine's places in those of the containers."""
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": composed.bootstrap_servers})
    http = settings.http.model_copy(update={"port": 0})
    return settings.model_copy(update={"kafka": kafka, "http": http, "data_dir": folder / "data"})


def topics_are_made(composed: Cluster, tools: Path) -> None:
    service = SERVICES["topics"]
    script = [interpolated(part).replace("kafka:19092", composed.inside) for part in service["command"]]
    variables = {**os.environ, **environment("topics"), "KAFKA_BIN": str(tools)}
    subprocess.run([*service["entrypoint"], *script], env=variables, stdout=subprocess.DEVNULL, check=True)


async def a_message_is_taken_in(settings: Settings) -> None:
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with producing(settings.kafka) as producer:
            await producer.send(b"u", line(0, "u", "user", 0))
        await until(lambda: _taken_in(worker), alive=worker)


def _taken_in(worker: Siltstone) -> bool:
    return any(session.open for _, session in worker.intake.windows.all_sessions())
