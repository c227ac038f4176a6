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

    url: str = Field(
        default="", description="URL of the store: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///…`"
    )
    seconds: Annotated[float, Field(ge=1)] = Field(
        default=300.0, description="interval between checkpoints of a partition in which something changed"
    )
    keep: Annotated[int, Field(ge=1, le=1_000)] = Field(default=3, description="generations kept of each partition")
    warm: Annotated[int, Field(ge=0, le=8)] = Field(
        default=0, description="number of other workers that keep a copy of each partition on their disks"
    )
    erase_within: Annotated[timedelta, Field(ge=timedelta(minutes=10))] = Field(
        default=timedelta(days=7),
        description="time after which no generation has a byte of forgotten data; in seconds, or as `P7D`",
    )
    accept_loss: bool = Field(
        default=False,
        description="restore the nearest state even if `long-term` no longer has later records, which are then lost",
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
            raise ValueError(
                "must be s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"
            )
        if scheme == "file" and not rest.startswith("/"):
            raise ValueError("file:// needs an absolute path, such as file:///var/lib/siltstone/checkpoints")
        return url.rstrip("/")
