"""`siltstone snapshot`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click

from schemas.errors import ApiError, NoWorker, ShardLocked
from schemas.settings import Settings
from schemas.times import iso, now_ms
from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option
from streams.doors.cli.options import data_option
from streams.doors.cli.process import write_as_let_in
from tables.analysts.copy import described
from tables.offline.snapshot import snapshot_of_files

#: The maximum number of seconds to wait for the worker's answer. A worker answers only when the copy is complete.
WAIT_SECONDS = 3600.0


@click.command()
@data_option
@url_option
@json_option
def snapshot(data: Path | None, url: str, as_json: bool) -> None:
    """Make the analysts' copy now: data/analytics/siltstone.duckdb.

    The running worker makes the copy. If no worker answers, the command makes it from the shards' files. With --data,
    the command tries the files first; if a worker has them open, the worker makes the copy. A worker reports only
    the path within its data directory. The command shows the full path if that directory is the one in the settings
    or in --data.
    """
    made = _of_worker(url) if data is None else _of_files(data, url)
    if as_json:
        show.as_json(made)
        return
    size = f"{made['bytes'] / 1e6:.1f} MB"
    click.echo(f"{made['path']}: {made['memories']} memories, scores as of {made['at']}, {size}")


def _of_worker(url: str) -> dict[str, Any]:
    settings = Settings.load()
    try:
        made = _ask(url)
        return _placed(made, settings.data_dir) or made
    except NoWorker:
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
    placed = _placed(made, data)
    if placed is None:
        raise ApiError(
            f"the worker at {url} has a data directory other than {data}: pass the --url of that one's worker"
        )
    return placed


def _placed(made: dict[str, Any], data: Path) -> dict[str, Any] | None:
    """Return the worker's answer `made` with the full path of the copy, or None if the copy is not in `data`."""
    path = data.resolve() / made["path"]
    if not path.is_file() or path.stat().st_size != made["bytes"]:
        return None
    return {**made, "path": str(path)}


def _ask(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = ask(url, "POST", "/v1/snapshot", seconds=WAIT_SECONDS)
    return answer


def _from_files(data: Path, settings: Settings) -> dict[str, Any]:
    write_as_let_in(data)
    made = snapshot_of_files(data, now_ms(), settings.lifecycle, ZoneInfo(settings.agents.summary.timezone))
    return {**described(made, data), "path": str(made.path.resolve()), "at": iso(made.at)}
