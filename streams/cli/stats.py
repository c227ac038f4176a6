"""`siltstone stats`."""

from __future__ import annotations

import click

from streams.cli import show
from streams.cli.client import ask, json_option, url_option


@click.command()
@click.option("--at", help="States as of this time (ISO 8601) instead of now.")
@url_option
@json_option
def stats(at: str | None, url: str, as_json: bool) -> None:
    """Memories by state, and what the worker has done since it started."""
    states = ask(url, "GET", "/v1/stats/states", params={"at": at} if at else {})
    pipeline = ask(url, "GET", "/v1/stats/pipeline")
    if as_json:
        show.as_json({**states, "pipeline": pipeline})
        return
    console = show.console()
    rows = [
        (show.state(name), count["count"], f"{count['percent']:.1f} %") for name, count in states["states"].items()
    ]
    console.print(show.table(f"{states['total']} memories at {states['at']}", ("state", ">memories", ">share"), rows))
    done = [
        (outcome, reason, n) for outcome, reasons in pipeline["decisions"].items() for reason, n in reasons.items()
    ]
    title = (
        f"{pipeline['messages']} messages, {pipeline['exchanges']} exchanges, {pipeline['dead_letters']} dead letters"
    )
    console.print(show.table(title, ("exchanges", "reason", ">number"), done))
