"""Likeness: the cosines from which memories count as similar, by the model of a shard's present vectors."""

from __future__ import annotations

from schemas.embedding_models import USE, LeastCosines, measured_model
from tables.memories.catalog.reembedding import VectorModel
from tables.search.tokens import has_cjk


def least_cosines(model: VectorModel | None, text: str) -> LeastCosines:
    """Return the least cosines of memories that are similar to one with this text.

    `model` is `shard.reembedding.model`. Ask for it each time, because a re-embedding replaces it.
    """
    measured = USE if model is None else measured_model(model.name)
    return measured.cjk if has_cjk(text) else measured.latin
