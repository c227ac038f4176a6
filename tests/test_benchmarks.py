"""Benchmarks on a Kafka that others use, too: what is theirs stays, and what is wrong is said in a line."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import httpx
import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from click.testing import CliRunner

from benchmarks import intake, retrieval, sustained
from benchmarks.load.topics import deleted_afterwards, of_its_own
from benchmarks.sustained import in_a_line
from schemas.settings import KafkaSettings, Settings
from streams.clients.broker import admin_client, ensure_topics


async def topics(kafka: KafkaSettings) -> set[str]:
    async with admin_client(kafka) as admin:
        return set(await admin.list_topics())


def test_each_run_has_a_prefix_and_a_group_that_nobody_else_has() -> None:
    first, second = (of_its_own("intake", "127.0.0.1:9092", 4, 3) for _ in range(2))
    assert first.topic_prefix == f"{first.group_id}."
    assert (first.group_id != second.group_id, first.partitions, first.replication) == (True, 4, 3)


async def test_a_runs_topics_are_deleted_whatever_comes_of_it_and_no_others(settings: Settings) -> None:
    theirs = settings.kafka
    await ensure_topics(theirs)
    before = await topics(theirs)
    ours = of_its_own("intake", theirs.bootstrap_servers, 2)

    async def run() -> None:
        async with deleted_afterwards(ours):
            await ensure_topics(ours)
            made = await topics(theirs) - before
            assert {name for name in made if name.startswith(ours.topic_prefix)} == made != set()
            raise ValueError("it failed")

    with pytest.raises(ValueError, match="it failed"):
        await run()
    assert await topics(theirs) == before


@pytest.mark.parametrize("benchmark", [intake, sustained], ids=["intake", "sustained"])
def test_a_broker_that_does_not_answer_is_one_line(benchmark: Any) -> None:
    done = CliRunner().invoke(benchmark.main, ["--bootstrap-servers", "127.0.0.1:1"])
    assert done.exit_code == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert told == done.stderr.splitlines()[-1:]
    assert "no Kafka broker answers at 127.0.0.1:1" in told[0]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TopicAuthorizationFailedError("t"), "the broker does not take what is produced: TopicAuthorizationFailed"),
        (httpx.ConnectError("gone"), "the worker does not answer: its last words"),
    ],
    ids=["broker", "worker"],
)
async def test_what_is_refused_beside_other_work_is_one_line(error: Exception, said: str) -> None:
    """A group of tasks raises a group of errors, which is a page where it leaves a benchmark."""

    async def refused() -> None:
        raise error

    async def at_work() -> None:
        with in_a_line(lambda: "its last words"):
            async with asyncio.TaskGroup() as beside:
                beside.create_task(refused())

    with pytest.raises(click.ClickException, match=said):
        await at_work()


async def test_what_is_wrong_with_the_benchmark_itself_is_not_hidden() -> None:
    with pytest.raises(ExceptionGroup, match="tasks"), in_a_line(lambda: ""):
        raise ExceptionGroup("tasks", [ValueError("a mistake")])


def test_retrieval_is_measured_under_the_shipped_policy_unless_told_otherwise() -> None:
    (option,) = [each for each in retrieval.main.params if each.name == "policy"]
    assert option.default == Settings().memory.scoring.policy == "weighted"
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == {"weighted", "llm", "all"}
