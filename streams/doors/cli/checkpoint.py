"""`siltstone checkpoint`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import TypeAdapter, ValidationError
from rich.filesize import decimal

from schemas.errors import (
    ApiError,
    CheckpointMismatch,
    DamagedCheckpoint,
    NoCheckpoint,
    SettingsError,
)
from schemas.fields import Timestamp
from schemas.settings import CheckpointsSettings, Settings
from schemas.times import now_ms
from streams.doors.cli import show
from streams.doors.cli.byte_bars import ByteBars, progress
from streams.doors.cli.client import ask, json_option, url_option
from streams.doors.cli.process import write_as_let_in
from streams.doors.cli.shown_checkpoints import described, generations_of, numbered, row
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.data_directory import choice, restore_directory
from tables.checkpoints.manifest import Manifest

PATH = "/v1/checkpoints"
LOOK_AGAIN_SECONDS = 0.2


class _Moment(click.ParamType):
    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return TypeAdapter[int](Timestamp).validate_python(int(value) if str(value).isdecimal() else value)
        except ValidationError:
            self.fail(f"{value!r} is not a time: write 2026-11-23T21:00:00Z, or epoch milliseconds", param, ctx)


store_option = click.option(
    "--store", help="Store of the checkpoints, for example s3://bucket/prefix.  [default: checkpoints.url]"
)
partition_option = click.option(
    "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition; repeatable."
)


@click.group()
def checkpoint() -> None:
    """Take, list, verify and restore checkpoints: copies of each partition's state in object storage.

    A worker takes them regularly if checkpoints.url is set. Credentials for the store come from the environment
    (AWS_ACCESS_KEY_ID, …), as for the worker.
    """


@checkpoint.command()
@partition_option
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="Seconds to wait until they are taken.",
)
@url_option
@json_option
def now(partitions: tuple[int, ...], seconds: float, url: str, as_json: bool) -> None:
    """Make the workers take a checkpoint of every partition now, and wait until all are complete."""
    deadline = time.monotonic() + seconds
    everywhere: dict[str, Any] = ask(url, "GET", PATH)
    wanted = list(partitions) or list(range(everywhere["partitions"]))
    runs = {partition: ask(url, "POST", f"{PATH}/{partition}") for partition in wanted}
    with progress() as bars:
        task = bars.add_task("partitions", total=len(wanted))
        while under_way := [partition for partition, run in runs.items() if run["running"]]:
            bars.update(task, completed=len(wanted) - len(under_way))
            if time.monotonic() > deadline:
                raise ApiError(f"no checkpoint of {numbered(under_way)} after {seconds:g} s: it is still being taken")
            time.sleep(LOOK_AGAIN_SECONDS)
            for partition in under_way:
                runs[partition] = _looked_at(url, partition) or runs[partition]
    taken = list(runs.values())
    if as_json:
        show.as_json({"checkpoints": taken})
    else:
        rows = [
            (
                one["partition"],
                "" if one["generation"] is None else one["generation"],
                "" if one["uploaded"] is None else decimal(one["uploaded"]),
                "" if one["bytes"] is None else decimal(one["bytes"]),
                show.plain(one["error"] or ("unchanged since the newest" if one["unchanged"] else "taken")),
            )
            for one in taken
        ]
        columns = (">partition", ">generation", ">uploaded", ">of", "")
        show.console().print(show.table("Checkpoints", columns, rows))
    if any(one["error"] for one in taken):
        raise SystemExit(1)


@checkpoint.command("list")
@partition_option
@store_option
@json_option
def listed(partitions: tuple[int, ...], store: str | None, as_json: bool) -> None:
    """List the checkpoints in the store by partition, the newest first."""
    checkpoints, at = _checkpoints(store), now_ms()
    found = [one for p in _wanted(checkpoints, partitions) for one in generations_of(checkpoints, p, at)]
    if as_json:
        show.as_json({"store": checkpoints.url, "checkpoints": found})
        return
    console = show.console()
    if not found:
        console.print(f"There are no checkpoints at {checkpoints.url}.", markup=False)
        return
    columns = (">partition", ">generation", "taken", ">age", ">long-term up to", ">size", ">new", "model")
    console.print(show.table(f"Checkpoints at {show.plain(checkpoints.url)}", columns, map(row, found)))


@checkpoint.command()
@partition_option
@click.option("--newest", is_flag=True, help="Only the newest checkpoint of each partition, not all of them.")
@store_option
@json_option
def verify(partitions: tuple[int, ...], newest: bool, store: str | None, as_json: bool) -> None:
    """Read checkpoints and compare all bytes with their checksums. The exit code is 1 if one is damaged."""
    checkpoints = _checkpoints(store)
    verified, damages = 0, list[dict[str, Any]]()
    wanted = _wanted(checkpoints, partitions)
    with ByteBars() as bars:
        for partition in wanted:
            for number in checkpoints.numbers(partition)[: 1 if newest else None]:
                name = f"partition {partition}, generation {number}"
                found = _damage_of(checkpoints, partition, number, bars.of(name))
                damages += [{"partition": partition, "generation": number, **one} for one in found]
                verified += 1
    if not verified:
        raise NoCheckpoint(f"there is no checkpoint at {checkpoints.url} to verify")
    if as_json:
        show.as_json({"store": checkpoints.url, "verified": verified, "damaged": damages})
    else:
        for one in damages:
            where = "" if one["file"] is None else f" {one['file']} at byte {one['offset']}:"
            pack = "" if one["pack"] is None else f" (pack {one['pack']})"
            line = f"partition {one['partition']}, generation {one['generation']}:{where} {one['reason']}{pack}"
            click.echo(line)
        whole = verified - len({(one["partition"], one["generation"]) for one in damages})
        click.echo(f"{whole} of {verified} checkpoints are intact, to the last byte.")
    if damages:
        raise SystemExit(1)


@checkpoint.command()
@click.option(
    "--at", type=_Moment(), help="Restore the state at this time: ISO 8601 or epoch ms.  [default: the newest]"
)
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The new data directory: a new or empty folder.",
)
@partition_option
@store_option
@json_option
def restore(at: int | None, data: Path, partitions: tuple[int, ...], store: str | None, as_json: bool) -> None:
    """Make a data directory from each partition's newest checkpoint that is not newer than --at.

    Open it with `siltstone dev --data` or `siltstone worker --data`. Nothing in the store is changed.
    """
    checkpoints = _checkpoints(store)
    chosen = choice(checkpoints, at, partitions)
    write_as_let_in(data)
    with ByteBars() as bars:
        shown: dict[tuple[int, int], Callable[[int, int], None]] = {}

        def tell(one: Manifest, done: int, whole: int) -> None:
            key = (one.facts.partition, one.generation)
            if key not in shown:
                shown[key] = bars.of(f"partition {key[0]}, generation {key[1]}")
            shown[key](done, whole)

        done = restore_directory(checkpoints, chosen, data, tell)
    for damaged in done.damaged:
        click.echo(f"siltstone: {damaged}: that one was restored", err=True)
    taken = [described(one, now_ms()) for one in done.taken]
    if as_json:
        answer = {"data": str(data), "partitions": chosen.partitions, "without": list(chosen.without)}
        show.as_json({**answer, "restored": taken, "damaged": [str(one) for one in done.damaged]})
        return
    columns = (">partition", ">generation", "as of", ">age", ">long-term up to", ">size")
    show.console().print(show.table(f"Restored to {show.plain(str(data))}", columns, (row(one)[:6] for one in taken)))
    if chosen.without:
        click.echo(f"There is no checkpoint of {numbered(chosen.without)}: none was ever taken.")
    models = sorted({f"{one['model']} ({one['dimension']} dimensions)" for one in taken})
    click.echo(f"A worker needs kafka.partitions: {chosen.partitions}, and the embedding {', '.join(models)}.")


def _looked_at(url: str, partition: int) -> dict[str, Any] | None:
    """Return the state of the requested checkpoint, or None if no worker can answer now (during a rebalance)."""
    try:
        state: dict[str, Any] = ask(url, "GET", f"{PATH}/{partition}")
    except ApiError as exc:
        if exc.status != 503:
            raise
        return None
    return state


def _checkpoints(store: str | None) -> Checkpoints:
    """Return the checkpoints in the store at the address `store`, or in the store of the settings if it is None.

    Raises `SettingsError` if there is no address, or if it is invalid.
    """
    settings = Settings.load().checkpoints
    if store is not None:
        try:
            settings = CheckpointsSettings(url=store)
        except ValidationError as exc:
            raise SettingsError([f"--store: {error['msg']}" for error in exc.errors()]) from None
    if not settings.url:
        raise SettingsError(["checkpoints.url: is not set: set it, or pass --store"])
    return Checkpoints(settings.url, keep=settings.keep, erase_within=settings.erase_within)


def _wanted(checkpoints: Checkpoints, partitions: Sequence[int]) -> list[int]:
    there = checkpoints.partitions()
    if missing := [partition for partition in partitions if partition not in there]:
        raise NoCheckpoint(f"there is no checkpoint of {numbered(missing)} at {checkpoints.url}")
    return sorted(set(partitions)) or there


def _damage_of(
    checkpoints: Checkpoints, partition: int, generation: int, tell: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    try:
        manifest = checkpoints.read(partition, generation)
    except (DamagedCheckpoint, CheckpointMismatch) as exc:
        reason = exc.what if isinstance(exc, DamagedCheckpoint) else exc.reason
        return [{"file": None, "offset": None, "pack": None, "reason": reason}]
    found = [] if manifest is None else checkpoints.verify(manifest, tell)
    return [one._asdict() for one in found]
