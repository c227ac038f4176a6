"""The real broker, once for all tests; every test has topics, a consumer group and a data directory of its own.

It is the embedded one, or with `--broker kafka` (`make test-kafka`) Apache Kafka.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import httpcore2
import httpx
import pytest
from hypothesis import settings as properties

from schemas.settings import SUMMARY_VARIABLES, Settings
from streams.clients.broker import EmbeddedBroker, embedded_broker
from tests.kafka.cluster import Cluster, cluster
from tests.kafka.source import found
from tests.support import shared_servers
from tests.support.examples import USUAL, examples
from tests.support.late_api import late
from tests.support.one_fleet import one_fleet
from tests.support.shared_catalog import migrated
from tests.support.shared_model import of_its_own, shared

#: How long an example takes says something of the machine.
properties.register_profile("any machine", examples(USUAL))
properties.load_profile("any machine")

#: Each is a shard, which takes most of a worker's start: where tests are to be quick, two show what there is to show.
FEW_PARTITIONS = 2
#: By one of these names a module starts workers as processes.
FLEETS = {"worker_process", "living", "Fleet"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=["embedded", "kafka"], default="embedded", help="see tests/kafka")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None):
        shared_servers.begin()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is tried on a broker, most often with a worker, is `wired`, but for what is to be seen every time."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()) and item.get_closest_marker("every_time") is None:
            item.add_marker("wired")


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the settings of the machine that it runs on."""
    monkeypatch.chdir(tmp_path)
    for name in ("SILTSTONE_CONFIG", "OPENAI_API_KEY", "OPENAI_BASE_URL", *SUMMARY_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def _one_certificate_store() -> Iterator[None]:
    """Each client of `openai` or `httpx` would read the machine's certificates anew, longer than most tests take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", functools.cache(httpx.create_ssl_context))
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_model() -> Iterator[None]:
    """All workers that a test process starts embed and sum up in one process; one marked `own_model` has its own."""
    with shared():
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What every start of a worker would do anew is done once, or not before somebody needs it."""
    with migrated(tmp_path_factory.mktemp("catalog")), late():
        yield


@pytest.fixture(autouse=True)
def _own_model(request: pytest.FixtureRequest) -> Iterator[None]:
    with of_its_own() if request.node.get_closest_marker("own_model") else nullcontext():
        yield


@pytest.fixture(autouse=True)
def _one_fleet(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test of a module that starts workers as processes waits for its turn before its own time begins."""
    starts = FLEETS & vars(request.node.module).keys() if hasattr(request.node, "module") else ()
    with one_fleet() if starts else nullcontext():
        yield


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker | Cluster]:
    if request.config.getoption("--broker") == "embedded":
        with embedded_broker() as running:
            yield running
        return
    source = found()
    assert source is not None
    with cluster(source) as brokers:
        yield brokers


@pytest.fixture
def settings(request: pytest.FixtureRequest, broker: EmbeddedBroker | Cluster, tmp_path: Path) -> Settings:
    """Settings of a worker of one's own, on the event clock."""
    name = uuid.uuid4().hex[:8]
    base = Settings.load()
    kafka = broker.settings(base.kafka).model_copy(
        update={"topic_prefix": f"{name}.", "group_id": name, "commit_seconds": 0.2}
    )
    if isinstance(broker, EmbeddedBroker) and not request.node.get_closest_marker("slow"):
        kafka = kafka.model_copy(update={"partitions": FEW_PARTITIONS})
    return base.model_copy(
        update={
            "data_dir": tmp_path / "data",
            "kafka": kafka,
            "http": base.http.model_copy(update={"port": 0}),
            "lifecycle": base.lifecycle.model_copy(update={"clock": "event"}),
        }
    )
