"""Measures how well time expressions of chats are resolved: `tables/time_expressions` beside libraries.

    pip install dateparser "recognizers-text-date-time==1.0.2a2" "emoji<2" ctparse parsedatetime timefhuman jionlp
    python benchmarks/time_expressions.py [--part seen|unseen|both] [--language en|zh] [--json]

The lines and what each expression means are in `benchmarks/times`. A window counts as right if both its ends are
those of the line. Precision is right windows of all found, recall right windows of all that the lines have. Since a
library has conventions of its own (when an evening begins), the last two figures count windows that overlap.

A library that is not installed is left out. A text for which a library raises an error has no windows of it.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import click
import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.times.contenders import CONTENDERS, Contender, Ends
from schemas.times import parse_timestamp

FOLDER: Final = Path(__file__).parent / "times"


class Line(NamedTuple):
    """A chat line, when it was said (epoch ms), its user's zone, and the windows in it, in local time."""

    text: str
    said_at: int
    zone: tzinfo
    windows: set[Ends]


class Figures(NamedTuple):
    """Counts of windows, texts for which an error was raised, and the mean time of a text.

    `near` are found windows that overlap one of the line, `touched` are those of the lines that overlap a found one.
    """

    right: int
    near: int
    touched: int
    found: int
    wanted: int
    errors: int
    milliseconds: float

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted


def lines_of(language: str, part: str) -> Iterator[Line]:
    """Yield the lines of a language: `seen`, `unseen`, or `both`."""
    names = {"seen": [language], "unseen": [f"{language}.unseen"], "both": [language, f"{language}.unseen"]}
    for name in names[part]:
        for line in (FOLDER / f"{name}.jsonl").read_bytes().splitlines():
            one = orjson.loads(line)
            windows = {(moment(window["from"]), moment(window["to"])) for window in one["windows"]}
            yield Line(one["text"], parse_timestamp(one["said_at"]), ZoneInfo(one["zone"]), windows)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def overlap(one: Ends, other: Ends) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def measured(contender: Contender, lines: list[Line]) -> Figures:
    """Count what a contender finds. What it loads with its first text is not timed."""
    right = near = touched = found = errors = 0
    took = 0.0
    contender(*lines[0][:3])
    for line in lines:
        began = time.perf_counter()
        try:
            read = contender(*line[:3])
        except Exception:  # every error of a library is its own
            errors += 1
            continue
        finally:
            took += time.perf_counter() - began
        every = {window for each in read for window in each}
        found += len(read)
        right += len(every & line.windows)
        near += sum(any(overlap(one, other) for one in each for other in line.windows) for each in read)
        touched += sum(any(overlap(one, other) for other in every) for one in line.windows)
    wanted = sum(len(line.windows) for line in lines)
    return Figures(right, near, touched, found, wanted, errors, took / len(lines) * 1000)


@click.command()
@click.option(
    "--part", type=click.Choice(["seen", "unseen", "both"]), default="both", help="Which half of the lines."
)
@click.option("--language", "languages", type=click.Choice([*CONTENDERS]), multiple=True, default=[*CONTENDERS])
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each row.")
def main(part: str, languages: tuple[str, ...], as_json: bool) -> None:
    """Compare contenders on 100 lines (`--part both`: 200) in each language."""
    warnings.simplefilter("ignore")  # of libraries, which log as well
    logging.disable()
    for language in languages:
        lines = list(lines_of(language, part))
        for name, made in CONTENDERS[language].items():
            try:
                contender = made()
            except ImportError:
                click.echo(f"{name} is not installed", err=True)
                continue
            figures = measured(contender, lines)
            row = {"language": language, "contender": name, "precision": figures.precision, "recall": figures.recall}
            if as_json:
                click.echo(orjson.dumps({**row, **figures._asdict()}))
            else:
                click.echo(
                    f"{language} {name:27} precision {figures.precision:.2f}  recall {figures.recall:.2f}  "
                    f"{figures.milliseconds:6.2f} ms  {figures.right} right of {figures.found} found and "
                    f"{figures.wanted} wanted, {figures.errors} errors; overlapping: "
                    f"{figures.near / max(figures.found, 1):.2f} and {figures.touched / figures.wanted:.2f}"
                )


if __name__ == "__main__":
    main()
