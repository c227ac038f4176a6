"""From a message's production to the answer that holds what it brought: milliseconds, under a steady load.

    python benchmarks/latency.py [--rate 500] [--seconds 60] [--json]

The whole way, by the wall clock: a producer, the embedded broker, `siltstone worker` at its default settings in a
process of its own, with the embedding model in another, and questions over HTTP.

The load is that of `intake.py`: many users' chat, of which one exchange in eighteen is worth keeping. Sessions are as
many as `intake.py` has, and are first spoken in for a dozen exchanges, so that rolling promotion is under way. Five
times a second somebody new asks for something to be remembered. Those are part of the rate:

    user       Please remember that locker 4711 opens with 90210.
    assistant  I will remember that.
    (a second later)
    user       Thank you. What else is there to do today?

An exchange closes when the role turns back to user, so **the clock starts** right before the third message is given
to the producer (it sends within 5 ms). What was said to be remembered lies in the log already, but nobody can know
before then that the exchange is over. **The clock ends** when the first answer to `POST /v1/search` has been read
that holds the memory. A question is asked again 20 ms after an answer that does not, so half of that is, on average,
waiting of the benchmark's own; the question's embedding is in it as well.

Where a sample is not found within 30 s, the run fails; so it does where not all that was produced is in the windows
at the end. `achieved_rate` is messages produced a second: the producer shares the cores with what it measures.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import aiokafka
import click
import httpx
import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.intake import MESSAGES_A_USER, conversations
from benchmarks.worker import WorkerProcess, kafka_at, working
from schemas.messages import iso
from schemas.settings import KafkaSettings
from schemas.topics import Topics, key_of
from streams.cli.process import run
from streams.clients.broker import EmbeddedBroker, embedded_broker
from streams.clock import now_ms

Figures = dict[str, float | int]

RATES: Final = (50, 500, 2_000)
SAMPLES_A_SECOND: Final = 5.0
#: Of the load, said before the clock is looked at: more than `promote_threshold` exchanges a session.
WARM_SHARE: Final = 0.25
LEAST_USERS: Final = 20
SEED: Final = 20_250_301

#: Between the exchange and the message that closes it.
PAUSE_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 0.02
GIVE_UP_SECONDS: Final = 30.0
TICK_SECONDS: Final = 0.005
LINGER_MS: Final = 5


class Speaker:
    """Produces as a chat service does."""

    def __init__(self, producer: aiokafka.AIOKafkaProducer, kafka: KafkaSettings) -> None:
        self._producer, self._topic = producer, Topics.with_prefix(kafka.topic_prefix).conversations
        self.produced = 0

    async def say(self, user_id: str, record: bytes) -> None:
        await self._producer.send(self._topic, record, key=key_of(user_id))
        self.produced += 1

    async def chat(self, said: Iterator[tuple[str, bytes]], rate: float, until: float) -> None:
        """Go on with what is said, at so many a second, up to a moment (monotonic seconds)."""
        started, done = time.monotonic(), 0
        while (now := time.monotonic()) < until:
            due = round((now - started) * rate)
            for user_id, record in itertools.islice(said, due - done):
                await self.say(user_id, record)
            done = due
            await asyncio.sleep(TICK_SECONDS)


class Samples:
    """People who ask for something to be remembered, and how long it took until it was found."""

    def __init__(self, speaker: Speaker, http: httpx.AsyncClient) -> None:
        self._speaker, self._http = speaker, http
        self.milliseconds: list[float] = []

    async def take(self, until: float) -> None:
        """At random moments, on average `SAMPLES_A_SECOND`, up to a moment (monotonic seconds)."""
        chance = random.Random(SEED)
        async with asyncio.TaskGroup() as under_way:
            for number in itertools.count():
                await asyncio.sleep(chance.uniform(0, 2 / SAMPLES_A_SECOND))
                if time.monotonic() >= until:
                    return
                under_way.create_task(self._one(number))

    async def _one(self, number: int) -> None:
        user = f"sample-{number}"
        code = 10_000 + 7 * number
        await self._say(user, 0, "user", f"Please remember that locker {number} opens with {code}.")
        await self._say(user, 1, "assistant", "I will remember that.")
        await asyncio.sleep(PAUSE_SECONDS)
        started = time.monotonic()
        await self._say(user, 2, "user", "Thank you. What else is there to do today?")
        await self._until_found(user, f"Which code opens locker {number}?", str(code), started + GIVE_UP_SECONDS)
        self.milliseconds.append((time.monotonic() - started) * 1e3)

    async def _until_found(self, user: str, question: str, answer: str, deadline: float) -> None:
        body = {"user_id": user, "query": question, "top_k": 1}
        while True:
            found = (await self._http.post("/v1/search", json=body)).raise_for_status().json()["results"]
            if any(answer in hit["memory"] for hit in found):
                return
            if time.monotonic() > deadline:
                raise click.ClickException(f"what {user} said was not found within {GIVE_UP_SECONDS} s")
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _say(self, user: str, place: int, role: str, content: str) -> None:
        record: dict[str, Any] = {
            "user_id": user,
            "session_id": user,
            "message_id": f"{user}-{place}",
            "role": role,
            "content": content,
            "timestamp": iso(now_ms()),
        }
        await self._speaker.say(user, orjson.dumps(record))


async def measure(broker: EmbeddedBroker, rate: int, seconds: float) -> Figures:
    """One rate, with topics and a worker of its own."""
    kafka = kafka_at(broker, f"rate-{rate}")
    background = rate - 3 * SAMPLES_A_SECOND
    timed = round(background * seconds * 1.1)
    messages = max(LEAST_USERS * MESSAGES_A_USER, round(timed * (1 + WARM_SHARE)))
    said = conversations(messages)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=LINGER_MS) as producer,
            working(kafka, Path(folder), {}) as worker,
        ):
            speaker = Speaker(producer, kafka)
            for user_id, record in itertools.islice(said, messages - timed):
                await speaker.say(user_id, record)
            await producer.flush()
            await worker.until_idle()
            return await _timed(worker, speaker, said, background, seconds)


async def _timed(
    worker: WorkerProcess, speaker: Speaker, said: Iterator[tuple[str, bytes]], background: float, seconds: float
) -> Figures:
    samples, already = Samples(speaker, worker.http), speaker.produced
    started = time.monotonic()
    async with asyncio.TaskGroup() as sampling:
        sampling.create_task(samples.take(started + seconds))
        await speaker.chat(said, background, started + seconds)
        achieved = (speaker.produced - already) / (time.monotonic() - started)
    await worker.until_idle()
    if (taken_in := await worker.taken_in()) != speaker.produced:
        raise click.ClickException(f"{speaker.produced} messages were produced, and {taken_in} are in the windows")
    p50, p99, longest = np.percentile(samples.milliseconds, [50, 99, 100])
    return {
        "p50_ms": round(float(p50), 1),
        "p99_ms": round(float(p99), 1),
        "max_ms": round(float(longest), 1),
        "samples": len(samples.milliseconds),
        "achieved_rate": round(achieved, 1),
        "memories": sum((await worker.pipeline())["memories"].values()),
    }


async def measure_all(rates: tuple[int, ...], seconds: float, say: Callable[[str], None]) -> dict[int, Figures]:
    found = {}
    with embedded_broker() as broker:
        for rate in rates:
            say(f"{rate:,} messages/s for {seconds:g} s …")
            found[rate] = await measure(broker, rate, seconds)
    return found


def table(found: dict[int, Figures]) -> Table:
    """One row a rate."""
    shown = Table(
        *("messages/s", "achieved", "samples", "p50 ms", "p99 ms", "longest ms"),
        title="From the message that closes an exchange to the answer that holds it",
    )
    for rate, one in found.items():
        shown.add_row(
            f"{rate:,}",
            f"{one['achieved_rate']:,}",
            str(one["samples"]),
            *(f"{one[name]:.0f}" for name in ("p50_ms", "p99_ms", "max_ms")),
        )
    return shown


@click.command()
@click.option("--rate", type=click.IntRange(min=20), help="Messages a second.  [default: 50, then 500, then 2000]")
@click.option("--seconds", default=60.0, show_default=True, type=click.FloatRange(min=5), help="For each rate.")
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(rate: int | None, seconds: float, as_json: bool) -> None:
    """Measure how long it takes until what is said can be found."""
    rates = RATES if rate is None else (rate,)
    found = run(measure_all(rates, seconds, Console(stderr=True).print))
    Console().print(table(found))
    if as_json:
        if rate is not None:
            click.echo(orjson.dumps({"rate": rate, **found[rate]}))
        else:
            click.echo(orjson.dumps({f"{name}_{one}": v for one, told in found.items() for name, v in told.items()}))


if __name__ == "__main__":
    main()
