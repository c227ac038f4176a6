"""Fits the local estimator's coefficients, and reports how well they work for users that they were not fitted to.

    python benchmarks/estimator_training.py promotion_en.jsonl promotion_zh.jsonl [--messages FILE.jsonl]… [--write]

The files are those of `promotion_quality.py`; `estimator_sentences.tsv` beside this script has our own sentences,
which are always training data. Each language gets a logistic regression over the signals' points, the shape of a
message, and hashed n-grams (`streams/language/evidence.py`); `--write` writes it to `estimator_weights.bin`. The same
data give the same file: nothing is random, and BLAS has one thread.

**Read the grouped cross-validation**: each user's exchanges are scored by a model that was fitted to the other users.
The messages, by default those beside the files, tell which user an exchange belongs to. If they have none of its
texts, it is grouped with the exchanges that share a text with it. The signals' own points were once set by hand with
the development sets in view, so even these figures are a little too good for those sets. Our own sentences are put
into folds one by one.

Files of one language are fitted together. The data are for research and stay where they are: a hashed coefficient
reveals no text.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import click
import numpy as np
import orjson
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.promotions import Row, figures_of
from streams.language import reading_en, reading_zh
from streams.language.estimator import bounded, readable, spoken_chinese, told
from streams.language.evidence import (
    BUCKETS,
    FILE,
    MOST_COURTESIES,
    MOST_YOU,
    ROOTS,
    SHAPE,
    SIDES,
    bucket,
)

SENTENCES: Final = Path(__file__).with_name("estimator_sentences.tsv")

SHAPE_PENALTY, NGRAM_PENALTY = 10.0, 1.0
"""Penalties on the squared coefficients, chosen by the grouped cross-validation, which changes little near them."""

BIAS_PENALTY: Final = 1e-3

PLAIN_WEIGHT: Final = 6.0
"""The weight of plain small talk, of which the sets have few lines: it is what must not be kept."""

HARD_WEIGHT: Final = 0.5
"""The weight of hard negatives: that no question asked about an exchange does not show that it is worthless."""

FOLDS: Final = 4
"""The largest number of folds; fewer users make fewer folds."""

SPREAD: Final = {"en": 2.0, "zh": 2.0}
"""Points for each unit of log-odds, chosen so that the values of real chat reach from 0 to 10."""

CENTRE: Final = {"en": 3.1, "zh": 3.1}
"""The points of even odds."""

Matrix = NDArray[np.float64]


class Exchange(NamedTuple):
    """A labelled exchange; `group` is its user, or a name for the exchanges that share texts with it."""

    user: str
    assistant: str
    worthy: bool
    hard: bool
    group: str
    ours: bool = False


class Model(NamedTuple):
    """Coefficients in log-odds: of `shape` columns, of buckets, and the bias."""

    shape: Matrix
    buckets: Matrix
    bias: float

    def odds(self, shape: Matrix, ngrams: Matrix) -> Matrix:
        """The log-odds of exchanges with these features."""
        return shape @ self.shape + ngrams @ self.buckets + self.bias


def features(exchanges: Sequence[Exchange], language: str) -> tuple[Matrix, Matrix]:
    """The features for a model of this language: (n, 1 + sides × shape) and (n, buckets)."""
    shape = np.zeros((len(exchanges), 1 + len(SIDES) * len(SHAPE)))
    ngrams = np.zeros((len(exchanges), BUCKETS))
    for row, exchange in enumerate(exchanges):
        shape[row, 0] = told(exchange.user, exchange.assistant).points
        for side, text in enumerate((exchange.user, exchange.assistant)):
            text = readable(text, reply=side == 1)
            if text and spoken_chinese(text) == (language == "zh"):
                of_side = slice(1 + side * len(SHAPE), 1 + (side + 1) * len(SHAPE))
                shape[row, of_side] = _of_message(text, side == 1, ngrams[row])
    return shape, ngrams


def _of_message(text: str, reply: bool, ngrams: Matrix) -> list[float]:
    """A message's shape; its n-grams are added to the row."""
    chinese = spoken_chinese(text)
    reading, longest = (reading_zh, reading_zh.MOST_CHARACTERS) if chinese else (reading_en, reading_en.MOST_LETTERS)
    words, letters = reading.parsed(text)
    told, said, asked = reading.stated(words, letters)
    opened = reading.opens(said, reply=reply)
    if reply and not opened:
        return [0.0] * len(SHAPE)
    for word in told:
        found = reading.ngrams(word[:longest])
        for ngram in found:
            ngrams[bucket(ngram)] += ROOTS[len(told)] / len(found) ** 0.5
    courtesies, you = min(MOST_COURTESIES, letters.count("k")), min(MOST_YOU, letters.count("y"))
    return [float(each) for each in (courtesies, you, opened, asked)]


def weights(exchanges: Sequence[Exchange]) -> Matrix:
    """The weight of each exchange."""
    return np.array(
        [1.0 if each.worthy or each.ours else HARD_WEIGHT if each.hard else PLAIN_WEIGHT for each in exchanges]
    )


def fit(shape: Matrix, ngrams: Matrix, worthy: Matrix, weight: Matrix) -> Model:
    """Logistic regression with squared penalties, by Newton's method over the rows, which are fewer than buckets."""
    kernel = shape @ shape.T / SHAPE_PENALTY + ngrams @ ngrams.T / NGRAM_PENALTY + 1 / BIAS_PENALTY
    dual: Matrix = np.zeros(len(worthy))
    for _ in range(30):
        odds = kernel @ dual
        chance = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        curvature = np.maximum(weight * chance * (1 - chance), 1e-8)
        target = odds + weight * (worthy - chance) / curvature
        step = np.linalg.solve(kernel + np.diag(1 / curvature), target) - dual
        dual = dual + step
        if np.abs(step).max() < 1e-7:
            break
    return Model(shape.T @ dual / SHAPE_PENALTY, ngrams.T @ dual / NGRAM_PENALTY, float(dual.sum() / BIAS_PENALTY))


def folds(exchanges: Sequence[Exchange]) -> NDArray[np.int64]:
    """The fold of each exchange; a group is in one fold. Groups of known and unknown users are spread separately."""
    users = sorted({each.group for each in exchanges if not each.ours and not each.group.startswith(UNKNOWN)})
    count = max(2, min(FOLDS, len(users)))
    fold_of: dict[str, int] = {}
    for unknown in (False, True):
        sizes: dict[str, int] = {}
        for each in exchanges:
            if not each.ours and each.group.startswith(UNKNOWN) is unknown:
                sizes[each.group] = sizes.get(each.group, 0) + 1
        filled = [0] * count
        for group in sorted(sizes, key=lambda name: (-sizes[name], name)):
            fold_of[group] = filled.index(min(filled))
            filled[fold_of[group]] += sizes[group]
    return np.array([_of_ours(each) % count if each.ours else fold_of[each.group] for each in exchanges])


def _of_ours(exchange: Exchange) -> int:
    return crc32(f"{exchange.user}\t{exchange.assistant}".encode())


def cross_validated(exchanges: Sequence[Exchange], language: str) -> Matrix:
    """The points of each exchange, by a model that was fitted without its group."""
    shape, ngrams = features(exchanges, language)
    worthy, weight = np.array([float(each.worthy) for each in exchanges]), weights(exchanges)
    fold, odds = folds(exchanges), np.zeros(len(exchanges))
    for held_out in np.unique(fold):
        seen = fold != held_out
        model = fit(shape[seen], ngrams[seen], worthy[seen], weight[seen])
        odds[~seen] = model.odds(shape[~seen], ngrams[~seen])
    return SPREAD[language] * odds + CENTRE[language]


UNKNOWN: Final = "?"
"""The prefix of groups whose user is unknown."""


def speakers(messages: Iterable[Path]) -> dict[str, str]:
    """The user who said each text; of several users, the first."""
    found: dict[str, str] = {}
    for path in sorted(messages):
        for line in path.read_bytes().splitlines():
            message = orjson.loads(line)
            found.setdefault(message["content"], message["user_id"])
    return found


def beside(files: Iterable[Path]) -> list[Path]:
    """The files of messages in the same folders."""
    return sorted({path for file in files for path in file.resolve().parent.glob("*.messages*.jsonl")})


def grouped(exchanges: Sequence[Exchange], said_by: dict[str, str]) -> list[Exchange]:
    """The exchanges with their groups: the user of any of their texts, or else all that equal texts link."""
    linked: dict[str, str] = {}

    def root(text: str) -> str:
        while linked.setdefault(text, text) != text:
            text = linked[text]
        return text

    for each in exchanges:
        linked[root(each.user.strip().lower())] = root(each.assistant.strip().lower() or each.user.strip().lower())
    return [
        each._replace(
            group=said_by.get(each.user)
            or said_by.get(each.assistant)
            or _known(each, said_by)
            or UNKNOWN + root(each.user.strip().lower())
        )
        for each in exchanges
    ]


def _known(exchange: Exchange, said_by: dict[str, str]) -> str | None:
    """The user of any line: an exchange joins several messages in a row into one text."""
    lines = f"{exchange.user}\n{exchange.assistant}".split("\n")
    return next((said_by[line] for line in lines if line in said_by), None)


def labelled(path: Path) -> list[Exchange]:
    """The labelled exchanges of a file."""
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    return [Exchange(row["user"], row["assistant"], row["label"] == 1, bool(row["hard"]), "") for row in rows]


def ours(language: str) -> list[Exchange]:
    """Our own sentences in a language."""
    return sentences(SENTENCES, language)


def sentences(path: Path, language: str) -> list[Exchange]:
    """The sentences in a language of a file like `estimator_sentences.tsv`."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            of, worthy, user, assistant = line.split("\t")
            if of == language:
                found.append(Exchange(user, assistant, worthy == "1", False, "", ours=True))
    return found


def language_of(exchanges: Sequence[Exchange]) -> str:
    """The language that most users write."""
    return "zh" if sum(spoken_chinese(each.user) for each in exchanges) * 2 > len(exchanges) else "en"


def written(models: dict[str, Model]) -> bytes:
    """The file's bytes: coefficients in points, those of n-grams as whole multiples of a language's scale."""
    header, buckets = {}, b""
    for language, model in sorted(models.items()):
        spread = SPREAD[language]
        scale = float(np.abs(model.buckets).max()) * spread / 127
        values: dict[str, object] = {
            "bias": round(model.bias * spread + CENTRE[language], 4),
            "signals": round(float(model.shape[0]) * spread, 4),
            "scale": float(f"{scale:.4g}"),
        }
        for place, side in enumerate(SIDES):
            of_side = model.shape[1 + place * len(SHAPE) :][: len(SHAPE)] * spread
            values[side] = {name: round(float(value), 4) for name, value in zip(SHAPE, of_side, strict=True)}
        header[language] = values
        buckets += np.rint(np.clip(model.buckets * spread / scale, -127, 127)).astype(np.int8).tobytes()
    return json.dumps(header).encode() + b"\n" + buckets


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--messages", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help=f"Write the coefficients to {FILE.name}.")
def main(files: tuple[Path, ...], messages: tuple[Path, ...], write: bool) -> None:
    """Fit the local estimator's coefficients."""
    said_by = speakers(messages or beside(files))
    by_language: dict[str, list[Exchange]] = {}
    for file in sorted(files):
        found = labelled(file)
        by_language.setdefault(language_of(found), []).extend(grouped(found, said_by))
    models = {}
    for language, found in sorted(by_language.items()):
        found += ours(language)
        scores = np.array([bounded(float(points)) for points in cross_validated(found, language)])
        for name, mine in (("unseen users", False), ("our own sentences", True)):
            chosen = [place for place, each in enumerate(found) if each.ours is mine]
            rows = [Row(each.user, each.assistant, each.worthy, each.hard) for each in map(found.__getitem__, chosen)]
            click.echo(f"{language}, {name}: {json.dumps(figures_of(rows, scores[chosen]))}")
        shape, ngrams = features(found, language)
        models[language] = fit(shape, ngrams, np.array([float(each.worthy) for each in found]), weights(found))
    if write:
        if set(models) != {"en", "zh"}:
            raise click.ClickException("the file holds English and Chinese: give files of both")
        FILE.write_bytes(written(models))
        click.echo(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
