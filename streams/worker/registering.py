"""Registers the four tables and the three agents that Faust runs."""

from __future__ import annotations

from schemas.topics import EXCHANGES, NOTES, PENDING_SUMMARIES, SESSIONS
from streams.memory.agent import LongTermAgent
from streams.summaries.agent import SummariesAgent
from streams.worker.assignment import Assignment
from streams.worker.wiring.context import WorkerContext
from streams.worker.wiring.intake import Intake
from tables.summaries.pending_summaries import PendingSummaries


def register(
    context: WorkerContext,
    intake: Intake,
    pending: PendingSummaries,
    assignment: Assignment,
    long_term: LongTermAgent,
    summaries: SummariesAgent,
) -> None:
    """Add the tables and the agents to Faust.

    Faust recovers the tables before an agent gets a record. After the recovery it calls
    `assignment.tables_recovered`.
    """
    hot, topics, windows, n = context.hot, context.topics, intake.windows, context.partitions
    hot.table(EXCHANGES, windows.exchanges, partitions=n)
    hot.table(
        SESSIONS,
        windows.sessions,
        partitions=n,
        on_recovered=assignment.tables_recovered,
        records_of=topics.conversations,
    )
    hot.table(NOTES, windows.notes, partitions=n)
    hot.table(PENDING_SUMMARIES, pending, partitions=n)
    in_a_span = context.spans.processing
    taking_in = in_a_span(topics.conversations, intake.short_term.handle)
    hot.agent(topics.conversations, taking_in, name="short-term", readable_at_once=True)
    hot.agent(topics.long_term, in_a_span(topics.long_term, long_term.handle), name="long-term")
    hot.agent(topics.summary_requests, in_a_span(topics.summary_requests, summaries.handle), name="summaries")
