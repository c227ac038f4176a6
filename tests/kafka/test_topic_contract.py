"""Topics are created as they must be, and compared with it: what loses memory is refused, the rest warned of."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence

import pytest

from schemas.errors import TopicsUnfit
from schemas.settings import Settings
from schemas.topic_specs import changelog_specs, topic_specs
from schemas.topics import SESSIONS, Topics, changelog_of
from streams.doctor.broker import check_broker
from streams.doors.cli import running
from streams.kafka.clients.broker import admin_client
from streams.kafka.topics.contract import compare, settings_of, worker_topics
from tests.kafka.cluster import Cluster, Node


async def set_up(broker: Cluster, settings: Settings, configs: Mapping[str, Mapping[str, str]]) -> None:
    """A worker's topics, of which these are changed."""
    await worker_topics(settings.kafka)
    for topic, changes in configs.items():
        added = ",".join(f"{name}=[{value}]" for name, value in changes.items())
        change = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", added)
        run(broker.nodes[0], "kafka-configs.sh", "--bootstrap-server", broker.bootstrap_servers, *change)


def run(node: Node, tool: str, *arguments: str) -> None:
    assert node.run(tool, *arguments).wait(60) == 0, node.said()[-2000:]


def mended_by(broker: Cluster, problem: str) -> None:
    """Run the command that a line ends with."""
    tool, *arguments = shlex.split(problem[problem.index("kafka-configs.sh") :])
    run(broker.nodes[0], tool, *arguments)


async def test_topics_that_a_worker_makes_are_as_they_must_be(settings: Settings) -> None:
    """Whatever the cluster's defaults are: `long-term` is kept for ever, changelogs have small segments."""
    await worker_topics(settings.kafka)
    async with admin_client(settings.kafka) as admin:
        specs = (*topic_specs(settings.kafka), *changelog_specs(settings.kafka))
        names = [spec.name for spec in specs]
        while len(told := await settings_of(admin, names)) < len(names):  # noqa: ASYNC110 - new topics spread slowly
            await asyncio.sleep(0.1)
        compared = await compare(admin, settings.kafka)
    for spec in specs:
        assert told[spec.name].items() >= spec.configs().items()
    assert compared.unfit == []


@pytest.mark.parametrize(
    ("topic", "change"),
    [
        ("long-term", {"retention.ms": "60000"}),
        ("long-term", {"cleanup.policy": "compact"}),
        ("conversations", {"cleanup.policy": "compact"}),
        ("sessions", {"cleanup.policy": "delete"}),
        ("long-term", {"max.message.bytes": "1000", "retention.bytes": "100000"}),
    ],
)
async def test_what_loses_memory_is_refused_until_its_command_was_run(
    broker: Cluster, settings: Settings, topic: str, change: Mapping[str, str]
) -> None:
    """The line names topic, setting and value, and ends with the command; after it, the worker starts."""
    kafka = settings.kafka
    name = changelog_of(kafka.group_id, SESSIONS) if topic == SESSIONS else kafka.topic_prefix + topic
    await set_up(broker, settings, {name: change})
    with pytest.raises(TopicsUnfit) as refused:
        async with running.started(settings):
            pass
    (problem,) = refused.value.problems
    assert ("failed", problem) in [
        (finding.outcome, f"topic {finding.what}: {finding.todo}") for finding in await check_broker(settings)
    ]
    assert problem.startswith(f"topic {name}: ")
    assert all(f"{setting} is {value}: " in problem for setting, value in change.items())
    mended_by(broker, problem)
    async with running.started(settings) as worker:
        await running.until_ready(worker)


async def test_what_is_only_worse_is_a_line_each_and_the_worker_starts(
    broker: Cluster, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    changelog = changelog_of(settings.kafka.group_id, SESSIONS)
    worse: Mapping[str, Mapping[str, str]] = {
        names.conversations: {"retention.ms": "60000", "message.timestamp.type": "LogAppendTime"},
        names.dead_letters: {"max.message.bytes": "1000"},
        changelog: {"segment.bytes": "1073741824", "min.cleanable.dirty.ratio": "0.5"},
    }
    await set_up(broker, settings, worse)
    caplog.clear()
    async with running.started(settings) as worker:
        await running.until_ready(worker)
    lines = warned(caplog.messages)
    assert list(lines) == [names.conversations, names.dead_letters, changelog]
    for topic, changes in worse.items():
        (line,) = lines[topic]
        assert all(f"{setting} is {value}: " in line for setting, value in changes.items())
        mended_by(broker, line)
    caplog.clear()
    await worker_topics(settings.kafka)
    assert warned(caplog.messages) == {}


def warned(messages: Sequence[str]) -> dict[str, list[str]]:
    """Lines about topics, by topic."""
    lines: dict[str, list[str]] = {}
    for message in messages:
        if found := re.match(r"topic (\S+): .*kafka-configs\.sh", message):
            lines.setdefault(found[1], []).append(message)
    return lines
