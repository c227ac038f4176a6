"""`checkpoints`: copies of each partition's state in object storage."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from schemas.settings.section import Section

#: The URL schemes of the supported stores.
SCHEMES = ("s3", "gs", "az", "file")
#: The time for which a store may be away. During that time only the log has the new events.
STORE_AWAY = timedelta(days=1)


class CheckpointsSettings(Section):
    """Checkpoints are taken if `url` is set. Otherwise only the worker's disk and the log have the state."""

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
        """Seconds between two searches for forgotten data: three of them are in the last third of `erase_within`."""
        return self.erase_within.total_seconds() / 9

    @property
    def log_ms(self) -> int | None:
        """The time in ms for which the log `long-term` must keep events; None without checkpoints.

        The log must reach back to the oldest of the `keep` generations, so that any of them can be used, and further
        by the day for which a store may be away. Without checkpoints, only the log has all events.
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
