"""Statistics of this worker's shards, as the API returns them."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import date

from pydantic import BaseModel, Field

from schemas.memories import State
from schemas.times import iso
from streams.service import MemoryService
from tables.analysts.statistics import StateChange, StateOnDay, added, day_of, distribution, first_moment, rates
from tables.memories.shard import Shard


class StateCount(BaseModel):
    count: int
    percent: float


class DailyStates(BaseModel):
    """The numbers of memories at the end of a UTC day. On the last day, they are those at `at`."""

    day: date
    active: int
    cold: int
    deprecated: int


class StatesResponse(BaseModel):
    at: str
    total: int
    states: dict[State, StateCount]
    daily: list[DailyStates] = Field(
        description="with `days`: the last days, oldest first, by the recorded changes of state"
    )


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
    daily_percent: float = Field(description="transitions a day, in percent of the current memories")


class TransitionsResponse(BaseModel):
    at: str
    days: int
    since: date = Field(description="the first day, in UTC")
    memories: int
    total: int
    rates: list[PairRate] = Field(description="each pair over the whole period, the most frequent first")
    daily: list[DailyTransitions] = Field(description="days and pairs with transitions, oldest first")


class Bin(BaseModel):
    """The memories with scores from `from_score` to less than `to_score`. The last bin includes the score 100."""

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


class Borders(BaseModel):
    """The minimum scores of the states active and cold. A memory with a lower score is deprecated."""

    active: float
    cold: float


class ScoresResponse(BaseModel):
    at: str
    total: int
    borders: Borders
    histogram: list[Bin]
    clusters: list[Bin] = Field(description="neighbouring bins that each hold more than a tenth of all memories")
    fences: Fences | None = Field(description="1.5 interquartile ranges (10 points at least) beyond the quartiles")
    outliers: list[Outlier] = Field(description="scores beyond the fences")


async def states_of(service: MemoryService, now: int, days: int | None) -> StatesResponse:
    """Return the number of memories in each state at the time `now` (epoch ms), computed from the memories' scores.

    With `days`, the response also has the numbers at the end of each of the last `days` UTC days, computed from the
    recorded changes of state.
    """
    totals = await service.state_counts(now)
    total = sum(totals.values())
    by_day: dict[date, dict[str, int]] = {}
    if days is not None:
        recorded: dict[StateOnDay, int] = added(
            await service.shards.call_each(lambda shard: shard.ageing.states_over_time(first_moment(now, days), now))
        )
        for (day, state), memories in sorted(recorded.items()):
            by_day.setdefault(day, {})[state] = memories
    return StatesResponse(
        at=iso(now),
        total=total,
        states={
            state: StateCount(count=count, percent=round(100 * count / total, 2) if total else 0.0)
            for state, count in totals.items()
        },
        daily=[DailyStates(day=day, **states) for day, states in by_day.items()],
    )


async def transitions_of(service: MemoryService, now: int, days: int) -> TransitionsResponse:
    """Return the memories' changes of state in the last `days` UTC days up to `now` (epoch ms)."""
    since = first_moment(now, days)
    changes: dict[StateChange, int] = added(
        await service.shards.call_each(lambda shard: shard.ageing.daily_transitions(since, now))
    )
    memories = sum(await service.shards.call_each(Shard.count))
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


async def scores_of(service: MemoryService, now: int) -> ScoresResponse:
    """Return the distribution of the memories' scores at the time `now` (epoch ms). This changes nothing."""
    points = added(
        await service.shards.call_each(lambda shard: shard.ageing.score_points(now, service.settings.lifecycle))
    )
    found = await asyncio.to_thread(distribution, points)
    lifecycle = service.settings.lifecycle
    borders = {"active": lifecycle.active, "cold": lifecycle.cold}
    return ScoresResponse.model_validate(
        {"at": iso(now), "total": sum(points.values()), "borders": borders, **asdict(found)}
    )
