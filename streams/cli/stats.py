"""`siltstone stats`."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from streams.cli import show
from streams.cli.client import ask, json_option, url_option

BAR = 40


@click.command()
@click.option("--at", help="As of this time (ISO 8601) instead of now.")
@click.option(
    "--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="Days of changes of state to show."
)
@url_option
@json_option
def stats(at: str | None, days: int, url: str, as_json: bool) -> None:
    """Memories by state and score, how states change, and what the worker has done since it started."""
    moment: dict[str, Any] = {"at": at} if at else {}
    states = ask(url, "GET", "/v1/stats/states", params=moment)
    scores = ask(url, "GET", "/v1/stats/scores", params=moment)
    transitions = ask(url, "GET", "/v1/stats/transitions", params={"days": days, **moment})
    pipeline = ask(url, "GET", "/v1/stats/pipeline")
    if as_json:
        show.as_json({**states, "scores": scores, "transitions": transitions, "pipeline": pipeline})
        return
    console = show.console()
    rows = [
        (show.state(name), count["count"], f"{count['percent']:.1f} %") for name, count in states["states"].items()
    ]
    console.print(show.table(f"{states['total']} memories at {states['at']}", ("state", ">memories", ">share"), rows))
    if states["total"]:
        _show_scores(console, scores)
    if transitions["total"]:
        _show_transitions(console, transitions)
    done = [
        (outcome, reason, n) for outcome, reasons in pipeline["decisions"].items() for reason, n in reasons.items()
    ]
    title = (
        f"{pipeline['messages']} messages, {pipeline['exchanges']} exchanges, {pipeline['dead_letters']} dead letters"
    )
    console.print(show.table(title, ("exchanges", "reason", ">number"), done))


def _show_scores(console: Console, scores: dict[str, Any]) -> None:
    most = max(part["memories"] for part in scores["histogram"])
    rows = [
        (_band(part), part["memories"], f"{part['percent']:.1f} %", "█" * round(BAR * part["memories"] / most))
        for part in scores["histogram"]
    ]
    console.print(show.table("Scores", (">score", ">memories", ">share", ""), rows))
    for cluster in scores["clusters"]:
        console.print(f"cluster  {_band(cluster)}: {cluster['memories']} memories, {cluster['percent']:.1f} %")
    if scores["outliers"]:
        number = sum(outlier["memories"] for outlier in scores["outliers"])
        fences = scores["fences"]
        console.print(f"outliers {number} memories below {fences['low']:g} or above {fences['high']:g}")


def _show_transitions(console: Console, transitions: dict[str, Any]) -> None:
    title = f"{transitions['total']} changes of state since {transitions['since']}"
    rows = [
        (
            f"{show.state(rate['from_state'])} → {show.state(rate['to_state'])}",
            rate["transitions"],
            f"{rate['per_day']:.2f}",
            f"{rate['daily_percent']:.2f} %",
        )
        for rate in transitions["rates"]
    ]
    console.print(show.table(title, ("change", ">number", ">a day", ">of memories a day"), rows))


def _band(part: dict[str, Any]) -> str:
    return f"{part['from_score']}–{part['to_score']}"
