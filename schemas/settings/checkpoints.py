"""The settings section `checkpoints`: copies of each partition's state in an object store."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, field_validator

from schemas.settings.section import Section

#: The URL schemes of the supported stores.
SCHEMES = ("s3", "gs", "az", "file")
#: The longest expected outage of the object store. During an outage, only the log has the new events.
STORE_AWAY = timedelta(days=1)


class CheckpointsSettings(Section):
    """The settings of checkpoints, which are taken only if `url` is set.

    Without checkpoints, only a worker's disk and the log have a partition's state.
    """

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
        """The seconds between two searches for forgotten data in checkpoints.

        This is a ninth of `erase_within`, so that three searches are in the last third of that time.
        """
        return self.erase_within.total_seconds() / 9

    @property
    def log_ms(self) -> int | None:
        """The time in ms for which the log `long-term` must keep events, or None if no checkpoints are taken.

        The log must reach back to the oldest of the `keep` generations, so that each of them can be restored, plus
        `STORE_AWAY` for an outage of the store. Without checkpoints, the log must keep all events.
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
