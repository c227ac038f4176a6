"""Fits the model that chooses the topics of a day, and reports how well it finds them.

    python benchmarks/topic_training.py [--folds N] [--write]

The data are the topics in `summary_dialogues/*.topics.jsonl`, of our own invented dialogues in the files `*.txt`
beside them, one line for each; `specified` has those that the tests specify, which count more. A phrase is a positive
example as far as it overlaps with the name of a topic or its first alternative, from half of their words on
(`evidence/summary_gold.py`). The model is first fitted to phrases alone; it then chooses topics, and is fitted again
to phrases beside those that are chosen, where what these name already counts as wrong.
`--write` writes two models to `streams/summaries/rules/topics.npz`: one with the embeddings of the extra `embedded`,
one without. It needs `scikit-learn`, of the extra `bench`, and the extras `embedded` and `japanese`. Fit the kinds of
clauses first (`summary_training.py`): what a clause says is a feature of the phrases in it.

**Read the cross-validation**: the topics of each dialogue are chosen by a model that was fitted to other dialogues.
The kinds of the clauses around a phrase are by `kinds.npz`, which has seen all dialogues, so the figures are somewhat
too good. The days of `summary_days` are no training data.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import sys
from collections.abc import Collection, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import click
import numpy as np
import orjson
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.marked_dialogues import Labelled, labelled
from benchmarks.evidence.summary_gold import LEAST_OVERLAP, content_words, matched, overlap, ways_of
from benchmarks.summary_training import DIALOGUES, SPECIFIED, needed_encoder, weights
from streams.language.scripts import is_chinese
from streams.summaries.rules import kinds
from streams.summaries.rules.candidates import (
    BUCKETS,
    WORD_SCALE,
    Candidates,
    candidates,
    clauses,
    embedded,
    together,
)
from streams.summaries.rules.talk import Talk
from streams.summaries.rules.topics import FILE, Weights, likely, picked, same
from streams.summaries.rules.turns import Turn

WAYS: Final = 2
"""How many of the names of a topic are right for training: single words are among the further alternatives."""

STRENGTH: Final = {"alone": 0.04, "embedded": 0.04}
"""The inverse of the penalty on the squared coefficients, chosen by the cross-validation."""

TOGETHER_SCALE: Final = 2.0
EXPLORED: Final = (0.15,) * 5
"""The probability that the phrases which are chosen for the second fit have at least."""


FINGERPRINTED: Final = 5
"""How many dialogues of each file have part in the fingerprint."""


class Day(NamedTuple):
    """The candidates of a dialogue, and their overlaps with its topics, float[candidates, topics]."""

    name: str
    language: str
    found: Candidates
    topics: list[list[str]]
    overlaps: NDArray[np.float64]


def topic_files() -> list[Path]:
    return sorted(DIALOGUES.glob("*.topics.jsonl"))


def dialogues_of(path: Path) -> Path:
    """The file of the dialogues whose topics are in a file: `en.txt` of `en.topics.jsonl`."""
    return path.with_suffix("").with_suffix(".txt")


def turns_in(dialogue: Labelled) -> Collection[Turn]:
    return {sentence.turn.number: sentence.turn for sentence in dialogue.sentences}.values()


def days_of(path: Path, alone: Weights | None) -> list[Day]:
    """The days of a file of topics, with embeddings of what is likely by the model without them, if there is one.

    Days in which nothing is named are left out.
    """
    gold = {line["dialogue"]: line["topics"] for line in map(orjson.loads, path.read_bytes().splitlines())}
    days = []
    for number, dialogue in enumerate(labelled(dialogues_of(path))):
        if number not in gold:
            continue
        language = _language_of(path, gold[number])
        talk = Talk(turns_in(dialogue), embedded=alone is not None)
        found = candidates(talk, clauses(talk))
        if not found.phrases:
            continue
        if alone is not None:
            found = embedded(talk, found, likely(alone, found))
        topics = [ways_of(topic) for topic in gold[number]]
        ways = [[content_words(way, language) for way in topic[:WAYS]] for topic in topics]
        said = [content_words(one.phrase.text, language) for one in found.phrases]
        overlaps = [[max(overlap(words, way) for way in topic) for topic in ways] for words in said]
        rights = np.array(overlaps).reshape(len(said), -1)
        days.append(Day(dialogue.name, language, found, topics, rights))
    return days


def _language_of(path: Path, topics: Sequence[dict[str, Any]]) -> str:
    if not path.name.startswith(SPECIFIED):
        return path.name[:2]
    return "zh" if is_chinese(topics[0]["text"]) else "en"


class Scale(NamedTuple):
    mean: Any
    deviation: Any


def rows_of(day: Day, chosen: Sequence[int], scale: Scale) -> tuple[Any, NDArray[np.float64]]:
    """The features of the candidates beside those that are chosen, and how right each of them is."""
    from scipy import sparse

    found, phrases = day.found, day.found.phrases
    left = list(range(day.overlaps.shape[1]))
    for place in chosen:
        best = max(left, key=lambda topic: day.overlaps[place, topic], default=None)
        if best is not None and day.overlaps[place, best] >= LEAST_OVERLAP:
            left.remove(best)
    free = [at for at, one in enumerate(phrases) if not any(same(one, phrases[place]) for place in chosen)]
    right = day.overlaps[np.ix_(free, left)].max(axis=1, initial=0.0)
    words = sparse.lil_matrix((len(free), BUCKETS))
    for row, at in enumerate(free):
        words[row, found.words[at]] = WORD_SCALE
    dense = [(found.features - scale.mean) / scale.deviation, found.vectors, together(found, chosen) * TOGETHER_SCALE]
    features = sparse.hstack([sparse.csr_matrix(np.hstack(dense)[free]), words]).tocsr()
    return features, np.where(right >= LEAST_OVERLAP, right, 0.0)


def fit(days: Sequence[Day], strength: float) -> Weights:
    """Fit to phrases alone, and then to phrases beside those that this first model chooses."""
    features = np.vstack([day.found.features for day in days])
    scale = Scale(features.mean(axis=0), features.std(axis=0) + 1e-6)
    examples = [(day, list[int]()) for day in days]
    first = _fit(examples, scale, strength)
    for day in days:
        chosen = picked(first, day.found, EXPLORED)
        examples += [(day, chosen[:count]) for count in range(1, min(len(chosen), 4) + 1)]
    return _fit(examples, scale, strength)


def _fit(examples: Sequence[tuple[Day, list[int]]], scale: Scale, strength: float) -> Weights:
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    rows, right = zip(*(rows_of(day, chosen, scale) for day, chosen in examples), strict=True)
    known, shares = sparse.vstack(rows), np.concatenate(right)
    weight = np.repeat(weights([day.name for day, _ in examples]), [len(each) for each in right])
    positive = shares > 0
    model = LogisticRegression(C=strength, max_iter=400, tol=1e-3).fit(
        sparse.vstack([known, known[positive]]).tocsr(),
        np.concatenate([np.zeros(len(shares)), np.ones(positive.sum())]),
        sample_weight=np.concatenate([(1 - shares) * weight, (shares * weight)[positive]]),
    )
    day = examples[0][0].found
    sizes = np.cumsum([day.features.shape[1], day.vectors.shape[1], 8])
    features, vectors, beside, words = np.split(model.coef_[0], sizes)
    features = features / scale.deviation
    parts = (features, words, vectors, beside * TOGETHER_SCALE, model.intercept_[0] - features @ scale.mean)
    return Weights(*(np.asarray(part, np.float32) for part in parts))


def report(days: Sequence[Day], strength: float, folds: int) -> None:
    """Print precision and recall of the topics of dialogues that a model has not seen, by language."""
    fold = [crc32(day.name.encode()) % folds for day in days]
    counts: dict[str, NDArray[np.int64]] = {}
    for held_out in range(folds):
        fitted = fit([day for day, at in zip(days, fold, strict=True) if at != held_out], strength)
        judged = (day for day, at in zip(days, fold, strict=True) if at == held_out)
        for day in (day for day in judged if not day.name.startswith(SPECIFIED)):
            titles = [day.found.phrases[place].phrase.text for place in picked(fitted, day.found)]
            for way, most in (("strict", WAYS), ("all names", 99)):
                right = len(matched(titles, [topic[:most] for topic in day.topics], day.language))
                key = f"{day.language if day.language in ('en', 'zh') else 'others'} {way}"
                counts.setdefault(key, np.zeros(3, np.int64))[:] += right, len(titles), len(day.topics)
    for key, (right, found, wanted) in sorted(counts.items()):
        click.echo(f"{key:18}{right / max(1, found):.2f} {right / max(1, wanted):.2f} ({right} of {found}, {wanted})")


def fingerprint() -> NDArray[np.uint8]:
    """The SHA-256 of the topics, of what the kinds are fitted to, and of the phrases of some dialogues."""
    found = sha256()
    with np.load(kinds.FILE) as file:
        found.update(bytes(file["fingerprint"]))
    for path in topic_files():
        found.update(path.read_bytes())
        for dialogue in islice(labelled(dialogues_of(path)), FINGERPRINTED):
            talk = Talk(turns_in(dialogue), embedded=False)
            known = candidates(talk, clauses(talk))
            for one, words in zip(known.phrases, known.words, strict=True):
                found.update(one.phrase.text.encode() + words.tobytes())
    return np.frombuffer(found.digest(), np.uint8)


@click.command()
@click.option("--folds", type=int, default=4, show_default=True, help="Parts of the cross-validation; 0 for none.")
@click.option("--write", is_flag=True, help=f"Write the coefficients to {FILE.name}.")
def main(folds: int, write: bool) -> None:
    """Fit the model that chooses topics."""
    needed_encoder()
    arrays: dict[str, Any] = {"fingerprint": fingerprint()}
    alone = None
    for name, strength in STRENGTH.items():
        days = [day for path in topic_files() for day in days_of(path, alone)]
        click.echo(f"{name}: {len(days)} dialogues, {sum(len(day.found.phrases) for day in days)} phrases")
        if folds:
            report(days, strength, folds)
        fitted = fit(days, strength)
        alone = alone or fitted
        arrays |= {f"{name}_{part}": value.astype(np.float16) for part, value in fitted._asdict().items()}
    if write:
        np.savez_compressed(FILE, allow_pickle=False, **arrays)
        click.echo(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
