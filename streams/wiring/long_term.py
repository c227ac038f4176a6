"""long-term → shards, and what is recalled of them."""

from __future__ import annotations

from collections.abc import Sequence

from streams.agents.long_term import LongTermAgent, decoder
from streams.agents.summaries import SummariesAgent
from streams.forgetting import Forgetters, Named
from streams.recall import Recall
from streams.shards import OwnedShards
from streams.wiring.context import WorkerContext
from streams.wiring.intake import Intake
from streams.wiring.jobs import Jobs
from tables.shard.shard import Shard


def long_term_agent(
    context: WorkerContext, shards: OwnedShards, intake: Intake, summaries: SummariesAgent, jobs: Jobs
) -> LongTermAgent:
    """The agent; whoever keeps something of a user is told what is forgotten."""

    async def tombstones(partition: int, memories: Sequence[Named]) -> Sequence[bool]:
        return await shards.call(partition, Shard.forgotten, memories)

    return LongTermAgent(
        shards=shards,
        inbox=context.inbox(decoder(context.settings.memory)),
        metrics=context.metrics,
        clock=context.clock,
        gate=context.gate,
        notes=intake.notes,
        forgetters=Forgetters(intake.short_term, summaries, jobs.forgot, tombstones),
        read=context.read_long_term,
        born=jobs.born,
    )


def recall(context: WorkerContext, shards: OwnedShards) -> Recall:
    """Searches, and the accesses that they are."""
    return Recall(
        shards=shards,
        event_log=context.event_log,
        metrics=context.metrics,
        clock=context.clock,
        partitions=context.partitions,
        lifecycle=context.settings.lifecycle,
    )
