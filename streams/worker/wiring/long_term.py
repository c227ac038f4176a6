"""Builds the path of events from the topic `long-term` to the shards, and the search over the shards."""

from __future__ import annotations

from collections.abc import Sequence

from streams.forgetting.forgetters import Forgetters, Named, Tombstones
from streams.intake.session_notes import SessionNotes
from streams.memory.agent import Born, LongTermAgent, decoder
from streams.memory.retention import Read
from streams.models.reranking.reranker import Reranker
from streams.models.reworder import ModelReworder
from streams.recall.reworded_profiles import RewordedProfiles
from streams.recall.search import Recall
from streams.recall.windows import SaidLately
from streams.shards.owned import OwnedShards
from streams.worker.wiring.chats import RatingChat
from streams.worker.wiring.context import Context, WorkerContext
from streams.worker.wiring.intake import Intake
from tables.memories.shard import Shard


def long_term_agent(
    context: Context,
    shards: OwnedShards,
    notes: SessionNotes,
    forgetters: Forgetters,
    read: Read,
    born: Born = lambda partition, memories: None,
) -> LongTermAgent:
    """Build the long-term agent. `read` reads records that a shard lacks. `born` is called with new memories."""
    return LongTermAgent(
        shards=shards,
        inbox=context.inbox(decoder(context.settings.memory)),
        metrics=context.metrics,
        clock=context.clock,
        gate=context.gate,
        notes=notes,
        forgetters=forgetters,
        read=read,
        born=born,
        flow=context.flow,
    )


def tombstones(shards: OwnedShards) -> Tombstones:
    """Return a function that asks the shards which memories were forgotten."""

    async def asked(partition: int, memories: Sequence[Named]) -> Sequence[bool]:
        return await shards.call(partition, Shard.forgotten, memories)

    return asked


def reworded_profiles(context: WorkerContext, rating: RatingChat | None) -> RewordedProfiles | None:
    """Build what rewords profiles, by the chat model that rates exchanges; None if it is off, or without a model."""
    if rating is None or not context.settings.recall.profile_by_model:
        return None
    # Most of the parallel requests are left for ratings, because commits wait for ratings.
    return RewordedProfiles(ModelReworder(rating.chat), max(1, rating.settings.concurrency // 4), context.metrics)


def reranker(context: WorkerContext) -> Reranker | None:
    """Build the model that puts the best hits in order; None if it is off."""
    settings = context.settings.reranker()
    return None if settings is None else Reranker(settings, context.metrics)


def recall(context: WorkerContext, shards: OwnedShards, intake: Intake, reranker: Reranker | None) -> Recall:
    """Build the search over memories and windows. It also counts accesses to the memories that it finds."""
    return Recall(
        shards=shards,
        said=SaidLately(intake.windows, context.clock, context.settings.memory.ttl_seconds),
        event_log=context.event_log,
        metrics=context.metrics,
        clock=context.clock,
        partitions=context.partitions,
        lifecycle=context.settings.lifecycle,
        updates=context.settings.memory.updates != "off",
        reranker=reranker,
    )
