"""The settings section `lifecycle`: the decay of importance, the borders between the states, and cleanup."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.settings.section import Days, Percent, Section


class WhitelistSettings(Section):
    """Memories that cleanup never archives or removes: by user, by id, and by tag (`tags` in their metadata)."""

    users: tuple[str, ...] = ()
    ids: tuple[uuid.UUID, ...] = ()
    tags: tuple[str, ...] = ()


class CleanupSettings(Section):
    """Cleanup, which archives deprecated and summarized memories, and later removes them from the archive."""

    enabled: bool = Field(
        default=False, description="clean up on the lifecycle's timer; a command can do it in any case"
    )
    paused: bool = Field(default=False, description="clean up nothing, not even by a command")
    after_days: Days = Field(
        default=30.0, description="days that a memory is deprecated or summarized before it is archived"
    )
    recent_access_days: Days = 7.0
    link_weight: Annotated[
        float, Field(ge=0, le=1, description="least weight of a link that exempts both memories")
    ] = 0.7
    retention_days: Days | None = Field(
        default=90.0, description="days that a memory is archived before it is removed; null: never"
    )
    whitelist: WhitelistSettings = WhitelistSettings()

    @field_validator("retention_days", mode="before")
    @classmethod
    def _null_of_the_environment(cls, given: Any) -> Any:
        return None if given == "null" else given


class LifecycleSettings(Section):
    """The decay of importance, the borders between the states of memories, and cleanup."""

    clock: Literal["wall", "event"] = "wall"
    fresh_days: Annotated[float, Field(ge=0)] = 7.0
    half_life_days: Annotated[float, Field(gt=0)] = Field(
        default=30.0, description="at importance 70; twice as long for every 10 points more, half for every 10 less"
    )
    access_min_relevance: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.5, description="less relevant hits of a search are returned, but do not count as accesses"
    )
    active: Percent = 70.0
    cold: Percent = 30.0
    recompute_seconds: Annotated[float, Field(gt=0)] = 60.0
    cleanup: CleanupSettings = CleanupSettings()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.cold < self.active:
            raise ValueError(f"cold ({self.cold:g}) must be below active ({self.active:g})")
        return self
