"""A right that is missing ends a worker, or is waited for, and in one line."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiokafka
import pytest

from schemas.rights import Operation, Right, group_right
from schemas.settings import KafkaSettings, Settings
from schemas.times import now_ms
from streams.kafka.bulk import producing
from tests.kafka.acls import grant, revoke
from tests.kafka.secured import PASSWORD, USER, Secured
from tests.kafka.test_rights import create, fresh, rights_of
from tests.support.making import line
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import SILTSTONE, WorkerProcess, asked, ours, worker_process


def environment(kafka: KafkaSettings) -> dict[str, str]:
    return {
        "SILTSTONE_KAFKA__SECURITY_PROTOCOL": kafka.security_protocol,
        "SILTSTONE_KAFKA__SASL_MECHANISM": kafka.sasl_mechanism,
        "SILTSTONE_KAFKA__SASL_USERNAME": USER,
        "SILTSTONE_KAFKA__SASL_PASSWORD": PASSWORD,
        "SILTSTONE_KAFKA__CREATE_TOPICS": str(kafka.create_topics),
        "SILTSTONE_KAFKA__COMMIT_SECONDS": "0.2",
        "SILTSTONE_MEMORY__CAPACITY": "20",
    }


@contextmanager
def worker(settings: Settings, kafka: KafkaSettings, port: int, said: Path) -> Iterator[WorkerProcess]:
    """What it says on standard error goes to `said`."""
    of_its_own = settings.model_copy(update={"kafka": kafka})
    with (
        said.open("wb") as output,
        worker_process(of_its_own, port, environment_of_its_own=environment(kafka), stderr=output) as process,
    ):
        yield process


async def ended(process: subprocess.Popen[bytes]) -> int:
    await until(lambda: process.poll() is not None)
    return process.wait()


async def test_a_right_that_is_missing_at_the_start_is_one_line_and_exit_1(
    safe: Secured, settings: Settings, tmp_path: Path
) -> None:
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    missing = Right("WRITE", "topic", f"{kafka.topic_prefix}transitions")
    await grant(safe.brokers, USER, [right for right in rights_of(kafka, changelogs) if right != missing])
    said = tmp_path / "said"
    with worker(settings, kafka, free_port(), said) as process:
        assert await ended(process) == 1
    (line,) = said.read_text().splitlines()
    assert line.startswith(f"siltstone: Kafka does not allow User:{USER} {missing}: kafka-acls.sh ")


@pytest.mark.parametrize(
    ("operation", "topic"),
    [
        ("READ", "conversations"),
        ("WRITE", "long-term"),
        ("READ", "long-term"),
        ("READ", "summary-requests"),
        ("WRITE", "exchanges-changelog"),
    ],
)
async def test_a_right_that_is_taken_away_is_one_line_and_exit_1(
    safe: Secured, settings: Settings, tmp_path: Path, operation: str, topic: str
) -> None:
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    port, said = free_port(), tmp_path / "said"
    rights = rights_of(kafka, changelogs)
    (taken,) = [right for right in rights if right.operation == operation and right.name.endswith(topic)]
    await grant(safe.brokers, USER, rights)
    with worker(settings, kafka, port, said) as process:
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        await until(lambda: "worker ready" in said.read_text(), alive=process)
        await revoke(safe.brokers, USER, [taken])
        await say(safe, kafka)
        assert await ended(process) == 1
    # The record that is not of ours may have been read before the right was missed.
    _, last = (one for one in ours(said.read_text()) if "is a dead letter" not in one)
    assert last.startswith(f"siltstone: Kafka does not allow User:{USER} {taken}: kafka-acls.sh ")


async def say(safe: Secured, kafka: KafkaSettings) -> None:
    """Somebody who may, says so much that something is promoted."""
    inside = safe.settings(kafka, "BROKER")
    async with producing(inside) as producer:
        for i in range(60):
            await producer.send(b"u", line(i, "u", ("user", "assistant")[i % 2], i))
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=inside.bootstrap_servers) as foreign:
        await foreign.send_and_wait(f"{kafka.topic_prefix}long-term", b"not of ours", key=b"u")


async def test_read_on_the_group_is_waited_for(safe: Secured, settings: Settings, tmp_path: Path) -> None:
    """And said, in the log and in the health; once it is given, the worker is ready without anybody's doing."""
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    missing = group_right(kafka)
    await grant(safe.brokers, USER, [right for right in rights_of(kafka, changelogs) if right != missing])
    port, said = free_port(), tmp_path / "said"
    wanted = f"Kafka does not allow User:{USER} {missing}"
    with worker(settings, kafka, port, said) as process:
        await until(lambda: wanted in str(asked(port, "/readyz")), alive=process)
        assert wanted in said.read_text()
        await grant(safe.brokers, USER, [missing])
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        await revoke(safe.brokers, USER, [missing])
        await until(lambda: wanted in str(asked(port, "/readyz")), alive=process)
        await grant(safe.brokers, USER, [missing])
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        assert process.poll() is None
    assert "Traceback" not in said.read_text()


def siltstone(settings: Settings, kafka: KafkaSettings, *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of a command."""
    done = subprocess.run(
        [*SILTSTONE, *arguments],
        env={**os.environ, **variables(settings, kafka)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def variables(settings: Settings, kafka: KafkaSettings) -> dict[str, str]:
    return {
        **environment(kafka),
        "SILTSTONE_MEMORY__SCORING__POLICY": "all",
        "SILTSTONE_DATA_DIR": str(settings.data_dir),
        "SILTSTONE_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "SILTSTONE_KAFKA__TOPIC_PREFIX": kafka.topic_prefix,
        "SILTSTONE_KAFKA__GROUP_ID": kafka.group_id,
        "SILTSTONE_KAFKA__PARTITIONS": str(kafka.partitions),
    }


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    file = tmp_path / "chats.jsonl"
    file.write_bytes(line(1, "u", "user", 1, timestamp=now_ms()) + b"\n")
    return file


async def test_ingest_needs_write_on_conversations_alone(safe: Secured, settings: Settings, chats: Path) -> None:
    """Without it, the right is named; with DESCRIBE alone as well."""
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    conversations = f"{kafka.topic_prefix}conversations"
    wanted = f"siltstone: Kafka does not allow User:{USER} WRITE on topic {conversations}: kafka-acls.sh "
    code, said = await asyncio.to_thread(siltstone, settings, kafka, "ingest", str(chats))
    assert (code, said.count("\n"), said[: len(wanted)]) == (1, 1, wanted)
    await grant(safe.brokers, USER, [Right("DESCRIBE", "topic", conversations)])
    code, said = await asyncio.to_thread(siltstone, settings, kafka, "ingest", str(chats))
    assert (code, said.count("\n"), said[: len(wanted)]) == (1, 1, wanted)
    await grant(safe.brokers, USER, [Right("WRITE", "topic", conversations)])
    code, said = await asyncio.to_thread(siltstone, settings, kafka, "ingest", str(chats))
    assert (code, said.strip()) == (0, "")


@pytest.mark.parametrize(
    ("operation", "topic"), [("READ", "conversations"), ("READ", "long-term"), ("WRITE", "long-term")]
)
async def test_replay_names_the_right_that_is_missing(
    safe: Secured, settings: Settings, operation: Operation, topic: str
) -> None:
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    missing = Right(operation, "topic", f"{kafka.topic_prefix}{topic}")
    await grant(safe.brokers, USER, [right for right in rights_of(kafka, changelogs) if right != missing])
    await say(safe, kafka)
    code, said = await asyncio.to_thread(siltstone, settings, kafka, "replay")
    wanted = f"siltstone: Kafka does not allow User:{USER} {missing}: kafka-acls.sh "
    assert (code, said.count("\n"), said[: len(wanted)]) == (1, 1, wanted)
