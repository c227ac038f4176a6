"""Changes that records make to a session, and their consequences: decisions, ratings and summaries to request."""

from __future__ import annotations

import msgspec

from schemas.exchanges import Emptied, Exchange
from schemas.sessions import Session
from streams.intake.rules.decision import Decision
from streams.intake.rules.summary_triggers import SummaryWanted


class SessionChanges(msgspec.Struct, gc=False):
    """The changes that some records made to a session.

    `closed` are new exchanges whose rows must be written. `gone` are the numbers of exchanges whose rows must be
    deleted. `left` has the end and the message ids of exchanges that left the window, by number; these ids stay
    known. `unknown` are the numbers of exchanges whose message ids are now dropped.

    `decided_by` are the offsets of the records that caused the `decisions`, in the same order; empty if a model's
    answer caused the decision. `questions` are the exchanges whose rating by a model is needed, or is already
    requested. `summaries` are the summaries to request. `ended_at` is the event time (epoch ms) at which the session
    ended. If it ended several times, this is the first end.

    The other fields count messages and exchanges for the metrics.
    """

    session: Session
    closed: list[Exchange] = []
    gone: list[int] = []
    left: dict[int, Emptied] = {}
    unknown: list[int] = []
    decisions: list[Decision] = []
    decided_by: list[int] = []
    questions: list[Exchange] = []
    summaries: list[SummaryWanted] = []
    ended_at: int | None = None
    messages: int = 0
    exchanges: int = 0
    duplicates: int = 0
    late: int = 0
    reordered: int = 0
    replayed: int = 0
