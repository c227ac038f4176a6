"""Sends the messages of a set through a real worker, and then asks its questions."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Final, Literal

import click
import orjson
from rich.console import Console
from rich.progress import track

from benchmarks.evidence.sets import Lines, Question
from schemas.memories import SearchHit, State
from schemas.settings import (
    EmbeddingSettings,
    HttpSettings,
    LifecycleSettings,
    MemorySettings,
    ScoringSettings,
    Settings,
)
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import embedded_broker
from streams.recall.dates import ReferenceDate
from streams.recall.query import Query
from streams.telemetry.metrics import labelled

#: More memories than any user of the sets has, because the rank of evidence counts however low it is.
ALL_OF_THEM: Final = 100_000
STALLED_SECONDS: Final = 120.0


@asynccontextmanager
async def fed(messages: Lines, policy: str, backend: str, model: str) -> AsyncIterator[Siltstone]:
    """A worker that has taken in all messages under a promotion policy, with every session ended.

    What the model needs besides its name, such as prefixes, comes from the environment: `SILTSTONE_EMBEDDING__…`. So
    does a reranker: `SILTSTONE_RERANK__…`.
    """
    ends = {(m["user_id"], m["session_id"]): m["timestamp"] for m in messages}
    records: Lines = messages + [
        {"type": "session_end", "user_id": user, "session_id": session, "timestamp": at}
        for (user, session), at in ends.items()
    ]
    with embedded_broker() as broker, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder),
            http=HttpSettings(port=0),
            lifecycle=LifecycleSettings(clock="event"),
            memory=MemorySettings(scoring=ScoringSettings.model_validate({"policy": policy})),
            embedding=EmbeddingSettings.model_validate(
                {**dict(Settings.load().embedding), "backend": backend, "model": model}
            ),
        )
        settings = settings.model_copy(update={"kafka": broker.settings(settings.kafka)})
        async with running.started(settings) as worker:
            await running.until_ready(worker)
            async with producing(settings.kafka) as producer:
                for record in records:
                    await producer.send(record["user_id"].encode(), orjson.dumps(record))
            await _written(worker, len(records))
            yield worker


async def _written(worker: Siltstone, messages: int) -> None:
    """Wait until all messages are taken in and all promotions are in the shards."""
    moved = time.monotonic(), -1
    while True:
        kept = worker.metrics.taken_in()
        taken = worker.hot.processed(worker.topics.conversations)
        if taken >= messages and kept >= worker.metrics.promoted():
            return
        if taken + kept != moved[1]:
            moved = time.monotonic(), taken + kept
        elif time.monotonic() - moved[0] > STALLED_SECONDS:
            raise click.ClickException(f"no progress: {taken} of {messages} messages, {kept} memories")
        await asyncio.sleep(0.1)


async def answers(
    worker: Siltstone, questions: Iterable[Question], *, explain: bool = False, quiet: bool = False
) -> AsyncIterator[tuple[Question, list[SearchHit]]]:
    """Each question with all of its user's memories, in every state, best first. Windows are left out."""
    for question in track(list(questions), "asking", console=Console(stderr=True, quiet=quiet)):
        yield question, await worker.recall.search(_query(worker, question, explain))


async def without(worker: Siltstone, question: Question, step: Literal["updates", "times"]) -> list[SearchHit]:
    """The same memories without a step: newer statements before older ones, or times and order of the question."""
    query = _query(worker, question, explain=False)
    if step == "times":
        return await worker.recall.search(replace(query, reference=None))
    worker.recall._updates = False
    try:
        return await worker.recall.search(query)
    finally:
        worker.recall._updates = True


async def reranked(worker: Siltstone, question: Question) -> list[SearchHit]:
    """The same memories in the order of the settings' reranker. It is asked again until it answers in time."""
    query, began = replace(_query(worker, question, explain=False), rerank=True), time.monotonic()
    while time.monotonic() - began < STALLED_SECONDS:
        before = labelled(worker.metrics.rerank).get(("done",), 0)
        hits = await worker.recall.search(query)
        if labelled(worker.metrics.rerank).get(("done",), 0) > before:
            return hits
        await asyncio.sleep(1)
    raise click.ClickException("the reranker does not answer in time: see the log, or raise rerank.timeout_seconds")


def _query(worker: Siltstone, question: Question, explain: bool) -> Query:
    """Ask at the time that the set says, or after everything that was said."""
    return Query(
        user_id=question.user_id,
        text=question.text,
        top_k=ALL_OF_THEM,
        states=frozenset(State),
        explain=explain,
        touch=False,
        short_term=False,
        rerank=False,
        reference=ReferenceDate(question.asked_at or worker.clock.now(), UTC),
    )
