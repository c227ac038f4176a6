"""The settings section `rerank`: the model that puts the best candidates of a search in order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints

from schemas.settings.section import Section
from schemas.settings.services import ApiKey, BaseUrl


class RerankSettings(Section):
    """The reranker. Without a `model`, searches are not reranked. `Settings.reranker` resolves an empty key.

    `model` is the name of a cross-encoder, or a folder if the backend is `sentence-transformers`. Only the backend
    `service` uses `api_key` and `base_url`, to which `/rerank` is appended. `candidates` is the number of best
    memories of a search that the model puts in order, and `timeout_seconds` the time that a search waits for it.
    """

    model: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    backend: Literal["sentence-transformers", "service"] = "sentence-transformers"
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=8)] = 2.0
    candidates: Annotated[int, Field(ge=1, le=200)] = 30
