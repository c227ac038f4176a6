"""Statistics of a running worker, over HTTP and on the command line."""

from __future__ import annotations

import orjson

from schemas.events import Remember
from schemas.settings import Settings
from schemas.topics import key_of
from streams.app import Siltstone
from streams.cli import running
from streams.metrics import labelled
from streams.rules.lifecycle import DAY_MS
from tests.making import START, some_id, until
from tests.test_pipeline import api
from tests.test_readme import siltstone


async def remember(worker: Siltstone, *importances: float) -> None:
    """As many memories, each of its own user, in the shards."""
    for number, importance in enumerate(importances):
        event = Remember(
            event_id=some_id(),
            user_id=f"u{number}",
            timestamp=START,
            text=f"The number {number} is worth {importance}.",
            importance=importance,
        )
        await (
            await worker.hot.outbox.send(
                worker.topics.long_term, event.model_dump_json().encode(), key=key_of(event.user_id)
            )
        )
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == len(importances))


async def test_statistics_over_all_shards(settings: Settings) -> None:
    """Percentages, changes by day and pair with rates, bins with clusters and outliers; `stats` shows all of it."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with api(worker) as client:
            nothing = (await client.get("/v1/stats/scores", params={"at": "2026-01-01"})).json()
            assert (nothing["total"], nothing["clusters"], nothing["fences"]) == (0, [], None)
            await remember(worker, 100, 100, 100, 100, 10)
            await worker.lifecycle.recompute()
            worker.clock.observe(START + 37 * DAY_MS)
            await worker.lifecycle.recompute()
            states = (await client.get("/v1/stats/states")).json()
            assert states["states"] == {
                "active": {"count": 0, "percent": 0.0},
                "cold": {"count": 4, "percent": 80.0},
                "deprecated": {"count": 1, "percent": 20.0},
            }
            scores = (await client.get("/v1/stats/scores")).json()
            assert [part["memories"] for part in scores["histogram"]] == [1, 0, 0, 0, 0, 4, 0, 0, 0, 0]
            assert [part["from_score"] for part in scores["clusters"]] == [0, 50]
            assert scores["outliers"] == [{"point": 5, "memories": 1, "side": "low"}]
            changes = (await client.get("/v1/stats/transitions", params={"days": 2})).json()
            assert (changes["since"], changes["total"], changes["memories"]) == ("2026-02-06", 4, 5)
            pair = {"from_state": "active", "to_state": "cold", "transitions": 4}
            assert changes["rates"] == [{**pair, "per_day": 2.0, "daily_percent": 40.0}]
            assert changes["daily"] == [{"day": "2026-02-07", **pair}]
            earlier = await client.get("/v1/stats/transitions", params={"at": "2026-01-02", "days": 60})
            assert [change["to_state"] for change in earlier.json()["daily"]] == ["deprecated"]
            assert (await client.get("/v1/stats/transitions", params={"days": 0})).status_code == 422
        url = f"http://127.0.0.1:{worker.port}"
        shown = await siltstone("stats", "--url", url)
        assert "50–60" in shown.stdout
        assert "active → cold" in shown.stdout
        assert "outliers 1 memories" in shown.stdout
        printed = orjson.loads((await siltstone("stats", "--json", "--days", "2", "--url", url)).stdout)
        assert (printed["total"], printed["scores"]) == (5, scores)
        assert (printed["transitions"], printed["states"]) == (changes, states["states"])
