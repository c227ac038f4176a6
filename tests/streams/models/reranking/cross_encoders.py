"""An untrained, but real cross-encoder: a tiny BERT with random weights, in a folder.

    python -m tests.streams.models.reranking.cross_encoders make FOLDER LABELS
    python -m tests.streams.models.reranking.cross_encoders score FOLDER QUESTION TEXT…

Both run in a process of their own, because torch leaves threads, loggers and variables behind.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).resolve().parents[4]
WORDS = "where does ann live in oslo the train was late my cat is called pepper i we harmless weather fine"


def made(folder: Path, labels: int = 1) -> Path:
    """Write the model. With several labels it is a classifier, and no reranker."""
    _run("make", str(folder), str(labels))
    return folder


def scored(folder: Path, question: str, texts: Sequence[str]) -> list[float]:
    """What the library itself makes of them."""
    scores: list[float] = orjson.loads(_run("score", str(folder), question, *texts))
    return scores


def _run(*words: str) -> bytes:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("needs the extra test-all")
    command = [sys.executable, "-m", __name__, *words]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def _make(folder: Path, labels: int) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir(exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ".", *WORDS.split()]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,  # so that scores differ
        num_labels=labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)


def _score(folder: str, question: str, texts: Sequence[str]) -> None:
    from sentence_transformers import CrossEncoder

    scores = CrossEncoder(folder).predict([(question, text) for text in texts])
    sys.stdout.buffer.write(orjson.dumps([float(score) for score in scores]))


if __name__ == "__main__":
    what, where, *given = sys.argv[1:]
    if what == "make":
        _make(Path(where), int(given[0]))
    else:
        _score(where, given[0], given[1:])
