"""The base class of all sections of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Percent = Annotated[float, Field(ge=0, le=100)]
Days = Annotated[float, Field(ge=0, le=36_500)]


class Section(BaseModel):
    """A section of the settings. It is frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
