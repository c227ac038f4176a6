"""The benchmarks on Apache Kafka: what they measure is all there, and their topics are gone afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks import intake, sustained
from tests.kafka.cluster import Cluster

ROOT = Path(__file__).parent.parent.parent


async def topics(of: Cluster) -> set[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=of.inside)
    await admin.start()
    try:
        return {name for name in await admin.list_topics() if not name.startswith("__")}
    finally:
        await admin.close()


async def test_a_contender_has_committed_all_and_leaves_nothing(
    three: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On three replicas, of which two have to have what is written, its changelog included."""
    plain = next(one for one in intake.CONTENDERS if one.name == "plain-faust")
    monkeypatch.setattr(intake, "CONTENDERS", (plain,))
    work = intake.Work(60, 2, bootstrap_servers=three.bootstrap_servers, replication=3)
    told = (await intake.measure_round(0, work, lambda _: None))["plain-faust"]
    assert told["seen"] == 60
    assert told["changelog_bytes"] > 0
    assert await topics(three) == set()


async def test_under_load_each_promotion_is_in_memory_and_the_topics_are_gone(three: Cluster) -> None:
    place = sustained.place_at(None, three.bootstrap_servers, 2, 3)
    figures = await sustained.measure(place, 50, 5, promotions_only=True)
    assert figures["taken_in"] == figures["produced"]
    assert figures["memories"] == figures["promoted"] > 0
    assert await topics(three) == set()


def test_brokers_are_served_until_they_are_ended() -> None:
    """What is printed is what a benchmark is to be told."""
    command = [sys.executable, "-m", "tests.kafka.serve"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        told = serving.stdout.readline().split()
        serving.terminate()
        assert serving.wait(60) == 0
    assert (told[0], told[2:]) == ("--bootstrap-servers", ["--replication", "1"])
