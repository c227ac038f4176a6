"""The route of a user's profile: who this is."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel, Field

from schemas.ids import Id
from schemas.times import iso
from streams.doors.http.consistency import Consistency
from streams.doors.http.partial import MayBePartial, Partial, said
from streams.doors.http.reference import GivenDate, GivenZone, reference_of
from streams.language.personal_fact import Part
from streams.recall.profile import Profile
from streams.service import MemoryService


class ShownLine(BaseModel):
    text: str = Field(description="a whole sentence, in the user's words, unless the section is `reworded`")
    memory_ids: list[uuid.UUID] = Field(description="the memories that have the sentence, or what it rewords")
    said_at: str = Field(description="when it was said last")
    due: str | None = Field(description="of a task, the end of its time; null for all others")


class ShownSection(BaseModel):
    part: Part = Field(
        description="`pinned`: pinned memories; `about`: name, home, job, school, phone, health …: the newest "
        "statement of each; `people`: people and pets; `preferences`: likes and dislikes; `tasks`: appointments, "
        "deadlines and reminders that are not past"
    )
    lines: list[ShownLine]
    reworded: bool = Field(
        description="whether a model has worded the lines, with the facts of the memories; false: the user's words"
    )


class ShownProfile(BaseModel):
    sections: list[ShownSection] = Field(description="by worth; parts without lines are left out")
    text: str = Field(description="all sections as one text, ready for a prompt")
    tokens: int = Field(description="the estimated number of tokens of `text`")
    left_out: int = Field(description="number of lines for which there was no room")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        sections = [
            ShownSection(
                part=section.part,
                lines=[
                    ShownLine(
                        text=line.text,
                        memory_ids=list(line.memory_ids),
                        said_at=iso(line.said_at),
                        due=None if line.due is None else iso(line.due),
                    )
                    for line in section.lines
                ],
                reworded=section.reworded,
            )
            for section in profile.sections
        ]
        return cls(sections=sections, text=profile.text, tokens=profile.tokens, left_out=profile.left_out)


class ProfileResponse(MayBePartial, ShownProfile):
    user_id: str
    reference_date: date | None = Field(description="the user's day on which tasks are not past; null without dates")


def profile_routes(service: MemoryService) -> APIRouter:
    """Return the route `/v1/profile`."""
    api = APIRouter(tags=["memories"])

    @api.get("/v1/profile", dependencies=Consistency(service).reads)
    async def profile(
        user_id: Id, allowed: Partial, reference_date: GivenDate = None, timezone: GivenZone = None
    ) -> ProfileResponse:
        """Who the user is, in at most 300 tokens: sentences of the user, with the ids and dates of their memories.

        No model chooses it: rules for English and Chinese choose sentences from the user's active and cold memories.
        Of several statements about the same, the newest one is shown. Of memories in other languages, only pinned
        ones are. A forgotten memory is in no profile. Showing it does not count as an access.

        With the setting `recall.profile_by_model`, a model rewords the sections (`reworded`). A section whose
        rewording fails a check against its sentences keeps the user's words, and so do all without an answer of the
        model within 5 seconds.
        """
        reference = reference_of(service, reference_date, timezone)
        found, behind = await service.profile(user_id, reference, allowed)
        return ProfileResponse(
            user_id=user_id,
            reference_date=reference.shown_day,
            **dict(ShownProfile.of(found)),
            **said(allowed, behind),
        )

    return api
