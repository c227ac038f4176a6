"""`siltstone replay`."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson
from pydantic import TypeAdapter, ValidationError

from schemas.errors import DataDirError, SiltstoneError
from schemas.fields import Timestamp
from schemas.settings import Settings
from schemas.times import iso, now_ms
from streams.doors.cli import show
from streams.doors.cli.client import json_option
from streams.doors.cli.options import bootstrap_option, data_option
from streams.doors.cli.process import run, write_as_let_in
from streams.doors.cli.replay_files import as_rows, compared, free, swap, table_of
from streams.doors.cli.shard_files import RowsBar
from streams.replay.plan import EARLIEST, NOW, ReplayOptions, planned
from streams.replay.replay import replaying
from tables.offline.diff import TableDifference
from tables.partition_record import record_partitions

STOPPED = "stopped; finished work is kept: run the same command again to continue"
_TIME: TypeAdapter[int] = TypeAdapter(Timestamp)


class When(click.ParamType):
    """The click type of an option that is the word `earliest` or `now`, or a time, which is converted to epoch ms."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value in (EARLIEST, NOW):
            return str(value)
        try:
            return _TIME.validate_python(int(value) if str(value).isdecimal() else value)
        except ValidationError:
            self.fail(f"{value!r} is not a time: give ISO 8601, epoch milliseconds, {EARLIEST} or {NOW}", param, ctx)


@dataclass(frozen=True, slots=True)
class _Wanted:
    settings: Settings
    asked: ReplayOptions
    folder: Path
    rebuild: bool
    check: bool


@click.command()
@click.option(
    "--from", "begin", type=When(), default=EARLIEST, show_default=True, help="Start, by the records' times."
)
@click.option("--to", "end", type=When(), default=NOW, show_default=True, help="End, by the records' times.")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), help="Rebuild shards in this folder.")
@click.option(
    "--source",
    type=click.Choice(["conversations", "long-term"]),
    default="conversations",
    show_default=True,
    help="Topics to read: conversations and the event log, or only the event log.",
)
@click.option("--users", default="", metavar="A,B", help="Only these users.")
@click.option("--check", is_flag=True, help="Compare the rebuilt shards with the live ones; exit 1 if they differ.")
@click.option("--swap", "swapping", is_flag=True, help="Replace the live shards by the rebuilt ones.")
@data_option
@bootstrap_option
@json_option
def replay(
    begin: int | str,
    end: int | str,
    into: Path | None,
    source: str,
    users: str,
    check: bool,
    swapping: bool,
    data: Path | None,
    bootstrap_servers: str | None,
    as_json: bool,
) -> None:
    """Decide again which exchanges become memories, or rebuild shards from the log.

    Without --into, promotions that are not in the log are sent to it, and the workers store them. With --into, new
    shards are built from the log and these promotions, and the workers are not disturbed. Stop the workers before
    --check and --swap. Ctrl-C stops the replay without loss, and the same command continues it.
    """
    settings = Settings.load(**({"data_dir": data} if data else {}))
    if bootstrap_servers:
        kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
        settings = settings.model_copy(update={"kafka": kafka})
    named = tuple(sorted({user.strip() for user in users.split(",")} - {""}))
    prefix, partitions = settings.kafka.topic_prefix, settings.kafka.partitions
    asked = ReplayOptions(begin, end, named, source == "conversations", prefix, partitions)
    _refuse(asked, into, check, swapping)
    write_as_let_in(settings.data_dir)
    if check or swapping:
        _before_it_takes_long(settings.data_dir, check)
    logging.getLogger("streams.memory.agent").setLevel(logging.ERROR)  # a new shard is behind the log: no warning
    with _folder(settings, asked, into, check) as folder:
        started = time.monotonic()
        try:
            result, found = run(_replayed(_Wanted(settings, asked, folder, into is not None or check, check)))
        except KeyboardInterrupt:
            raise SiltstoneError(STOPPED) from None
        result["seconds"] = round(time.monotonic() - started, 3)
        result["per_s"] = round((result["messages"] or result["records"]) / max(result["seconds"], 1e-9), 1)
        if found is not None:
            result["differences"] = as_rows(found)
        if swapping and not found:
            former = swap(settings.data_dir, folder, iso(now_ms())[:19].replace(":", ""))
            record_partitions(settings.data_dir, settings.kafka.partitions)
            result |= {"swapped": True, "former": str(former) if former else None}
            shutil.rmtree(folder)
    if as_json:
        show.as_json(result)
    else:
        _tell(result, found)
    if found:
        raise SystemExit(1)


def _refuse(asked: ReplayOptions, into: Path | None, check: bool, swapping: bool) -> None:
    """Raise `UsageError` if some of the replay's options cannot be used together."""
    if asked.begin == NOW or asked.end == EARLIEST:
        raise click.UsageError(f"--from takes a time or {EARLIEST}, --to a time or {NOW}.")
    if isinstance(asked.begin, int) and isinstance(asked.end, int) and asked.begin >= asked.end:
        raise click.UsageError("--from must be before --to.")
    if not asked.conversations and into is None and not check:
        raise click.UsageError("--source long-term builds shards: give --into or --check.")
    if swapping and (into is None or not asked.whole):
        raise click.UsageError("--swap needs --into and the whole log: no --from, --to or --users.")
    if check and (asked.begin, asked.end) != (EARLIEST, NOW):
        raise click.UsageError("--check compares with the whole log: no --from or --to.")


def _before_it_takes_long(data: Path, check: bool) -> None:
    if check or (data / "shards").is_dir():
        free(data)


@contextlib.contextmanager
def _folder(settings: Settings, asked: ReplayOptions, into: Path | None, check: bool) -> Iterator[Path]:
    """Yield the working folder of the replay, which is `into` if that is given.

    Otherwise it is a folder in the data directory, which is deleted when the replay is complete.
    """
    if into is not None:
        yield into
        return
    if check:
        with _temporary(settings.data_dir) as folder:
            yield Path(folder)
        return
    name = hashlib.sha256(orjson.dumps(asked)).hexdigest()[:12]
    yield settings.data_dir / "replay" / name
    shutil.rmtree(settings.data_dir / "replay" / name)


def _temporary(data: Path) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="replay-", dir=data)
    except OSError as exc:
        raise DataDirError(data, exc.strerror or str(exc)) from exc


async def _replayed(wanted: _Wanted) -> tuple[dict[str, Any], list[TableDifference] | None]:
    """Run the replay. Return its counts and, if `check` is wanted, the differences from the live shards."""
    settings, asked, folder = wanted.settings, wanted.asked, wanted.folder
    lead_ms = settings.memory.session_idle_seconds * 1000
    plan = await planned(asked, folder, settings.kafka, lead_ms)
    with RowsBar() as bar:
        async with replaying(settings, plan, folder, rebuild=wanted.rebuild) as replay:
            await replay.run(bar.of)
            result: dict[str, Any] = {"records": plan.records, **replay.figures()}
            if wanted.rebuild:
                result |= {"memories": await replay.memories(), "effects": replay.effects()}
        if not wanted.check:
            return result, None
        return result, compared(settings.data_dir, folder, asked.users, bar.of("comparing"))


def _tell(result: dict[str, Any], found: list[TableDifference] | None) -> None:
    click.echo(
        f"{result['messages']:,} messages, {result['exchanges']:,} exchanges, {result['promoted']:,} promoted: "
        f"{result['in_log']:,} are in the log, {result['found']:,} are new, {result['forgotten']:,} were forgotten; "
        f"{result['seconds']:.1f} s ({result['per_s']:,.0f}/s)"
    )
    if "memories" in result:
        click.echo(f"The rebuilt shards hold {result['memories']:,} memories.")
    if found:
        show.console().print(table_of(found))
    elif found is not None:
        click.echo("The rebuilt shards are the same as the live ones.")
    if result.get("swapped"):
        kept = f"; the former shards are in {result['former']}" if result["former"] else ""
        click.echo(f"Workers use the rebuilt shards from their next start{kept}.")
