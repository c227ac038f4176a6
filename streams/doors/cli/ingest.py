"""`siltstone ingest`."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from schemas.conversations import ChatMessage, SessionEnded
from schemas.errors import SiltstoneError
from schemas.record_values import json_object, message_or_end
from schemas.settings import KafkaSettings, Settings
from schemas.times import now_ms
from schemas.topics import Topics, key_of
from streams.doors.cli import show
from streams.doors.cli.client import json_option, until_applied, url_option
from streams.doors.cli.ingested import OF_MEMORIES, Done
from streams.doors.cli.options import bootstrap_option, with_options
from streams.doors.cli.process import run
from streams.doors.cli.shown_plans import show_plan
from streams.doors.importing.formats import NAMES, Format
from streams.doors.importing.found import (
    Found,
    Given,
    LeftOut,
    NamesNoSpeaker,
    NamesNoUser,
    NotReadable,
    Problem,
    Record,
    TakenFor,
)
from streams.doors.importing.planning import planned
from streams.doors.importing.records import records
from streams.kafka.bulk import ByTopic, writable

F = TypeVar("F", bound=Callable[..., Any])

user_option = click.option("--user", help="Id of the user, if the file names none.")
session_option = click.option(
    "--session", help="Id of the session, if the file names none.  [default: derived from the chat's opening]"
)
speaker_option = click.option(
    "--speaker", help="Name of the user in a chat between people.  [default: the one in --user]"
)
timezone_option = click.option(
    "--timezone",
    "zone",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Time zone of times that name none, such as WhatsApp's; for example Europe/Oslo.",
)
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Show sessions, speakers, dates and entries to leave out; produce nothing, and contact no broker.",
)
wait_option = click.option(
    "--wait", is_flag=True, help="Return only when workers have processed all of it, so that it can be read."
)
timeout_option = click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds to wait with --wait.",
)


def taking_options(command: F) -> F:
    """Decorate a command with the options that `siltstone ingest` and `siltstone import` share."""
    for option in reversed(
        (
            user_option,
            session_option,
            speaker_option,
            timezone_option,
            dry_run_option,
            wait_option,
            timeout_option,
            bootstrap_option,
            url_option,
            json_option,
        )
    ):
        command = option(command)
    return command


file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))


@click.command()
@file_argument
@click.option(
    "--format",
    "name",
    type=click.Choice(["auto", *(one.value for one in Format)]),
    default="auto",
    show_default=True,
    help="Format of the file; auto detects it by the first object.",
)
@taking_options
def ingest(name: str, **options: Any) -> None:
    """Produce the chats of FILE (- for standard input) to the conversations topic.

    FILE is JSON, one object a line or an array. It has messages in Siltstone's format (siltstone) or OpenAI's
    (openai), or chats of ShareGPT (sharegpt), ChatGPT (chatgpt), Claude (claude) or Telegram (telegram). It may also
    have memories of mem0 (mem0), of OpenMemory (openmemory) or of `siltstone export` (siltstone), which are kept as
    they are. An export of Slack is a ZIP (slack), one of WhatsApp a text (whatsapp). A ZIP need not be unpacked.

    Ingesting the same file twice changes nothing. Entries without a time get the time of the file's last change, or
    the current time if FILE is standard input. Bad entries are skipped and reported with their place, and the exit
    code is then 1.
    """
    take_in(None if name == "auto" else Format(name), **options)


def take_in(
    of: Format | None,
    *,
    file: Path,
    user: str | None,
    session: str | None,
    speaker: str | None,
    zone: str,
    dry_run: bool,
    wait: bool,
    seconds: float,
    bootstrap_servers: str | None,
    url: str,
    as_json: bool,
) -> None:
    """Run `siltstone ingest` or `siltstone import`. `of` is the format of the file.

    If `of` is None, the format is determined from the content of the file.
    """
    settings = with_options(Settings.load(), None, bootstrap_servers, None)
    called, now = "standard input" if str(file) == "-" else file.name, now_ms()
    undated = min(now, round(file.stat().st_mtime * 1000)) if file.is_file() else None  # a pipe has no useful time
    try:
        whose = "--user" if dry_run and user is None else user
        given = Given(now, whose, session, undated, of, settings.memory, speaker, ZoneInfo(zone), dry_run)
    except (KeyError, ValueError, OSError) as exc:  # the zone is unknown, a path, or a directory
        raise click.UsageError(
            f"--timezone: {zone!r} is not a time zone: pass one such as Europe/Oslo or UTC."
        ) from exc
    done = Done()
    started = time.monotonic()
    with opened(file) as readable:
        try:
            if dry_run:
                show_plan(called, planned(records(readable, given)), as_json)
                return
            run(_ingest(readable, called, given, done, settings.kafka))
        except (NamesNoUser, NamesNoSpeaker) as exc:
            raise click.UsageError(f"{called}: {exc}.") from exc
        except NotReadable as exc:
            raise SiltstoneError(f"{called}: {exc}") from exc
    taken = time.monotonic() - started
    if wait:
        for place in done.last:
            left = seconds - (time.monotonic() - started - taken)
            until_applied(url, place.token, f"the ingested records were not processed within {seconds:g} s", left)
    warnings = done.warnings(called, given, settings.lifecycle)
    if as_json:
        show.as_json({**done.told(), "seconds": round(taken, 3), "warnings": warnings})
    else:
        if done.format is not None:
            click.echo(f"{called} was read as {NAMES[done.format]}" + (" (as named)" if given.format else ""))
        why = "deleted" if done.format is Format.OPENMEMORY else "not part of the conversation"
        out = f", {done.left_out} left out ({why})" if done.left_out else ""
        rate = done.produced / max(taken, 1e-9)
        click.echo(f"{done.counted()} in {taken:.1f} s ({rate:,.0f}/s), {done.bad} bad{out}")
    for warning in warnings:
        click.echo(f"siltstone: {warning}", err=True)
    if done.bad:
        raise SystemExit(1)


@contextmanager
def opened(file: Path) -> Iterator[io.BufferedReader]:
    """Open the file for reading, and close it after the block. For the path `-`, yield standard input instead."""
    if str(file) == "-":
        yield sys.stdin.buffer  # type: ignore[misc]
        return
    with file.open("rb") as readable:
        yield readable


async def _ingest(readable: io.BufferedReader, called: str, given: Given, done: Done, kafka: KafkaSettings) -> None:
    found = records(readable, given)
    first: list[Found] = []
    for one in found:  # determine the file's format before connecting to Kafka
        first.append(one)
        if isinstance(one, TakenFor):
            done.format = one.format
            first += itertools.islice(found, 1)  # the first record or problem after the format
            break
    if done.format is None:
        for one in first:
            if isinstance(one, Problem):
                done.bad += 1
                click.echo(_told(called, one), err=True)
        return
    topics = Topics.with_prefix(kafka.topic_prefix)
    lasting = done.format in OF_MEMORIES or any(isinstance(one, Record) and one.lasting for one in first)
    topic = topics.long_term if lasting else topics.conversations
    await writable(kafka, topic)
    progress = Progress(
        TextColumn("producing"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with progress:
        task = progress.add_task("", total=None if given.undated is None else _size(readable), rate="")
        async with ByTopic(kafka) as producers:
            producer = await producers.of(topic)
            started = time.monotonic()
            async for one in _each(itertools.chain(first, found), waits=given.undated is None):
                match one:
                    case Record():
                        wanted = topics.long_term if one.lasting else topics.conversations
                        if wanted != topic:
                            topic, producer = wanted, await producers.of(wanted)
                        await producer.send(key_of(one.user_id), one.value)
                        if one.in_file:
                            done.produced += 1
                            done.memories += one.lasting
                        done.newest = max(done.newest, one.at)
                    case LeftOut():
                        done.left_out += one.messages
                    case Problem():
                        done.bad += 1
                        progress.console.print(_told(called, one), markup=False)
                if done.produced % 500 == 0:
                    rate = f"{done.produced / (time.monotonic() - started):,.0f}/s"
                    completed = 0 if given.undated is None else readable.tell()
                    progress.update(task, completed=completed, rate=rate)
        done.last = producers.last()


def _told(called: str, one: Problem) -> str:
    """Return a line about a problem, in the form of a compiler's errors: file, line number, reason."""
    where = str(one.line) if one.line and one.where == f"line {one.line}" else f" {one.where}"
    return f"{called}:{where}: {one.why}"


def _size(readable: io.BufferedReader) -> int:
    return os.fstat(readable.fileno()).st_size


async def _each(found: Iterator[Found], *, waits: bool) -> AsyncIterator[Found]:
    """Yield the items of `found`, which reads the file.

    If `waits`, the read may block, as from a pipe. A thread then reads, so that earlier records are sent meanwhile.
    """
    if not waits:
        for one in found:
            yield one
        return

    def following() -> list[Found]:
        return list(itertools.islice(found, 1))

    while read := await asyncio.to_thread(following):
        yield read[0]


def said(line: bytes) -> ChatMessage | SessionEnded:
    """Parse a line with a message or a session end. If the line has no time, the record gets the current time.

    Raises `BadRecord` if the line is invalid.
    """
    fields = json_object(line)
    fields.setdefault("timestamp", fields.get("created_at", now_ms()))
    return message_or_end(fields)
