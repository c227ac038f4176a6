"""A worker's current activity, for the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streams.intake.idle_tracker import QuietSession
from streams.telemetry.activity.message_flow import Flow
from streams.telemetry.activity.readings import Readings


@dataclass(frozen=True, slots=True)
class Activity:
    """A worker's activity. `newest_sessions(n)` returns the `n` sessions with the newest messages, newest first."""

    flow: Flow
    readings: Readings
    newest_sessions: Callable[[int], Sequence[QuietSession]]
