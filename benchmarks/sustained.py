"""A steady load, end to end: how old are promotions when they are in long-term memory, and does a backlog grow?

    python benchmarks/sustained.py [--rate 500 | --search] [--seconds 60] [--what promoted] [--backend use]
        [--bootstrap-servers HOST:PORT] [--json]

`siltstone worker` runs with default settings and the given embedding, including summaries, in its own processes; so
does the embedded broker, unless another Kafka is given. The load is the chat of `intake.py`, produced on a schedule
that nothing slows down (`load/open_loop.py`). Each session first gets a dozen exchanges, so that rolling promotion is
under way.

**Age**: each promotion's record carries the timestamp of the message that closed its exchange, and the worker
observes its age when the transaction is committed. `p50_ms`, `p99_ms` and `max_ms` are of all promotions of the load,
from the worker's histogram, with ages spread evenly in each bucket (the longest is its bucket's upper bound).

**Samples** confirm it from outside (`load/samples.py`): users ask to remember something, and questions at fixed times
look for it. Their times (`black_box_…`) include the question with its embedding, and the time between two questions.
With `--what said` users only mention it, and it counts as found anywhere, usually in a short-term window.

The run fails, exit code 1, with a line for each reason: the producer itself did not keep the rate; lag of
conversations or of promotions grew in the second half by more than the records of one second; produced messages are
missing in the windows; not all promotions are in memory; a sample was not found in 30 s; a topic was not drained in
two minutes. Summaries are written behind the load: their lag may grow during it, and must be drained in half a
minute.

`--search` doubles the rate until a run fails or has a p99 of a second, then halves the interval between the highest
good rate and the lowest bad one until they differ by a tenth: `sustained_per_s`. Each run has its own topics, data
and worker. With `--promotions-only` every exchange is promoted: `promotions_per_s` were written to the log,
`kept_per_s` were committed to long-term memory, from the load's start until none was left.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiokafka
import click
import httpx
import orjson
from aiokafka.errors import KafkaError
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.intake import MESSAGES_A_USER, conversations
from benchmarks.load.ages import Ages
from benchmarks.load.lag import LagWatch, falls_behind, grown
from benchmarks.load.open_loop import BATCH_BYTES, Delivered, OpenLoop, Record
from benchmarks.load.processes import Processes
from benchmarks.load.samples import PROMOTED, WHAT, Samples, What
from benchmarks.load.topics import deleted_afterwards, of_its_own
from benchmarks.worker import WorkerProcess, kafka_at, working
from schemas.errors import SiltstoneError
from schemas.settings import ONE_MODEL, KafkaSettings
from schemas.topics import CONVERSATIONS, LONG_TERM, SUMMARY_REQUESTS, Topics, key_of, partition_of
from streams.doors.cli.process import run
from streams.kafka.clients.broker import EMBEDDED_PARTITIONS, EmbeddedBroker, embedded_broker, ensure_topics

Figures = dict[str, Any]

AGE: Final = "siltstone_promotion_age_seconds"
SAMPLES_A_SECOND: Final = 5.5
#: The share of the load that comes before the measurement: more than `promote_threshold` exchanges a session.
WARM_SHARE: Final = 0.25
LEAST_USERS: Final = 20
WARM_SECONDS: Final = 120.0
LINGER_MS: Final = 5

#: A rate is sustained up to this age.
P99_MS: Final = 1_000.0
LEAST_RATE: Final = 50
FIRST_RATE: Final = 250
SEARCH_SECONDS: Final = 20.0
NEAR_ENOUGH: Final = 1.1

DRAIN_SECONDS: Final = 120.0
SUMMARIES_DRAIN_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.1
TOPICS: Final = (CONVERSATIONS, LONG_TERM, SUMMARY_REQUESTS)


@dataclass(frozen=True, slots=True)
class Place:
    """The Kafka of the load. For one that is not ours, `broker` is None, and the topics are deleted afterwards."""

    kafka: KafkaSettings
    broker: EmbeddedBroker | None

    @contextlib.asynccontextmanager
    async def prepared(self) -> AsyncIterator[OpenLoop]:
        """Create the topics, for the block; yield a producer to that of conversations."""
        async with contextlib.AsyncExitStack() as stack:
            if self.broker is None:
                await stack.enter_async_context(deleted_afterwards(self.kafka))
            await ensure_topics(self.kafka)
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=self.kafka.bootstrap_servers, linger_ms=LINGER_MS, max_batch_size=BATCH_BYTES
            )
            await stack.enter_async_context(producer)
            topic = Topics.with_prefix(self.kafka.topic_prefix).conversations
            yield OpenLoop(producer, topic, self.kafka.partitions)


def place_at(broker: EmbeddedBroker | None, servers: str, partitions: int, replication: int) -> Place:
    """A place with the run's own topics and consumer group."""
    kafka = of_its_own("sustained", servers, partitions, replication)
    return Place(kafka if broker is None else kafka_at(broker, kafka.group_id, partitions), broker)


def load_of(messages: int, partitions: int, promotions_only: bool) -> list[Record]:
    """Records in the order of the log, made in advance, so that the producer only sends them under load."""
    said = conversations(messages)
    if promotions_only:
        said = ((user, _remembered(number, value)) for number, (user, value) in enumerate(said))
    return [Record(partition_of(user, partitions), key_of(user), value) for user, value in said]


def _remembered(number: int, value: bytes) -> bytes:
    record = orjson.loads(value)
    if record["role"] == "user":
        record["content"] = f"Please remember that parcel {number} is for room {number * 7 % 1_000}."
    return orjson.dumps(record)


async def measure(
    place: Place, rate: int, seconds: float, promotions_only: bool, what: What = PROMOTED, backend: str = "use"
) -> Figures:
    """Measure one rate, with its own worker; `failed` has a line for each reason why the run does not count."""
    partitions, count = place.kafka.partitions, max(1, round(SAMPLES_A_SECOND * seconds))
    timed = round((rate - what.messages * SAMPLES_A_SECOND) * seconds)
    warm = max(LEAST_USERS * MESSAGES_A_USER - timed, round(timed * WARM_SHARE))
    records = load_of(warm + timed, partitions, promotions_only)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"KAFKA__REPLICATION": str(place.kafka.replication), "EMBEDDING__BACKEND": backend}
        async with place.prepared() as loop, working(place.kafka, Path(folder), settings) as worker:
            samples = Samples(loop, worker.http, partitions, count, what)
            run_of = _Run(place, worker, loop, samples, rate, seconds)
            with in_a_line(worker.last_words):
                await loop.fill(records[:warm])
                await run_of.settle()
                return await run_of.timed(records[warm:])


@contextlib.contextmanager
def in_a_line(last_words: Callable[[], str]) -> Iterator[None]:
    """Turn errors of the worker's HTTP and of Kafka into one line, also within groups of errors."""
    try:
        yield
    except (httpx.TransportError, KafkaError, BaseExceptionGroup) as exc:
        match _first(exc):
            case httpx.TransportError():
                raise click.ClickException(f"the worker does not answer: {last_words()}") from exc
            case KafkaError() as error:
                raise click.ClickException(f"the broker refuses the records: {error!r}") from exc
        raise


class _Run:
    """A worker under one load, and the measurement of both."""

    def __init__(
        self, place: Place, worker: WorkerProcess, loop: OpenLoop, samples: Samples, rate: int, seconds: float
    ) -> None:
        self._place, self._worker, self._loop, self._samples = place, worker, loop, samples
        self._rate, self._seconds = rate, seconds
        self._prefix = place.kafka.topic_prefix
        self._notes: list[str] = []

    async def settle(self) -> None:
        """Wait until earlier records are processed, summaries included, but at most `WARM_SECONDS`."""
        try:
            async with asyncio.timeout(WARM_SECONDS):
                while await self._worker.taken_in() < self._loop.produced:  # noqa: ASYNC110 - another process's number
                    await asyncio.sleep(LOOK_SECONDS)
                await self._worker.until_idle()
        except TimeoutError:
            self._notes.append(f"records from before the load are not processed, by topic: {await self._lag()}")

    async def timed(self, records: list[Record]) -> Figures:
        broker = self._place.broker
        before, ages = await self._worker.pipeline(), await self._ages()
        processes = Processes(self._worker.pid, None if broker is None else broker.process.pid)
        watch = LagWatch(self._lag)
        async with asyncio.TaskGroup() as beside:
            beside.create_task(self._samples.take(self._seconds))
            watching = beside.create_task(watch.watch(processes.look))
            delivered = await self._loop.run(records, len(records) / self._seconds)
            watching.cancel()
            (cpu, _), in_time = processes.used(), (await self._ages()).since(ages).total
            drained = await self._drain()
        _, rss = processes.used()
        after, grown_ages = await self._worker.pipeline(), (await self._ages()).since(ages)
        told = self._told(before, after, delivered)
        figures = {
            **_quantiles(grown_ages),
            "age_within_1s": round(grown_ages.within(P99_MS / 1e3), 4),
            "promotions_in_time": in_time,
            **self._samples.milliseconds(),
            "what": self._samples.what.name,
            "samples": len(self._samples.found),
            "samples_missing": self._samples.missing,
            "questions_unanswered": self._samples.unanswered,
            "rate": self._rate,
            "achieved": round(delivered.achieved * self._rate / delivered.rate, 1),
            "producer_kept": delivered.kept,
            "producer_late_p99_ms": round(delivered.late_p99_ms, 1),
            "producer_late_max_ms": round(delivered.late_max_ms, 1),
            **told,
            "promotions_per_s": round(told["promoted"] / self._seconds, 1),
            "kept_per_s": kept_per_s(told["memories"], self._seconds, drained[LONG_TERM]),
            "lag": {
                topic: {"most": max(lags), "at_end": lags[-1], "grown": round(grown(lags))}
                for topic, lags in watch.by_topic.items()
            },
            "lag_each_second": watch.by_topic,
            "drained_s": drained,
            "cpu_s": cpu,
            "cpu_us_per_message": round(sum(cpu.values()) / (self._rate * self._seconds) * 1e6, 1),
            "rss_mb": rss,
            "notes": self._notes,
        }
        figures["failed"] = list(self._faults(figures, grown_ages, watch, delivered))
        return figures

    async def _ages(self) -> Ages:
        return Ages.read(await self._worker.exposition(), AGE)

    async def _lag(self) -> dict[str, int]:
        """Lag by topic, without its prefix. Conversations are counted here: a worker learns late where they end."""
        return self._lag_of(await self._worker.pipeline())

    def _lag_of(self, told: Figures) -> dict[str, int]:
        lag = {topic: told["lag"].get(self._prefix + topic, 0) for topic in TOPICS}
        lag[CONVERSATIONS] = max(0, self._loop.produced - told["messages"])
        return lag

    def _told(self, before: Figures, after: Figures, delivered: Delivered) -> Figures:
        """The worker's counts since the load began."""
        summaries = {
            outcome: number - before["summaries"].get(outcome, 0) for outcome, number in after["summaries"].items()
        }
        return {
            "produced": self._loop.produced,
            "produced_under_load": delivered.produced + self._samples.what.messages * self._samples.count,
            "taken_in": after["messages"],
            "dead_letters": after["dead_letters"],
            "promoted": _promoted(after) - _promoted(before),
            "memories": _kept(after) - _kept(before),
            "summaries": summaries,
            "summaries_written": sum(summaries.get(name, 0) for name in ("written", "written_elsewhere")),
            "summaries_coalesced": summaries.get("coalesced", 0),
        }

    async def _drain(self) -> dict[str, float | None]:
        """For each topic, the seconds from the load's end until nothing was left; None if something still is."""
        begun = time.monotonic()
        drained: dict[str, float | None] = {}
        while len(drained) < len(TOPICS) and time.monotonic() - begun < DRAIN_SECONDS:
            told = await self._worker.pipeline()
            lag = self._lag_of(told)
            if lag[CONVERSATIONS]:
                left = set(TOPICS)
            else:
                left = {topic for topic in TOPICS if lag[topic]}
                left |= set() if _kept(told) >= _promoted(told) else {LONG_TERM}
            for topic in TOPICS:
                if topic not in left:
                    drained.setdefault(topic, round(time.monotonic() - begun, 1))
            await asyncio.sleep(LOOK_SECONDS)
        return {topic: drained.get(topic) for topic in TOPICS}

    def _faults(self, figures: Figures, ages: Ages, watch: LagWatch, delivered: Delivered) -> Iterator[str]:
        if not delivered.kept:
            yield (
                f"the producer itself did not keep the rate: {figures['achieved']:,} of {self._rate:,} messages/s, "
                f"{delivered.late_p99_ms:,.0f} ms late (p99)"
            )
        coming = {CONVERSATIONS: float(self._rate), LONG_TERM: figures["promoted"] / self._seconds}
        for topic, records_a_second in coming.items():
            lags = watch.by_topic.get(topic, [])
            if falls_behind(lags, records_a_second):
                yield f"lag of {topic} grew by {grown(lags):,.0f} records in the second half"
        if figures["taken_in"] != figures["produced"]:
            yield f"{figures['produced']:,} messages were produced, but {figures['taken_in']:,} are in the windows"
        if figures["dead_letters"]:
            yield f"{figures['dead_letters']} records became dead letters"
        if figures["memories"] < figures["promoted"]:
            yield f"{figures['promoted']:,} exchanges were promoted, but {figures['memories']:,} are in memory"
        elif ages.total != figures["promoted"]:
            yield f"{figures['promoted']:,} exchanges were promoted, but {ages.total:,} ages were counted"
        if self._samples.missing:
            yield f"{self._samples.missing} of {self._samples.count} samples were not found"
        for topic, seconds in figures["drained_s"].items():
            if seconds is None:
                yield f"{topic} was not drained {DRAIN_SECONDS:g} s after the load"
            elif topic == SUMMARY_REQUESTS and seconds > SUMMARIES_DRAIN_SECONDS:
                yield f"{topic} was drained {seconds} s after the load, not within {SUMMARIES_DRAIN_SECONDS:g} s"


def _first(exc: BaseException) -> BaseException:
    """The first error of a group."""
    return _first(exc.exceptions[0]) if isinstance(exc, BaseExceptionGroup) else exc


def _promoted(told: Figures) -> int:
    return sum(told["decisions"]["promoted"].values())


def _kept(told: Figures) -> int:
    return sum(told["memories"].get(effect, 0) for effect in ("new", "merged", "repeated", "forgotten"))


def kept_per_s(memories: int, seconds: float, drained: float | None) -> float | None:
    """Promotions a second, committed to long-term memory until none was left; None if some were left."""
    return None if drained is None else round(memories / (seconds + drained), 1)


def _quantiles(ages: Ages) -> Figures:
    """In ms; None beyond the histogram's last bound."""
    seconds = {"p50_ms": ages.quantile(0.5), "p99_ms": ages.quantile(0.99), "max_ms": ages.longest}
    return {name: None if value == float("inf") else round(value * 1e3, 1) for name, value in seconds.items()}


def sustained(figures: Figures) -> bool:
    """Whether the worker sustained the rate."""
    return not figures["failed"] and figures["p99_ms"] is not None and figures["p99_ms"] < P99_MS


async def search(measured: Callable[[int], Awaitable[Figures]], first: int, say: Callable[[str], None]) -> Figures:
    """The highest sustained rate, to a tenth, with the figures of its run and a summary of all runs.

    If even the lowest rate is not sustained, it is 0, and the figures are those of the lowest one.
    """
    told, borne, too_much, rate = dict[str, Any](), 0, 0, first
    tries: list[Figures] = []
    while rate >= LEAST_RATE:
        figures = await measured(rate)
        good = sustained(figures)
        why = "" if good else "; ".join(figures["failed"]) or f"p99 is {figures['p99_ms']:,} ms"
        say(f"{rate:,} messages/s: {'good' if good else why}; p50 {figures['p50_ms']} ms, p99 {figures['p99_ms']} ms")
        tries.append({name: figures[name] for name in ("rate", "p50_ms", "p99_ms")} | {"failed": why})
        if good:
            told, borne = figures, rate
        else:
            told, too_much = told if borne else figures, rate
        if not too_much:
            rate = borne * 2
        elif not borne:
            rate = too_much // 2
        elif too_much > NEAR_ENOUGH * borne:
            rate = round((borne + too_much) / 2)
        else:
            break
    limit = next(one["failed"] for one in reversed(tries) if one["rate"] == too_much)
    return {**told, "sustained_per_s": borne, "limited_by": limit, "tries": tries}


def table(figures: Figures) -> Table:
    """A table with a row for each figure."""
    shown = Table("", "", title=f"{figures['rate']:,} messages/s", show_header=False)

    def ms(*names: str) -> str:
        return ", ".join("over 60 s" if figures[name] is None else f"{figures[name]:,.0f}" for name in names)

    shown.add_row("achieved", f"{figures['achieved']:,} messages/s, {figures['promotions_per_s']:,} promotions/s")
    shown.add_row("age p50, p99, longest at most, ms", ms("p50_ms", "p99_ms", "max_ms"))
    shown.add_row(
        f"{figures['samples']} samples p50, p99, longest, ms",
        ms("black_box_p50_ms", "black_box_p99_ms", "black_box_max_ms"),
    )
    shown.add_row("their questions alone", ms("question_p50_ms", "question_p99_ms", "question_max_ms"))
    for topic, lag in figures["lag"].items():
        drained = figures["drained_s"][topic]
        shown.add_row(
            f"lag of {topic}",
            f"most {lag['most']:,}, at the end {lag['at_end']:,}, second half {lag['grown']:+,}; "
            + ("not drained" if drained is None else f"drained after {drained} s"),
        )
    shown.add_row("messages produced, taken in", f"{figures['produced']:,}, {figures['taken_in']:,}")
    shown.add_row("promoted, in memory", f"{figures['promoted']:,}, {figures['memories']:,}")
    if figures["kept_per_s"] is not None:
        shown.add_row("committed to memory, until drained", f"{figures['kept_per_s']:,} a second")
    shown.add_row(
        "summaries written, coalesced", f"{figures['summaries_written']:,}, {figures['summaries_coalesced']:,}"
    )
    for title, name, unit in (("CPU", "cpu_s", "s"), ("resident at most", "rss_mb", "MB")):
        shown.add_row(title, ", ".join(f"{process} {value:,} {unit}" for process, value in figures[name].items()))
    shown.add_row("CPU a message, all processes", f"{figures['cpu_us_per_message']} µs")
    return shown


@click.command()
@click.option(
    "--rate", type=click.IntRange(min=LEAST_RATE), help="Messages a second (500); with --search, the first one."
)
@click.option("--search", "searching", is_flag=True, help="Find the highest rate with a p99 below a second.")
@click.option("--seconds", type=click.FloatRange(min=5), help="Of the load (60; with --search 20 a run).")
@click.option("--bootstrap-servers", default="", help="Your own Kafka, instead of the embedded broker.")
@click.option("--partitions", default=EMBEDDED_PARTITIONS, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--replication", default=1, show_default=True, type=click.IntRange(1, 9), help="Replicas on your own Kafka."
)
@click.option(
    "--what", type=click.Choice([*WHAT]), default="promoted", show_default=True, help="What samples look for."
)
@click.option(
    "--backend", type=click.Choice(sorted(ONE_MODEL)), default="use", show_default=True, help="Its embedding."
)
@click.option("--promotions-only", is_flag=True, help="Every exchange is promoted.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(
    rate: int | None,
    searching: bool,
    seconds: float | None,
    bootstrap_servers: str,
    partitions: int,
    replication: int,
    what: str,
    backend: str,
    promotions_only: bool,
    as_json: bool,
) -> None:
    """Measure a steady load, end to end."""
    say = Console(stderr=True).print
    lasting = seconds or (SEARCH_SECONDS if searching else 60.0)
    with contextlib.nullcontext() if bootstrap_servers else embedded_broker() as broker:

        async def measured(one: int) -> Figures:
            say(f"{one:,} messages/s for {lasting:g} s …")
            place = place_at(broker, bootstrap_servers, partitions, replication)
            return await measure(place, one, lasting, promotions_only, WHAT[what], backend)

        try:
            figures = run(search(measured, rate or FIRST_RATE, say) if searching else measured(rate or 500))
        except SiltstoneError as exc:
            raise click.ClickException(str(exc)) from exc
    Console().print(table(figures))
    if searching:
        click.echo(f"sustained: {figures['sustained_per_s']:,} messages/s; above: {figures['limited_by']}")
    for line in figures["notes"]:
        click.echo(f"note: {line}")
    for line in figures["failed"]:
        click.echo(f"failed: {line}")
    if as_json:
        click.echo(orjson.dumps(figures))
    if figures["failed"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
