"""`siltstone search`."""

from __future__ import annotations

from typing import Any

import click

from schemas.memories import SHORT_TERM, SHOWN_FROM, State
from streams.doors.cli import show
from streams.doors.cli.client import (
    as_of_option,
    ask,
    console_for,
    filter_option,
    json_option,
    partial_option,
    reference_date_option,
    short_term_option,
    timezone_option,
    touch_option,
    url_option,
)


@click.command()
@click.argument("query")
@click.option("--user", required=True, help="Id of the user.")
@click.option("--top-k", type=click.IntRange(1, 1000), help="Maximum number of results.  [default: the worker's, 10]")
@click.option("--include-cold", is_flag=True, help="Search active and cold memories.")
@click.option("--include-all", is_flag=True, help="Search memories in every state.")
@click.option(
    "--state",
    type=click.Choice([*(state.value for state in State), SHORT_TERM]),
    help="Search only memories in this state.",
)
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    help=f"Minimum relevance; 0 shows all.  [default: the best result, and {SHOWN_FROM:g} for others; 0 with --json]",
)
@short_term_option
@filter_option
@click.option("--explain", is_flag=True, help="Show why each memory was found: cosine and BM25, with their ranks.")
@touch_option
@reference_date_option
@as_of_option
@timezone_option
@partial_option
@url_option
@json_option
def search(
    query: str,
    user: str,
    top_k: int | None,
    include_cold: bool,
    include_all: bool,
    state: str | None,
    min_relevance: float | None,
    short_term: bool,
    filters: tuple[str, ...],
    explain: bool,
    touch: bool,
    reference_date: str | None,
    as_of: str | None,
    timezone: str | None,
    partial: bool,
    url: str,
    as_json: bool,
) -> None:
    """Find a user's memories that answer QUERY, and exchanges that are not memories (short_term).

    The table shows the best result and other likely answers. A line below it says how many results are left out.
    `forget`, `pin` and `unpin` accept the ids in the table.
    """
    given = {"reference_date": reference_date, "timezone": timezone, "as_of": as_of}
    body = {
        "user_id": user,
        "query": query,
        "top_k": top_k,
        "include_cold": include_cold,
        "include_all": include_all,
        "state": state,
        "min_relevance": min_relevance or 0,
        "include_short_term": short_term,
        "filters": filters,
        "explain": explain,
        "touch": touch,
        **{name: value for name, value in given.items() if value is not None},
        **({"partial": "allow"} if partial else {}),
    }
    answer = ask(url, "POST", "/v1/search", json=body)
    console = console_for(answer, as_json)
    if console is None:
        return
    results = worth_showing(answer["results"]) if min_relevance is None else answer["results"]
    if results:
        console.print(show.hits(f"Memories of {show.plain(user)}", results))
        if explain:
            console.print(show.reasons(results))
    else:
        console.print("No memory answers this.")
    if left_out := len(answer["results"]) - len(results):
        console.print(f"{left_out} less relevant left out: --min-relevance 0 shows all")
    if better := answer.get("better_elsewhere"):
        console.print(elsewhere(better, include_cold, state))


def worth_showing(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the hits that are likely answers, and always the best hit.

    The best hit is included even with a low relevance, which is usual if the user has few memories.
    """
    return [hit for place, hit in enumerate(results) if place == 0 or hit["relevance"] >= SHOWN_FROM]


def elsewhere(better: dict[str, int], include_cold: bool, state: str | None) -> str:
    """Return a line that says how many memories in other states would answer better, and which option shows them."""
    counted = " and ".join(f"{count} {name}" for name, count in better.items())
    flag = "--include-cold" if better.keys() == {"cold"} and not state else "--include-all"
    instead = f" instead of --state {state}" if state else " instead of --include-cold" if include_cold else ""
    memories, them = ("memory", "it") if sum(better.values()) == 1 else ("memories", "them")
    return f"{counted} {memories} would have answered better: {flag}{instead} shows {them}"
