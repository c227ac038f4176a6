"""How well memories are found: the evidence of questions about real conversations, through the real worker.

    python benchmarks/retrieval.py MESSAGES.jsonl QUESTIONS.jsonl [--names USERS.jsonl]
        [--policy weighted] [--backend use] [--model NAME_OR_FOLDER] [--json]

Messages go through the broker, the windows and the shards, as any producer's do, under the policy that is shipped:
what it does not promote no question finds, and what windows still hold of that is not looked through. Under `--policy
all` every exchange is a memory, and what is measured is the search alone. Each question is searched among its own
user's memories, in every state. R@k is the share of its evidence in the first k, MRR one over the rank of the first;
questions without evidence and adversarial ones are left out. Where a question names `evidence_equivalents`, any
message of a group will do.

A line of `--names` gives the speakers of a user's conversations: `{"user_id", "user_name", "assistant_name"}`.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, get_args

import click
import numpy as np
import orjson
from rich.console import Console
from rich.progress import track
from rich.table import Table

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
from streams.cli import running
from streams.cli.ingest import producing
from streams.cli.process import run
from streams.clients.broker import embedded_broker
from streams.recall import Query

KS: Final = (1, 3, 5, 10)
#: More than any user of the sets has: the rank of the evidence is wanted, however low.
ALL_OF_THEM: Final = 100_000
STALLED_SECONDS: Final = 120.0

SHIPPED: Final = ScoringSettings().policy
POLICIES: Final = get_args(ScoringSettings.model_fields["policy"].annotation)

Lines = list[dict[str, Any]]
File = click.Path(exists=True, dir_okay=False, path_type=Path)


def lines(path: Path) -> Lines:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def named(messages: Lines, users: Lines) -> Lines:
    """The messages with their speakers' names."""
    names = {user["user_id"]: {role: user[f"{role}_name"] for role in ("user", "assistant")} for user in users}
    return [{**message, "name": names[message["user_id"]].get(message["role"])} for message in messages]


def ranks(hits: list[SearchHit], evidence: Iterable[str | list[str]]) -> list[float]:
    """For each memory that holds evidence, its rank from 1; infinity where it is not among the hits."""
    place = {message: rank for rank, hit in enumerate(hits, 1) for message in hit.message_ids}
    groups = [[one] if isinstance(one, str) else one for one in evidence]
    memories = {frozenset(place.get(message, np.inf) for message in group) for group in groups}
    return sorted(min(memory) for memory in memories)


def measured(found: list[float]) -> list[float]:
    """R@1, 3, 5, 10 and the reciprocal rank of the first."""
    return [sum(rank <= k for rank in found) / len(found) for k in KS] + [1 / found[0]]


async def written(worker: Siltstone, messages: int) -> None:
    """Wait until everything is taken in, and what was promoted is in the shards."""
    moved = time.monotonic(), -1
    while True:
        kept = worker.metrics.taken_in()
        taken = worker.hot.processed(worker.topics.conversations)
        if taken >= messages and kept >= worker.metrics.promoted():
            return
        if taken + kept != moved[1]:
            moved = time.monotonic(), taken + kept
        elif time.monotonic() - moved[0] > STALLED_SECONDS:
            raise click.ClickException(f"nothing moves: {taken} of {messages} messages, {kept} memories")
        await asyncio.sleep(0.1)


async def results(
    messages: Lines, questions: Lines, policy: str, backend: str, model: str, quiet: bool
) -> dict[str, list[list[float]]]:
    """What was measured of each question, by category."""
    ends = {(m["user_id"], m["session_id"]): m["timestamp"] for m in messages}
    records: Lines = messages + [
        {"type": "session_end", "user_id": user, "session_id": session, "timestamp": at}
        for (user, session), at in ends.items()
    ]
    found: dict[str, list[list[float]]] = defaultdict(list)
    with embedded_broker() as broker, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder),
            http=HttpSettings(port=0),
            lifecycle=LifecycleSettings(clock="event"),
            memory=MemorySettings(scoring=ScoringSettings.model_validate({"policy": policy})),
            embedding=EmbeddingSettings.model_validate({"backend": backend, "model": model}),
        )
        settings = settings.model_copy(update={"kafka": broker.settings(settings.kafka)})
        async with running.started(settings) as worker:
            await running.until_ready(worker)
            async with producing(settings.kafka) as producer:
                for record in records:
                    await producer.send(record["user_id"].encode(), orjson.dumps(record))
            await written(worker, len(records))
            for question in track(questions, "asking", console=Console(stderr=True, quiet=quiet)):
                query = Query(
                    user_id=question["user_id"],
                    text=question["question"],
                    top_k=ALL_OF_THEM,
                    states=frozenset(State),
                    touch=False,
                    short_term=False,
                )
                evidence = question.get("evidence_equivalents") or question["evidence_message_ids"]
                found[question["category"]].append(measured(ranks(await worker.recall.search(query), evidence)))
    return found


@click.command()
@click.argument("messages", type=File)
@click.argument("questions", type=File)
@click.option("--names", type=File, help="Who speaks in each user's conversations.")
@click.option("--policy", type=click.Choice(POLICIES), default=SHIPPED, show_default=True, help="What is promoted.")
@click.option("--backend", default="use", show_default=True, help="The embedding backend.")
@click.option("--model", default="", help="The embedding model: a name, or a folder.  [default: the backend's]")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(
    messages: Path, questions: Path, names: Path | None, policy: str, backend: str, model: str, as_json: bool
) -> None:
    """Measure how well the evidence of questions is found."""
    said = named(lines(messages), lines(names)) if names else lines(messages)
    asked = [q for q in lines(questions) if q["evidence_message_ids"] and q["category"] != "adversarial"]
    if not asked:
        raise click.ClickException(f"{questions} has no question with evidence")
    by_category = run(results(said, asked, policy, backend, model, quiet=as_json))
    whole = [row for rows in by_category.values() for row in rows]
    table = Table(
        *("category", "questions", *(f"R@{k}" for k in KS), "MRR"), title=f"{messages.name}, {policy}, {backend}"
    )
    for category, rows in [*sorted(by_category.items()), ("all", whole)]:
        table.add_row(category, f"{len(rows):,}", *(f"{value:.3f}" for value in np.mean(rows, axis=0)))
    Console().print(table)
    if as_json:
        figures = dict(zip(("r1", "r3", "r5", "r10", "mrr"), np.mean(whole, axis=0).round(4).tolist(), strict=True))
        click.echo(orjson.dumps({**figures, "n": len(whole), "policy": policy}).decode())


if __name__ == "__main__":
    main()
