"""The interface through which a worker's use cases read its health."""

from __future__ import annotations

from typing import Protocol

from streams.telemetry.recovery_progress import Behind


class Health(Protocol):
    """The health of a worker."""

    @property
    def recovered(self) -> bool:
        """True if the windows have been recovered."""

    @property
    def refusal(self) -> str:
        """The reason why the broker refuses the worker now, or "" if the broker accepts it or cannot be reached."""

    @property
    def url(self) -> str:
        """The URL at which other workers reach this worker."""

    def not_ready(self) -> list[str]:
        """Return the reasons why the worker is not ready. The list is empty if it is ready."""

    def warnings(self) -> list[str]:
        """Return warnings about problems that do not stop the worker."""

    def behind(self) -> list[Behind]:
        """Return the parts of partitions that are still being recovered, with progress and time left."""

    def lag(self) -> dict[str, int]:
        """Return the number of uncommitted records, by topic."""
