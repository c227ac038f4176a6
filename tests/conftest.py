"""The real broker, once for all tests; every test has topics, a consumer group and a data directory of its own.

It is the embedded one, or with `--broker kafka` (`make test-kafka`) Apache Kafka.
"""

from __future__ import annotations

import functools
import gc
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import httpcore2
import httpx
import obstore
import pytest
import uvloop
from hypothesis import settings as properties
from obstore.store import MemoryStore

from schemas.settings import SUMMARY_VARIABLES, Settings
from streams.kafka.clients.broker import EmbeddedBroker, embedded_broker
from tests.kafka.cluster import Cluster, cluster
from tests.kafka.source import found
from tests.support import shared_servers, soak
from tests.support.examples import ALL_EXAMPLES, USUAL, examples
from tests.support.groups import SOON_MISSED
from tests.support.late_api import late
from tests.support.one_fleet import one_fleet
from tests.support.openai_server import OpenAIServer
from tests.support.routes_forgotten import forget_routes
from tests.support.second_look import NAME, SecondLook
from tests.support.shared_catalog import migrated
from tests.support.shared_model import of_its_own, shared
from tests.support.toy_model import toy
from tests.support.untouched import Running, lasting
from tests.support.untouched import Settings as ProcessSettings

#: How long an example takes says something of the machine.
properties.register_profile("any machine", examples(USUAL))
properties.load_profile("any machine")

#: Each is a shard, which takes most of a worker's start: where tests are to be quick, two show what there is to show.
FEW_PARTITIONS = 2
#: By one of these names a module starts workers as processes.
FLEETS = {"worker_process", "living", "Fleet"}

#: After so many seconds a test that is not among the quick ones hangs; pyproject.toml has the quick ones' limit. Both
#: are far beyond what any of them takes. What a slow test's fixtures wait for does not count: another test's workers.
SLOW_TEST_SECONDS = 600


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", choices=["embedded", "kafka"], default="embedded", help="see tests/kafka")
    parser.addoption("--soak", default=soak.ALL, help="which tests marked soak run: all, none, or a commit's sample")
    parser.addoption("--second-look", action="store_true", help="run what failed once more, alone, at the end")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None):
        shared_servers.begin()
    if config.getoption("--second-look") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondLook(config), NAME)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses a broker as `wired`, give slow tests their time, and choose from those marked `soak`."""
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()) and item.get_closest_marker("every_time") is None:
            item.add_marker("wired")
        if any(item.get_closest_marker(name) for name in ("slow", "wired")) or os.environ.get(ALL_EXAMPLES):
            item.add_marker(pytest.mark.timeout(SLOW_TEST_SECONDS, func_only=True))
    soak.leave_out(config, items)


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """`-q` leaves out the line in which pytest-randomly says how an order is repeated."""
    if config.pluginmanager.hasplugin("randomly"):
        terminalreporter.write_line(f"This order again: --randomly-seed={config.getoption('randomly_seed')}")


def pytest_unconfigure() -> None:
    """What is frozen is never freed, which DuckDB's binding takes for a leak when the process ends."""
    gc.unfreeze()


#: Of a wider scope than a test, and with nothing of their own that comes and goes while tests use them.
STEADY = frozenset(
    {
        "broker",
        "s3",
        "_as_the_module_found_it",
        "_one_backend",
        "_one_certificate_store",
        "_one_model",
        "_quick_starts",
    }
)


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test leaves the process as it found it. The first of its fixtures: all others have ended when this one looks.

    What a module's fixtures have running changes while tests use it: there, the module's end is looked at.
    """
    settings, running = ProcessSettings.now(), None if _shares(request) else Running.now()
    yield
    _fail_by([*settings.put_back(), *(running.ended() if running else ())])


@pytest.fixture(autouse=True, scope="module")
def _as_the_module_found_it() -> Iterator[None]:
    """With all that its tests share, a module ends what it has begun."""
    running = Running.now()
    yield
    _fail_by(running.ended())


@pytest.fixture
def _like_a_command() -> Iterator[None]:
    """The test is a command, which sets its process as it likes: all that is put back."""
    before = ProcessSettings.now()
    yield
    before.put_back()


def _shares(request: pytest.FixtureRequest) -> bool:
    """Whether the test uses a fixture that others use as well, other than those of all tests."""
    found = request.node._fixtureinfo.name2fixturedefs
    loops = {name for name in request.fixturenames if name.endswith("_scoped_runner")}  # pytest-asyncio's
    return bool(loops - {"_function_scoped_runner"}) or any(
        name in found and found[name][-1].scope != "function" and name not in STEADY and found[name][-1].baseid
        for name in request.fixturenames
    )


def _fail_by(left: list[str]) -> None:
    if left:
        pytest.fail(f"left behind: {'; '.join(left)}", pytrace=False)


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the settings of the machine that it runs on."""
    monkeypatch.chdir(tmp_path)
    for name in ("SILTSTONE_CONFIG", "OPENAI_API_KEY", "OPENAI_BASE_URL", *SUMMARY_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    """An OpenAI-compatible service of one's own, which no proxy of the machine hides."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with OpenAIServer() as running:
        yield running


@pytest.fixture(autouse=True, scope="session")
def _one_backend() -> Iterator[None]:
    """Workers embed with `use`, as processes too, unless a test says otherwise: not with what is installed here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SILTSTONE_EMBEDDING__BACKEND", "use")
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_certificate_store() -> Iterator[None]:
    """Each client of `openai` or `httpx` would read the machine's certificates again, longer than most tests take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", functools.cache(httpx.create_ssl_context))
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_model() -> Iterator[None]:
    """All workers that a test process starts sum up in one process, and embed there if a test has the real model."""
    with shared():
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Do once, or only when a test needs it, the work that each start of a worker would repeat."""
    with migrated(tmp_path_factory.mktemp("catalog")), late():
        with lasting():  # as long as the process
            obstore.put(MemoryStore(), "begins its threads", b"")
            uvloop.new_event_loop().close()  # its library has a pipe for signals
        yield


@pytest.fixture(autouse=True)
def _model_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A toy, unless retrieval is what the test is about."""
    if request.node.get_closest_marker("own_model"):
        model: AbstractContextManager[None] = of_its_own()
    elif request.node.get_closest_marker("real_model"):
        model = nullcontext()
    else:
        model = toy()
    with model:
        yield


@pytest.fixture(autouse=True)
def _forgotten_routes() -> Iterator[None]:
    """A worker that is closed is garbage, whatever answered its requests."""
    yield
    forget_routes()


@pytest.fixture(autouse=True)
def _one_fleet(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test of a module that starts workers as processes waits for its turn before its own time begins."""
    with one_fleet() if _starts_fleets(request) else nullcontext():
        yield


def _starts_fleets(request: pytest.FixtureRequest) -> bool:
    return hasattr(request.node, "module") and bool(FLEETS & vars(request.node.module).keys())


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker | Cluster]:
    if request.config.getoption("--broker") == "embedded":
        starting: AbstractContextManager[EmbeddedBroker | Cluster] = embedded_broker()
    else:
        source = found()
        assert source is not None
        starting = cluster(source)
    with ExitStack() as stack:
        with lasting():  # for this module, and those after it
            running = stack.enter_context(starting)
        yield running


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
    if isinstance(broker, Cluster) and _starts_fleets(request):
        kafka = kafka.model_copy(update=SOON_MISSED)  # they are killed, or paused
    return base.model_copy(
        update={
            "data_dir": tmp_path / "data",
            "kafka": kafka,
            "http": base.http.model_copy(update={"port": 0}),
            "lifecycle": base.lifecycle.model_copy(update={"clock": "event"}),
        }
    )
