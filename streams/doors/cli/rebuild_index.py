"""`siltstone rebuild-index`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from schemas.errors import SiltstoneError
from schemas.settings import Settings
from streams.doors.cli import show
from streams.doors.cli.client import json_option
from streams.doors.cli.options import data_option
from streams.doors.cli.shard_files import RowsBar, shard_files
from tables.offline.rebuilding import rebuild_index


@click.command("rebuild-index")
@data_option
@click.option("--partition", "partitions", type=int, multiple=True, help="Only this shard; repeatable.")
@json_option
def rebuild_indexes(data: Path | None, partitions: tuple[int, ...], as_json: bool) -> None:
    """Rebuild the FAISS files of shards from the vectors in their catalogs.

    The command needs no model. It works on the shards that no worker has open. A worker repairs the indexes of its
    shards itself when it opens them. The exit code is 1 if another process has a shard open.
    """
    files = shard_files(data or Settings.load().data_dir, partitions)
    with RowsBar() as bar:
        made = [rebuild_index(p, files.paths[p], bar.of(f"shard {p}")) for p in sorted(files.free)]
    rebuilt = [index for index in made if index is not None]
    if as_json:
        show.as_json({"rebuilt": [asdict(index) for index in rebuilt], "held": sorted(files.held)})
    elif rebuilt:
        rows = [
            (one.partition, f"{one.rows:,}", f"{one.model} ({one.dimension})", f"{one.bytes / 1e6:.1f} MB", one.was)
            for one in rebuilt
        ]
        show.console().print(show.table("Indexes", (">shard", ">vectors", "model", ">size", "was"), rows))
    elif not files.held:
        click.echo("The shards have never held a vector: there is nothing to rebuild.")
    if files.held:
        raise SiltstoneError(f"{files.holders}: stop it first; a worker repairs its indexes itself when it starts")
