"""Summaries of ten days of chats, before and after a change, for a reader to judge; or scored against gold lines.

    python benchmarks/summaries.py DATA [--days judged|fresh|tuning|all] [--before TREE] [--messages] [--json]
    python benchmarks/summaries.py --gold benchmarks/summary_days/open.jsonl [--lines] [--json]
    python benchmarks/summaries.py --gold benchmarks/summary_days/open.jsonl --model NAME [--base-url URL] [--most N]
    python benchmarks/summaries.py --gold benchmarks/summary_days/open.jsonl --check

DATA is a folder with `locomo_en`, `memdaily_dedup_zh` and `memorybank_zh.messages.dev.jsonl`; its texts are licensed
for research, so keep the output on this machine. A day has the messages of one user on one date, eight or more; its
number is its place in its source, by date and user. Days are drawn with a fixed seed: the rules were improved on the
ten days of `tuning` and others, not on those of `judged`, which `docs/summaries.md` reports; the days of `fresh`,
from `memorybank_en`, were read only when the rules were finished. `--before` is another tree of this repository,
whose summary of each day is printed first. `--messages` prints the messages too.

`--gold` names a file of days with lines that their author noted (`benchmarks/summary_days`). Precision is right lines
of all found, recall right lines of all gold ones, by section and language. A line counts as right when its content
words are those of a gold line of its section: an F-measure of 0.5 or more, matched one to one
(`benchmarks/evidence/summary_gold.py` has the definition). `--lines` prints the right, wrong and missed lines of each
day first; not for the held-out half while rules are improved.

`--model` scores a model's summaries instead of the rules'. NAME has the form `provider/model`, as the settings have
it; the service and its key are those of the settings and the environment (`SILTSTONE_LLM__API_KEY`, any text for a
service that needs none), or URL and this key. The messages of the days are sent there. What was cut of its answers,
and which days have no usable one, is counted below the table. `--most` scores so many days only, evenly taken from
the file; `--without` leaves out a day by its name.

`--check` asks no model: it prints how many right lines the check of a model's lines cuts, and how many wrong ones it
lets through (`benchmarks/evidence/summary_check.py`).
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import orjson

from schemas.conversations import ChatMessage
from schemas.settings import MemorySettings
from schemas.summaries import Summary
from streams.intake.rules.exchanges import Limits
from streams.summaries.rules import Turn, extracted, turns_of

if TYPE_CHECKING:
    from benchmarks.evidence.summary_gold import GoldDay

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
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--gold", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Days with gold lines.")
@click.option("--lines", is_flag=True, help="With --gold: print the right, wrong and missed lines of each day.")
@click.option("--model", default="", help="With --gold: score the summaries of this model, as provider/model.")
@click.option("--base-url", default="", help="With --model: the URL of its OpenAI-compatible service.")
@click.option("--most", type=click.IntRange(1), help="With --gold: score so many days only.")
@click.option("--without", multiple=True, help="With --gold: leave out the day of this name.")
@click.option("--check", is_flag=True, help="With --gold: measure the check of a model's lines.")
@click.option("--days", type=click.Choice([*SETS, "fresh", "all"]), default="judged", help="The set of days.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another tree of this repository; its summaries come first.",
)
@click.option("--messages", is_flag=True, help="Print the messages too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: lines by day, or counts; at the end.")
def main(
    data: Path | None,
    gold: Path | None,
    lines: bool,
    model: str,
    base_url: str,
    most: int | None,
    without: tuple[str, ...],
    check: bool,
    days: str,
    before: Path | None,
    messages: bool,
    as_json: bool,
) -> None:
    if (data is None) == (gold is None):
        raise click.UsageError("name either DATA or a file of --gold")
    if (not gold and (model or check or most or without)) or (base_url and not model):
        raise click.UsageError("--model, --most, --without and --check need --gold, and --base-url needs --model")
    if gold and check:
        measure_check(gold_days(gold, without, most))
    elif gold:
        score(gold_days(gold, without, most), lines, as_json, model, base_url)
    elif data:
        show(data, days, before, messages, as_json)


def gold_days(gold: Path, without: Sequence[str], most: int | None) -> list[GoldDay]:
    """The days of a file that are scored: all but those that are left out, or some of them, evenly taken."""
    # Let `benchmarks` be imported. Not above: `--before` runs this script with another tree's packages.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.evidence import summary_gold

    days = list(summary_gold.read(gold))
    if unknown := sorted({*without} - {day.name for day in days}):
        raise click.UsageError(f"{gold} has no day {', '.join(unknown)}")
    days = [day for day in days if day.name not in without]
    return days[:: -(-len(days) // most)] if most else days


def measure_check(days: Sequence[GoldDay]) -> None:
    """Print what the check of a model's lines makes of right and of wrong ones."""
    from benchmarks.evidence import summary_check

    cited = summary_check.cited_anew(days)
    click.echo("\n".join(summary_check.table(summary_check.passed(days))))
    click.echo(f"a wrong message: {', '.join(f'{what} {number}' for what, number in sorted(cited.items()))}")


def score(days: Sequence[GoldDay], lines: bool, as_json: bool, model: str, base_url: str) -> None:
    """Print how many lines of the summaries are gold lines of their days."""
    from benchmarks.evidence import summary_gold, summary_model

    limits = Limits.of(MemorySettings())
    by_model = summary_model.summed_up(days, summary_model.plan_of(model, base_url), limits) if model else None
    summaries = by_model.summaries if by_model else [extracted(turns_of(day.messages, limits)) for day in days]
    judged = [(day, summary_gold.compared(day, found)) for day, found in zip(days, summaries, strict=True)]
    for day, rows in judged if lines else ():
        click.echo(f"\n=== {day.name}")
        for row, found in rows.items():
            click.echo("".join(f"{row:12} right   {line}  = {wanted}\n" for line, wanted in found.right), nl=False)
            click.echo("".join(f"{row:12} wrong   {line}\n" for line in found.wrong), nl=False)
            click.echo("".join(f"{row:12} missed  {line}\n" for line in found.missed), nl=False)
    counts = summary_gold.counted(judged)
    told = by_model.told() if by_model else []
    click.echo("\n".join([f"{len(judged)} days", *summary_gold.table(counts), *told]))
    if as_json:
        cut = {"cut": by_model.cut} if by_model else {}
        click.echo(orjson.dumps({"days": len(judged), **summary_gold.as_json(counts), **cut}))


def show(data: Path, days: str, before: Path | None, messages: bool, as_json: bool) -> None:
    """Print the summaries of a set of days."""
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
