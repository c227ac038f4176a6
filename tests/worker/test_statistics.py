"""Statistics of a running worker, over HTTP and on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from schemas.events import Remember
from schemas.lifecycle import DAY_MS
from schemas.settings import Settings
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.cli import cli, running, show
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.making import START, some_id
from tests.support.quick_commands import siltstone
from tests.support.waiting import until


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
    await until(lambda: labelled(worker.metrics.memories).get(("new",)) == len(importances), alive=worker)


async def test_statistics_over_all_shards(settings: Settings, tmp_path: Path) -> None:
    """Shares, days, changes by day and pair with rates, bins with clusters and outliers; `stats` shows all of it."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with api(worker) as client:
            nothing = (await client.get("/v1/stats/scores", params={"at": "2026-01-01"})).json()
            assert (nothing["total"], nothing["clusters"], nothing["fences"]) == (0, [], None)
            await remember(worker, 70, 70, 70, 70, 10)
            await worker.jobs.lifecycle.recompute()
            worker.clock.observe(START + 37 * DAY_MS)
            await worker.jobs.lifecycle.recompute()
            states = (await client.get("/v1/stats/states")).json()
            assert states["states"] == {
                "active": {"count": 0, "percent": 0.0},
                "cold": {"count": 4, "percent": 80.0},
                "deprecated": {"count": 1, "percent": 20.0},
            }
            assert states["daily"] == []
            daily = (await client.get("/v1/stats/states", params={"days": 38})).json()["daily"]
            assert daily[0] == {"day": "2026-01-01", "active": 4, "cold": 0, "deprecated": 1}
            assert daily[-2:] == [{**daily[0], "day": "2026-02-06"}, {**day_of(states), "day": "2026-02-07"}]
            scores = (await client.get("/v1/stats/scores")).json()
            assert [part["memories"] for part in scores["histogram"]] == [1, 0, 0, 4, 0, 0, 0, 0, 0, 0]
            assert [part["from_score"] for part in scores["clusters"]] == [0, 30]
            assert scores["outliers"] == [{"point": 0, "memories": 1, "side": "low"}]
            assert scores["borders"] == {"active": 70, "cold": 30}
            changes = (await client.get("/v1/stats/transitions", params={"days": 2})).json()
            assert (changes["since"], changes["total"], changes["memories"]) == ("2026-02-06", 4, 5)
            pair = {"from_state": "active", "to_state": "cold", "transitions": 4}
            assert changes["rates"] == [{**pair, "per_day": 2.0, "daily_percent": 40.0}]
            assert changes["daily"] == [{"day": "2026-02-07", **pair}]
            earlier = await client.get("/v1/stats/transitions", params={"at": "2026-01-02", "days": 60})
            assert [change["to_state"] for change in earlier.json()["daily"]] == ["deprecated"]
            assert (await client.get("/v1/stats/transitions", params={"days": 0})).status_code == 422
        url = f"http://127.0.0.1:{worker.api.port}"
        shown = await siltstone("stats", "--url", url)
        assert "30–40" in shown.stdout
        assert "active → cold" in shown.stdout
        assert "outliers 1 memories" in shown.stdout
        printed = orjson.loads((await siltstone("stats", "--json", "--days", "2", "--url", url)).stdout)
        assert (printed["total"], printed["scores"]) == (5, scores)
        assert (printed["transitions"], printed["states"]) == (changes, states["states"])
        assert (printed["daily"], "plot" in printed) == (daily[-2:], False)
        drawn = await siltstone("stats", "--plot", str(tmp_path / "s.png"), "--url", url)
        assert (drawn.returncode, drawn.stderr) == (0, "")
        assert drawn.stdout.endswith(f"plot written to {tmp_path / 's.png'}\n")
        assert (tmp_path / "s.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        nowhere = await siltstone("stats", "--plot", str(tmp_path / "none" / "s.png"), "--json", "--url", url)
        assert (nowhere.returncode, nowhere.stdout) == (1, "")
        assert nowhere.stderr.splitlines() == [
            f"siltstone: cannot write {tmp_path / 'none' / 's.png'}: No such file or directory; "
            "choose another place with --plot"
        ]


def day_of(states: dict[str, Any]) -> dict[str, int]:
    return {name: count["count"] for name, count in states["states"].items()}


async def test_a_recompute_shows_states_scores_and_changes_as_metrics(settings: Settings) -> None:
    """Each change is counted once, when the topic has it."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remember(worker, 70, 70, 70, 70, 10)
        worker.clock.observe(START + 37 * DAY_MS)
        for _ in range(2):
            await worker.jobs.lifecycle.recompute()
        async with api(worker) as client:
            shown = (await client.get("/metrics")).text.splitlines()
    assert [line for line in shown if line.startswith("siltstone_memory_scores{") and not line.endswith(" 0.0")] == [
        'siltstone_memory_scores{from_score="0"} 1.0',
        'siltstone_memory_scores{from_score="30"} 4.0',
    ]
    assert len([line for line in shown if line.startswith("siltstone_memory_scores{")]) == 10
    assert 'siltstone_memory_score_outliers{side="low"} 1.0' in shown
    assert 'siltstone_memory_score_outliers{side="high"} 0.0' in shown
    assert 'siltstone_transitions_total{from="active",to="cold"} 4.0' in shown
    assert 'siltstone_transitions_total{from="active",to="deprecated"} 1.0' in shown


async def test_after_a_restart_statistics_are_of_the_newest_change(settings: Settings) -> None:
    """So is the event clock, though it has seen no event yet: a search is answered as well."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await remember(worker, 10)
        worker.clock.observe(START + 1000)
        await worker.jobs.lifecycle.recompute()
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        assert worker.clock.now() == START + 1000
        async with api(worker) as client:
            answer = await client.post("/v1/search", json={"user_id": "u", "query": "text"})
            assert answer.status_code == 200
            for kind in ("states", "scores", "transitions"):
                assert (await client.get(f"/v1/stats/{kind}")).json()["at"] == "2026-01-01T00:00:01.000Z"


WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; from streams.doors.cli import main; main()"


def test_without_matplotlib_stats_says_what_to_install() -> None:
    """Before it asks a worker."""
    words = ["stats", "--plot", "x.png", "--url", "http://127.0.0.1:1"]
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "siltstone: --plot needs matplotlib: pip install 'siltstone[plot]'\n"


@pytest.mark.parametrize("name", ["x.pdf", "x", "."])
def test_a_picture_is_a_png(name: str) -> None:
    result = CliRunner().invoke(cli, ["stats", "--plot", name])
    assert (result.exit_code, "Invalid value for '--plot'" in result.output) == (2, True)


def test_a_memory_that_was_archived_is_shown_among_the_changes() -> None:
    """`archived` is no state, and has a colour nevertheless."""
    assert show.state("archived") == "[magenta]archived[/]"
    assert show.state("active") == "[green]active[/]"
