"""`siltstone list`."""

from __future__ import annotations

import uuid
from typing import Any

import click

from schemas.memories import State
from streams.doors.cli import show
from streams.doors.cli.client import as_of_option, ask, filter_option, json_option, url_option
from streams.doors.cli.memory_ids import short, user_option


@click.command("list")
@user_option
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only memories in this state.")
@filter_option
@as_of_option
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of memories."
)
@click.option("--after", type=click.UUID, metavar="MEMORY_ID", help="Only memories after this one.")
@url_option
@json_option
def memories(
    user: str,
    state: str | None,
    filters: tuple[str, ...],
    as_of: str | None,
    limit: int,
    after: uuid.UUID | None,
    url: str,
    as_json: bool,
) -> None:
    """List a user's memories in every state, oldest first, with the ids that `forget`, `pin` and `unpin` accept."""
    asked: dict[str, Any] = {"user_id": user, "include_all": True, "filter": filters, "limit": limit}
    asked |= ({"state": state} if state else {}) | ({"after": str(after)} if after else {})
    asked |= {"as_of": as_of} if as_of else {}
    answer = ask(url, "GET", "/v1/memories", params=asked)
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if not answer["memories"]:
        console.print(f"{show.plain(user)} has no such memories.")
        return
    rows = [
        (
            short(one["id"]),
            str(int(one["score"])),  # rounded down, as in the table of `siltstone search`
            show.state(one["state"]) + (", pinned" if one["pinned"] else ""),
            one["created_at"][:10],
            show.plain(one["memory"]),
        )
        for one in answer["memories"]
    ]
    counted = "1 memory" if answer["total"] == 1 else f"{answer['total']} memories"
    title = f"{counted} of {show.plain(user)}"
    console.print(show.table(title, ("id", ">score", "state", "when", "memory"), rows))
    if answer["next"]:
        console.print(f"There are more: continue with --after {answer['next']}")
