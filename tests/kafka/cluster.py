"""One to three brokers of Apache Kafka on loopback ports, each a controller as well; gone when the block ends."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient

from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import EMBEDDED_PARTITIONS
from streams.runtime.ports import reserved_port
from tests.kafka.source import Running, Source
from tests.support.groups import LONG_MISSED
from tests.support.one_fleet import one_fleet

START_SECONDS = 90.0
#: CLIENT is for those who are tested, and is as secure as a test wants it; BROKER is for the brokers and for asking
#: what is so.
LISTENERS = ("CLIENT", "BROKER", "CONTROLLER")
NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class Node:
    """A broker: its folder, its ports by listener, and its process while it runs."""

    number: int
    folder: Path
    ports: Mapping[str, int]
    source: Source
    process: Running | None = None

    @property
    def config(self) -> str:
        return str(self.folder / "server.properties")

    def said(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    def run(self, tool: str, *arguments: str) -> Running:
        with (self.folder / "output").open("ab") as output:
            return self.source.start(self.folder, output, tool, *arguments)

    def asked(self, tool: str, *arguments: str) -> str:
        """What a tool of Kafka's answers."""
        answer = self.folder / "answer"
        with answer.open("wb") as output:
            ended = self.source.start(self.folder, output, tool, *arguments).wait(START_SECONDS)
        told = answer.read_text(errors="replace")
        if ended:
            raise RuntimeError(f"{tool} failed: {told[-2000:]}")
        return told

    def start(self) -> None:
        self.process = self.run("kafka-server-start.sh", self.config)

    def kill(self) -> None:
        """Without a word."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)
            self.process = None

    def stop(self) -> None:
        """In good order: what it leads goes to others first."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process = None

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What runs; `bootstrap_servers` are the clients' listeners, `inside` those without security."""

    nodes: Sequence[Node]
    replication: int = field(default=1)

    @property
    def bootstrap_servers(self) -> str:
        return self.servers("CLIENT")

    @property
    def inside(self) -> str:
        return self.servers("BROKER")

    def servers(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{node.ports[listener]}" for node in self.nodes)

    def settings(self, kafka: KafkaSettings) -> KafkaSettings:
        """These settings for these brokers; `SOON_MISSED` where workers are killed."""
        return kafka.model_copy(
            update={
                "bootstrap_servers": self.bootstrap_servers,
                "partitions": kafka.partitions if "partitions" in kafka.model_fields_set else EMBEDDED_PARTITIONS,
                "replication": self.replication,
                **LONG_MISSED,
            }
        )

    def controller(self) -> Node:
        """The one that leads the quorum."""
        told = self.nodes[0].asked(
            "kafka-metadata-quorum.sh", "--bootstrap-server", self.inside, "describe", "--status"
        )
        leader = re.search(r"LeaderId:\s*(\d+)", told)
        assert leader is not None, told
        return next(node for node in self.nodes if node.number == int(leader[1]))

    def wait_until_up(self) -> None:
        """All brokers that run are registered, and groups have a coordinator, which a new Kafka has not at first."""
        failed: list[BaseException] = []

        def wait() -> None:
            try:
                asyncio.run(_until_up(self))
            except BaseException as exc:
                failed.append(exc)

        thread = threading.Thread(target=wait)  # whoever calls may have a loop
        thread.start()
        thread.join()
        if failed:
            raise failed[0]


@contextlib.contextmanager
def cluster(
    source: Source,
    brokers: int = 1,
    *,
    protocol: str = "PLAINTEXT",
    also: Mapping[str, str] = NONE,
    properties: Mapping[str, str] = NONE,
    users: Mapping[str, str] = NONE,
    told: Callable[[Node], Mapping[str, str]] | None = None,
) -> Iterator[Cluster]:
    """So many brokers, with these `properties` besides the tests' own, or exactly those that they are `told`.

    `also` are further listeners, with their protocols; `users` are SCRAM-SHA-256's, with passwords.
    """
    with contextlib.ExitStack() as stack:
        if brokers > 1:
            stack.enter_context(one_fleet())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="siltstone-kafka-")))
        nodes = []
        for number in range(1, brokers + 1):
            ports = {listener: stack.enter_context(reserved_port()) for listener in (*also, *LISTENERS)}
            (folder / str(number)).mkdir()
            nodes.append(Node(number, folder / str(number), ports, source))
        for node in nodes:
            given = told(node) if told else {**properties_of(node, nodes, protocol, also), **properties}
            Path(node.config).write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        _format(nodes, users)
        running = Cluster(nodes, min(3, brokers))
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        running.wait_until_up()
        yield running


def properties_of(node: Node, nodes: Sequence[Node], protocol: str, also: Mapping[str, str] = NONE) -> dict[str, str]:
    """What a broker of the tests is told; topics are what they are created as, and groups begin at once."""
    copies = str(min(3, len(nodes)))
    at = ",".join(f"{name}://127.0.0.1:{node.ports[name]}" for name in node.ports)
    protocols = {"CLIENT": protocol, "BROKER": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **also}
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": ",".join(f"{one.number}@127.0.0.1:{one.ports['CONTROLLER']}" for one in nodes),
        "listeners": at,
        "advertised.listeners": at.rpartition(",")[0],
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": ",".join(f"{name}:{of}" for name, of in protocols.items()),
        "log.dirs": str(node.folder / "log"),
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(8 * 1024 * 1024),
        "num.partitions": "1",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": str(max(1, int(copies) - 1)),
        "share.coordinator.state.topic.replication.factor": copies,
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # A test's broker is dead or alive: what it is doing meanwhile interests nobody.
        "broker.session.timeout.ms": "6000",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def _format(nodes: Sequence[Node], users: Mapping[str, str]) -> None:
    identity = base64.urlsafe_b64encode(uuid.UUID(int=uuid.uuid4().int >> 1).bytes)[:22].decode()
    scram = [
        word
        for user, password in users.items()
        for word in ("--add-scram", f"SCRAM-SHA-256=[name={user},password={password}]")
    ]
    at_work = [node.run("kafka-storage.sh", "format", "-t", identity, "-c", node.config, *scram) for node in nodes]
    for node, formatting in zip(nodes, at_work, strict=True):
        if formatting.wait(START_SECONDS):
            raise RuntimeError(f"Kafka's storage could not be formatted: {node.said()[-2000:]}")


async def _listening(running: Cluster) -> None:
    for node in running.nodes:
        if node.process is not None:
            _, writer = await asyncio.open_connection("127.0.0.1", node.ports["BROKER"])
            writer.close()


async def _until_up(running: Cluster) -> None:
    deadline, wanted = time.monotonic() + START_SECONDS, sum(node.process is not None for node in running.nodes)
    while True:
        admin = AIOKafkaAdminClient(bootstrap_servers=running.inside, request_timeout_ms=5_000)
        try:
            await _listening(running)
            await admin.start()
            if len((await admin.describe_cluster())["brokers"]) == wanted:
                await admin.find_coordinator("anybody")
                return
        except (aiokafka.errors.KafkaError, OSError) as exc:
            reason: Exception | None = exc
        else:
            reason = None
        finally:
            await admin.close()
        ended = [node for node in running.nodes if node.process is not None and node.process.poll() is not None]
        if ended or time.monotonic() > deadline:
            said = (ended or running.nodes)[0].said()[-3000:]
            raise RuntimeError(f"Apache Kafka did not start ({reason!r}): {said}")
        await asyncio.sleep(0.1)
