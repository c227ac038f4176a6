"""Finds memories by a complete id or by the beginning of an id, because tables show only the beginning."""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

import click

from schemas.errors import ApiError
from streams.doors.cli.client import ask
from streams.doors.cli.show import SHOWN_OF_IDS

_BEGINNING: Final = re.compile(r"[0-9a-f-]{4,36}")


class _MemoryId(click.ParamType):
    name = "MEMORY_ID"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        given = value.strip().lower()
        try:
            return str(uuid.UUID(given))
        except ValueError:
            if not _BEGINNING.fullmatch(given):
                self.fail(
                    f"{value!r} is neither a memory id nor at least four characters of its beginning.", param, ctx
                )
            return given


#: The click type of an argument that is the id of a memory, or the beginning of an id.
MEMORY_ID = _MemoryId()

ids_argument = click.argument("ids", nargs=-1, required=True, type=MEMORY_ID, metavar="MEMORY_ID...")
user_option = click.option("--user", required=True, help="Id of the user.")
wait_option = click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait until it is done.",
)


def short(memory_id: str) -> str:
    """Return the first characters of a memory's id, as tables show it."""
    return memory_id[:SHOWN_OF_IDS]


def is_whole(given: str) -> bool:
    return len(given) == 36


def found(url: str, user: str, given: str) -> dict[str, Any]:
    """Return the user's memory whose id is `given` or begins with `given`.

    Raises `ApiError` if no memory matches, or if several match.
    """
    condition = f'id:eq:"{given}"' if is_whole(given) else f'id:contains:"{given}"'
    asked = {"user_id": user, "filter": condition, "include_all": True, "limit": 1000}
    memories = ask(url, "GET", "/v1/memories", params=asked)["memories"]
    matching = [memory for memory in memories if memory["id"].startswith(given)]
    if len(matching) == 1:
        memory: dict[str, Any] = matching[0]
        return memory
    if not matching:
        raise ApiError(f"user {user} has no memory {given}: `siltstone list --user {user}` shows the ids")
    several = ", ".join(memory["id"] for memory in matching[:5])
    raise ApiError(
        f"the ids of {len(matching)} memories of {user} begin with {given}: give more characters ({several})"
    )


def standing(url: str, user: str, memory_id: str) -> str | None:
    """Return the id of the memory, archived or not, or None if there is no such memory.

    If the memory was merged into another memory as a near-copy, the id of the other memory is returned. We request
    the memory's history, because a request for the memory itself may count as an access.
    """
    try:
        history = ask(url, "GET", f"/v1/memories/{memory_id}/history", params={"user_id": user})
    except ApiError as exc:
        if exc.status == 404:
            return None
        raise
    return str(history["id"])
