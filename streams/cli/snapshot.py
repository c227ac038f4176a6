"""`siltstone snapshot`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from schemas.errors import ApiError, NoWorker, ShardLocked
from schemas.settings import Settings
from schemas.times import iso
from streams.cli import show
from streams.cli.client import ask, json_option, url_option
from streams.cli.options import data_option
from streams.clock import now_ms
from tables.analysts.copy import described, snapshot_of_files

#: A worker answers when the copy is in its place.
WAIT_SECONDS = 3600.0


@click.command()
@data_option
@url_option
@json_option
def snapshot(data: Path | None, url: str, as_json: bool) -> None:
    """Make the analysts' copy now: data/analytics/siltstone.duckdb.

    The running worker is asked for it; where none answers, it is made from the shards' files. With --data the
    files come first, and the worker is asked where it has them open.
    """
    made = _of_worker(url) if data is None else _of_files(data, url)
    if as_json:
        show.as_json(made)
        return
    size = f"{made['bytes'] / 1e6:.1f} MB"
    click.echo(f"{made['path']}: {made['memories']} memories, scores as of {made['at']}, {size}")


def _of_worker(url: str) -> dict[str, Any]:
    try:
        return _ask(url)
    except NoWorker:
        settings = Settings.load()
        if not (settings.data_dir / "shards").is_dir():
            raise
        return _from_files(settings.data_dir, settings)


def _of_files(data: Path, url: str) -> dict[str, Any]:
    try:
        return _from_files(data, Settings.load())
    except ShardLocked as locked:
        try:
            made = _ask(url)
        except NoWorker:
            raise locked from None
    if not Path(made["path"]).is_relative_to(data.resolve()):
        raise ApiError(f"the worker at {url} keeps another directory ({made['path']}): pass the --url of the one")
    return made


def _ask(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = ask(url, "POST", "/v1/snapshot", seconds=WAIT_SECONDS)
    return answer


def _from_files(data: Path, settings: Settings) -> dict[str, Any]:
    made = snapshot_of_files(data, now_ms(), settings.lifecycle)
    return {**described(made), "at": iso(made.at)}
