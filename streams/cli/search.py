"""`siltstone search`."""

from __future__ import annotations

import click

from schemas.memories import SHORT_TERM, State
from streams.cli import show
from streams.cli.client import ask, filter_option, json_option, short_term_option, touch_option, url_option


@click.command()
@click.argument("query")
@click.option("--user", required=True, help="Whose memories.")
@click.option("--top-k", type=click.IntRange(1, 1000), help="How many at the most.  [default: the worker's, 10]")
@click.option("--include-cold", is_flag=True, help="Active and cold ones.")
@click.option("--include-all", is_flag=True, help="Those of every state.")
@click.option(
    "--state", type=click.Choice([*(state.value for state in State), SHORT_TERM]), help="Those of one state only."
)
@click.option("--min-relevance", type=click.FloatRange(0, 1), default=0.0, help="No less relevant ones (0 to 1).")
@short_term_option
@filter_option
@click.option("--explain", is_flag=True, help="Why each was found: cosine and BM25, with their ranks.")
@touch_option
@url_option
@json_option
def search(
    query: str,
    user: str,
    top_k: int | None,
    include_cold: bool,
    include_all: bool,
    state: str | None,
    min_relevance: float,
    short_term: bool,
    filters: tuple[str, ...],
    explain: bool,
    touch: bool,
    url: str,
    as_json: bool,
) -> None:
    """Find what answers QUERY: a user's memories, and what the user has said and is no memory (short_term)."""
    body = {
        "user_id": user,
        "query": query,
        "top_k": top_k,
        "include_cold": include_cold,
        "include_all": include_all,
        "state": state,
        "min_relevance": min_relevance,
        "include_short_term": short_term,
        "filters": filters,
        "explain": explain,
        "touch": touch,
    }
    answer = ask(url, "POST", "/v1/search", json=body)
    if as_json:
        show.as_json(answer)
        return
    console = show.console()
    if not answer["results"]:
        console.print("No memory answers this. Older ones may be cold: try --include-all.")
        return
    console.print(show.hits(f"Memories of {user}", answer["results"]))
    if explain:
        console.print(show.reasons(answer["results"]))
