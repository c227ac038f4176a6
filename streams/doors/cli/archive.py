"""`siltstone archive`."""

from __future__ import annotations

import uuid
from typing import Any

import click

from streams.doors.cli import show
from streams.doors.cli.client import ask, filter_option, json_option, url_option

VERDICTS = {"archive": "[yellow]is archived[/]", "remove": "[red]is removed[/]", "stay": "stays: {exemption}"}

user_option = click.option("--user", required=True, help="Id of the user.")
ids_argument = click.argument("memory_ids", nargs=-1, required=True, type=click.UUID, metavar="MEMORY_ID...")


@click.group()
def archive() -> None:
    """List, search, add, restore and remove archived memories, which only the archive's own search finds.

    If lifecycle.cleanup.enabled is set, a cleanup archives memories that have been deprecated for a long time.
    """


@archive.command("list")
@user_option
@filter_option
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of memories."
)
@click.option("--after", type=click.UUID, metavar="MEMORY_ID", help="Only memories after this one.")
@url_option
@json_option
def listed(user: str, filters: tuple[str, ...], limit: int, after: uuid.UUID | None, url: str, as_json: bool) -> None:
    """List a user's archived memories, oldest first."""
    asked: dict[str, Any] = {"user_id": user, "filter": filters, "limit": limit}
    answer = ask(url, "GET", "/v1/archive", params=asked | ({"after": str(after)} if after else {}))
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if not answer["memories"]:
        console.print("The archive has no such memories.")
        return
    rows = [
        (
            f"{show.plain(one['memory'])}\n[dim]{one['id']}[/]",
            one["created_at"][:10],
            one["archived_at"][:10],
            one["reason"],
        )
        for one in answer["memories"]
    ]
    title = f"{answer['total']} archived memories of {show.plain(user)}"
    console.print(show.table(title, ("memory, and its id", "from", "archived", "why"), rows))
    if answer["next"]:
        console.print(f"There are more: continue with --after {answer['next']}")


@archive.command("search")
@click.argument("query")
@user_option
@click.option("--top-k", type=click.IntRange(1, 1000), help="Maximum number of results.  [default: the worker's, 10]")
@click.option("--explain", is_flag=True, help="Show why each memory was found: cosine and BM25, with their ranks.")
@url_option
@json_option
def search(query: str, user: str, top_k: int | None, explain: bool, url: str, as_json: bool) -> None:
    """Find a user's archived memories that answer QUERY."""
    body = {"user_id": user, "query": query, "top_k": top_k, "explain": explain}
    answer = ask(url, "POST", "/v1/archive/search", json=body)
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if not answer["results"]:
        console.print("No archived memory answers the query.")
        return
    console.print(show.hits(f"Archived memories of {show.plain(user)}", answer["results"]))
    if explain:
        console.print(show.reasons(answer["results"]))


@archive.command("add")
@click.argument("memory_ids", nargs=-1, type=click.UUID, metavar="[MEMORY_ID...]")
@user_option
@click.option("--deprecated", is_flag=True, help="Archive all deprecated memories except pinned ones.")
@url_option
@json_option
def add(memory_ids: tuple[uuid.UUID, ...], user: str, deprecated: bool, url: str, as_json: bool) -> None:
    """Archive the named memories or, with --deprecated, all deprecated memories."""
    if deprecated == bool(memory_ids):
        raise click.UsageError("Name memories, or pass --deprecated.")
    if deprecated:
        answer = ask(url, "POST", "/v1/archive/deprecated", json={"user_id": user})
    else:
        body = {"user_id": user, "memory_ids": [str(memory_id) for memory_id in memory_ids]}
        answer = ask(url, "POST", "/v1/archive", json=body)
    if as_json:
        show.as_json(answer)
    else:
        click.echo(f"archiving {answer['archiving']} memories")


@archive.command("restore")
@ids_argument
@user_option
@url_option
@json_option
def restore(memory_ids: tuple[uuid.UUID, ...], user: str, url: str, as_json: bool) -> None:
    """Restore memories from the archive, as if they had just been accessed."""
    written = [ask(url, "POST", f"/v1/archive/{one}/restore", json={"user_id": user}) for one in memory_ids]
    if as_json:
        show.as_json({"restoring": len(written), "event_ids": [one["event_id"] for one in written]})
    else:
        click.echo(f"restoring {len(written)} memories")


@archive.command("remove")
@ids_argument
@user_option
@url_option
@json_option
def remove(memory_ids: tuple[uuid.UUID, ...], user: str, url: str, as_json: bool) -> None:
    """Remove memories from the archive permanently. The audit trail still shows that they existed."""
    written = [ask(url, "DELETE", f"/v1/archive/{one}", params={"user_id": user}) for one in memory_ids]
    if as_json:
        show.as_json({"removing": len(written), "event_ids": [one["event_id"] for one in written]})
    else:
        click.echo(f"removing {len(written)} memories")


@archive.command("cleanup")
@click.option("--dry-run", is_flag=True, help="Only show which memories would be archived, removed or kept, and why.")
@click.option("--user", help="Only the memories of this user.")
@click.option(
    "--limit", type=click.IntRange(0, 1000), default=50, show_default=True, help="Maximum number of memories to show."
)
@url_option
@json_option
def cleanup(dry_run: bool, user: str | None, limit: int, url: str, as_json: bool) -> None:
    """Archive memories that were deprecated long ago, and remove those that were archived long ago.

    The cleanup runs now and without confirmation, even if lifecycle.cleanup.enabled is not set. If
    lifecycle.cleanup.paused is set, the command fails.
    """
    asked: dict[str, Any] = {"limit": limit} | ({"user_id": user} if user else {})
    if dry_run:
        answer = ask(url, "GET", "/v1/archive/cleanup", params=asked)
    else:
        answer = ask(url, "POST", "/v1/archive/cleanup", json=asked)
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if answer["candidates"]:
        rows = [
            (
                show.plain(one["memory"], 80),
                show.plain(one["user_id"]),
                f"{one['since'][:10]}\n[dim]{one['cause']}[/]",
                str(int(one["score"])),
                VERDICTS[one["verdict"]].format(**one),
            )
            for one in answer["candidates"]
        ]
        title = f"Cleanup as of {answer['at']}"
        console.print(show.table(title, ("memory", "user", "since", ">score", "verdict"), rows))
    for line in _summary(answer, dry_run):
        console.print(line, markup=False)


def _summary(answer: dict[str, Any], dry_run: bool) -> list[str]:
    due = answer["archive"] + answer["remove"]
    verb = "would be" if dry_run else "are"
    lines = [f"{answer['archive']} memories {verb} archived, {answer['remove']} {verb} removed from the archive."]
    if answer["exempt"]:
        exempt = ", ".join(f"{number} {exemption}" for exemption, number in sorted(answer["exempt"].items()))
        lines.append(f"Exempt: {exempt}.")
    if not dry_run and due > answer["asked"]:
        lines.append(f"{due - answer['asked']} of them wait for the next cleanup.")
    if dry_run and answer["paused"]:
        lines.append("Cleanup is paused (lifecycle.cleanup.paused).")
    elif dry_run and not answer["enabled"]:
        lines.append("Cleanup does not run by itself (lifecycle.cleanup.enabled).")
    return lines
