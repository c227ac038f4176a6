"""The parameter `partial=allow`, for responses from the data that is already recovered.

Such a response names the parts that are missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self, TypedDict

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from schemas.fields import absent
from streams.telemetry.recovery_progress import Behind, Doing, Part, Unit

Allowed = Literal["allow", "never"]
MEANING = (
    "`allow`: while the user's partition is being recovered, respond from the data that is there, and name what is "
    "missing. `never`: wait for the recovery, and respond 503 if that takes too long"
)


def _allowed(partial: Annotated[Allowed, Query(description=MEANING)] = "never") -> bool:
    return partial == "allow"


#: True if the client sent `partial=allow`, so that the response may be partial.
Partial = Annotated[bool, Depends(_allowed)]


class ShownBehind(BaseModel):
    """A part of a partition that is not recovered yet, and its progress."""

    partition: int
    part: Part = Field(description="what is being recovered: the partition's memories, or its short-term windows")
    doing: Doing = Field(
        description="`opening`: the files are opened, and missing parts of the index are rebuilt; `restoring`: the "
        "files are fetched from a checkpoint; `catching up`: new records of the log are read"
    )
    done: int
    of_all: int | None = Field(description="total; null until it is known")
    unit: Unit = Field(description="of `done` and `of_all`")
    eta_seconds: float | None = Field(
        description="time left at the rate of the last seconds; null while there is no rate"
    )

    @classmethod
    def each(cls, behind: Iterable[Behind]) -> list[Self]:
        return [cls.model_validate(one, from_attributes=True) for one in behind]


class Said(TypedDict):
    """The fields that `partial=allow` adds to a response."""

    partial: bool | None
    behind: list[ShownBehind] | None


class MayBePartial(BaseModel):
    """A response that may be partial. Without `partial=allow` it lacks these fields and is complete."""

    partial: bool | None = Field(
        default=None,
        exclude_if=absent,
        description="only with `partial=allow`: whether data that may belong here is still being recovered",
    )
    behind: list[ShownBehind] | None = Field(
        default=None,
        exclude_if=absent,
        description="only with `partial=allow`: what is still being recovered, with its progress",
    )


def said(allowed: bool, behind: Iterable[Behind]) -> Said:
    """Return the values of the fields of `MayBePartial`.

    If the client does not allow a partial response, both values are None, and the response does not have these
    fields.
    """
    if not allowed:
        return Said(partial=None, behind=None)
    shown = ShownBehind.each(behind)
    return Said(partial=bool(shown), behind=shown)
