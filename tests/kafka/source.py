"""Where Apache Kafka comes from: a distribution in `KAFKA_HOME`, or Docker's image where an engine runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import yaml

from streams.runtime.children import die_with_parent

ROOT = Path(__file__).parent.parent.parent
MISSING = (
    "test-kafka: there is no Apache Kafka: set KAFKA_HOME to a distribution of it (with Java 17 or newer), or start "
    "Docker's engine"
)
#: Several of them run beside tests on a small machine: small heaps, quick starts; no file of figures in /tmp.
ENVIRONMENT = {
    "KAFKA_HEAP_OPTS": "-Xms64m -Xmx256m",
    "KAFKA_JVM_PERFORMANCE_OPTS": "-server -XX:+UseSerialGC",
    "KAFKA_OPTS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError",
}


class Running(Protocol):
    """A process of Kafka's, here or in a container."""

    def send_signal(self, number: int) -> None: ...

    def wait(self, seconds: float) -> int: ...

    def poll(self) -> int | None: ...


class Source(Protocol):
    """Runs Kafka's own tools, by their names in `bin/`; they find `folder` where it is."""

    def start(self, folder: Path, output: IO[bytes], tool: str, *arguments: str) -> Running: ...


def found(environment: Mapping[str, str] = os.environ) -> Source | None:
    """`KAFKA_HOME` goes before Docker; None where there is neither."""
    if home := environment.get("KAFKA_HOME"):
        tool = Path(home).resolve() / "bin" / "kafka-server-start.sh"
        return Distribution(tool.parent) if tool.is_file() else None
    if (docker := shutil.which("docker")) is None:
        return None
    asked = subprocess.run([docker, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return Image(docker, image_of_compose()) if asked.returncode == 0 else None


def image_of_compose() -> str:
    """What docker-compose.yml runs is what is tested."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return str(compose["services"]["kafka"]["image"])


@dataclass(frozen=True, slots=True)
class Distribution:
    """An unpacked distribution; `tools` is its `bin`."""

    tools: Path

    def start(self, folder: Path, output: IO[bytes], tool: str, *arguments: str) -> Running:
        process = subprocess.Popen(
            [str(self.tools / tool), *arguments],
            env={**os.environ, **ENVIRONMENT, "LOG_DIR": str(folder)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=partial(die_with_parent, os.getpid()),
            process_group=0,  # a Ctrl-C is for the tests, which end it
        )
        return _Child(process)


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)

    def poll(self) -> int | None:
        return self.process.poll()


@dataclass(frozen=True, slots=True)
class Image:
    """An image with Kafka in /opt/kafka, on this machine's network: brokers are at the ports that they are told."""

    docker: str
    image: str

    def start(self, folder: Path, output: IO[bytes], tool: str, *arguments: str) -> Running:
        name = f"siltstone-test-{uuid.uuid4().hex[:12]}"
        user = f"{os.getuid()}:{os.getgid()}"
        variables = [word for item in ENVIRONMENT.items() for word in ("--env", "=".join(item))]
        process = subprocess.Popen(
            [
                *(self.docker, "run", "--rm", "--name", name, "--network", "host"),
                *("--volume", f"{folder}:{folder}", "--workdir", str(folder), "--user", user),
                *variables,
                *("--env", f"LOG_DIR={folder}", "--entrypoint", f"/opt/kafka/bin/{tool}", self.image, *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        return _Container(self.docker, name, process)


@dataclass(frozen=True, slots=True)
class _Container:
    docker: str
    name: str
    client: subprocess.Popen[bytes]

    def send_signal(self, number: int) -> None:
        """To the container: its client would keep SIGKILL and SIGSTOP for itself."""
        if self.client.poll() is None:
            words = [self.docker, "kill", "--signal", signal.Signals(number).name, self.name]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def wait(self, seconds: float) -> int:
        return self.client.wait(seconds)

    def poll(self) -> int | None:
        return self.client.poll()
