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
        """The reason why the broker refuses the worker now; empty if it accepts the worker, or cannot be reached."""

    @property
    def url(self) -> str:
        """The URL at which other workers reach this one."""

    def not_ready(self) -> list[str]:
        """The reasons why the worker is not ready; empty if it is ready."""

    def warnings(self) -> list[str]:
        """Problems that do not stop the worker."""

    def behind(self) -> list[Behind]:
        """The parts of partitions that are still being recovered, with progress and time left."""

    def lag(self) -> dict[str, int]:
        """The number of uncommitted records, by topic."""
