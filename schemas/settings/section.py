"""What every section of the settings is."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Percent = Annotated[float, Field(ge=0, le=100)]
Days = Annotated[float, Field(ge=0, le=36_500)]


class Section(BaseModel):
    """Frozen, and a key that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)
