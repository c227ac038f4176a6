"""What ingest and replay send: by all in-sync replicas, and once where the broker can. The embedded one cannot."""

from __future__ import annotations

import pytest

from schemas.errors import BrokerUnavailable, SiltstoneError
from schemas.settings import Settings
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from streams.kafka.clients.producing import started_producer
from streams.runtime.ports import reserved_port


async def test_a_broker_that_gives_no_ids_is_produced_to_without(settings: Settings) -> None:
    await ensure_topics(settings.kafka)
    async with producing(settings.kafka) as producer:
        await producer.send(b"u", b"{}")
    assert sum(producer.ends.values()) == 1


async def test_where_it_must_be_once_a_refusal_is_one_line_that_says_what_to_do(settings: Settings) -> None:
    kafka = settings.kafka.model_copy(update={"idempotence": "always"})
    with pytest.raises(SiltstoneError, match=r"UnknownError.*set kafka\.idempotence to auto"):
        await started_producer(kafka)


@pytest.mark.parametrize("idempotence", ["auto", "always", "never"])
async def test_a_broker_that_is_away_is_no_broker_that_refuses(settings: Settings, idempotence: str) -> None:
    with reserved_port() as port:
        update = {"idempotence": idempotence, "bootstrap_servers": f"127.0.0.1:{port}"}
        with pytest.raises(BrokerUnavailable):
            await started_producer(settings.kafka.model_copy(update=update))
