"""How well the local estimator tells what is worth remembering, and how fast.

    python benchmarks/promotion_quality.py promotion_en.jsonl promotion_zh.jsonl [--json]

A file holds lines `{"user", "assistant", "label": 1|0, "hard": bool}`. Label 1 is worth remembering; label 0
is plain small talk, or, where `hard`, talk from the same conversations that nobody asked about later. AUC is
the chance that a worthy exchange ranks above an unworthy one, a tie counting one half. The peer is the length
of the text: a ranking that does no better than counting characters is worth nothing, and on pairs of equal
length it cannot win.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from streams.rules.estimator import estimate

Figures = dict[str, float | int | str | None]

EQUAL_LENGTH: Final = 0.10
"""Two texts are equally long when the shorter lacks at most this share of the longer."""

KEEP_VALUES: Final = (1, 5)
"""1 keeps a border exchange (DESIGN.md, section 5); 5 is what a judge would call worth it."""

SPEED_SECONDS: Final = 1.0
"""How long the speed is measured: the best of as many passes as fit."""

_CJK: Final = re.compile("[\u4e00-\u9fff]")


def auc(
    positive: NDArray[np.float64], negative: NDArray[np.float64], pairs: NDArray[np.bool_] | None = None
) -> float | None:
    """The share of (positive, negative) pairs that are in order, ties one half; None without pairs."""
    ahead = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    chosen = ahead if pairs is None else ahead[pairs]
    return round(float(chosen.mean()), 4) if chosen.size else None


def speed(exchanges: list[tuple[str, str]]) -> int:
    """Exchanges a second, the best pass."""
    best, until = float("inf"), time.perf_counter() + SPEED_SECONDS
    while time.perf_counter() < until:
        started = time.perf_counter()
        for user, assistant in exchanges:
            estimate(user, assistant)
        best = min(best, time.perf_counter() - started)
    return round(len(exchanges) / best)


def measure(lines: Iterable[bytes]) -> Figures:
    """The figures of one file."""
    rows = [orjson.loads(line) for line in lines if line.strip()]
    if not rows:
        raise ValueError("no exchanges")
    exchanges = [(row["user"], row["assistant"]) for row in rows]
    worthy = np.array([row["label"] == 1 for row in rows])
    hard = np.array([bool(row["hard"]) for row in rows]) & ~worthy
    plain = ~worthy & ~hard
    estimates = [estimate(user, assistant) for user, assistant in exchanges]
    score = np.array([found.score for found in estimates])
    value = np.array([found.value for found in estimates])
    length = np.array([float(len(user) + len(assistant)) for user, assistant in exchanges])
    longer = np.maximum(length[worthy][:, None], length[~worthy])
    equal = np.abs(length[worthy][:, None] - length[~worthy]) <= EQUAL_LENGTH * longer

    figures: Figures = {
        "language": "zh" if sum(bool(_CJK.search(user)) for user, _ in exchanges) * 2 > len(rows) else "en",
        "worthy": int(worthy.sum()),
        "plain": int(plain.sum()),
        "hard": int(hard.sum()),
        "auc": auc(score[worthy], score[plain]),
        "auc_hard": auc(score[worthy], score[hard]),
        "auc_length": auc(length[worthy], length[plain]),
        "auc_hard_length": auc(length[worthy], length[hard]),
        "auc_equal_length": auc(score[worthy], score[~worthy], equal),
        "auc_value": auc(value[worthy].astype(float), value[plain].astype(float)),
        "auc_hard_value": auc(value[worthy].astype(float), value[hard].astype(float)),
    }
    for border in KEEP_VALUES:
        kept = value >= border
        figures[f"precision_at_{border}"] = round(float(worthy[kept].mean()), 4) if kept.any() else None
        figures[f"recall_at_{border}"] = round(float(kept[worthy].mean()), 4) if worthy.any() else None
        figures[f"plain_kept_at_{border}"] = round(float(kept[plain].mean()), 4) if plain.any() else None
    figures["exchanges_per_second"] = speed(exchanges)
    return figures


def table(by_file: dict[str, Figures]) -> Table:
    """One row a figure, one column a file."""
    shown = Table("figure", *by_file, title="Local estimator: what is worth remembering")
    for name in next(iter(by_file.values())):
        cells = [figures[name] for figures in by_file.values()]
        shown.add_row(name, *("-" if cell is None else f"{cell:,}" if cell != str(cell) else cell for cell in cells))
    return shown


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(files: tuple[Path, ...], as_json: bool) -> None:
    """Measure the local estimator on labelled exchanges."""
    by_file: dict[str, Figures] = {}
    for path in files:
        try:
            by_file[path.stem] = measure(path.read_bytes().splitlines())
        except (ValueError, KeyError, TypeError) as exc:
            raise click.ClickException(
                f'{path}: not lines of {{"user", "assistant", "label", "hard"}}: {exc}'
            ) from exc
    Console().print(table(by_file))
    if as_json:
        click.echo(json.dumps(by_file if len(by_file) > 1 else next(iter(by_file.values()))))


if __name__ == "__main__":
    main()
