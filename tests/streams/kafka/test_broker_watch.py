"""A broker that is away is told when it goes, once a minute, and when it is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from aiokafka.errors import KafkaConnectionError

from schemas.settings import KafkaSettings
from streams.kafka.broker_watch import GONE_SECONDS, Address, BrokerWatch, Connections
from streams.kafka.clients.broker import embedded_broker
from tests.support.making import START

ONE, TWO, THREE = ("k1", 9092), ("k2", 9092), ("k3", 9092)


class Cluster:
    """Brokers that answer with those that the cluster lists, unless they are away or silent."""

    def __init__(self, *listed: Address) -> None:
        self.listed, self.away = list(listed), set[Address]()
        self.closed = False

    async def listed_by(self, address: Address) -> list[Address]:
        if address in self.away:
            raise ConnectionRefusedError("refused")
        return [one for one in self.listed if one not in self.away]  # Kafka lists those that are there

    def close(self) -> None:
        self.closed = True


class Bench:
    def __init__(self, servers: str, cluster: Cluster) -> None:
        self.seconds, self.cluster = 0.0, cluster
        self.watch = BrokerWatch(
            KafkaSettings(bootstrap_servers=servers), cluster, lambda: self.seconds, lambda: START + self.ms
        )

    @property
    def ms(self) -> int:
        return round(self.seconds * 1000)

    async def look(self, times: int = 1, apart: float = 3.0) -> None:
        for _ in range(times):
            await self.watch.look()
            self.seconds += apart


@pytest.fixture(autouse=True)
def _informed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "streams.kafka.broker_watch")


async def test_it_is_told_when_it_goes_once_a_minute_and_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("k1,k2", Cluster(ONE, TWO, THREE))
    await bench.look(2)
    assert caplog.messages == []
    bench.cluster.away = {THREE}
    await bench.look(2)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "WARNING",
            "Kafka broker k3:9092 has not answered since 2026-01-01T00:00:03.000Z: ConnectionRefusedError: refused",
        )
    ]
    await bench.look(20)
    assert [(r.levelname, r.getMessage()) for r in caplog.records][1:] == [
        (
            "WARNING",
            "Kafka broker k3:9092 has still not answered since 2026-01-01T00:00:03.000Z: "
            "ConnectionRefusedError: refused",
        )
    ]
    bench.cluster.away.clear()
    await bench.look(3)
    (over,) = caplog.records[2:]
    assert (over.levelname, over.getMessage()) == ("INFO", "Kafka broker k3:9092 answers again, after 69 s")


async def test_once_is_a_moment_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("k1", Cluster(ONE, TWO))
    await bench.look(2)
    for _ in range(5):
        bench.cluster.away = {TWO}
        await bench.look()
        bench.cluster.away.clear()
        await bench.look()
    assert caplog.messages == []


async def test_one_that_was_away_from_the_beginning_is_told_where_it_is_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench("k1,k2", Cluster(ONE, TWO))
    bench.cluster.away = {TWO}
    await bench.look(3)
    assert [message[:35] for message in caplog.messages] == ["Kafka broker k2:9092 has not answer"]


async def test_another_address_of_a_broker_is_not_watched_beside_its_own(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("balancer:9092", Cluster(ONE, TWO))
    await bench.look(2)
    bench.cluster.away = {("balancer", 9092), TWO}
    await bench.look(3)
    assert [message[:35] for message in caplog.messages] == ["Kafka broker k2:9092 has not answer"]


async def test_one_that_was_taken_out_of_the_cluster_is_told_for_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("k1", Cluster(ONE, TWO))
    await bench.look(2)
    bench.cluster.away, bench.cluster.listed = {TWO}, [ONE]
    await bench.look(2)
    bench.seconds += GONE_SECONDS
    await bench.look()
    caplog.clear()
    await bench.look(3, 100)
    assert caplog.messages == []


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    made = Connections(KafkaSettings())
    yield made
    made.close()


@pytest.mark.slow
async def test_a_broker_is_asked_over_one_connection_until_it_goes(connections: Connections) -> None:
    with embedded_broker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        address = (host, int(port))
        assert await connections.listed_by(address) == [address]
        first = connections._open[address]
        assert await connections.listed_by(address) == [address]
        assert connections._open[address] is first
    with pytest.raises((OSError, KafkaConnectionError)):
        await connections.listed_by(address)


async def test_a_question_that_is_under_way_when_connections_are_closed_fails_as_one(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not with a fault of our own: its connection is no longer among them."""

    class Asked:
        """A connection that answers nothing until it is closed."""

        def __init__(self) -> None:
            self.is_asked, self.is_closed = asyncio.Event(), asyncio.Event()

        def connected(self) -> bool:
            return True

        async def send(self, _request: object) -> object:
            self.is_asked.set()
            await self.is_closed.wait()
            raise KafkaConnectionError

        def close(self) -> None:
            self.is_closed.set()

    connection = Asked()
    monkeypatch.setitem(connections._open, ONE, connection)
    question = asyncio.create_task(connections.listed_by(ONE))
    await connection.is_asked.wait()
    connections.close()
    with pytest.raises(KafkaConnectionError):
        await question
