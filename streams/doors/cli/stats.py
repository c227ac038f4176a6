"""`siltstone stats`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from schemas.errors import SiltstoneError
from streams.doors.cli import show
from streams.doors.cli.client import ask, coming_back, json_option, url_option

BAR = 40

Answer = dict[str, Any]


def _png(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix.lower() != ".png":
        raise click.BadParameter(f"{value} does not end in .png, the only format")
    return value


@click.command()
@click.option("--at", help="As of this time (ISO 8601) instead of now.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    help="Number of days to show changes of state for.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_png,
    metavar="FILE.png",
    help="Draw scores, states over time and changes of state into this file.",
)
@url_option
@json_option
def stats(at: str | None, days: int, plot: Path | None, url: str, as_json: bool) -> None:
    """Show memories by state and score, changes of state, and the worker's counters since it started."""
    draw = None if plot is None else _drawing(plot)
    moment: dict[str, Any] = {"at": at} if at else {}
    states = ask(url, "GET", "/v1/stats/states", params={"days": days, **moment})
    scores = ask(url, "GET", "/v1/stats/scores", params=moment)
    transitions = ask(url, "GET", "/v1/stats/transitions", params={"days": days, **moment})
    pipeline = ask(url, "GET", "/v1/stats/pipeline")
    if draw is not None:
        draw(states, scores, transitions)
    if as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        show.as_json({**states, "scores": scores, "transitions": transitions, "pipeline": pipeline, **drawn})
        return
    console = show.console()
    rows = [
        (show.state(name), count["count"], f"{count['percent']:.1f} %") for name, count in states["states"].items()
    ]
    title = f"{states['total']} memories at {states['at']}"
    console.print(show.table(title, ("state", ">memories", ">share"), rows, min_width=len(title)))
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
    console.print(show.table(title, ("exchanges", "reason", ">number"), done, min_width=len(title)))
    for behind in pipeline["coming_back"]:
        console.print(f"recovering: {coming_back(behind)}", markup=False)
    if plot is not None:
        click.echo(f"plot written to {plot}")


def _drawing(file: Path) -> Callable[[Answer, Answer, Answer], None]:
    """Return a function that draws the worker's answers as a picture, and writes it to the file.

    Raises `SiltstoneError` if matplotlib is not installed.
    """
    try:
        from streams.doors.cli.plot import figure_of  # matplotlib is optional, and slow to import
    except ImportError as exc:
        raise SiltstoneError("--plot needs matplotlib: pip install 'siltstone[plot]'") from exc

    def draw(states: Answer, scores: Answer, transitions: Answer) -> None:
        try:
            figure_of(states, scores, transitions).savefig(file)
        except OSError as exc:
            why = exc.strerror or str(exc)
            raise SiltstoneError(f"cannot write {file}: {why}; choose another place with --plot") from exc

    return draw


def _show_scores(console: Console, scores: Answer) -> None:
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
        console.print(f"outliers {number} memories {' or '.join(show.fences(scores))}")


def _show_transitions(console: Console, transitions: Answer) -> None:
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


def _band(part: Answer) -> str:
    return f"{part['from_score']}–{part['to_score']}"
