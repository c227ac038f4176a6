"""A full backfill with `siltstone replay --into`: messages a second, and where its time goes.

    python benchmarks/replay.py [--messages 100000] [--partitions 4] [--json]

The topic is filled before the clock starts: the bundled samples, Chinese and English, repeated by other users in
other sessions, fifty of them interleaved. Half of their exchanges are promoted, far more than of ordinary chat, so
this backfill has much to embed. It uses policy `weighted`, the embedder `use` and the local estimator. The clock runs
from the plan until the last shard is closed, and includes the model's loading, as in the command.

The parts of the time are measured around the replay's own objects. They overlap, so their shares add up to more than
1: embedding has a process, each shard a thread, and windows, rating and the rest share the event loop.

    rating      in the local estimator
    intake      in the windows' `take`, with the progress file, without the rating
    embedding   at least one batch of texts was with the model
    store       at least one shard was working

Right after that, the bare model embeds the same texts (evenly chosen batches of them), in calls of the worker's size,
with one thread, in a process that does nothing else. `embedding_ratio_bare` is texts embedded a second, over the
whole backfill, ÷ the bare model's rate. The backfill is bound by the part with the largest share of its time.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final
from unittest import mock

import click
import orjson
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.worker import kafka_at
from schemas.settings import EmbeddingSettings, KafkaSettings, Settings
from schemas.topics import key_of
from streams.doors.cli.process import configure_logging, run
from streams.intake.rules import scoring
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import EMBEDDED_PARTITIONS, embedded_broker, ensure_topics
from streams.language.estimator import estimated_rating
from streams.models.embedding.embedders import load_embedder
from streams.models.embedding.lanes import SLICE
from streams.models.embedding.process import EmbeddingProcess
from streams.replay import replay as replays
from streams.replay.intake import ReplayedIntake
from streams.replay.plan import EARLIEST, NOW, ReplayOptions, planned
from streams.shards.owned import OwnedShards
from streams.worker.wiring import intake

Figures = dict[str, float | int | str]

SAMPLES: Final = Path(__file__).resolve().parents[1] / "streams" / "samples" / "chats.jsonl"
EMBEDDING: Final = EmbeddingSettings(backend="use")
#: Rounds of the samples that are interleaved.
TOGETHER: Final = 50
BARE_BATCHES: Final = 40
NAMES: Final[tuple[str, ...]] = ("user_id", "session_id", "message_id")


def chats(messages: int) -> Iterator[tuple[bytes, bytes]]:
    """(key, record) in the order of the log."""
    said = [orjson.loads(line) for line in SAMPLES.read_bytes().splitlines()]
    rounds = max(1, round(messages / len(said)))
    for first in range(0, rounds, TOGETHER):
        for record in said:
            for number in range(first, min(first + TOGETHER, rounds)):
                yield _said_again(record, number)


def _said_again(record: dict[str, Any], number: int) -> tuple[bytes, bytes]:
    """The record of another user, in another session, with other words."""
    changed = {name: f"{record[name]}-{number}" for name in NAMES if name in record}
    if "content" in record:
        changed["content"] = f"{record['content']} [{number}]"
    return key_of(changed["user_id"]), orjson.dumps({**record, **changed})


class Stretch:
    """The time during which at least one of several pieces of work was running."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._under_way, self._since = 0, 0.0

    def __enter__(self) -> None:
        if not self._under_way:
            self._since = time.perf_counter()
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self.seconds += time.perf_counter() - self._since

    def around(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def timed(*given: Any, **named: Any) -> Any:
            with self:
                return await work(*given, **named)

        return timed


class Times:
    """The parts of a replay's time, measured while the patches are active."""

    def __init__(self) -> None:
        self.rating, self.taking, self.embedding, self.store = (Stretch() for _ in range(4))
        self.texts: list[str] = []
        self._patches = ExitStack()

    def __enter__(self) -> Times:
        embed, call = EmbeddingProcess.embed, OwnedShards.call

        async def embedded(process: EmbeddingProcess, texts: Sequence[str], *given: Any, urgent: bool) -> Any:
            self.texts += texts
            with self.embedding:
                return await embed(process, texts, *given, urgent=urgent)

        async def called(shards: OwnedShards, partition: int, *given: Any, **named: Any) -> Any:
            await shards._open[partition]  # it opens once the model is loaded: this wait is no work of the store
            with self.store:
                return await call(shards, partition, *given, **named)

        def rated(user: str, assistant: str) -> Any:
            with self.rating:
                return estimated_rating(user, assistant)

        for owner, name, instead in (
            (EmbeddingProcess, "embed", embedded),
            (OwnedShards, "call", called),
            (intake, "estimated_rating", rated),
            (scoring, "estimated_rating", rated),
            (ReplayedIntake, "take", self.taking.around(ReplayedIntake.take)),
            (ReplayedIntake, "end", self.taking.around(ReplayedIntake.end)),
        ):
            self._patches.enter_context(mock.patch.object(owner, name, instead))
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.close()

    def shares(self, seconds: float) -> dict[str, float]:
        """The share of each part in the whole time."""
        parts = {
            "intake": self.taking.seconds - self.rating.seconds,
            "rating": self.rating.seconds,
            "embedding": self.embedding.seconds,
            "store": self.store.seconds,
        }
        return {name: round(part / seconds, 3) for name, part in parts.items()}


async def backfill(kafka: KafkaSettings, folder: Path) -> tuple[dict[str, int], float, Times]:
    """The replay's counts, its seconds, and the parts of its time."""
    settings = Settings(data_dir=folder / "data", kafka=kafka, embedding=EMBEDDING)
    into = folder / "into"
    asked = ReplayOptions(EARLIEST, NOW, (), True, kafka.topic_prefix, kafka.partitions)
    started = time.perf_counter()
    with Times() as times:
        plan = await planned(asked, into, kafka, settings.memory.session_idle_seconds * 1000)
        async with replays.replaying(settings, plan, into, rebuild=True) as replay:
            await replay.run(lambda _: _tell)
            counted = {**replay.figures(), "memories": await replay.memories()}
    return counted, time.perf_counter() - started, times


def _tell(done: int, total: int, note: str = "") -> None:
    """Ignore the progress."""


def bare(texts: Sequence[str]) -> float:
    """Texts a second of the model alone."""
    model = load_embedder(EMBEDDING)
    started = time.perf_counter()
    for first in range(0, len(texts), SLICE):
        model.embed(texts[first : first + SLICE], "document")
    return len(texts) / (time.perf_counter() - started)


async def measure(messages: int, partitions: int, say: Callable[[str], None]) -> Figures:
    size = EMBEDDING.batch_size
    with embedded_broker() as broker, tempfile.TemporaryDirectory() as folder:
        kafka = kafka_at(broker, "replay", partitions)
        await ensure_topics(kafka)
        say("filling the topic …")
        async with producing(kafka) as producer:
            for key, record in chats(messages):
                await producer.send(key, record)
        say("replaying …")
        counted, seconds, times = await backfill(kafka, Path(folder))
    say("the bare model …")
    batches = [times.texts[first : first + size] for first in range(0, len(times.texts), size)]
    chosen = [text for batch in batches[:: -(-len(batches) // BARE_BATCHES)] for text in batch]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        bare_per_s = await asyncio.get_running_loop().run_in_executor(process, bare, chosen)
    shares = times.shares(seconds)
    return {
        "messages": counted["messages"],
        "messages_per_s": round(counted["messages"] / seconds, 1),
        "seconds": round(seconds, 1),
        "exchanges": counted["exchanges"],
        "promoted": counted["promoted"],
        "memories": counted["memories"],
        **{f"{name}_share": share for name, share in shares.items()},
        "texts_per_s": round(len(times.texts) / seconds, 1),
        "bare_texts_per_s": round(bare_per_s, 1),
        "embedding_ratio_bare": round(len(times.texts) / seconds / bare_per_s, 3),
        "bound_by": max(shares, key=lambda name: shares[name]),
    }


def table(figures: Figures) -> Table:
    """A table with a row for each part of the time."""
    shown = Table(
        *("", "share of the time"),
        title=f"A backfill of {figures['messages']:,} messages: {figures['messages_per_s']:,} a second, "
        f"{figures['memories']:,} memories, bound by {figures['bound_by']}",
        caption=f"{figures['texts_per_s']} texts embedded a second; the bare model: {figures['bare_texts_per_s']}; "
        f"ratio: {figures['embedding_ratio_bare']}",
    )
    for name in ("intake", "rating", "embedding", "store"):
        shown.add_row(name, f"{figures[f'{name}_share']:.1%}")
    return shown


@click.command()
@click.option("--messages", default=100_000, show_default=True, type=click.IntRange(min=1_000))
@click.option("--partitions", default=EMBEDDED_PARTITIONS, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(messages: int, partitions: int, as_json: bool) -> None:
    """Measure a backfill, and compare its embedding rate with the bare model's."""
    configure_logging("ERROR")
    figures = run(measure(messages, partitions, Console(stderr=True).print))
    Console().print(table(figures))
    if as_json:
        click.echo(orjson.dumps(figures))


if __name__ == "__main__":
    main()
