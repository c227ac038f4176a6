"""The settings section `memory`: short-term windows, promotion to long-term memory, and the rating of exchanges."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ByteSize, Field, SecretStr

from schemas.events import LONGEST_TTL_SECONDS
from schemas.phrases import CONTENT_KEYWORDS, FORCE_PHRASES, STRONG_EMOTIONS
from schemas.settings.section import Section
from schemas.settings.services import ApiKey, BaseUrl
from schemas.sources import Source


class ScoringSettings(Section):
    """The rules that score an exchange, and the model that rates it. `Settings.rater` resolves an empty key."""

    policy: Literal["weighted", "llm", "all"] = "weighted"
    strong_emotions: tuple[str, ...] = STRONG_EMOTIONS
    content_keywords: tuple[str, ...] = CONTENT_KEYWORDS
    content_value: Annotated[
        int,
        Field(
            ge=1, le=11, description="least value of the local estimator at which content counts; 11: keywords alone"
        ),
    ] = 2
    api_key: ApiKey = SecretStr("")
    base_url: BaseUrl = ""
    model: str = ""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    timeout_seconds: Annotated[float, Field(gt=0, le=3_600)] = 20.0


Updates = Literal["rank", "supersede", "off"]


class MemorySettings(Section):
    """The settings of short-term windows, and of promotion to long-term memory."""

    capacity: Annotated[int, Field(ge=1, le=10_000)] = 50
    ttl_seconds: Annotated[int, Field(ge=1, le=LONGEST_TTL_SECONDS)] = 86_400
    context_turns: Annotated[int, Field(ge=1)] = 10
    exchange_gap_seconds: Annotated[int, Field(ge=1)] = 120
    exchange_messages: Annotated[int, Field(ge=1)] = 16
    session_idle_seconds: Annotated[int, Field(ge=1)] = 1_800
    clock_skew_seconds: Annotated[
        int, Field(ge=0, le=3600, description="how far the clocks of message producers may differ")
    ] = 30
    promote_threshold: Annotated[int, Field(ge=0)] = 10
    notes: Annotated[
        int, Field(ge=1, le=10_000, description="limit for explicit short-term memories of a session")
    ] = 100
    notes_of_user: Annotated[
        int, Field(ge=1, le=100_000, description="limit for explicit short-term memories of a user in all sessions")
    ] = 2_000
    force_phrases: tuple[str, ...] = FORCE_PHRASES
    pin_requests: bool = Field(
        default=True, description="a memory that a user requested by a phrase does not decay until it is unpinned"
    )
    excluded_sources: tuple[Source, ...] = Field(
        default=(), description="sources whose messages are never promoted: assistant, tool:search, token:crawler, …"
    )
    resident_bytes: Annotated[ByteSize, Field(ge=1 << 20)] | None = Field(
        default=None,
        description="limit for windows in a worker's memory, such as 512MiB: it holds the sessions with the newest "
        "messages; the others are only on the disk. Unset: a sixteenth of the memory",
    )
    updates: Updates = Field(
        default="rank",
        description="`rank`: of two statements about the same, such as a home or a deadline, the newer one is ranked "
        "before the older one, which is dated until then; `supersede`: the newer one also supersedes the older one, "
        "with all else that its exchange says; `off`: by relevance alone",
    )
    scoring: ScoringSettings = ScoringSettings()
