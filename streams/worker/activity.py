"""What a worker shows of itself while it works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams.intake.idle_tracker import QuietSession
from streams.telemetry.activity.message_flow import Flow
from streams.telemetry.activity.readings import Readings


@dataclass(frozen=True, slots=True)
class Activity:
    """`newest_sessions` gives at most so many of those that were spoken in last, the newest first."""

    flow: Flow
    readings: Readings
    newest_sessions: Callable[[int], Sequence[QuietSession]]
