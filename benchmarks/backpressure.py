"""A burst that is too fast for everything behind the intake: is it taken in, does memory stay bounded, does it drain?

    python benchmarks/backpressure.py [--messages 100000] [--judge-seconds 0.2] [--json]

`siltstone worker` runs in its own process. First the windows of 200 sessions are filled, so that they cost the same
before and after. Then a burst goes into the same sessions as fast as the broker accepts it: every second exchange
asks to remember something, and one in forty is a border case, which a judge rates. There are three turns, each with
its own topics, data and worker:

    no judge      the local estimator decides at once
    slow judge    an OpenAI-compatible service on loopback takes `--judge-seconds` for each answer, eight at a time
    twice         the same with twice the burst: bounded queues do not double

Intake counts messages a second, from the first one's production until all are in the windows. Offsets are not yet
committed then, because ratings are pending. `memories_times` is the rate at which memories come in during that time,
divided by the rate at which the turn without a judge stores all of them; `questions_times` is the rate of questions
divided by the judge's rate. The burst has drained when no record is left to process: everything is in the shards, and
every question has an answer. `drain_seconds` counts from the moment at which all messages are in the windows.

Resident memory is that of the worker's process without the embedding model's, sampled 20 times a second. Python
returns little of it to the system, so queues do not show as a temporary peak. The additional growth of the doubled
burst counts as the shards' (`rss_a_memory_bytes`: the index, and rows that DuckDB caches), which hold twice the
memories; the rest of the growth counts as the queues' (`rss_queues_mb`).
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiokafka
import click
import orjson
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.intake import SMALL_TALK
from benchmarks.worker import WorkerProcess, kafka_at, working
from schemas.settings import KafkaSettings, MemorySettings, ScoringSettings
from schemas.topics import Topics, key_of, partition_of
from streams.doors.cli.process import run
from streams.kafka.clients.broker import EmbeddedBroker, embedded_broker
from tests.support.openai_server import Answer, OpenAIServer

Figures = dict[str, float | int]
Records = list[tuple[str, bytes]]

SESSIONS: Final = 200
SEED: Final = 20_250_301
FIRST_AT: Final = 1_740_787_200_000
GAP_MS: Final = 5_000
#: One exchange in this many asks to remember something.
REMEMBERED: Final = 2
#: One in this many of the others is a border case.
AT_THE_BORDER: Final = 20
LOOK_SECONDS: Final = 0.05
BATCH_BYTES: Final = 262_144
VALUE: Final = "7"


@dataclass(frozen=True, slots=True)
class Turn:
    """One worker and its load."""

    name: str
    title: str
    times: int
    judged: bool


TURNS: Final = (
    Turn("no_judge", "no judge", 1, judged=False),
    Turn("slow_judge", "slow judge", 1, judged=True),
    Turn("twice", "twice the burst", 2, judged=True),
)


#: The rows of the table.
SHOWN: Final = {
    "messages": "messages",
    "messages_per_s": "taken in, messages/s",
    "memories": "memories",
    "questions": "questions",
    "questions_waiting": "waiting when all are taken in",
    "drain_seconds": "drained after, s",
    "rss_before_mb": "RSS before, MB",
    "rss_peak_mb": "RSS at its peak, MB",
    "rss_after_mb": "RSS afterwards, MB",
}


class Chatter:
    """Messages of all sessions in turns: the message of each user, then the answer to each."""

    def __init__(self) -> None:
        self._chance = random.Random(SEED)
        self._said = 0
        self.remembered = self.at_the_border = 0

    def small_talk(self, messages: int) -> Records:
        return list(self._turns(messages, special=False))

    def burst(self, messages: int) -> Records:
        return list(self._turns(messages, special=True))

    def _turns(self, messages: int, special: bool) -> Iterator[tuple[str, bytes]]:
        for _ in range(messages // (2 * SESSIONS)):
            said = [self._exchange(special) for _ in range(SESSIONS)]
            for role in (0, 1):
                for session, texts in enumerate(said):
                    yield self._record(session, role, texts[role])
            self._said += 1

    def _exchange(self, special: bool) -> tuple[str, str]:
        number = self._chance.randrange(10**9)
        if special and self._chance.random() < 1 / REMEMBERED:
            self.remembered += 1
            return f"Please remember that parcel {number} is for Leeds.", "I will remember that."
        if special and self._chance.random() < 1 / AT_THE_BORDER:
            self.at_the_border += 1
            return f"I like number {number}, as numbers go.", "A fine number."
        return self._chance.choice(SMALL_TALK)

    def _record(self, session: int, role: int, content: str) -> tuple[str, bytes]:
        user = f"user-{session}"
        record: dict[str, Any] = {
            "user_id": user,
            "session_id": user,
            "message_id": f"{user}-{self._said}-{role}",
            "role": ("user", "assistant")[role],
            "content": content,
            "timestamp": FIRST_AT + (2 * self._said + role) * GAP_MS,
        }
        return user, orjson.dumps(record)


class Watch:
    """The peak of resident memory within the block, in MB."""

    def __init__(self, rss_mb: Callable[[], float]) -> None:
        self._rss_mb, self._over = rss_mb, threading.Event()
        self.peak = rss_mb()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.peak = max(self.peak, self._rss_mb())


async def produce(kafka: KafkaSettings, records: Records) -> None:
    """Produce whole batches, so that the producer is faster than the worker."""
    topic = Topics.with_prefix(kafka.topic_prefix).conversations
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, max_batch_size=BATCH_BYTES)
    batches: list[tuple[int, Any]] = []
    open_batches: dict[int, Any] = {}
    for user, value in records:
        partition = partition_of(user, kafka.partitions)
        batch = open_batches.get(partition)
        if batch is None or batch.append(key=key_of(user), value=value, timestamp=None) is None:
            batch = open_batches[partition] = producer.create_batch()
            batches.append((partition, batch))
            batch.append(key=key_of(user), value=value, timestamp=None)
    async with producer:
        for partition, batch in batches:
            batch.close()
            await (await producer.send_batch(batch, topic, partition=partition))


async def measure(broker: EmbeddedBroker, turn: Turn, messages: int, judge: OpenAIServer) -> Figures:
    kafka, chatter = kafka_at(broker, turn.name), Chatter()
    warm = chatter.small_talk(2 * SESSIONS * (MemorySettings().capacity + 5))
    burst = chatter.burst(messages * turn.times)
    settings = {"LONG_TERM__NEAR_COPY": "1"}  # texts differ by a number, and each must become a memory
    if turn.judged:
        settings |= {
            "LLM__API_KEY": "none",
            "LLM__BASE_URL": judge.base_url,
            "LONG_TERM__SUPERSEDE__ENABLED": "false",
        }
    with tempfile.TemporaryDirectory() as folder:
        async with working(kafka, Path(folder), settings) as worker:
            await produce(kafka, warm)
            await _until_taken_in(worker, len(warm))
            await worker.until_idle()
            before = worker.rss_mb()
            with Watch(worker.rss_mb) as watch:
                started = time.monotonic()
                filling = asyncio.create_task(produce(kafka, burst))
                await _until_taken_in(worker, len(warm) + len(burst))
                await filling
                taken_in = time.monotonic() - started
                waiting = await worker.gauge("siltstone_ratings_waiting")
                drained = time.monotonic()
                await worker.until_idle()
                drain = time.monotonic() - drained
            told = await worker.pipeline()
            _check(told, chatter, turn)
            return {
                "messages": len(burst),
                "messages_per_s": round(len(burst) / taken_in),
                "taken_in_seconds": round(taken_in, 2),
                "memories": sum(told["memories"].values()),
                "questions": chatter.at_the_border if turn.judged else 0,
                "questions_waiting": waiting,
                "drain_seconds": round(drain, 1),
                "rss_before_mb": round(before, 1),
                "rss_peak_mb": round(watch.peak, 1),
                "rss_after_mb": round(worker.rss_mb(), 1),
            }


async def _until_taken_in(worker: WorkerProcess, messages: int) -> None:
    while await worker.taken_in() < messages:  # noqa: ASYNC110 - another process's number
        await asyncio.sleep(LOOK_SECONDS)


def _check(told: dict[str, Any], chatter: Chatter, turn: Turn) -> None:
    """Raise if an exchange that asked to be remembered was lost."""
    forced = told["decisions"]["promoted"].get("forced", 0)
    if forced < chatter.remembered - SESSIONS:  # a session's last exchange is still open
        raise click.ClickException(f"{turn.title}: promoted {forced} of {chatter.remembered} requests to remember")


async def measure_all(messages: int, judge_seconds: float, say: Callable[[str], None]) -> dict[str, Figures]:
    told = {}
    async with OpenAIServer(lambda _: Answer(VALUE, delay=judge_seconds)) as judge:
        with embedded_broker() as broker:
            for turn in TURNS:
                say(f"{turn.title}: {messages * turn.times:,} messages …")
                told[turn.name] = await measure(broker, turn, messages, judge)
    return told


def figures_of(told: dict[str, Figures], judge_seconds: float) -> Figures:
    """The figures of the slow judge; those of the other turns have the turn's name as a prefix."""
    plain, slow, twice = (told[turn.name] for turn in TURNS)
    grown = (twice["rss_peak_mb"] - twice["rss_before_mb"]) - (slow["rss_peak_mb"] - slow["rss_before_mb"])
    sustained = plain["memories"] / (plain["taken_in_seconds"] + plain["drain_seconds"])
    answers = ScoringSettings().concurrency / judge_seconds
    return {
        **slow,
        "memories_times": round(slow["memories"] / slow["taken_in_seconds"] / sustained, 1),
        "questions_times": round(slow["questions"] / slow["taken_in_seconds"] / answers, 1),
        "rss_a_memory_bytes": round(grown * 1e6 / (twice["memories"] - slow["memories"])),
        "rss_queues_mb": round(slow["rss_peak_mb"] - slow["rss_before_mb"] - grown, 1),
        "intake_ratio_slow_judge": round(slow["messages_per_s"] / plain["messages_per_s"], 2),
        **{f"{name}_{key}": value for name in ("no_judge", "twice") for key, value in told[name].items()},
    }


def table(told: dict[str, Figures], figures: Figures) -> Table:
    """A table with a column for each turn."""
    shown = Table(
        *("", *(turn.title for turn in TURNS)),
        title=f"{figures['memories_times']} times the memories that can be kept, "
        f"{figures['questions_times']} times the questions that can be answered",
        caption=f"Intake with the slow judge is {figures['intake_ratio_slow_judge']} of that without one; "
        f"{figures['rss_queues_mb']} MB do not grow with the burst; a memory takes "
        f"{figures['rss_a_memory_bytes']:,} bytes",
    )
    for name, title in SHOWN.items():
        shown.add_row(title, *(f"{told[turn.name][name]:,.0f}" for turn in TURNS))
    return shown


@click.command()
@click.option("--messages", default=100_000, show_default=True, type=click.IntRange(min=2 * SESSIONS))
@click.option("--judge-seconds", default=0.2, show_default=True, type=click.FloatRange(min=0, min_open=True))
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(messages: int, judge_seconds: float, as_json: bool) -> None:
    """Measure a burst that is too fast for embedding and for the judge."""
    told = run(measure_all(messages, judge_seconds, Console(stderr=True).print))
    figures = figures_of(told, judge_seconds)
    Console().print(table(told, figures))
    if as_json:
        click.echo(orjson.dumps(figures))


if __name__ == "__main__":
    main()
