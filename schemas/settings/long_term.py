"""The settings section `long_term`: the shards, and the use of a chat model to improve memories."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from schemas.settings.section import Days, OwnCosine, Section


class SupersedeSettings(Section):
    """Settings for the questions to a chat model that find the older memories that a new memory replaces."""

    enabled: bool = True
    candidates: Annotated[int, Field(ge=1, le=20, description="older memories shown in one question")] = 3
    min_cosine: OwnCosine = Field(
        default=None, description="least similarity of an older memory; null: by the embedding model"
    )


class RetentionSettings(Section):
    """The times in days for which a shard keeps rows that no memory needs. null means for ever.

    Memories themselves are kept at any age.
    """

    applied_days: Annotated[float, Field(ge=1, le=36_500)] = Field(
        default=7.0, description="least time for which a repeated event is recognized by its id"
    )
    history_days: Days | None = Field(default=365.0, description="actions on memories, and their changes")
    transitions_days: Days | None = Field(default=365.0, description="changes of state, after they were published")
    ratings_days: Days | None = Field(default=365.0, description="a model's ratings of exchanges")

    @field_validator("history_days", "transitions_days", "ratings_days", mode="before")
    @classmethod
    def _null_of_the_environment(cls, given: Any) -> Any:
        return None if given == "null" else given


class LongTermSettings(Section):
    """The settings of the shards, which hold long-term memory."""

    access_increment: Annotated[float, Field(ge=0, le=100)] = 2.0
    near_copy: Annotated[float, Field(gt=0, le=1)] = 0.95
    top_k: Annotated[int, Field(ge=1, le=1000)] = 10
    context_memories: Annotated[int, Field(ge=0, le=100)] = 3
    access_seconds: Annotated[float, Field(gt=0)] = Field(
        default=5.0, description="a user's accesses in this time become one event; a worker that is killed loses them"
    )
    save_seconds: Annotated[float, Field(gt=0)] = 60.0
    intake_first_seconds: Annotated[float, Field(ge=0)] = 10.0
    max_memories_per_user: Annotated[int, Field(ge=0)] = Field(
        default=10_000,
        description="above this number, the oldest memories with the lowest scores are summarized; 0: never",
    )
    group_cosine: OwnCosine = Field(
        default=None,
        description="least similarity of memories that are summarized together; null: by the embedding model",
    )
    summaries_by_model: bool = Field(
        default=True, description="a configured model writes the text of these summaries"
    )
    supersede: SupersedeSettings = SupersedeSettings()
    retention: RetentionSettings = RetentionSettings()

    @model_validator(mode="after")
    def _candidates_are_no_near_copies(self) -> Self:
        least = self.supersede.min_cosine
        if self.supersede.enabled and least is not None and not least < self.near_copy:
            raise ValueError(f"supersede.min_cosine ({least:g}) must be below near_copy ({self.near_copy:g})")
        return self
