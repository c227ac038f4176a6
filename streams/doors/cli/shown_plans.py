"""Prints the plan of an import, for the option `--dry-run`."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from schemas.times import iso
from streams.doors.cli import show
from streams.doors.importing.formats import NAMES
from streams.doors.importing.planning import Plan

#: The maximum number of sessions, and of problems, that are printed. With `--json`, all are printed.
_MOST_ROWS = 50


def show_plan(called: str, plan: Plan, as_json: bool) -> None:
    """Print the plan of an import. If an entry is bad, exit with code 1, as an import without `--dry-run` would."""
    if as_json:
        show.as_json(plan.told())
    else:
        _print(called, plan)
    if plan.problems:
        raise SystemExit(1)


def _print(called: str, plan: Plan) -> None:
    console = Console()
    if plan.format is not None:
        click.echo(f"{called} would be read as {NAMES[plan.format]}")
    if plan.sessions:
        table = Table("session", "user", "messages", "speakers", "from", "to")
        for name, one in list(plan.sessions.items())[:_MOST_ROWS]:
            speakers = ", ".join(f"{who} {count}" for who, count in one.speakers.most_common())
            first, last = (iso(at)[:16].replace("T", " ") for at in (one.first, one.last))
            table.add_row(Text(name), Text(one.user_id), str(one.speakers.total()), Text(speakers), first, last)
        console.print(table)
        if len(plan.sessions) > _MOST_ROWS:
            click.echo(f"and {len(plan.sessions) - _MOST_ROWS} more sessions")
    for problem in plan.problems[:_MOST_ROWS]:
        click.echo(f"{called}: {problem.where}: {problem.why}", err=True)
    if len(plan.problems) > _MOST_ROWS:
        click.echo(f"and {len(plan.problems) - _MOST_ROWS} more bad entries", err=True)
    messages = sum(one.speakers.total() for one in plan.sessions.values())
    memories = f", {plan.memories} memories" if plan.memories else ""
    click.echo(
        f"{messages} messages in {len(plan.sessions)} sessions{memories}; {len(plan.problems)} bad, "
        f"{plan.left_out} left out. Nothing was produced"
    )
