"""The health of a worker: whether it is ready, and the reasons if it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streams.kafka.broker_link import BrokerLink
from streams.kafka.faust.hot_path import HotPath
from streams.memory.agent import LongTermAgent
from streams.shards.owned import OwnedShards
from streams.telemetry.recovery_progress import Behind
from streams.worker.assignment import Assignment
from streams.worker.wiring.checkpoints import Checkpointing


class WorkerHealth:
    """The implementation of `Health` for a worker.

    `url` returns the URL at which other workers reach this worker. The reasons do not contain the path `data_dir`.
    """

    def __init__(
        self,
        hot: HotPath,
        broker: BrokerLink,
        assignment: Assignment,
        shards: OwnedShards,
        long_term: LongTermAgent,
        checkpointing: Checkpointing,
        url: Callable[[], str],
        data_dir: Path,
    ) -> None:
        self._hot, self._broker, self._assignment = hot, broker, assignment
        self._shards, self._long_term, self._checkpointing, self._url = shards, long_term, checkpointing, url
        self._data_dir = str(data_dir)

    @property
    def ready(self) -> bool:
        """True if `not_ready` has no reason: all state is recovered, and processed records can be committed."""
        return not self.not_ready()

    def not_ready(self) -> list[str]:
        """Return the reasons why the worker is not ready. The list is empty if it is ready."""
        reasons = []
        if self._hot.halted is not None:
            why = str(self._hot.halted).replace(self._data_dir, "data_dir")
            reasons.append(f"the worker has stopped: {why}")
        reasons += self._broker.amiss()
        if not self.recovered:
            reasons.append("the short-term tables are being recovered")
        if not self._shards.models.current.ready:
            reasons.append("the embedding model is being loaded")
        elif not self._shards.ready:
            reasons.append("the shards are being opened")
            reasons += self._checkpointing.waiting()
        elif self._long_term.catching_up:
            reasons.append(
                f"shards are being compared with the log, or are catching up: {self._long_term.catching_up}"
            )
        return reasons

    def warnings(self) -> list[str]:
        """Return warnings about problems that do not stop the worker."""
        return self._checkpointing.warnings()

    def behind(self) -> list[Behind]:
        """Return the parts of partitions that are still being recovered, with progress and time left."""
        return self._shards.coming_back.all()

    @property
    def recovered(self) -> bool:
        """True if the windows have been recovered."""
        return self._assignment.is_recovered()

    @property
    def refusal(self) -> str:
        """The reason why the broker refuses the worker now, or "" if the broker accepts it or cannot be reached."""
        return self._broker.refusal

    @property
    def url(self) -> str:
        """The URL at which other workers reach this worker."""
        return self._url()

    def lag(self) -> dict[str, int]:
        """Return the number of uncommitted records, by topic."""
        return self._hot.lag()
