"""long-term → shards, and what is recalled of them."""

from __future__ import annotations

from streams.agents.long_term import Born, LongTermAgent, decode
from streams.forgetting import Forgetters
from streams.jobs.retention import Read
from streams.recall import Recall
from streams.said import SaidLately
from streams.session_notes import SessionNotes
from streams.shards import OwnedShards
from streams.wiring.context import Context, WorkerContext
from streams.wiring.intake import Intake


def long_term_agent(
    context: Context,
    shards: OwnedShards,
    notes: SessionNotes,
    forgetters: Forgetters,
    read: Read,
    born: Born = lambda partition, memories: None,
) -> LongTermAgent:
    """The agent; `read` gives it what a shard lacks, and `born` is told of new memories."""
    return LongTermAgent(
        shards=shards,
        inbox=context.inbox(decode),
        metrics=context.metrics,
        clock=context.clock,
        gate=context.gate,
        notes=notes,
        forgetters=forgetters,
        read=read,
        born=born,
    )


def recall(context: WorkerContext, shards: OwnedShards, intake: Intake) -> Recall:
    """Searches, and the accesses that they are."""
    return Recall(
        shards=shards,
        said=SaidLately(intake.windows, context.clock, context.settings.memory.ttl_seconds),
        event_log=context.event_log,
        metrics=context.metrics,
        clock=context.clock,
        partitions=context.partitions,
        lifecycle=context.settings.lifecycle,
    )
