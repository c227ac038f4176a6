"""The screen that shows the condition of all workers: rates, lag and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from schemas.memories import State
from streams.doors.ui.pages import Pages
from streams.doors.ui.reports import RATES, Point, Series, WorkerReport, report_of, series_of, summed, together
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Told, Workers
from streams.service import MemoryService

#: The maximum number of lines in the chart of lags. The chart shows the partitions with the greatest lag.
MOST_LINES: Final = 8


def overview_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """Return the routes of `/ui/overview`, and of `/ui/worker`, where other workers read this worker's report."""
    api = APIRouter(include_in_schema=False)
    topics = service.topics

    async def own_report() -> WorkerReport:
        return report_of(service)

    async def own_series() -> Series:
        return series_of(service)

    async def now_of(request: Request) -> dict[str, Any]:
        told = await workers.tell(request, "/ui/worker", own_report)
        return {**_shown(told, workers.partitions), "topics": topics, "lag_of": _lag_of}

    async def points_of(request: Request) -> list[Point]:
        return together((await workers.tell(request, "/ui/worker?series=1", own_series)).each)

    @api.get("/ui/worker")
    async def worker(series: bool = False) -> WorkerReport | Series:
        """The report of this worker, or its series for the charts."""
        return series_of(service) if series else report_of(service)

    @api.get("/ui/overview")
    async def overview(request: Request, viewer: Looking) -> HTMLResponse:
        """The whole screen."""
        points = await points_of(request)
        values = {**await now_of(request), "rates": _rate_chart(points), "lags": _lag_chart(points)}
        return pages.page("overview.html", viewer, "/ui/overview", **values)

    @api.get("/ui/overview/now")
    async def now(request: Request, viewer: Looking) -> HTMLResponse:
        """The part of the screen that the page reloads regularly."""
        return pages.part("overview_now.html", viewer, **await now_of(request))

    @api.get("/ui/overview/charts")
    async def charts(request: Request) -> dict[str, Any]:
        """The newest data of the screen's charts."""
        points = await points_of(request)
        return {"rates": _rate_chart(points), "lags": _lag_chart(points)}

    return api


def _shown(told: Told[WorkerReport], partitions: int) -> dict[str, Any]:
    each = told.each
    states = summed(report.states for report in each)
    owners = {partition: report for report in each for partition in report.partitions}
    return {
        "workers": each,
        "silent": told.silent,
        "partitions": [(partition, owners.get(partition)) for partition in range(partitions)],
        "missing": [partition for partition in range(partitions) if partition not in owners],
        "ready": all(report.ready for report in each) and not told.silent,
        "reasons": [(report.url, reason) for report in each for reason in report.reasons],
        "warnings": [(report.url, warning) for report in each for warning in report.warnings],
        "rate": summed(report.rates for report in each),
        "total": summed(report.totals for report in each),
        "decisions": summed(report.decisions for report in each),
        "states": states,
        "state_names": [state.value for state in State],
        "state_shares": [(state.value, states.get(state.value, 0)) for state in State],
        "lag": sum(n for report in each for of_topic in report.lag.values() for n in of_topic.values()),
        "uncommitted": max(report.uncommitted_seconds for report in each),
        "sessions": sum(report.sessions for report in each),
    }


def _lag_of(report: WorkerReport | None, topic: str, partition: int) -> int | None:
    return None if report is None else report.lag.get(topic, {}).get(partition)


def _rate_chart(points: Sequence[Point]) -> dict[str, Any]:
    """Return the data of the chart of rates, which `siltstone.js` draws: the times, then the values of each line."""
    names = [name for name in RATES if name != "exchanges"]
    return {
        "kind": "time",
        "unit": "a second",
        "labels": ["messages", "promotions", "memories"],
        "data": [[point.at for point in points], *([point.rates[name] for point in points] for name in names)],
    }


def _lag_chart(points: Sequence[Point]) -> dict[str, Any]:
    worst: dict[int, int] = {}
    for point in points:
        for partition, records in point.lag.items():
            worst[partition] = max(records, worst.get(partition, 0))
    shown = sorted(sorted(worst, key=lambda one: -worst[one])[:MOST_LINES])
    return {
        "kind": "time",
        "unit": "records",
        "labels": [f"partition {partition}" for partition in shown],
        "data": [
            [point.at for point in points],
            *([point.lag.get(partition, 0) for point in points] for partition in shown),
        ],
    }
