"""Summaries of ten days of chats, before and after a change, for a reader to judge; and the cost of each.

    python benchmarks/summaries.py DATA [--days judged|fresh|tuning|all] [--before TREE] [--messages] [--json]

DATA is a folder with `locomo_en`, `memdaily_dedup_zh` and `memorybank_zh.messages.dev.jsonl`; its texts are licensed
for research, so keep the output on this machine. A day has the messages of one user on one date, eight or more; its
number is its place in its source, by date and user. Days are drawn with a fixed seed: the rules were improved on the
ten days of `tuning` and others, not on those of `judged`, which `docs/summaries.md` reports; the days of `fresh`,
from `memorybank_en`, were read only when the rules were finished. `--before` is another tree of this repository,
whose summary of each day is printed first. `--messages` prints the messages too.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

import click
import orjson

from schemas.conversations import ChatMessage
from schemas.settings import MemorySettings
from schemas.summaries import Summary
from streams.intake.rules.exchanges import Limits
from streams.summaries.rules import Turn, extracted, turns_of

DRAWN: Final = {"locomo_en": 5, "memdaily_dedup_zh": 2, "memorybank_zh": 3}
"""How many days of each source are in a set of ten."""

SETS: Final = ("tuning", "judged")
FRESH: Final = {"memorybank_en": 4}
LEAST_MESSAGES: Final = 8
SEED: Final = 18
ROUNDS: Final = 5
"""A day's time is the best of this many runs."""


class Day(NamedTuple):
    """The messages of one user on one date."""

    source: str
    number: int
    messages: tuple[ChatMessage, ...]

    @property
    def name(self) -> str:
        return f"{self.source} {self.number}"


def days_of(source: str, path: Path) -> list[Day]:
    """The days of a file of messages, by date and user, numbered from 1."""
    said: dict[tuple[str, str], list[ChatMessage]] = {}
    for line in path.read_bytes().splitlines():
        given = orjson.loads(line)
        said.setdefault((given["timestamp"][:10], given["user_id"]), []).append(ChatMessage.model_validate(given))
    long = [said[key] for key in sorted(said) if len(said[key]) >= LEAST_MESSAGES]
    return [Day(source, number, tuple(messages)) for number, messages in enumerate(long, 1)]


def drawn(days: list[Day], number: int) -> dict[str, list[Day]]:
    """`number` days for each set; no day is in both."""
    chosen = random.Random(SEED).sample(days, min(len(days), number * len(SETS)))
    return {name: sorted(chosen[place :: len(SETS)], key=lambda day: day.number) for place, name in enumerate(SETS)}


def summed_up(day: Day) -> tuple[Summary, float]:
    """The summary of a day, and the milliseconds of CPU time that it takes."""
    turns: list[Turn] = turns_of(day.messages, Limits.of(MemorySettings()))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        found = extracted(turns)
        best = min(best, time.process_time() - start)
    return found, 1_000 * best


def lines_of(summary: Summary) -> list[str]:
    """The lines of a summary, each with its section."""
    return [
        *(f"topic       {one.title}  {list(one.turns)}" for one in summary.topics),
        *(f"{'observed' if one.observed else 'preference'}  {one.text}" for one in summary.preferences),
        *(
            f"{'technical' if one.technical else 'decision'}   {one.text}"
            + (f"  ← {one.reason}" if one.reason else "")
            for one in summary.decisions
        ),
        *(
            f"{'task' if one.inferred else 'to-do'}       {one.text}" + (f"  ({one.when})" if one.when else "")
            for one in summary.todos
        ),
        *(f"problem     {one.text}" + (f"  → {one.solution}" if one.solution else "") for one in summary.problems),
        *(f"insight     {one.text}" for one in summary.insights),
    ]


def told_by(tree: Path, data: Path, days: str) -> dict[str, dict[str, object]]:
    """The output of this script with another tree's rules."""
    done = subprocess.run(
        [sys.executable, __file__, str(data), "--days", days, "--json"],
        check=True,
        stdout=subprocess.PIPE,
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
    )
    found: dict[str, dict[str, object]] = orjson.loads(done.stdout)
    return found


@click.command(help=__doc__.split("\n")[0] if __doc__ else None)
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--days", type=click.Choice([*SETS, "fresh", "all"]), default="judged", help="The set of days.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another tree of this repository; its summaries come first.",
)
@click.option("--messages", is_flag=True, help="Print the messages too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: lines and milliseconds by day.")
def main(data: Path, days: str, before: Path | None, messages: bool, as_json: bool) -> None:
    chosen: list[Day] = []
    for source, number in (FRESH if days == "fresh" else DRAWN).items():
        path = data / f"{source}.messages.dev.jsonl"
        if not path.exists():
            raise click.ClickException(f"{path} does not exist: DATA is the folder of the development sets")
        found = days_of(source, path)
        chosen += found if days == "all" else drawn(found, number)["judged" if days == "fresh" else days]
    told: dict[str, dict[str, object]] = {}
    for day in chosen:
        summary, milliseconds = summed_up(day)
        told[day.name] = {"lines": lines_of(summary), "ms": round(milliseconds, 2)}
    if as_json:
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
        return
    earlier = told_by(before, data, days) if before else {}
    for day in chosen:
        click.echo(f"\n=== {day.name}: {len(day.messages)} messages")
        if messages:
            for one in day.messages:
                click.echo(f"  {one.role[:1]}: {one.content}")
        for when, all_told in (("before", earlier), ("after", told)):
            if day.name in all_told:
                click.echo(f"--- {when}, {all_told[day.name]['ms']} ms")
                click.echo("\n".join(all_told[day.name]["lines"]))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
