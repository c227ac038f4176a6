"""The doctor's check of the embedding model: does it work, and are the shards' vectors from this model?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from schemas.errors import SiltstoneError
from schemas.settings import ONE_MODEL, EmbeddingSettings, Settings
from streams.doctor.data import numbered
from streams.doctor.finding import Finding, failed, ok, warning
from streams.models.embedding.choice import kept_backend
from streams.models.embedding.embedders import Model, load_embedder, model_of
from streams.models.local_models import silence
from streams.runtime.called_process import CalledProcess, ProcessDied
from tables.database.inspection import Inspection

CHECK = "embedding"
#: The maximum number of seconds to wait for a service's answer in this check, even if the settings allow more.
LONGEST_SECONDS = 30.0
#: Matches the names of well-known models that tell questions from documents by a prefix or a parameter.
_ASYMMETRIC = re.compile(
    r"(?:^|[/_-])(?:(?:multilingual-)?e5-|bge-(?:small|base|large)-|mxbai-embed-large|gte-qwen2|qwen3-embedding"
    r"|embeddinggemma|nomic-embed-text|voyage-|jina-embeddings-v[34])",
    re.IGNORECASE,
)


async def load(settings: EmbeddingSettings) -> Model | Finding:
    """Load the embedding model, and embed a text with it. Return the model, or a finding if that fails.

    An embedding service gets the same request as from a worker. A local model is loaded in a separate process,
    because it can be slow or large, or crash its process.
    """
    if settings.backend == "openai":
        return await _asked(settings)
    process = CalledProcess("embedding", {})
    try:
        loaded = await process.call(_load, settings)
    except ProcessDied:
        loaded = "the process that loaded the model was killed, probably for lack of memory"
    finally:
        await process.close()
    return _failed(settings, loaded) if isinstance(loaded, str) else loaded


async def _asked(settings: EmbeddingSettings) -> Model | Finding:
    from streams.models.embedding.service import EmbeddingService  # its imports take most of a second

    seconds = min(settings.timeout_seconds, LONGEST_SECONDS)
    service = EmbeddingService(settings.model_copy(update={"timeout_seconds": seconds}))
    try:
        return await service.load()
    except SiltstoneError as exc:
        return _failed(settings, str(exc))
    finally:
        await service.close()


def _failed(settings: EmbeddingSettings, what: str) -> Finding:
    return failed(CHECK, what, f"fix this, or use an embedding.backend other than {settings.backend}")


def _load(settings: EmbeddingSettings) -> Model | str:
    """Load a local model, and embed a text with it. Return the model, or an error text.

    This runs in a separate process.
    """
    silence()
    try:
        embedder = load_embedder(settings)
        (vector,) = embedder.embed(["harmless"], "document")
        assert vector.shape == (embedder.dimension,)
        return model_of(embedder)
    except SiltstoneError as exc:
        return str(exc)
    except Exception as exc:
        return f"{settings.backend} does not load: {type(exc).__name__}"


def untold(settings: EmbeddingSettings, model: Model) -> list[Finding]:
    """Report a model that gets questions and documents alike, but is known to have been taught to tell them apart."""
    if settings.backend in ONE_MODEL or model.asymmetric or not _ASYMMETRIC.search(settings.model):
        return []
    return [
        warning(
            CHECK,
            f"{settings.model} is not told what is a question and what is a document, so searches find less",
            "set `embedding.query_prefix` and the like: docs/choosing-a-model.md, Questions and documents",
        )
    ]


def by_auto(settings: Settings) -> str:
    """Return why a backend `auto` stands for its model; empty if the settings name another backend.

    The text names the data directory, because a running worker may have another one, and so another model. Raises
    `DataDirError`.
    """
    if settings.embedding.backend != "auto":
        return ""
    data_dir = settings.data_dir.absolute()
    if kept_backend(data_dir):
        return f"; chosen by `auto`, because shards in {data_dir} have it"
    return f"; chosen by `auto` for a new store: no shard in {data_dir} has vectors of `use` or `e5`"


def fitting(model: Model, seconds: float, shards: Mapping[int, Inspection], why: str = "") -> list[Finding]:
    """Report shards whose vectors are from another model than `model`, which was loaded in `seconds`.

    `why` is the reason for the choice of the model, as `by_auto` returns it.
    """
    others: Mapping[tuple[str, int], list[int]] = defaultdict(list)
    for partition, found in sorted(shards.items()):
        if found.model is not None and (found.model, found.dimension) != (model.name, model.dimension):
            others[found.model, found.dimension].append(partition)
    loaded = f"{model.name}, {model.dimension} dimensions"
    if not others:
        return [ok(CHECK, f"{loaded}, loaded in {seconds:.1f} s{why}")]
    return [
        failed(
            CHECK,
            f"{numbered(partitions)}: vectors from {name} ({dimension} dimensions), not from {loaded}",
            "set `embedding` back, or run `siltstone reembed`",
        )
        for (name, dimension), partitions in others.items()
    ]
