"""`siltstone export`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import orjson

from schemas.errors import SiltstoneError
from streams.doors.cli import show
from streams.doors.cli.client import json_option, lines, url_option
from streams.doors.cli.memory_ids import user_option


@click.command("export")
@user_option
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; replaced when the export is complete.  [default: standard output]",
)
@url_option
@json_option
def export(user: str, output: Path | None, url: str, as_json: bool) -> None:
    """Write a user's memories, and the messages of the short-term windows, as one JSON object a line.

    `siltstone import jsonl` recreates the same memories in another Siltstone. Vectors, histories, access counts and
    daily summaries are not included.
    """
    if output is None:
        if as_json:
            raise click.UsageError("--json describes the written file: name one with --output.")
        for line in lines(url, "/v1/export", params={"user_id": user}):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    beside, told = output.with_name(f".{output.name}.part"), {"messages": 0, "memories": 0}
    try:
        with beside.open("wb") as written:
            for line in lines(url, "/v1/export", params={"user_id": user}):
                written.write(line)
                one = orjson.loads(line)
                if "role" in one:
                    told["messages"] += 1
                told["memories"] += one.get("type") == "memory"
            written.flush()
            os.fsync(written.fileno())
        beside.replace(output)
    except OSError as exc:
        raise SiltstoneError(f"{output} cannot be written: {exc.strerror or type(exc).__name__}") from exc
    finally:
        beside.unlink(missing_ok=True)
    if as_json:
        show.as_json({**told, "output": str(output)})
        return
    click.echo(f"{told['memories']} memories and {told['messages']} messages of {show.shortened(user)} in {output}")
