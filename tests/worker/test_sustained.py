"""The parts of `benchmarks/sustained.py` that decide what it says."""

from __future__ import annotations

import asyncio
import os
import time
from itertools import islice
from typing import Any

import httpx
import pytest
from prometheus_client import generate_latest

from benchmarks.load.ages import Ages
from benchmarks.load.lag import falls_behind, grown
from benchmarks.load.open_loop import Delivered, OpenLoop, Record
from benchmarks.load.processes import Processes
from benchmarks.load.samples import PROMOTED, SAID, Samples, What, asking_times
from benchmarks.sustained import kept_per_s, search
from streams.runtime.called_process import CalledProcess
from streams.telemetry.metrics import Metrics

INFINITE = float("inf")


def ages(**counts: int) -> Ages:
    return Ages(
        (0.1, 0.2, 1.0, INFINITE), tuple(counts.get(name, 0) for name in ("tenth", "fifth", "second", "more"))
    )


def test_a_histogram_is_read_from_what_prometheus_scrapes() -> None:
    metrics = Metrics()
    for seconds in (0.04, 0.09, 0.095, 70.0):
        metrics.promotion_age.observe(seconds)
    read = Ages.read(generate_latest(metrics.registry).decode(), "siltstone_promotion_age_seconds")
    assert (read.total, read.within(0.05), read.within(0.1), read.longest) == (4, 0.25, 0.75, INFINITE)


def test_a_quantile_lies_within_its_bucket_as_if_ages_were_evenly_spread() -> None:
    found = ages(tenth=50, fifth=50)
    assert [found.quantile(share) for share in (0.25, 0.5, 0.75, 1)] == pytest.approx([0.05, 0.1, 0.15, 0.2])


def test_a_quantile_beyond_the_last_bound_is_not_known() -> None:
    assert ages(tenth=98, more=2).quantile(0.99) == INFINITE


def test_what_was_there_before_the_load_does_not_count() -> None:
    assert ages(tenth=5, second=2).since(ages(tenth=5)) == ages(second=2)


def test_lag_that_goes_up_and_down_does_not_grow() -> None:
    assert not falls_behind([500, 0] * 30, 100)


def test_lag_that_is_large_and_steady_does_not_grow() -> None:
    assert not falls_behind([0] * 30 + [90_000] * 30, 5_000)


def test_lag_that_grows_by_more_than_a_seconds_worth_in_the_second_half_is_noticed() -> None:
    lags = [60 * second for second in range(60)]
    assert (grown(lags), falls_behind(lags, 1_000), falls_behind(lags, 2_000)) == (1_200, True, False)


def test_samples_are_asked_about_at_times_that_differ_by_eighths_of_a_step() -> None:
    """The ninth begins as the first; each question is 1.7 times as late as the one before."""
    first, later = [next(asking_times(number)) for number in range(9)], list(islice(asking_times(0), 3))
    assert first[:8] == sorted(set(first[:8]))
    assert first[8] == first[0]
    assert later == pytest.approx([0.1, 0.17, 0.289])


def test_what_is_said_is_looked_for_sooner_and_more_often() -> None:
    assert list(islice(asking_times(0, SAID), 3)) == pytest.approx([0.03, 0.039, 0.0507])


@pytest.mark.parametrize(("what", "found"), [(PROMOTED, False), (SAID, True)])
async def test_an_exchange_of_a_window_counts_for_those_who_look_for_what_was_said(what: What, found: bool) -> None:
    hits = {"results": [{"memory": "By the way, the safe opens with 10007.", "state": "short_term"}]}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=hits))
    async with httpx.AsyncClient(transport=transport, base_url="http://worker") as http:
        samples = Samples(OpenLoop(SlowBroker(0), "t", 1), http, 1, 1, what)
        assert await samples._asked("sample-1", "What opens the safe?", "10007") is found


class Batch:
    def __init__(self) -> None:
        self.timestamps: list[int] = []

    def append(self, *, key: bytes, value: bytes, timestamp: int) -> object:
        self.timestamps.append(timestamp)
        return self

    def close(self) -> None:
        pass


class SlowBroker:
    """Takes a batch only after a while, the first one after three times as long."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self.batches = seconds, list[Batch]()

    def create_batch(self) -> Batch:
        return Batch()

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> asyncio.Future[Any]:
        await asyncio.sleep(self._seconds * (1 if self.batches else 3))
        self.batches.append(batch)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


async def test_a_record_is_as_old_as_its_schedule_says_however_late_the_broker_takes_it() -> None:
    """Ten records, ten milliseconds apart, whose timestamps are that far apart, too."""
    broker = SlowBroker(0.05)
    loop = OpenLoop(broker, "t", 1)
    began = time.time()
    delivered = await loop.run([Record(0, b"k", b"v")] * 10, rate=100)
    stamped = [at for batch in broker.batches for at in batch.timestamps]
    assert [at - stamped[0] for at in stamped] == pytest.approx([10 * n for n in range(10)], abs=1)
    assert stamped[0] >= int(began * 1e3)
    assert (delivered.produced, loop.produced) == (10, 10)
    assert delivered.late_max_ms >= 150


@pytest.mark.parametrize(
    ("achieved", "late", "kept"), [(500, 9, True), (499, 9, True), (480, 9, False), (500, 900, False)]
)
def test_a_producer_that_gives_less_or_later_than_it_should_has_not_kept_the_rate(
    achieved: float, late: float, kept: bool
) -> None:
    assert Delivered(1_000, 500, achieved, late, late).kept is kept


@pytest.mark.parametrize(("drained", "told"), [(0.0, 500.0), (20.0, 250.0), (None, None)])
def test_promotions_that_are_kept_after_the_load_took_the_time_until_then(
    drained: float | None, told: float | None
) -> None:
    """A backlog that grew is no throughput."""
    assert kept_per_s(10_000, 20.0, drained) == told


async def searched(bearable: int) -> dict[str, Any]:
    async def measured(rate: int) -> dict[str, Any]:
        return {"rate": rate, "p50_ms": 1.0, "p99_ms": 999.9 if rate <= bearable else 1_000.0, "failed": []}

    return await search(measured, 250, lambda _: None)


@pytest.mark.parametrize("bearable", [100, 300, 1_234, 20_000])
async def test_a_search_comes_within_a_tenth_of_what_is_bearable(bearable: int) -> None:
    told = await searched(bearable)
    assert bearable / 1.1 <= told["sustained_per_s"] <= bearable
    assert told["limited_by"] == "p99 is 1,000.0 ms"


async def test_a_search_finds_nothing_where_the_lowest_rate_is_not_borne() -> None:
    assert (await searched(40))["sustained_per_s"] == 0


async def test_a_search_takes_no_failed_run_for_a_good_one() -> None:
    async def measured(rate: int) -> dict[str, Any]:
        return {"rate": rate, "p50_ms": 1.0, "p99_ms": 1.0, "failed": ["something"] if rate > 250 else []}

    told = await search(measured, 250, lambda _: None)
    assert (told["sustained_per_s"], told["limited_by"]) == (250, "something")


async def test_a_child_of_the_worker_has_its_own_figures() -> None:
    child = CalledProcess("embedding", {})
    await child.call(os.getpid)
    cpu, rss = Processes(os.getpid(), None).used()
    await child.close()
    assert cpu["embedding"] >= 0
    assert rss["embedding"] > 1


def test_a_process_that_works_is_seen_to() -> None:
    """Ours, in the worker's place too: seconds of a processor, and memory."""
    processes = Processes(os.getpid(), None)
    deadline = time.process_time() + 0.05
    while time.process_time() < deadline:
        pass
    cpu, rss = processes.used()
    assert cpu["producer"] >= 0.03
    assert rss["producer"] > 1
