"""The base class of all sections of the settings."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Percent = Annotated[float, Field(ge=0, le=100)]
Days = Annotated[float, Field(ge=0, le=36_500)]
Cosine = Annotated[float, Field(ge=-1, le=1)]


def _null_of_the_environment(given: Any) -> Any:
    return None if given == "null" else given


#: A least cosine of similar memories. None means the value for the model of the shard's vectors.
OwnCosine = Annotated[Cosine | None, BeforeValidator(_null_of_the_environment)]


class Section(BaseModel):
    """A section of the settings. It is frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
