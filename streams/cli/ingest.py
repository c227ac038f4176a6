"""`siltstone ingest`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import click
import orjson
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from schemas.errors import BadRecord, SiltstoneError
from schemas.messages import ChatMessage, SessionEnded
from schemas.rights import Right
from schemas.settings import KafkaSettings, Settings
from schemas.topics import Topics, key_of
from streams.cli import show
from streams.cli.client import json_option
from streams.cli.process import run
from streams.clients.broker import NOT_ALLOWED, ensure_topics, require_topics, translated
from streams.clients.producing import started_producer
from streams.clients.rights import require_write
from streams.clock import now_ms
from streams.dead_letters import invalid, json_object


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--bootstrap-servers", help="The Kafka brokers, host:port.  [default: kafka.bootstrap_servers]")
@json_option
def ingest(file: Path, bootstrap_servers: str | None, as_json: bool) -> None:
    """Produce the chat messages of FILE, one JSON object a line, to the conversations topic.

    A bad line is reported with its number and the rest goes on; the exit code is 1 if any was bad.
    """
    kafka = Settings.load().kafka
    if bootstrap_servers:
        kafka = kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    started = time.monotonic()
    produced, bad = run(_ingest(file, file.stat().st_size, kafka))
    seconds = time.monotonic() - started
    if as_json:
        show.as_json({"produced": produced, "bad": bad, "seconds": round(seconds, 3)})
    else:
        click.echo(
            f"{produced} messages in {seconds:.1f} s ({produced / max(seconds, 1e-9):,.0f}/s), {bad} bad lines"
        )
    if bad:
        raise SystemExit(1)


async def _ingest(file: Path, size: int, kafka: KafkaSettings) -> tuple[int, int]:
    if not await require_write(kafka, Topics.with_prefix(kafka.topic_prefix).conversations):
        await ensure_topics(kafka, check=False)
        if not kafka.create_topics:  # a producer would make them, on a cluster that allows it
            await require_topics(kafka)
    bad = 0
    progress = Progress(
        TextColumn("producing"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task("", total=size, rate="")
        async with producing(kafka) as producer:
            read, produced, started = 0, 0, time.monotonic()
            for number, line, problem in lines(file):
                read += len(line)
                if problem is not None:
                    bad += 1
                    progress.console.print(f"{file.name}:{number}: {problem}", markup=False)
                    continue
                if line.strip():
                    await producer.send(key_of(orjson.loads(line)["user_id"]), line.strip())
                    produced += 1
                if number % 500 == 0:
                    rate = f"{produced / (time.monotonic() - started):,.0f}/s"
                    progress.update(task, completed=read, rate=rate)
    return produced, bad


def lines(file: Path) -> Iterator[tuple[int, bytes, BadRecord | None]]:
    """Each line with its number, and what is wrong with it. Empty lines are fine."""
    with file.open("rb") as opened:
        for number, line in enumerate(opened, start=1):
            problem = None
            if line.strip():
                try:
                    said(line)
                except BadRecord as exc:
                    problem = exc
            yield number, line, problem


def said(line: bytes) -> ChatMessage | SessionEnded:
    """The record in a line. Raises `BadRecord`."""
    fields = json_object(line)
    fields.setdefault("timestamp", fields.get("created_at", now_ms()))
    model = SessionEnded if fields.get("type") == "session_end" else ChatMessage
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        raise invalid(exc) from exc


class producing:  # noqa: N801  (reads as what happens in the block)
    """A producer of `conversations` records; everything is acknowledged at the end of the block.

    Then `ends` has the offset after the newest one of each partition.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._topic = Topics.with_prefix(kafka.topic_prefix).conversations
        self._sent: list[asyncio.Future[Any]] = []
        self.ends: dict[int, int] = {}

    async def __aenter__(self) -> producing:
        self._producer = await started_producer(self._kafka, linger_ms=20, max_batch_size=262_144)
        return self

    async def send(self, key: bytes | None, value: bytes | None) -> None:
        """Send one record; waits only where the producer's buffer is full."""
        try:
            self._sent.append(await self._producer.send(self._topic, value, key=key))
        except NOT_ALLOWED as exc:
            raise await self._failed(exc) from exc
        if len(self._sent) >= 10_000:
            await self._settle()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._settle()
        finally:
            await self._producer.stop()

    async def _settle(self) -> None:
        sent, self._sent = self._sent, []
        for future in sent:
            try:
                record = await future
            except aiokafka.errors.KafkaError as exc:
                raise await self._failed(exc) from exc
            self.ends[record.partition] = max(record.offset + 1, self.ends.get(record.partition, 0))

    async def _failed(self, exc: aiokafka.errors.KafkaError) -> SiltstoneError:
        return await translated(self._kafka, exc, Right("WRITE", "topic", self._topic))
