"""`siltstone forget`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from schemas.errors import SiltstoneError
from schemas.times import iso, now_ms
from streams.doors.cli import show
from streams.doors.cli.client import ask, json_option, url_option, written
from streams.doors.cli.memory_ids import MEMORY_ID, found, is_whole, short, standing
from streams.doors.cli.options import bootstrap_option


@click.command()
@click.argument("ids", nargs=-1, type=MEMORY_ID, metavar="[MEMORY_ID...]")
@click.option("--user", required=True, help="Id of the user.")
@click.option(
    "--source", help="Forget all data that this source had a part in: user, assistant, tool, tool:NAME, token:NAME, …"
)
@click.option(
    "--report", is_flag=True, help="Forget nothing: show the receipt, and the records that Kafka still holds."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Seconds to wait until it is done.",
)
@url_option
@bootstrap_option
@json_option
def forget(
    ids: tuple[str, ...],
    user: str,
    source: str | None,
    report: bool,
    yes: bool,
    seconds: float,
    url: str,
    bootstrap_servers: str | None,
    as_json: bool,
) -> None:
    """Forget memories by their ids, the data from one source, or all data of a user.

    Without ids and --source, all data of the user is forgotten, and the command shows a receipt: it lists the erased
    data, and the places where data remains. An id is complete, or the short one that `search` and `list` show.

    Memories, archive, short-term windows and daily summaries are erased at once, permanently. Records in Kafka stay
    until their retention ends: --report reads the topics and lists them.
    """
    if not user.strip():
        raise click.UsageError("--user is empty.")
    if source is not None:
        if ids or report:
            raise click.UsageError("--source cannot be combined with ids or --report.")
        _forget_source(source, user, yes, seconds, url, as_json)
        return
    if ids:
        if report:
            raise click.UsageError("--report covers all data of a user: name no memories.")
        _forget_memories(ids, user, yes, seconds, url, as_json)
        return
    receipt = _receipt(url, user)
    if report:
        remains = asyncio.run(_remains(user, bootstrap_servers))
        if not receipt["commands"] and not any(receipt["left"].values()) and not any(r["records"] for r in remains):
            raise SiltstoneError(f"neither the worker nor Kafka has data of user {user}: correct the id")
        receipt["kafka"] = remains
    else:
        if not any(receipt["left"].values()):
            raise SiltstoneError(
                f"the worker has no data of user {user}: correct the id, or list the records in Kafka with --report"
            )
        if not yes:
            click.confirm(f"Forget all data of {user}? This cannot be undone.", abort=True, err=True)
        receipt = _forgotten(url, user, seconds)
    if as_json:
        show.as_json(receipt)
    else:
        _show(receipt)


def _forget_memories(given: tuple[str, ...], user: str, yes: bool, seconds: float, url: str, as_json: bool) -> None:
    """Forget memories by their ids.

    A complete id is accepted even if no memory has this id. It may be the id of a note, or the id of the memory that
    an exchange can still become.
    """
    texts = {}
    for one in given:
        if is_whole(one):
            texts[one] = "" if standing(url, user, one) is None else one
        else:
            memory = found(url, user, one)
            texts[memory["id"]] = f"{short(memory['id'])}  {show.shortened(memory['memory'])}"
    if not yes:
        for memory_id, text in texts.items():
            click.echo(text or f"{memory_id}  (not among the memories)", err=True)
        click.confirm(
            f"Forget {'these entries' if len(texts) > 1 else 'this entry'} of {user}? This cannot be undone.",
            abort=True,
            err=True,
        )
    for memory_id in texts:
        late = f"{memory_id} was not forgotten within {seconds:g} s"
        written(url, "DELETE", f"/v1/memories/{memory_id}", late, seconds, params={"user_id": user})
    if as_json:
        show.as_json({"user_id": user, "forgotten": list(texts), "unknown": [one for one in texts if not texts[one]]})
        return
    for memory_id, text in texts.items():
        unknown = (
            ""
            if text
            else ", which is not a memory: a note or an exchange with this id is forgotten, if there is one"
        )
        click.echo(f"forgotten {text or memory_id}{unknown}")


def _forget_source(source: str, user: str, yes: bool, seconds: float, url: str, as_json: bool) -> None:
    """Forget the user's data from one source, and show how many memories, exchanges and notes were forgotten."""
    if not yes:
        click.confirm(
            f"Forget all data of {user} that {source} had a part in? This cannot be undone.", abort=True, err=True
        )
    late = f"the data from {source} was not forgotten within {seconds:g} s"
    answer = written(url, "DELETE", "/v1/memories", late, seconds, params={"user_id": user, "source": source})
    counts = {name: answer[name] for name in ("memories", "exchanges", "short_term_memories")}
    if as_json:
        show.as_json({"user_id": user, "source": source, **counts})
        return
    shown = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    click.echo(f"forgotten data of {user} from {source}: {shown}")


def _receipt(url: str, user: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(url, "GET", "/v1/erasures", params={"user_id": user})
    return found


def _forgotten(url: str, user: str, seconds: float) -> dict[str, Any]:
    """Forget all data of the user, and return the receipt, which lists the erased data and the remaining data.

    Raises `ApiError` if that takes more than `seconds`.
    """
    late = f"user {user} was not forgotten within {seconds:g} s"
    written(url, "DELETE", "/v1/memories", late, seconds, params={"user_id": user})
    return _receipt(url, user)


async def _remains(user: str, bootstrap_servers: str | None) -> list[dict[str, Any]]:
    from schemas.settings import Settings  # slow imports, which only --report needs
    from streams.doors.cli.options import with_options
    from streams.forgetting.kafka_remains import RecordSpan, Remains, remains_of

    def shown(span: RecordSpan | None) -> dict[str, Any] | None:
        return None if span is None else {"partition": span.partition, "offset": span.offset, "at": iso(span.at)}

    def row(one: Remains) -> dict[str, Any]:
        return {
            "topic": one.topic,
            "records": one.records,
            "oldest": shown(one.oldest),
            "newest": shown(one.newest),
            "compacted": one.compacted,
            "retention_ms": one.retention_ms,
            "retention_ends": None if one.ends_at is None else iso(one.ends_at),
        }

    settings = with_options(Settings.load(), None, bootstrap_servers, None)
    return [row(one) for one in await remains_of(settings.kafka, user)]


def _show(receipt: dict[str, Any]) -> None:
    console = show.console()
    user, left = show.plain(receipt["user_id"]), receipt["left"]
    for one in receipt["commands"]:
        what = "all data" if one["whole_user"] else f"{one['ids']} ids of memories"
        console.print(f"{one['at']}: forgotten: {what} of {user}", markup=False)
    console.print(f"{receipt['memories_erased']} memories were erased by {receipt['worker']}.", markup=False)
    console.print(show.table("Remaining data", ("what", ">number"), left.items()))
    if receipt["in_pages"]:
        console.print("The catalog file may still contain erased bytes until it is rewritten: see docs/reference.md.")
    if left_there := receipt["checkpoints"]:
        console.print(_checkpoints(receipt["partition"], left_there), markup=False)
    if "kafka" in receipt:
        rows = [_row(one) for one in receipt["kafka"]]
        console.print(
            show.table("Remaining records in Kafka", ("topic", ">records", "oldest", "newest", "until"), rows)
        )


def _checkpoints(partition: int, one: dict[str, Any]) -> str:
    where = f"Checkpoints of partition {partition} at {one['store']}"
    if one["may_hold"] is None:
        return f"{where}: the store does not answer; they may hold erased data until {one['until']}."
    if not one["may_hold"]:
        return f"{where}: none of {one['generations']} holds erased data any more."
    if one["until"] > iso(now_ms()):
        return f"{where} may hold erased data until {one['until']}."
    late = f"{where} may still hold erased data, overdue since {one['until']}"
    return f"{late}: run `siltstone checkpoint now`, and check /readyz."


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    def place(span: dict[str, Any] | None) -> str:
        return "" if span is None else f"{span['partition']}@{span['offset']}\n{span['at']}"

    return one["topic"], one["records"], place(one["oldest"]), place(one["newest"]), _until(one)


def _until(one: dict[str, Any]) -> str:
    if not one["records"]:
        return ""
    if one["compacted"]:
        return "the broker compacts the topic: newer rows and tombstones replace these"
    if one["retention_ms"] is None:
        return "unknown: check the topic's retention.ms"
    if one["retention_ms"] < 0:
        return "kept for ever: set retention.ms, or delete up to an offset with kafka-delete-records.sh"
    return f"not before {one['retention_ends']}, and only when its segment ends"
