"""`siltstone remember`."""

from __future__ import annotations

from urllib.parse import quote

import click

from streams.cli import show
from streams.cli.client import ask, json_option, url_option
from streams.cli.memory_ids import short, standing, until, wait_option


@click.command()
@click.argument("text")
@click.option("--user", required=True, help="Who is to be reminded of it.")
@click.option("--session", help="Where it belongs to; needed with --for.")
@click.option(
    "--for",
    "ttl_seconds",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Only for so long, with its session: a short-term memory.",
)
@click.option("--importance", type=click.FloatRange(0, 100), help="0 to 100.  [default: the worker's]")
@wait_option
@url_option
@json_option
def remember(
    text: str,
    user: str,
    session: str | None,
    ttl_seconds: int | None,
    importance: float | None,
    seconds: float,
    url: str,
    as_json: bool,
) -> None:
    """Have TEXT remembered, and show the memory's id: for good, or with --for for a while."""
    if not text.strip():
        raise click.UsageError("There is no word in TEXT.")
    if ttl_seconds is not None and session is None:
        raise click.UsageError("--for needs --session: what is remembered for a while belongs to a session.")
    given = {
        "user_id": user,
        "text": text,
        "kind": "long_term" if ttl_seconds is None else "short_term",
        "session_id": session,
        "ttl_seconds": ttl_seconds,
        "importance": importance,
    }
    body = {name: value for name, value in given.items() if value is not None}
    written = ask(url, "POST", "/v1/memories", json=body)
    memory_id = given_id = written["event_id"]
    if ttl_seconds is None:
        until(lambda: standing(url, user, given_id) is not None, "it is not a memory yet", seconds)
        memory_id = standing(url, user, given_id) or given_id
    else:
        until(lambda: _noted(url, user, str(session), given_id), "it is not noted", seconds)
    if as_json:
        show.as_json({**written, "id": memory_id, "known": memory_id != given_id})
        return
    known = ", which says the same already" if memory_id != given_id else ""
    click.echo(f"remembered as {short(memory_id)}{known} ({memory_id})")


def _noted(url: str, user: str, session: str, memory_id: str) -> bool:
    path = f"/v1/sessions/{quote(session, safe='')}/memories"
    return any(note["id"] == memory_id for note in ask(url, "GET", path, params={"user_id": user})["memories"])
