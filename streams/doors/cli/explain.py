"""`siltstone explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, session_path, url_option

STYLE = {"promoted": "green", "dropped": "dim", "asked": "yellow", "waiting": "cyan", "open": "cyan"}
#: If the terminal is narrower than this number of characters, the cells of a row are shown below each other, because
#: a column of a table would have space for only one word per line.
NARROW_COLUMNS = 90


@click.command()
@click.option("--user", required=True, help="Id of the user.")
@click.option("--session", required=True, help="Id of the session.")
@click.option("--limit", type=click.IntRange(1, 1000), help="Number of newest exchanges to show.  [default: all]")
@url_option
@json_option
def explain(user: str, session: str, limit: int | None, url: str, as_json: bool) -> None:
    """Show why a session's exchanges were kept or dropped, and which change would lead to another decision.

    The status of an exchange is open, waiting (to be scored), asked (a model must rate it), promoted (into long-term
    memory), dropped, or unspoken (only system and tool messages).
    """
    path = session_path(session, "decisions")
    answer = ask(url, "GET", path, params={"user_id": user} | ({"limit": limit} if limit else {}))
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    console.print(Text(_title(user, session, answer)))
    decisions = answer["decisions"]
    if not decisions:
        console.print("It has no exchanges.")
    elif console.width < NARROW_COLUMNS:
        _print_list(console, decisions)
    else:
        _print_table(console, decisions)


def _title(user: str, session: str, answer: dict[str, Any]) -> str:
    closed, threshold = answer["exchanges"], answer["promote_threshold"]
    so_far = (
        "It has ended."
        if answer["ended"]
        else f"{closed} exchanges closed; beyond {threshold}, the oldest are scored."
    )
    return f"Session {session} of {user}. Policy {answer['policy']}, judge: {answer['judge']}. {so_far}"


def _print_table(console: Console, decisions: list[dict[str, Any]]) -> None:
    table = show.table("", ("when (UTC)", "exchange", "status", "why"), (), show_lines=True)
    for decision in decisions:
        why = Text("\n").join(_told(decision))
        table.add_row(_when(decision), Text(_text(decision)), _status(decision, "\n"), why)
    console.print(table)


def _print_list(console: Console, decisions: list[dict[str, Any]]) -> None:
    for decision in decisions:
        console.print()
        console.print(Text(" ").join((Text(_when(decision), "dim"), _status(decision, ", "))))
        console.print(Text(_text(decision), "bold"))
        for line in _told(decision):
            console.print(line)


def _when(decision: dict[str, Any]) -> str:
    return str(decision["started_at"][:16].replace("T", " "))


def _text(decision: dict[str, Any]) -> str:
    return show.shortened(decision["text"])


def _status(decision: dict[str, Any], between: str) -> Text:
    status = Text(decision["status"], STYLE.get(decision["status"], ""))
    if decision["importance"] and decision["outlook"] is None:
        status.append(f"{between}importance {decision['importance']}")
    return status


def _told(decision: dict[str, Any]) -> Iterator[Text]:
    yield Text(decision["why"])
    yield Text(f"→ {decision['change']}", "dim")
