"""Prints the results of commands: tables for people, and one JSON object for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import click
import orjson
from rich.console import Console
from rich.table import Table

STATE_STYLE = {"active": "green", "cold": "cyan", "deprecated": "dim", "short_term": "yellow"}
#: The number of characters of a memory's id that tables show. Commands accept these characters as an id.
SHOWN_OF_IDS = 8


def as_json(value: Any) -> None:
    """Print a value as one line of JSON on standard output."""
    click.echo(orjson.dumps(value).decode())


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], **options: Any) -> Table:
    """Return a table. Columns whose name begins with ">" are aligned to the right."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="dim", **options)
    for name in columns:
        # Without "fold", rich would cut words that are too long. A whole line of Chinese is one word for rich.
        justify: Literal["left", "right"] = "right" if name.startswith(">") else "left"
        made.add_column(name.removeprefix(">"), justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*(str(cell) for cell in row))
    return made


def console() -> Console:
    return Console(highlight=False)


def state(name: str) -> str:
    """Return the name of a state with rich's markup for its colour. Other names are magenta."""
    return f"[{STATE_STYLE.get(name, 'magenta')}]{name}[/]"


def fences(scores: dict[str, Any]) -> dict[str, float]:
    """Return the scores (fences) below or above which a memory is an outlier, such as {"below 12.5": 12.5}.

    Fences that are not between 0 and 100 are left out, because no memory has such a score.
    """
    sides = (("below", scores["fences"]["low"]), ("above", scores["fences"]["high"]))
    return {f"{side} {at:g}": at for side, at in sides if 0 < at < 100}


def plain(text: str, limit: int = 160) -> str:
    """Return a text on one line, cut to `limit` characters. It is escaped, so that rich finds no markup in it."""
    return shortened(text, limit).replace("[", r"\[")


def shortened(text: str, limit: int = 160) -> str:
    """Return a text on one line, cut to `limit` characters. Control characters become spaces."""
    one_line = " / ".join(line.strip() for line in text.splitlines() if line.strip())
    cut = one_line if len(one_line) <= limit else one_line[: limit - 1] + "…"
    return "".join(char if char.isprintable() else " " for char in cut)


def hits(title: str, results: Iterable[dict[str, Any]]) -> Table:
    """Return a table of search results. `results` are results as the API returns them."""
    return table(
        title,
        (">relevance", ">score", "state", "when, id", "memory"),
        (
            (
                f"{hit['relevance']:.2f}",
                str(int(hit["score"])),  # rounded down, because 69.9 is not yet in the state from 70
                state(hit["state"]),
                f"{_held(hit)}\n[dim]{hit['id'][:SHOWN_OF_IDS]}[/]",
                plain(hit["memory"]),
            )
            for hit in results
        ),
    )


def _held(hit: dict[str, Any]) -> str:
    """Return the day of a hit, and the day until which it held, if a newer memory says something else."""
    day, until = str(hit["created_at"])[:10], hit.get("valid_to")
    return f"{day}\n[dim]until[/] {until[:10]}" if until else day


def reasons(results: Sequence[dict[str, Any]]) -> Table:
    """Return a table that explains the rank of each search result. The search must have been made with `explain`."""
    columns = {"cosine": ">cosine", "cosine_rank": ">rank", "bm25": ">BM25", "bm25_rank": ">rank"}
    if any("rerank_rank" in hit["explain"] for hit in results):
        columns |= {"rerank_score": ">reranker", "rerank_rank": ">rank"}
    rows = [(hit["id"], *(hit["explain"].get(part, "") for part in columns)) for hit in results]
    named = [text for hit in results[:1] for text in _times_in(hit["explain"])]
    title = f"Why (times in the question: {plain(', '.join(named))})" if named else "Why"
    return table(title, ("memory", *columns.values()), rows)


def _times_in(explain: Mapping[str, Any]) -> Iterator[str]:
    """Yield the windows that a question names, its order, and the event from which it counts."""
    yield from (time["text"] for time in explain.get("times", ()))
    if order := explain.get("order"):
        yield f"{order['text']}: {order['first']} first"
    if anchor := explain.get("anchor"):
        found = f"{anchor['from'][:10]}, {anchor['memory_id']}" if anchor["memory_id"] else "no memory tells of it"
        yield f"{anchor['relation']} {anchor['text']} ({found})"
