"""`siltstone end-session`."""

from __future__ import annotations

import click

from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, session_path, url_option


@click.command()
@click.option("--user", required=True, help="Id of the user.")
@click.option("--session", required=True, help="Id of the session.")
@click.option("--at", metavar="TIME", help="When the session ended: ISO 8601 or epoch milliseconds.  [default: now]")
@url_option
@json_option
def end_session(user: str, session: str, at: str | None, url: str, as_json: bool) -> None:
    """End a session without waiting for half an hour of silence.

    The worker then decides on the session's undecided exchanges: those that are worth keeping become memories.
    Important notes of the session become memories too.
    """
    timestamp = int(at) if at is not None and at.isdecimal() else at
    path = session_path(session, "end")
    written = ask(url, "POST", path, json={"user_id": user, "timestamp": timestamp})
    if as_json:
        show.as_json(written)
        return
    where = f"{written['topic']}[{written['partition']}]@{written['offset']}"
    console = show.console()
    console.print(f"Session {session} of {user} ends: {where}.", markup=False)
    console.print("`siltstone explain` shows the decisions.")
