"""Changes that records make to a session, and what follows from them."""

from __future__ import annotations

import msgspec

from schemas.exchanges import Emptied, Exchange
from schemas.sessions import Session
from streams.intake.rules.decision import Decision
from streams.intake.rules.summary_triggers import SummaryWanted


class SessionChanges(msgspec.Struct, gc=False):
    """The changes that some records made to a session.

    `closed` are exchanges to keep, `gone` the numbers of those that no longer exist. The messages of exchanges in
    `left` stay known, those of exchanges in `unknown` do not. `questions` are exchanges whose rating has to be
    requested from a model, or is pending; `summaries` are the summaries to request. `ended_at` is the event time
    (epoch ms) at which the session ended; of several ends, the first one. `decided_by` are the offsets of the records
    that made the `decisions`, in the same order; empty if a model's answer made the decision.
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
