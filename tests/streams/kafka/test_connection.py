"""What the worker's consumer tells the broker of its patience."""

from __future__ import annotations

from typing import Any, cast

import pytest

from schemas.settings import KafkaSettings, Settings
from streams.kafka.clients.broker import EMBEDDED_PARTITIONS, EmbeddedBroker, admin_client, ensure_topics
from streams.kafka.faust.threads import FETCH_WAIT_MS
from tests.streams.kafka.worker import connected, on_one_partition


def test_the_embedded_brokers_time_outs_are_short() -> None:
    """It answers who joins a group after half of the session time-out: with Faust's minute, after 30 s."""
    broker = EmbeddedBroker("127.0.0.1:9092", cast(Any, None))  # its process is not asked
    kafka = broker.settings(KafkaSettings(rebalance_timeout_seconds=60, session_timeout_seconds=60))
    assert kafka.rebalance_timeout_seconds <= 2
    assert kafka.session_timeout_seconds <= 6
    assert kafka.heartbeat_seconds <= kafka.session_timeout_seconds / 3


async def test_the_embedded_broker_has_the_partitions_that_are_set(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `dev` has it; without, few are enough for one worker."""
    assert broker.settings(Settings.load().kafka).partitions == EMBEDDED_PARTITIONS
    monkeypatch.setenv("SILTSTONE_KAFKA__PARTITIONS", "3")
    monkeypatch.setenv("SILTSTONE_KAFKA__TOPIC_PREFIX", "three.")
    kafka = broker.settings(Settings.load().kafka)
    await ensure_topics(kafka)
    async with admin_client(kafka) as admin:
        found = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
    assert {count for name, count in found.items() if name in ("three.conversations", "three.long-term")} == {3}


async def test_the_time_outs_of_the_settings_reach_the_group(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(
        update={"rebalance_timeout_seconds": 1.25, "session_timeout_seconds": 4.5, "heartbeat_seconds": 0.75}
    )
    async with connected(on_one_partition(settings.model_copy(update={"kafka": kafka}))) as consumer:
        coordinator = consumer._thread._ensure_consumer()._coordinator
        assert coordinator._rebalance_timeout_ms == 1250
        assert coordinator._session_timeout_ms == 4500
        assert coordinator._heartbeat_interval_ms == 750


async def test_a_fetch_that_finds_nothing_is_not_held_back(settings: Settings) -> None:
    """A node answers one fetch after the other: where one is held back, partitions that have records wait."""
    async with connected(on_one_partition(settings)) as consumer:
        assert consumer._thread._ensure_consumer()._fetcher._fetch_max_wait_ms == FETCH_WAIT_MS <= 100
