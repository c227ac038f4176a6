"""The screen of the lifecycle: states by day, transitions, scores, and a preview of cleanup."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from schemas.memories import State
from streams.doors.http.cleanup import ShownCandidate
from streams.doors.ui.pages import Pages
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Workers
from streams.service import MemoryService
from tables.analysts.statistics import StateChange, StateOnDay, added, distribution, first_moment, rates

CANDIDATES: Final = 25
_BIN: Final = 10


class StateOnDayCount(BaseModel):
    day: str
    state: str
    memories: int


class ChangeOnDay(BaseModel):
    day: str
    from_state: str
    to_state: str
    transitions: int


class LifecycleNumbers(BaseModel):
    """The lifecycle statistics of one worker's shards at the time `at` (epoch ms).

    `points` has the number of memories by score. The scores are rounded down to integers.
    """

    at: int
    states: dict[State, int]
    daily: list[StateOnDayCount]
    changes: list[ChangeOnDay]
    points: dict[int, int]
    archive: int
    remove: int
    exempt: dict[str, int]
    candidates: list[ShownCandidate]


async def lifecycle_numbers(service: MemoryService, days: int) -> LifecycleNumbers:
    """Return the lifecycle statistics of this worker's shards for the last `days` UTC days. This changes nothing."""
    async with service.users.own_shards():
        at, shards, lifecycle = await service.moment(), service.shards, service.settings.lifecycle
        since = first_moment(at, days)
        over_time: Counter[StateOnDay] = added(
            await shards.call_each(lambda shard: shard.ageing.states_over_time(since, at))
        )
        changes: Counter[StateChange] = added(
            await shards.call_each(lambda shard: shard.ageing.daily_transitions(since, at))
        )
        verdicts = await service.cleanup.verdicts(at, None, CANDIDATES)
        going = verdicts.going_by_cause
        return LifecycleNumbers(
            at=at,
            states=await service.state_counts(at),
            daily=[
                StateOnDayCount(day=str(one.day), state=one.state, memories=count)
                for one, count in sorted(over_time.items())
            ],
            changes=[
                ChangeOnDay(day=str(one.day), from_state=one.from_state, to_state=one.to_state, transitions=count)
                for one, count in sorted(changes.items())
            ],
            points=added(await shards.call_each(lambda shard: shard.ageing.score_points(at, lifecycle))),
            archive=going.total() - going["archived"],
            remove=going["archived"],
            exempt={str(name): count for name, count in verdicts.exempt.items()},
            candidates=[ShownCandidate.of(one) for one in verdicts.candidates[:CANDIDATES]],
        )


def lifecycle_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """`/ui/lifecycle`."""
    api = APIRouter(include_in_schema=False)
    lifecycle = service.settings.lifecycle

    @api.get("/ui/worker/lifecycle")
    async def worker(days: Annotated[int, Query(ge=1, le=3650)] = 30) -> LifecycleNumbers:
        """The counts of this worker's shards."""
        return await lifecycle_numbers(service, days)

    @api.get("/ui/lifecycle")
    async def screen(
        request: Request, viewer: Looking, days: Annotated[int, Query(ge=1, le=3650)] = 30
    ) -> HTMLResponse:
        """The screen, with the sums of all workers."""
        told = await workers.tell(
            request, f"/ui/worker/lifecycle?days={days}", lambda: lifecycle_numbers(service, days)
        )
        each = told.each
        states: Counter[State] = added(one.states for one in each)
        points: Counter[int] = added(one.points for one in each)
        scores = await asyncio.to_thread(distribution, points)
        total = states.total()
        return pages.page(
            "lifecycle.html",
            viewer,
            "/ui/lifecycle",
            silent=told.silent,
            days=days,
            at=max(one.at for one in each),
            total=total,
            shares=[(state.value, states[state]) for state in State],
            daily=_daily_chart([day for one in each for day in one.daily]),
            rates=rates(_changes(each), days, total),
            scores=_score_chart(scores.histogram),
            clusters=scores.clusters,
            outliers=scores.outliers,
            borders=(lifecycle.active, lifecycle.cold),
            cleanup=lifecycle.cleanup,
            archive=sum(one.archive for one in each),
            remove=sum(one.remove for one in each),
            exempt=added(one.exempt for one in each),
            candidates=sorted((one for report in each for one in report.candidates), key=lambda one: one.since)[
                :CANDIDATES
            ],
        )

    return api


def _changes(each: Sequence[LifecycleNumbers]) -> Counter[StateChange]:
    found: Counter[StateChange] = Counter()
    for one in each:
        for change in one.changes:
            day = datetime.fromisoformat(change.day).date()
            found[StateChange(day, change.from_state, change.to_state)] += change.transitions
    return found


def _daily_chart(daily: Sequence[StateOnDayCount]) -> dict[str, Any]:
    counts: Counter[tuple[str, str]] = Counter()
    for one in daily:
        counts[one.day, one.state] += one.memories
    days = sorted({one.day for one in daily})
    return {
        "kind": "days",
        "unit": "memories",
        "labels": [state.value for state in State],
        "colours": ["--line-1", "--line-2", "--line-8"],
        "data": [
            [int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) for day in days],
            *([counts[day, state.value] for day in days] for state in State),
        ],
    }


def _score_chart(histogram: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = {int(one["from_score"]): int(one["memories"]) for one in histogram}
    bins = range(0, 100, _BIN) if found else ()
    return {
        "kind": "scores",
        "unit": "memories",
        "bars": True,
        "labels": ["memories"],
        "colours": ["--line-4"],
        "data": [list(bins), [found.get(low, 0) for low in bins]],
    }
