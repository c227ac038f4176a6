"""`partial=allow`: a response from the data recovered so far, which names what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, TypedDict

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from streams.telemetry.recovery_progress import Behind, Doing, Part, Unit

Allowed = Literal["allow", "never"]
MEANING = (
    "`allow`: while the user's partition comes back to its worker, answer from what is there already, and say what "
    "is not. `never`: such a request waits for it, and is answered 503 where that is long"
)


def _allowed(partial: Annotated[Allowed, Query(description=MEANING)] = "never") -> bool:
    return partial == "allow"


#: Whether the answer may be partial.
Partial = Annotated[bool, Depends(_allowed)]


class ShownBehind(BaseModel):
    """A part of a partition that is not recovered yet, and its progress."""

    partition: int
    part: Part = Field(description="what is not back: its memories, or the short-term windows")
    doing: Doing = Field(
        description="`opening`: its files are opened, and what is missing of the index is rebuilt; `restoring`: they "
        "are fetched from a checkpoint; `catching up`: what is new in the log is read"
    )
    done: int
    of_all: int | None = Field(description="null until it is known")
    unit: Unit = Field(description="of `done` and `of_all`")
    eta_seconds: float | None = Field(description="by the rate of the last seconds; null while there is none")

    @classmethod
    def each(cls, behind: Iterable[Behind]) -> list[Self]:
        return [cls.model_validate(one, from_attributes=True) for one in behind]


def _absent(value: Any) -> bool:
    return value is None


class Said(TypedDict):
    """The fields that a partial response adds."""

    partial: bool | None
    behind: list[ShownBehind] | None


class MayBePartial(BaseModel):
    """A response that may be partial. Without `partial=allow` it lacks these fields and is complete."""

    partial: bool | None = Field(
        default=None,
        exclude_if=_absent,
        description="only with `partial=allow`: whether something is not back yet that may belong here",
    )
    behind: list[ShownBehind] | None = Field(
        default=None,
        exclude_if=_absent,
        description="only with `partial=allow`: what is not back yet, and how far it is",
    )


def said(allowed: bool, behind: Iterable[Behind]) -> Said:
    """The fields of `MayBePartial`."""
    if not allowed:
        return Said(partial=None, behind=None)
    shown = ShownBehind.each(behind)
    return Said(partial=bool(shown), behind=shown)
