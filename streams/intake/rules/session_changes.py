"""What comes of a session's records."""

from __future__ import annotations

import msgspec

from schemas.exchanges import Emptied, Exchange
from streams.intake.rules.decision import Decision
from streams.intake.rules.summary_triggers import SummaryWanted
from tables.windows.sessions import Session


class SessionChanges(msgspec.Struct, gc=False):
    """What some records made of a session.

    `closed` are exchanges to keep, `gone` the numbers of those that are no more; of those that `left` it stays known
    which messages they had, and of `unknown` ones no longer; `questions` are exchanges whose
    value somebody has to be asked for, now or still; `summaries` are what is to be summed up. `ended_at` is the event
    time (epoch ms) at which the session ended, the first time where it went on and ended again. `decided_by` are the
    offsets of the records that made the `decisions`, in step with them; empty where an answer made it.
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
