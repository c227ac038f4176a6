"""The health of a worker, as its use cases see it."""

from __future__ import annotations

from typing import Protocol

from streams.telemetry.recovery_progress import Behind


class Health(Protocol):
    """What a worker says about itself."""

    @property
    def recovered(self) -> bool:
        """True if the windows have been recovered."""

    @property
    def refusal(self) -> str:
        """Why the broker refuses the worker now; empty if it does not, or cannot be reached."""

    @property
    def url(self) -> str:
        """The URL at which other workers reach this one."""

    def not_ready(self) -> list[str]:
        """Why the worker is not ready; empty when it is."""

    def warnings(self) -> list[str]:
        """Problems that do not stop the worker."""

    def behind(self) -> list[Behind]:
        """The parts of partitions that are still being recovered, with progress and time left."""

    def lag(self) -> dict[str, int]:
        """The number of uncommitted records, by topic."""
