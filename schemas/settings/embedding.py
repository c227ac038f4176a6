"""The settings section `embedding`: the model that turns texts into vectors."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from schemas.settings.section import Section
from schemas.settings.services import ApiKey, BaseUrl

TRANSFORMER = "paraphrase-multilingual-MiniLM-L12-v2"
OPENAI_EMBEDDINGS = "text-embedding-3-small"

#: A text before each question or each document. White space at its end counts.
Prefix = Annotated[str, Field(max_length=1_000)]
#: The service's word for questions or for documents.
InputType = Annotated[str, Field(max_length=100)]
#: The parameter of a request that has the input type.
InputTypeName = Literal["input_type", "task"]

#: The settings that a backend uses in addition to the model's name, and that fit only this model.
OF_THE_MODEL: Final[dict[str, tuple[str, ...]]] = {
    "use": (),
    "e5": (),
    "sentence-transformers": ("query_prefix", "document_prefix"),
    "openai": (
        "dimensions",
        "query_prefix",
        "document_prefix",
        "query_input_type",
        "document_input_type",
        "input_type_name",
    ),
}

#: The backends that have only one model, and ignore `model`.
ONE_MODEL: Final = frozenset({"use", "e5"})


def settings_of_the_model(backend: str) -> tuple[str, ...]:
    """Return the names of the settings that describe a model of this backend, its name included.

    >>> settings_of_the_model("sentence-transformers"), settings_of_the_model("auto")
    (('model', 'query_prefix', 'document_prefix'), ())
    """
    return () if backend in {"auto", *ONE_MODEL} else ("model", *OF_THE_MODEL[backend])


class EmbeddingSettings(Section):
    """The model that turns texts into vectors. `Settings.embedder` resolves an empty key.

    `model` is a name, or a folder if the backend is `sentence-transformers`. If it is empty, the backend's default is
    used. The backends `use` and `e5` have only one model. `auto` is one of these two: the one with which the memories
    in the data directory were embedded. In a new data directory, it is `e5` if it is installed, else `use`. Only the
    backend `openai` uses `api_key`, `base_url`, `timeout_seconds`, `dimensions` and the input types.

    Many models distinguish questions from documents (memories) by a prefix or by a parameter of the request. `use`
    does not, and `e5` has fixed prefixes. A prefix of None stands for the prompt in the model's own configuration if
    the backend is `sentence-transformers`, else for no prefix. With another prefix or input type for documents, a
    model counts as another model; those for questions can be changed at any time.
    """

    backend: Literal["auto", "use", "e5", "sentence-transformers", "openai"] = "auto"
    model: Annotated[str, Field(validate_default=True)] = ""
    batch_size: Annotated[int, Field(ge=1, le=2048)] = 64
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    dimensions: Annotated[int, Field(ge=1, le=65_536, description="requested from the service if set")] | None = None
    query_prefix: Prefix | None = None
    document_prefix: Prefix | None = None
    query_input_type: InputType | None = None
    document_input_type: InputType | None = None
    input_type_name: InputTypeName = "input_type"

    def unused(self) -> list[str]:
        """Return the names of the settings that are set, but have no effect with this backend."""
        used = {"backend", "batch_size", "timeout_seconds", *settings_of_the_model(self.backend)}
        if self.backend == "openai":
            used |= {"api_key", "base_url"}
        defaults = dict(EmbeddingSettings())
        return [name for name, value in self if name not in used and value not in ("", defaults[name])]

    @field_validator("model")
    @classmethod
    def _of_the_backend(cls, model: str, info: ValidationInfo) -> str:
        default = OPENAI_EMBEDDINGS if info.data.get("backend") == "openai" else TRANSFORMER
        return model.strip() or default
