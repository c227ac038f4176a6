"""The settings section `embedding`: the model that turns texts into vectors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from schemas.settings.section import Section
from schemas.settings.services import ApiKey, BaseUrl

TRANSFORMER = "paraphrase-multilingual-MiniLM-L12-v2"
OPENAI_EMBEDDINGS = "text-embedding-3-small"


class EmbeddingSettings(Section):
    """The model that turns texts into vectors. `Settings.embedder` resolves an empty key.

    `model` is a name, or a folder if the backend is `sentence-transformers`. If it is empty, the backend's default is
    used. The backend `use` has only one model. Only the backend `openai` uses `api_key`, `base_url`,
    `timeout_seconds` and `dimensions`.
    """

    backend: Literal["use", "sentence-transformers", "openai"] = "use"
    model: Annotated[str, Field(validate_default=True)] = ""
    batch_size: Annotated[int, Field(ge=1, le=2048)] = 64
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    dimensions: Annotated[int, Field(ge=1, le=65_536, description="requested from the service if set")] | None = None

    @field_validator("model")
    @classmethod
    def _of_the_backend(cls, model: str, info: ValidationInfo) -> str:
        default = OPENAI_EMBEDDINGS if info.data.get("backend") == "openai" else TRANSFORMER
        return model.strip() or default
