"""The cost of spans for intake, in calls and processor time a message: off, on, and with a trace in each message.

    python -m benchmarks.telemetry [--rounds 5] [--json]

The conversation is that of the budget (`tests/support/budget.py`): 2,400 messages in batches of 500, through the
short-term agent's handler as it is registered, into full windows. The SDK records spans, but nothing exports them: an
exporter has its own thread.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

import click
import orjson
from opentelemetry.sdk.trace import TracerProvider
from rich.console import Console
from rich.table import Table

from streams.app import Siltstone
from streams.kafka.commit.sends import Producer
from streams.telemetry.recorded import RecordedSpans
from streams.telemetry.spans import NoSpans, Spans
from tests.fuzz.way import Record
from tests.support.budget import A_MONTH, BATCH, WARM, Sizes, _settings, conversation
from tests.support.calls import Calls
from tests.support.making import START

CASES: Final = ("off", "on", "on, each message in a trace")


class Cost(NamedTuple):
    """The cost of a message."""

    calls: float
    microseconds: float


async def cost(case: str) -> Cost:
    """The cost of a case. Calls and time come from two runs, because counting takes time."""
    calls = Calls()
    with calls.watched():
        await _taken(case, calls)
    messages = sum(1 for _ in conversation()) - WARM
    return Cost(calls.total / messages, await _taken(case, None) / messages * 1e6)


async def _taken(case: str, calls: Calls | None) -> float:
    """Processor seconds of the messages after the first `WARM`."""
    spans: Spans = NoSpans() if case == "off" else RecordedSpans(TracerProvider(shutdown_on_exit=False), "siltstone")
    with tempfile.TemporaryDirectory() as folder:
        worker = Siltstone(_settings(Path(folder)), spans)
        worker.hot.outbox.connect(cast(Producer, Sizes()))
        worker.context.stores.open(0)
        topic = worker.topics.conversations
        handle = spans.processing(topic, worker.intake.short_term.handle)
        records = [
            Record(topic, n, user.encode(), value, timestamp=START + A_MONTH + n, headers=headers(n, case))
            for n, (user, value) in enumerate(conversation())
        ]

        async def take(part: Sequence[Record]) -> None:
            for place in range(0, len(part), BATCH):
                if (rest := await handle(0, part[place : place + BATCH])) is not None:
                    await rest

        await take(records[:WARM])
        begun = time.process_time()
        if calls is None:
            await take(records[WARM:])
        else:
            with calls.counted():
                await take(records[WARM:])
        return time.process_time() - begun


def headers(number: int, case: str) -> tuple[tuple[str, bytes], ...]:
    if case != CASES[-1]:
        return ()
    return (("traceparent", f"00-{number + 1:032x}-{number + 1:016x}-01".encode()),)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(rounds: int, as_json: bool) -> None:
    """Measure the cost of spans for a message."""
    found: dict[str, list[Cost]] = {case: [] for case in CASES}
    for turn in range(rounds):
        for case in CASES if turn % 2 else reversed(CASES):
            found[case].append(asyncio.run(cost(case)))
    table = Table("telemetry", "calls/message", "CPU µs/message")
    medians = {case: Cost(*map(statistics.median, zip(*costs, strict=True))) for case, costs in found.items()}
    for case, one in medians.items():
        table.add_row(case, f"{one.calls:.2f}", f"{one.microseconds:.1f}")
    Console().print(table)
    if as_json:
        off = medians["off"]
        figures = {"calls_off": off.calls, "us_off": off.microseconds}
        for name, case in (("on", CASES[1]), ("traced", CASES[2])):
            figures |= {f"calls_{name}": medians[case].calls, f"us_{name}": medians[case].microseconds}
        click.echo(orjson.dumps({name: round(value, 2) for name, value in figures.items()}).decode())


if __name__ == "__main__":
    main()
