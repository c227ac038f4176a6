"""Apache Kafka gives ids to idempotent producers, and they are asked for."""

from __future__ import annotations

import pytest

from schemas.settings import Settings
from streams.kafka.clients.producing import started_producer


@pytest.mark.parametrize(("idempotence", "idempotent"), [("auto", True), ("always", True), ("never", False)])
async def test_what_is_sent_again_is_written_once(settings: Settings, idempotence: str, idempotent: bool) -> None:
    producer = await started_producer(settings.kafka.model_copy(update={"idempotence": idempotence}))
    try:
        assert (producer._txn_manager is not None and producer._txn_manager.has_pid()) == idempotent
        assert producer._sender._acks == -1
    finally:
        await producer.stop()
