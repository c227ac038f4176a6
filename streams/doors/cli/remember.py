"""`siltstone remember`."""

from __future__ import annotations

import click

from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option, written
from streams.doors.cli.memory_ids import short, standing, wait_option


@click.command()
@click.argument("text")
@click.option("--user", required=True, help="Id of the user.")
@click.option("--session", help="Id of the session; required with --for.")
@click.option(
    "--for",
    "ttl_seconds",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Remember it only this long, with its session: a short-term memory.",
)
@click.option("--valid-from", metavar="DATE", help="When it begins to hold, such as 2026-03-14.  [default: now]")
@click.option("--valid-to", metavar="DATE", help="When it ceases to hold.")
@click.option("--importance", type=click.FloatRange(0, 100), help="0 to 100.  [default: the worker's]")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return only when the memory can be read.")
@wait_option
@url_option
@json_option
def remember(
    text: str,
    user: str,
    session: str | None,
    ttl_seconds: int | None,
    valid_from: str | None,
    valid_to: str | None,
    importance: float | None,
    wait: bool,
    seconds: float,
    url: str,
    as_json: bool,
) -> None:
    """Remember TEXT permanently, or for a number of seconds with --for, and show the memory's id."""
    if not text.strip():
        raise click.UsageError("TEXT has no words.")
    if ttl_seconds is not None and session is None:
        raise click.UsageError("--for needs --session: a short-term memory belongs to a session.")
    given = {
        "user_id": user,
        "text": text,
        "kind": "long_term" if ttl_seconds is None else "short_term",
        "session_id": session,
        "ttl_seconds": ttl_seconds,
        "importance": importance,
        "valid_from": valid_from,
        "valid_to": valid_to,
    }
    body = {name: value for name, value in given.items() if value is not None}
    late = f"it was not {'remembered' if ttl_seconds is None else 'noted'} within {seconds:g} s"
    if wait:
        answer = written(url, "POST", "/v1/memories", late, seconds, json=body)
    else:
        answer = ask(url, "POST", "/v1/memories", json=body)
    memory_id = given_id = answer["event_id"]
    if wait and ttl_seconds is None:
        memory_id = standing(url, user, given_id) or given_id
    if as_json:
        show.as_json({**answer, "id": memory_id, "known": memory_id != given_id})
        return
    known = ", an existing memory that says the same" if memory_id != given_id else ""
    click.echo(f"remembered as {short(memory_id)}{known} ({memory_id})")
