"""Builds the agent that writes daily summary files for records of `summary-requests`, and makes memories of them."""

from __future__ import annotations

from schemas.settings import SummaryPlan
from streams.shards.owned import OwnedShards
from streams.summaries.agent import SummariesAgent
from streams.summaries.extraction_process import ExtractionProcess
from streams.summaries.requests import decode
from streams.summaries.summariser import ModelSummariser
from streams.worker.wiring.chats import Chats
from streams.worker.wiring.context import WorkerContext
from tables.summaries.pending_summaries import PendingSummaries


def summaries_agent(
    context: WorkerContext, shards: OwnedShards, chats: Chats, plan: SummaryPlan, pending: PendingSummaries
) -> SummariesAgent:
    """Build the agent. `pending` is the table of requests that failed before, and are tried again."""
    return SummariesAgent(
        plan=plan,
        folder=context.settings.data_dir / "memory",
        summariser=None if chats.summaries is None else ModelSummariser(chats.summaries, plan, context.metrics),
        extraction=ExtractionProcess(),
        memory=context.settings.memory,
        pending=pending,
        shards=shards,
        event_log=context.event_log,
        inbox=context.inbox(decode),
        metrics=context.metrics,
        gate=context.gate,
        backlog=context.long_term_backlog,
    )
