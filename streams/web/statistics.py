"""Statistics of this worker's shards, as the API answers them."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from schemas.messages import iso
from tables.shard import Shard
from tables.statistics import Change, added, day_of, distribution, first_moment, rates

if TYPE_CHECKING:
    from streams.app import Siltstone


class DailyTransitions(BaseModel):
    day: date
    from_state: str
    to_state: str
    transitions: int


class PairRate(BaseModel):
    from_state: str
    to_state: str
    transitions: int
    per_day: float
    daily_percent: float = Field(description="transitions a day, in percent of the memories that there are now")


class TransitionsResponse(BaseModel):
    at: str
    days: int
    since: date = Field(description="the first day, in UTC")
    memories: int
    total: int
    rates: list[PairRate] = Field(description="each pair over the whole period, the most frequent first")
    daily: list[DailyTransitions] = Field(description="days and pairs with transitions, oldest first")


class Bin(BaseModel):
    """Scores from `from_score` up to, not including, `to_score`; the last one includes 100."""

    from_score: int
    to_score: int
    memories: int
    percent: float


class Outlier(BaseModel):
    point: int = Field(description="the score, rounded down")
    memories: int
    side: str


class Fences(BaseModel):
    low: float
    high: float


class ScoresResponse(BaseModel):
    at: str
    total: int
    histogram: list[Bin]
    clusters: list[Bin] = Field(description="neighbouring bins that each hold more than a tenth of all memories")
    fences: Fences | None = Field(description="1.5 interquartile ranges (10 points at least) beyond the quartiles")
    outliers: list[Outlier] = Field(description="scores beyond the fences")


async def transitions_of(worker: Siltstone, now: int, days: int) -> TransitionsResponse:
    """The last `days` UTC days up to `now` (epoch ms)."""
    since = first_moment(now, days)
    changes: dict[Change, int] = added(await worker.shards.call_each(Shard.daily_transitions, since, now))
    memories = sum(await worker.shards.call_each(Shard.count))
    return TransitionsResponse(
        at=iso(now),
        days=days,
        since=day_of(since),
        memories=memories,
        total=sum(changes.values()),
        rates=[PairRate(**asdict(rate)) for rate in rates(changes, days, memories)],
        daily=[
            DailyTransitions(**change._asdict(), transitions=number) for change, number in sorted(changes.items())
        ],
    )


async def scores_of(worker: Siltstone, now: int) -> ScoresResponse:
    """The scores as of `now` (epoch ms); nothing is changed by asking."""
    points = added(await worker.shards.call_each(Shard.score_points, now, worker.settings.lifecycle))
    found = await asyncio.to_thread(distribution, points)
    return ScoresResponse.model_validate({"at": iso(now), "total": sum(points.values()), **asdict(found)})
