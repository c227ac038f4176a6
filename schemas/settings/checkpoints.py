"""`checkpoints`: copies of each partition's state in object storage."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from schemas.settings.section import Section

#: The stores that have clients.
SCHEMES = ("s3", "gs", "az", "file")
#: While a store is away, the log must keep what no checkpoint has: for a day.
STORE_AWAY = timedelta(days=1)


class CheckpointsSettings(Section):
    """Off without a `url`: then a partition's state is only on the worker's disk and in the log."""

    url: str = Field(default="", description="where they lie: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///…`")
    seconds: Annotated[float, Field(ge=1)] = Field(
        default=300.0, description="how often one is made of each partition in which something changed"
    )
    keep: Annotated[int, Field(ge=1, le=1_000)] = Field(default=3, description="generations of each partition")
    warm: Annotated[int, Field(ge=0, le=8)] = Field(
        default=0, description="so many other workers have a copy of each partition on their disks"
    )
    erase_within: Annotated[timedelta, Field(ge=timedelta(minutes=10))] = Field(
        default=timedelta(days=7),
        description="after so long no generation has a byte of what was forgotten; seconds, or as `P7D`",
    )
    accept_loss: bool = Field(
        default=False,
        description="take the nearest state though `long-term` has no longer what comes after it: that is lost then",
    )

    @property
    def erase_seconds(self) -> float:
        """The interval between searches for data that must leave within `erase_within`: three in its last third."""
        return self.erase_within.total_seconds() / 9

    @property
    def log_ms(self) -> int | None:
        """How far back the log `long-term` must reach, in milliseconds; None without checkpoints.

        It reaches back to the oldest of `keep` generations, so that any of them can be used, plus the day for which a
        store may be away. Without checkpoints, only the log has everything.
        """
        if not self.url:
            return None
        return int(self.keep * self.seconds * 1000) + STORE_AWAY // timedelta(milliseconds=1)

    @field_validator("url")
    @classmethod
    def _known_store(cls, url: str) -> str:
        scheme, separator, rest = url.partition("://")
        if url and (scheme not in SCHEMES or not separator or not rest.strip("/")):
            raise ValueError("is no s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder")
        if scheme == "file" and not rest.startswith("/"):
            raise ValueError("file:// needs an absolute path, as file:///var/lib/siltstone/checkpoints")
        return url.rstrip("/")
