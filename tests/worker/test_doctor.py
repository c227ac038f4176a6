"""`siltstone doctor`: each check beside what it is about, sound and broken; and what it never tells."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from pydantic import SecretStr

from schemas.settings import AccessSettings, EmbeddingSettings, KafkaSettings, Settings
from streams.doctor import Finding, Outcome, ReadSettings, examine
from streams.doctor.broker import check_broker
from streams.doctor.data import LITTLE_BYTES, NONE_BYTES, Shards, check_folder, shard_findings
from streams.doctor.embedding import fitting, load, untold
from streams.doctor.http import check_http
from streams.doctor.mcp import check_mcp
from streams.doctor.memory import check_memory
from streams.doctor.rating import check_rating
from streams.doctor.topics import contract_findings, topic_findings
from streams.doors.cli import running
from streams.kafka.clients.broker import EmbeddedBroker, client_options, ensure_topics
from streams.kafka.topics.contract import Compared, Unfit, partitions_disagree
from streams.models.embedding import calibration
from streams.models.embedding.embedding import Model
from tables.database.inspection import Inspection
from tables.memories.catalog.catalog import Catalog
from tests.support.anybody import anybody
from tests.support.openai_server import DIMENSIONS, Answer, OpenAIServer
from tests.support.ports import free_port
from tests.support.quick_commands import siltstone
from tests.support.waiting import PATIENCE

OK, WARNING, FAILED = Outcome.OK, Outcome.WARNING, Outcome.FAILED
KEY = "sk-secret-0123456789"
DEFAULT = Settings.load()


def outcomes(findings: list[Finding]) -> list[tuple[str, Outcome]]:
    for finding in findings:
        assert "\n" not in finding.what + finding.todo
        assert bool(finding.todo) == (finding.outcome is not OK)
    return [(finding.check, finding.outcome) for finding in findings]


def write(text: str) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8")


# Settings


def test_sound_settings_say_where_they_come_from() -> None:
    assert "no config.yaml" in ReadSettings.now().findings()[0].what
    write("kafka: {partitions: 3}")
    (found,) = ReadSettings.now().findings()
    assert (found.outcome, found.what) == (OK, "config.yaml and the environment")


def test_each_mistake_is_a_finding_and_the_rest_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    write("memory: {promote_threshold: many, scoring: {policy: best}}\nkafka: {partition: 3}\nhttp: {port: 9000}\n")
    monkeypatch.setenv("SILTSTONE_LIFECYCLE__CLOCK", "sand")
    reading = ReadSettings.now()
    assert reading.wrong == {"memory", "kafka", "lifecycle"}
    assert reading.settings is not None
    assert reading.settings.http.port == 9000
    told = {finding.what.split(":")[0]: finding for finding in reading.findings()}
    assert set(told) == {"memory.promote_threshold", "memory.scoring.policy", "kafka.partition", "lifecycle.clock"}
    assert "'weighted', 'llm' or 'all'" in told["memory.scoring.policy"].what
    assert told["kafka.partition"].todo == "there is no such setting; did you mean kafka.partitions?"
    assert set(outcomes(reading.findings())) == {("settings", FAILED)}


@pytest.mark.parametrize(
    ("key", "todo"),
    [
        ("kafak: {partitions: 3}", "; did you mean kafka?"),
        ("colour: blue", "known settings: data_dir, memory_limit, kafka, memory,"),
        ("memory: {colour: blue}", "known settings: capacity, ttl_seconds,"),
        ("memory: {scoring: {polcy: all}}", "did you mean memory.scoring.policy?"),
    ],
)
def test_an_unknown_key_is_told_which_ones_are_known(key: str, todo: str) -> None:
    write(key)
    (finding,) = ReadSettings.now().findings()
    assert todo in finding.todo
    assert ReadSettings.now().settings is not None


def test_a_variable_that_sets_nothing_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILTSTONE_KAFKA_PARTITIONS", "3")
    monkeypatch.setenv("SILTSTONE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SILTSTONE_TOKEN", "slt_0011223344556677_no")
    sound, finding = ReadSettings.now().findings()
    assert outcomes([sound, finding]) == [("settings", OK), ("settings", WARNING)]
    assert finding.todo == "write SILTSTONE_KAFKA__PARTITIONS"


def test_what_the_summaries_cannot_use_is_a_warning_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the values: one of them is a key in the wrong line."""
    write(f"llm: {{providers: {{deepseek: {{api_key: {KEY}}}}}}}\nagents: {{defaults: {{model: deepseek/v3}}}}")
    monkeypatch.setenv("NANOBOT_SUMMARY_MODEL", KEY)
    monkeypatch.setenv("NANOBOT_SUMMARY_INTERVAL", "1000")
    found = ReadSettings.now().findings()
    assert outcomes(found) == [("settings", OK), *[("settings", WARNING)] * 3]
    assert [finding.what.split(":")[0] for finding in found[1:]] == [
        *("NANOBOT_SUMMARY_MODEL", "llm.providers.deepseek.base_url", "NANOBOT_SUMMARY_INTERVAL")
    ]
    assert not any(KEY in finding.what + finding.todo for finding in found)


def test_profiles_by_a_model_without_a_key_are_a_warning() -> None:
    write("recall: {profile_by_model: true}")
    _, finding = ReadSettings.now().findings()
    assert (finding.outcome, finding.what.split()[0]) == (WARNING, "recall.profile_by_model")
    assert finding.todo.startswith("set llm.api_key")
    write("recall: {profile_by_model: true}\nmemory: {scoring: {api_key: x}}")
    assert outcomes(ReadSettings.now().findings()) == [("settings", OK)]
    write("recall: {profile_by_model: true}\nmemory: {scoring: {api_key: x, polcy: all}}")
    assert outcomes(ReadSettings.now().findings()) == [("settings", FAILED)], "the key may be in the wrong section"


def test_a_mistake_about_a_provider_comes_before_what_follows_from_it() -> None:
    write("llm: {providers: {deepseek: {api_kye: x}}}\nagents: {summary: {model: deepseek/v3}}")
    (finding,) = ReadSettings.now().findings()
    assert (finding.outcome, finding.todo) == (
        FAILED,
        "there is no such setting; did you mean llm.providers.deepseek.api_key?",
    )


async def test_settings_that_cannot_be_read_leave_nothing_to_check() -> None:
    write("kafka: [")
    found = await examine(ReadSettings.now())
    assert outcomes(found)[0] == ("settings", FAILED)
    assert {outcome for _, outcome in outcomes(found)[1:]} == {WARNING}
    assert {check for check, _ in outcomes(found)} == {
        "settings",
        "broker",
        "rights",
        "data",
        "embedding",
        "judge",
        "rerank",
        "checkpoints",
        "memory",
        "access",
        "http",
        "mcp",
    }


# Broker


async def test_a_new_broker_lacks_topics_and_gets_none(settings: Settings) -> None:
    """They are the worker's to make: to look for them must not create them."""
    admin = AIOKafkaAdminClient(**client_options(settings.kafka))
    await admin.start()
    before = set(await admin.list_topics())
    found = await check_broker(settings)
    assert outcomes(found) == [("broker", OK), ("topics", OK)]
    assert found[1].what.startswith("0 of 5 topics exist")
    assert set(await admin.list_topics()) == before
    await admin.close()


async def test_topics_are_compared_with_the_settings(settings: Settings) -> None:
    await ensure_topics(settings.kafka)
    assert (await check_broker(settings))[1].what == "all 5 topics exist, with 2 partitions where required"
    kafka = settings.kafka.model_copy(update={"partitions": 7})
    found = await check_broker(settings.model_copy(update={"kafka": kafka}))
    assert outcomes(found) == [("broker", OK), ("topics", FAILED)]
    prefix = settings.kafka.topic_prefix
    assert found[1].what.startswith(
        f"kafka.partitions is 7, and {prefix}conversations has 2, {prefix}long-term has 2"
    )
    assert f": 2 is the right number, because {prefix}long-term has that many" in found[1].what
    assert found[1].todo == "set kafka.partitions to 2"


ALL = {
    f"siltstone.{name}": 8
    for name in ("conversations", "long-term", "transitions", "summary-requests", "dead-letters")
}


@pytest.mark.parametrize(
    ("counts", "changes", "outcome", "what"),
    [
        (ALL, {}, OK, "all 5"),
        (ALL | {"siltstone.transitions": 3}, {}, OK, "all 5"),
        (ALL | {"siltstone.summary-requests": 3}, {}, FAILED, "siltstone.summary-requests has 3: 8 is the right"),
        (ALL | {"siltstone-sessions-changelog": 4}, {}, FAILED, "siltstone-sessions-changelog has 4: 8 is the right"),
        (ALL | {"another-sessions-changelog": 4}, {}, OK, "all 5"),
        ({}, {"create_topics": False}, FAILED, "missing topics: siltstone.conversations, siltstone.long-term,"),
        ({}, {"replication": 3}, FAILED, "kafka.replication is 3"),
        (ALL, {"replication": 3}, OK, "all 5"),
    ],
)
async def test_topics_that_do_not_fit(
    counts: dict[str, int], changes: dict[str, object], outcome: Outcome, what: str
) -> None:
    kafka = KafkaSettings.model_validate(changes)
    disagree = await partitions_disagree(kafka, counts, None)
    (finding,) = topic_findings(kafka, counts, brokers=1, disagree=disagree)
    assert (finding.outcome, what in finding.what) == (outcome, True)


def test_a_topic_that_loses_memory_fails_and_another_difference_is_a_warning() -> None:
    """Each with the command that mends it; of what the broker does not tell, it is said that it is not compared."""
    found = contract_findings(
        Compared(
            [
                Unfit("t", "retention.ms is 60000: shards are rebuilt from it", "kafka-configs.sh 1", True),
                Unfit("c", "segment.ms is 604800000: each start reads more", "kafka-configs.sh 2", False),
            ],
            ["d"],
        )
    )
    assert outcomes(found) == [("topics", FAILED), ("topics", WARNING), ("topics", WARNING)]
    assert [finding.todo for finding in found[:2]] == ["kafka-configs.sh 1", "kafka-configs.sh 2"]
    assert found[2].what == "the broker does not show the settings of d, so they are not compared"


@pytest.mark.parametrize(
    ("servers", "what"),
    [("127.0.0.1:1", "no Kafka broker answers at 127.0.0.1:1"), ("nonsense:port", "not an address")],
)
async def test_a_dead_port_is_no_broker(servers: str, what: str) -> None:
    kafka = DEFAULT.kafka.model_copy(update={"bootstrap_servers": servers})
    (finding,) = await check_broker(DEFAULT.model_copy(update={"kafka": kafka}))
    assert (finding.outcome, what in finding.what) == (FAILED, True)


# Data directory


def test_a_data_directory_to_come_is_fine_where_it_can_be_made(tmp_path: Path) -> None:
    (finding,) = check_folder(tmp_path / "a" / "b")
    assert (finding.outcome, "created at the first start" in finding.what) == (OK, True)
    assert not (tmp_path / "a").exists()


def test_nothing_stays_of_the_test_whether_it_is_writable(tmp_path: Path) -> None:
    (finding,) = check_folder(tmp_path)
    assert (finding.outcome, list(tmp_path.iterdir())) == (OK, [])


@pytest.mark.parametrize(
    ("free", "outcome"),
    [(LITTLE_BYTES, OK), (LITTLE_BYTES - 1, WARNING), (NONE_BYTES, WARNING), (NONE_BYTES - 1, FAILED)],
)
def test_little_room_is_a_warning_and_none_a_failure(tmp_path: Path, free: int, outcome: Outcome) -> None:
    assert outcomes(check_folder(tmp_path, free=lambda _: free)) == [("data", outcome)]


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        (finding,) = check_folder(path)
        assert (finding.outcome, "cannot be written to" in finding.what) == (FAILED, True)


@pytest.mark.parametrize("below", [".", "below"])
def test_a_read_only_data_directory_fails(below: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with anybody():
            (finding,) = check_folder(Path(folder) / below)
        Path(folder).chmod(0o755)
    assert (finding.outcome, "denied" in finding.what or "no permission" in finding.what) == (FAILED, True)
    assert "data_dir" in finding.todo


def shard(data_dir: Path, partition: int, model: str = "use", dimension: int = 8) -> Path:
    path = data_dir / "shards" / str(partition) / "catalog.duckdb"
    catalog = Catalog(path, partition)
    catalog.bind_model(model, dimension)
    catalog.close()
    return path


def test_shards_tell_their_models(tmp_path: Path) -> None:
    for partition in (0, 3):
        shard(tmp_path, partition)
    (tmp_path / "shards" / "lost+found").mkdir()
    shards = Shards.of(tmp_path)
    assert shards.read == {0: Inspection("use", 8), 3: Inspection("use", 8)}
    assert [f.what for f in shard_findings(shards, 8)] == ["2 can be opened"]
    assert [f.what for f in shard_findings(Shards(), 8)] == ["none yet"]


def test_a_shard_that_no_partition_leads_to_is_a_warning(tmp_path: Path) -> None:
    shard(tmp_path, 3)
    (finding,) = shard_findings(Shards.of(tmp_path), 2)
    assert (finding.outcome, finding.what.startswith("shard 3: no such partition")) == (WARNING, True)


HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def test_a_shard_of_another_process_is_a_warning_that_names_it(tmp_path: Path) -> None:
    path = shard(tmp_path, 0)
    shard(tmp_path, 1)
    holding = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        shards = Shards.of(tmp_path)
        holder.communicate()
    assert set(shards.read) == {1}
    (finding,) = shard_findings(shards, 8)
    assert (finding.outcome, finding.what) == (WARNING, f"shard 0: process {holder.pid} has it open")


def test_a_shard_that_cannot_be_used_fails(tmp_path: Path) -> None:
    """A file that is none of DuckDB's, and one of a Siltstone to come."""
    shard(tmp_path, 0).write_bytes(b"nonsense" * 1000)
    with duckdb.connect(str(shard(tmp_path, 1))) as db:
        db.execute("INSERT INTO migrations VALUES (999, 'm999_later')")
    found = shard_findings(Shards.of(tmp_path), 8)
    assert outcomes(found) == [("shards", FAILED), ("shards", FAILED)]
    assert "not a valid DuckDB" in found[0].what
    assert "newer Siltstone" in found[1].what


# Embedding


@pytest.fixture
def _embedding_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable says which embedding it is."""
    monkeypatch.delenv("SILTSTONE_EMBEDDING__BACKEND")


async def test_the_model_is_loaded_for_real() -> None:
    assert await load(EmbeddingSettings(backend="use")) == Model("use-multilingual-v3", 512)


async def test_a_model_that_is_not_there_is_a_failure() -> None:
    """Without its package, and with it: there is no model of that name."""
    found = await load(EmbeddingSettings(backend="sentence-transformers", model="/nowhere"))
    assert isinstance(found, Finding)
    assert (found.outcome, "sentence-transformers" in found.what) == (FAILED, True)


def embedded_by(base_url: str, **fields: object) -> EmbeddingSettings:
    return EmbeddingSettings.model_validate(
        {"backend": "openai", "api_key": KEY, "base_url": base_url, "model": "embedder-1", **fields}
    )


async def test_an_embedding_service_is_asked_for_real(service: OpenAIServer) -> None:
    """With harmless sentences of our own, and nothing else."""
    found = await load(embedded_by(service.base_url))
    assert isinstance(found, Model)
    assert (found.name, found.dimension) == ("embedder-1", DIMENSIONS)
    assert {request.key for request in service.received} == {KEY}
    assert [
        text for request in service.received for text in request.texts
    ] == calibration.questions() + calibration.documents()


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (Answer(status=401), "(AuthenticationError, 401): correct the key"),
        (Answer(status=404), "(NotFoundError, 404): correct the URL or embedding.model"),
        (Answer(fault="endless"), "(TimeoutError): check the service"),
        (Answer(body=b"{}"), "its answer is not a list of embeddings"),
    ],
)
async def test_an_embedding_service_that_fails_says_how(service: OpenAIServer, answer: Answer, what: str) -> None:
    service.answering = lambda _: answer
    found = await load(embedded_by(service.base_url, timeout_seconds=0.5 if answer.fault == "endless" else 30))
    assert isinstance(found, Finding)
    assert outcomes([found]) == [("embedding", FAILED)]
    assert found.what.startswith(f"embedder-1 at {service.origin} does not embed")
    assert what in found.what
    assert KEY not in found.what + found.todo


@pytest.mark.usefixtures("_embedding_by_file")
async def test_an_embedding_service_without_a_key_is_a_finding() -> None:
    """And the other checks go on."""
    write("embedding: {backend: openai}\nkafka: {bootstrap_servers: '127.0.0.1:1'}\nhttp: {port: 0}")
    told = {finding.check: finding for finding in await examine(ReadSettings.now())}
    assert (told["settings"].outcome, told["judge"].outcome, told["embedding"].outcome) == (OK, OK, FAILED)
    assert told["embedding"].what.startswith("embedding.api_key: the backend openai needs a key")


@pytest.mark.usefixtures("_embedding_by_file")
async def test_an_embedding_service_is_not_asked_where_the_llms_settings_are_wrong(service: OpenAIServer) -> None:
    """Its key may be theirs."""
    write("embedding: {backend: openai}\nllm: {api_key: k, base_url: nowhere}\nhttp: {port: 0}")
    told = {finding.check: finding for finding in await examine(ReadSettings.now(), patience=5.0)}
    assert told["embedding"].what == "not checked: its settings are wrong"
    assert not service.received


def test_shards_of_another_model_are_failures() -> None:
    shards = {p: Inspection("old", 384) for p in (4, 0, 2, 1)} | {5: Inspection("new", 512), 6: Inspection(None, 0)}
    (finding,) = fitting(Model("new", 512), 0.1, shards)
    assert finding.what == (
        "shards 0, 1, 2 and 1 more: vectors from old (384 dimensions), not from new, 512 dimensions"
    )
    assert "siltstone reembed" in finding.todo
    assert outcomes(fitting(Model("new", 512), 0.1, {5: Inspection("new", 512)})) == [("embedding", OK)]


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("intfloat/multilingual-e5-small", True),
        ("/models/e5-base-v2", True),
        ("BAAI/bge-small-zh-v1.5", True),
        ("Qwen/Qwen3-Embedding-0.6B", True),
        ("nomic-embed-text", True),
        ("BAAI/bge-m3", False),
        ("paraphrase-multilingual-MiniLM-L12-v2", False),
        ("text-embedding-3-small", False),
        ("bge5-tales", False),
    ],
)
def test_a_model_that_was_taught_prefixes_and_gets_none_is_a_warning(model: str, known: bool) -> None:
    settings = EmbeddingSettings(backend="sentence-transformers", model=model)
    found = untold(settings, Model("m", 384))
    assert outcomes(found) == ([("embedding", WARNING)] if known else [])
    assert not untold(settings, Model("m", 384, asymmetric=True))


# Ratings


def rated_by(base_url: str, **scoring: object) -> Settings:
    changes = {"api_key": SecretStr(KEY), "base_url": base_url, "model": "judge-1", **scoring}
    memory = DEFAULT.memory.model_copy(update={"scoring": DEFAULT.memory.scoring.model_copy(update=changes)})
    return DEFAULT.model_copy(update={"memory": memory})


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with OpenAIServer() as running_service:
        yield running_service


async def test_without_a_key_the_local_estimator_rates() -> None:
    (finding,) = await check_rating(DEFAULT)
    assert (finding.outcome, "local estimator" in finding.what) == (OK, True)


async def test_a_rater_is_asked_once_for_real(service: OpenAIServer) -> None:
    service.script("9")
    (finding,) = await check_rating(rated_by(service.base_url))
    assert (finding.outcome, finding.what) == (
        OK,
        f"judge-1 at {service.origin} answers: it rates an exchange worth keeping 9 of 10",
    )
    assert [request.key for request in service.received] == [KEY]


@pytest.mark.parametrize(
    ("answer", "failure", "todo"),
    [
        (Answer(status=401), "AuthenticationError", "correct the key"),
        (Answer(status=404), "NotFoundError", "base_url or the model"),
        (Answer(status=429), "RateLimitError", "memory.scoring.concurrency"),
        (Answer("rather important"), "ValueError", "another model"),
        (Answer(fault="endless"), "TimeoutError", "check the service"),
        (Answer(fault="broken"), "APIConnectionError", "check the service"),
    ],
)
async def test_a_rater_that_fails_says_how(service: OpenAIServer, answer: Answer, failure: str, todo: str) -> None:
    service.script(answer)
    (finding,) = await check_rating(
        rated_by(service.base_url, timeout_seconds=0.5 if answer.fault == "endless" else 30)
    )
    assert (finding.outcome, finding.what) == (FAILED, f"judge-1 at {service.origin} gives no rating: {failure}")
    assert todo in finding.todo
    assert KEY not in finding.what + finding.todo


async def test_an_address_without_a_key_is_not_used_and_said_to_be() -> None:
    (finding,) = await check_rating(rated_by("http://127.0.0.1:1", api_key=SecretStr("")))
    assert (finding.outcome, finding.what.startswith("memory.scoring.base_url is not used")) == (WARNING, True)


# HTTP


@contextlib.asynccontextmanager
async def answering(body: bytes | None) -> AsyncIterator[int]:
    """The port of somebody who answers so; None: who takes the connection and says nothing."""
    connections: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if body is not None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 -\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
            await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.ensure_future(answer(reader, writer)))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def at_port(port: int) -> Settings:
    return DEFAULT.model_copy(update={"http": DEFAULT.http.model_copy(update={"port": port})})


@pytest.mark.parametrize(
    ("body", "outcome", "what"),
    [
        (b'{"ready": true, "waiting_for": []}', OK, "a worker answers"),
        (b'{"ready": false, "waiting_for": ["the shards"]}', WARNING, "is not ready: the shards"),
        (b"[]", FAILED, "in use by a program that is not a worker (200)"),
        (b"<html>", FAILED, "in use by a program that is not a worker (200)"),
        pytest.param(None, FAILED, "is in use, but did not answer within 10 s", marks=pytest.mark.slow),
    ],
)
async def test_a_taken_port_says_by_whom(body: bytes | None, outcome: Outcome, what: str) -> None:
    async with answering(body) as port:
        (finding,) = await check_http(at_port(port))
    assert (finding.outcome, what in finding.what) == (outcome, True)


async def test_a_free_port_is_free() -> None:
    for port in (0, free_port()):
        assert outcomes(await check_http(at_port(port))) == [("http", OK)]


async def test_a_port_that_is_not_ours_to_bind_fails() -> None:
    """Bound by somebody who does not listen."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        (finding,) = await check_http(at_port(holder.getsockname()[1]))
    assert (finding.outcome, "Address already in use" in finding.what) == (FAILED, True)


# MCP


async def test_a_worker_of_other_settings_is_said_to_turn_hosts_away(settings: Settings) -> None:
    """Or to serve no MCP, or is as it should be: whether anybody may ask, it is not asked for."""
    async with running.started(settings) as worker:
        http = settings.http.model_copy(update={"port": worker.api.port})
        told = [
            await check_mcp(settings.model_copy(update={"http": one, "access": access}))
            for one, access in (
                (http, AccessSettings()),
                (http, AccessSettings(tokens=True)),
                (http.model_copy(update={"allowed_hosts": ("memory.example",)}), AccessSettings()),
                (http.model_copy(update={"mcp": False}), AccessSettings()),
            )
        ]
    assert [outcomes(found) for found in told] == [[("mcp", OK)], [("mcp", OK)], [("mcp", FAILED)], [("mcp", OK)]]
    assert told[0][0].what.startswith("served at /mcp to requests for 127.0.0.1, [::1], localhost; ")
    assert "memory.example" in told[2][0].what


async def test_a_worker_without_mcp_is_said_to_have_none(settings: Settings) -> None:
    without = settings.model_copy(update={"http": settings.http.model_copy(update={"mcp": False})})
    async with running.started(without) as worker:
        http = settings.http.model_copy(update={"port": worker.api.port})
        (finding,) = await check_mcp(settings.model_copy(update={"http": http}))
    assert (finding.outcome, finding.what) == (FAILED, "the running worker serves no MCP")


# All of it


@pytest.mark.slow
async def test_a_check_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    """A broker that takes the connection and says nothing."""
    async with answering(None) as port:
        settings = Settings(
            data_dir=tmp_path,
            kafka=KafkaSettings(bootstrap_servers=f"127.0.0.1:{port}"),
            embedding=EmbeddingSettings(backend="sentence-transformers", model="/nowhere"),
            http=at_port(0).http,
        )
        found = await asyncio.wait_for(examine(ReadSettings(settings), patience=3.0), PATIENCE)
    told = {finding.check: finding for finding in found}
    for check in ("broker", "rights"):
        assert (told[check].outcome, told[check].what) == (FAILED, "no answer within 3 s")
    assert "for the database of each of 8 shards" in told["memory"].what  # how well depends on the machine
    assert {
        check: f.outcome for check, f in told.items() if check not in ("broker", "rights", "embedding", "memory")
    } == {
        "settings": OK,
        "data": OK,
        "shards": OK,
        "judge": OK,
        "rerank": OK,
        "checkpoints": OK,
        "access": OK,
        "http": OK,
        "mcp": OK,
    }


@pytest.mark.usefixtures("_embedding_by_file")
async def test_wrong_files_for_tls_are_a_finding_of_the_broker() -> None:
    write("kafka: {security_protocol: SSL, ssl_cafile: /nowhere.pem}\nembedding: {backend: magic}\nhttp: {port: 0}")
    found = await examine(ReadSettings.now())
    told = {finding.check: finding for finding in found}
    assert told["broker"].what.startswith("kafka.ssl_cafile")
    assert told["embedding"].what == "not checked: its settings are wrong"
    assert outcomes(found)[0] == ("settings", FAILED)


async def test_beside_a_running_worker_all_is_well(settings: Settings) -> None:
    """But for its shards, which are its own; and the exit code is 0."""
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        config = settings.model_dump(mode="json", include={"data_dir", "kafka"}, exclude={"kafka": {"sasl_password"}})
        write(orjson.dumps(config).decode())
        result = await siltstone("doctor", "--port", str(worker.api.port), "--json")
        answer = orjson.loads(result.stdout)
        told = {finding["check"]: finding for finding in answer["findings"]}
        assert told.pop("shards")["outcome"] == "warning"
        assert [finding for finding in told.values() if finding["outcome"] != "ok"] == []
        assert set(told) == {
            "settings",
            "broker",
            "topics",
            "rights",
            "data",
            "embedding",
            "judge",
            "rerank",
            "checkpoints",
            "memory",
            "access",
            "http",
            "mcp",
        }
        assert (result.returncode, answer["ok"], result.stderr) == (0, True, "")


async def test_what_is_wrong_is_told_without_secrets(broker: EmbeddedBroker, service: OpenAIServer) -> None:
    """Key and password are in the settings, and the service's error quotes the key; the exit code is 1."""
    service.answering = lambda _: Answer(status=401)
    write(
        f"kafka: {{bootstrap_servers: {broker.bootstrap_servers}, sasl_password: hunter2}}\n"
        f"memory: {{scoring: {{api_key: {KEY}, base_url: '{service.base_url}'}}}}\n"
        "http: {port: 0}\nlong_term: {top_k: none}\n"
    )
    for words in (["doctor"], ["doctor", "--json"]):
        result = await siltstone(*words, COLUMNS="60")
        assert (result.returncode, result.stderr) == (1, "")
        assert "AuthenticationError" in result.stdout
        assert "long_term.top_k" in result.stdout
        assert KEY not in result.stdout
        assert "hunter2" not in result.stdout
        assert max(map(len, result.stdout.splitlines())) <= 60 or words[-1] == "--json"
    assert len(service.received) == 2


# Memory


def test_what_the_worker_may_take_is_told_with_its_parts(tmp_path: Path) -> None:
    gib = 1 << 30
    index = tmp_path / "shards" / "3" / "segments" / "1.ivf"
    index.parent.mkdir(parents=True)
    index.write_bytes(bytes(5 << 20))
    settings = DEFAULT.model_copy(update={"data_dir": tmp_path, "memory_limit": 4 * gib})
    (found,) = check_memory(settings, lambda: 16 * gib)
    assert outcomes([found]) == [("memory", OK)]
    assert "memory_limit 4.0 GiB of 16.0 GiB: 440 MiB for the database of each of 8 shards, 64 MiB" in found.what
    assert "vectors (5 MiB so far) are memory-mapped" in found.what
    half = settings.model_copy(update={"memory_limit": None})
    assert check_memory(half, lambda: 16 * gib)[0].what.startswith("memory_limit 8.0 GiB of 16.0 GiB (half of it")


@pytest.mark.parametrize(
    ("limit", "here", "todo"), [(1, 16, "memory_limit to 2.2 GiB"), (4, 4, "smaller memory_limit")]
)
def test_too_little_memory_is_a_warning(tmp_path: Path, limit: int, here: int, todo: str) -> None:
    index = tmp_path / "shards" / "3" / "segments" / "1.ivf"
    index.parent.mkdir(parents=True)
    index.write_bytes(bytes(1))
    settings = DEFAULT.model_copy(update={"data_dir": tmp_path, "memory_limit": limit << 30})
    (found,) = check_memory(settings, lambda: here << 30)
    assert outcomes([found]) == [("memory", WARNING)]
    assert todo in found.todo
