"""The settings section `recall`: what answers to questions show."""

from __future__ import annotations

from pydantic import Field

from schemas.settings.section import Section


class RecallSettings(Section):
    """The settings of searches and contexts."""

    dates: bool = Field(
        default=True,
        description="say in prompts what day it is, and of each memory when it was said (days of "
        "`agents.summary.timezone`)",
    )
    profile_by_model: bool = Field(
        default=False,
        description="a configured model rewords users' profiles; what fails a check keeps the user's words",
    )
