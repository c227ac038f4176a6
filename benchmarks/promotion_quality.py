"""How well, and how fast, the local estimator finds exchanges that are worth remembering.

    python benchmarks/promotion_quality.py promotion_en.jsonl promotion_zh.jsonl [--messages FILE.jsonl]… [--json]

A file holds lines `{"user", "assistant", "label": 1|0, "hard": bool}`. Label 1 is worth remembering; label 0
is plain small talk, or, if `hard`, talk from the same conversations that no later question asked about. AUC is the
probability that a worthy exchange ranks above an unworthy one; a tie counts one half. It uses the value, 0-10, on
which promotion decides. The baseline is the length of the text: a ranking that is no better than counting characters
is worth nothing, and on pairs of equal length the baseline cannot win.

The shipped coefficients were fitted to the development sets (`estimator_training.py`), so the figures on these sets
show the fit. The figures named `cv_…` do not: each user's exchanges are scored by a model of the same kind that was
fitted to the file's other users. `length_correlation` is that of the value and the logarithm of the length.

A second table is of talk with an assistant about work: 60 sentences of our own (`estimator_held_out.tsv`), to which
nothing was fitted. It has the shares that the default settings promote.

For one file, the JSON object holds its figures. For several, it holds each file's figures under the file's name, and
under `languages` those of all files of one language together.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click
import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import estimator_training as training
from benchmarks.evidence.promotions import Figures, Row, auc, correlation, figures_of, share
from schemas.conversations import Role
from schemas.exchanges import Exchange, Message
from schemas.settings import MemorySettings
from streams.intake.rules.decision import Decision
from streams.intake.rules.promotion import Promoter
from streams.language.estimator import bounded, estimate, estimated_rating

HELD_OUT: Final = Path(__file__).with_name("estimator_held_out.tsv")

SPEED_SECONDS: Final = 1.0
"""How long the speed is measured; the best pass within this time counts."""

_CJK: Final = re.compile("[\u4e00-\u9fff]")


def speed(rows: list[Row]) -> int:
    """Exchanges a second of the best pass."""
    exchanges = [(row.user, row.assistant) for row in rows]
    best, until = float("inf"), time.perf_counter() + SPEED_SECONDS
    while time.perf_counter() < until:
        started = time.perf_counter()
        for user, assistant in exchanges:
            estimate(user, assistant)
        best = min(best, time.perf_counter() - started)
    return round(len(exchanges) / best)


def rows_of(path: Path) -> list[Row]:
    """The lines of a file. Raises `ValueError` if one has another format, or there is none."""
    try:
        rows = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        found = [Row(row["user"], row["assistant"], row["label"] == 1, bool(row["hard"])) for row in rows]
    except (ValueError, KeyError, TypeError) as exc:
        raise ValueError(f'{path}: not lines of {{"user", "assistant", "label", "hard"}}: {exc}') from exc
    if not found:
        raise ValueError(f"{path}: no exchanges")
    return found


def language(rows: list[Row]) -> str:
    """The language that most users write."""
    return "zh" if sum(bool(_CJK.search(row.user)) for row in rows) * 2 > len(rows) else "en"


def measure(rows: list[Row], unseen: NDArray[np.float64] | None = None) -> Figures:
    """The figures of exchanges: by the estimator, and, named `cv_…`, by the scores in `unseen`."""
    worthy = np.array([row.worthy for row in rows])
    hard = np.array([row.hard for row in rows]) & ~worthy
    plain = ~worthy & ~hard
    length = np.array([float(len(row.user) + len(row.assistant)) for row in rows])
    value = np.array([float(estimate(row.user, row.assistant).rating) for row in rows])
    per_second = speed(rows)
    figures: Figures = {
        "language": language(rows),
        "worthy": int(worthy.sum()),
        "plain": int(plain.sum()),
        "hard": int(hard.sum()),
        **figures_of(rows, np.array([estimate(row.user, row.assistant).score for row in rows])),
        "auc_length": auc(length[worthy], length[plain]),
        "auc_hard_length": auc(length[worthy], length[hard]),
        "length_correlation": correlation(value, np.log1p(length)),
        "exchanges_per_s": per_second,
        "exchanges_per_second": per_second,  # its former name
    }
    if unseen is not None:
        figures |= {f"cv_{name}": figure for name, figure in figures_of(rows, unseen).items()}
    return figures


def unseen_scores(paths: Iterable[Path], messages: Iterable[Path]) -> NDArray[np.float64]:
    """The scores of the exchanges, each by a model that was fitted to other users (and to our own sentences)."""
    files = list(paths)
    exchanges = [exchange for path in files for exchange in training.labelled(path)]
    known = training.grouped(exchanges, training.speakers(messages or training.beside(files)))
    of = training.language_of(known)
    points = training.cross_validated([*known, *training.ours(of)], of)[: len(known)]
    return np.array([bounded(float(each)) for each in points])


def by_language(
    by_file: dict[str, Figures], rows: dict[Path, list[Row]], messages: Iterable[Path]
) -> dict[str, Figures]:
    """The figures of each language: those of its file, or of all its files together."""
    files: dict[str, list[tuple[Figures, Path]]] = {}
    for figures, (path, found) in zip(by_file.values(), rows.items(), strict=True):
        files.setdefault(language(found), []).append((figures, path))
    return {
        name: measured[0][0]
        if len(measured) == 1
        else measure(
            [row for _, path in measured for row in rows[path]],
            unseen_scores([path for _, path in measured], messages),
        )
        for name, measured in files.items()
    }


def table(by_file: Mapping[str, Mapping[str, float | int | str | None]], title: str) -> Table:
    """A table with a row for each figure and a column for each file."""
    shown = Table("figure", *by_file, title=title)
    for name in next(iter(by_file.values())):
        cells = [figures[name] for figures in by_file.values()]
        shown.add_row(name, *("-" if cell is None else f"{cell:,}" if cell != str(cell) else cell for cell in cells))
    return shown


def held_out() -> dict[str, dict[str, float]]:
    """By language, the shares of the worthy and of the other held-out sentences that are promoted by default."""
    promoter = Promoter(MemorySettings(), estimated_rating)
    figures: dict[str, dict[str, float]] = {}
    for of in ("en", "zh"):
        found = training.sentences(HELD_OUT, of)
        kept = np.array([_promoted(promoter, each) for each in found])
        worthy = np.array([each.worthy for each in found])
        figures[of] = {
            "worthy": int(worthy.sum()),
            "worthy_promoted": share(kept, worthy) or 0.0,
            "others": int((~worthy).sum()),
            "others_promoted": share(kept, ~worthy) or 0.0,
        }
    return figures


def _promoted(promoter: Promoter, said: training.Exchange) -> bool:
    """Whether an exchange is promoted when its session ends."""
    messages = (Message("u", Role.USER, said.user, 0), Message("a", Role.ASSISTANT, said.assistant, 0))
    decision = promoter.score(Exchange(0, messages), 1, leaving=True)
    return isinstance(decision, Decision) and decision.kept


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--messages",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Messages with their users, for the cross-validation.  [default: *.messages*.jsonl beside the files]",
)
@click.option("--json", "as_json", is_flag=True, help="End with one line holding a JSON object.")
def main(files: tuple[Path, ...], messages: tuple[Path, ...], as_json: bool) -> None:
    """Measure the local estimator on labelled exchanges."""
    try:
        rows = {path: rows_of(path) for path in files}
    except ValueError as exc:
        raise click.ClickException(str(exc)) from exc
    stems = Counter(path.stem for path in rows)
    by_file = {
        path.stem if stems[path.stem] == 1 else str(path): measure(found, unseen_scores([path], messages))
        for path, found in rows.items()
    }
    Console().print(table(by_file, "Local estimator: what is worth remembering"))
    Console().print(table(held_out(), "held-out sentences about work"))
    if not as_json:
        return
    if len(by_file) == 1:
        click.echo(json.dumps(next(iter(by_file.values()))))
    else:
        click.echo(json.dumps(by_file | {"languages": by_language(by_file, rows, messages)}))


if __name__ == "__main__":
    main()
