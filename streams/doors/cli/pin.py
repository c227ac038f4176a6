"""`siltstone pin` and `siltstone unpin`."""

from __future__ import annotations

import click

from streams.doors.cli import show
from streams.doors.cli.client import json_option, url_option, written
from streams.doors.cli.memory_ids import found, ids_argument, short, user_option, wait_option


@click.command()
@ids_argument
@user_option
@wait_option
@url_option
@json_option
def pin(ids: tuple[str, ...], user: str, seconds: float, url: str, as_json: bool) -> None:
    """Pin memories, so that they do not decay, and no cleanup archives them."""
    _change(ids, user, seconds, url, as_json, pinned=True)


@click.command()
@ids_argument
@user_option
@wait_option
@url_option
@json_option
def unpin(ids: tuple[str, ...], user: str, seconds: float, url: str, as_json: bool) -> None:
    """Unpin memories, so that they decay again, even if the user had asked to remember them."""
    _change(ids, user, seconds, url, as_json, pinned=False)


def _change(given: tuple[str, ...], user: str, seconds: float, url: str, as_json: bool, *, pinned: bool) -> None:
    memories = [found(url, user, one) for one in given]
    method, word = ("PUT", "pinned") if pinned else ("DELETE", "unpinned")
    for memory in memories:
        late = f"{memory['id']} was not {word} within {seconds:g} s"
        written(url, method, f"/v1/memories/{memory['id']}/pin", late, seconds, params={"user_id": user})
    if as_json:
        show.as_json({"user_id": user, word: [memory["id"] for memory in memories]})
        return
    for memory in memories:
        click.echo(f"{word} {short(memory['id'])}  {show.shortened(memory['memory'])}")
