"""docker-compose.yml, its .env.example and the Dockerfile agree with the code; the docs name every metric.

No container is started: what can be checked without an engine is checked here.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

from schemas.errors import SettingsError
from schemas.settings import SUMMARY_VARIABLES, Settings
from schemas.topic_specs import MAX_RECORD_BYTES, tokens_spec, topic_specs
from schemas.topics import Topics
from streams.doors.cli.token import token
from streams.kafka.topics.rules import differences
from streams.telemetry.metrics import Metrics

ROOT = Path(__file__).parent.parent
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]

#: ${NAME} or ${NAME:-default}, and not $${…}, which the container's shell sees.
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^}]*))?\}")
_ASSIGNMENT = re.compile(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", re.MULTILINE)


def interpolated(text: str, env: dict[str, str] | None = None) -> str:
    """What Compose makes of a value: variables with their defaults, and $$ as $."""
    values = env or {}
    filled = _VARIABLE.sub(lambda found: values.get(found[1]) or found[2] or "", text)
    return filled.replace("$$", "$")


def environment(service: str, env: dict[str, str] | None = None) -> dict[str, str]:
    """A service's environment; a variable without a value is there only where `env` has it."""
    values = env or {}
    declared: dict[str, Any] = SERVICES[service]["environment"]
    given = {name: interpolated(str(value), values) for name, value in declared.items() if value is not None}
    return given | {name: values[name] for name in declared if declared[name] is None and name in values}


def worker_settings(monkeypatch: pytest.MonkeyPatch, env: dict[str, str] | None = None) -> Settings:
    """The settings of a worker in the container."""
    for name, value in environment("worker", env).items():
        monkeypatch.setenv(name, value)
    return Settings.load()


def created_topics(tmp_path: Path, env: dict[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Run the script of the `topics` service against a stand-in for Kafka's tool: options by topic."""
    calls = tmp_path / "calls"
    tool = tmp_path / "kafka-topics.sh"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\t" "$@" >> {calls}\necho >> {calls}\n')
    tool.chmod(0o755)
    service = SERVICES["topics"]
    command = [*service["entrypoint"], *(interpolated(part) for part in service["command"])]
    subprocess.run(command, env=environment("topics", env) | {"KAFKA_BIN": str(tmp_path)}, check=True)
    topics = {}
    for call in calls.read_text().splitlines():
        words = call.split("\t")
        assert {"--create", "--if-not-exists"} <= set(words)
        options = {a.removeprefix("--"): b for a, b in pairwise(words) if a != "--config"}
        configs = [b for a, b in pairwise(words) if a == "--config"]
        topics[options["topic"]] = options | dict(config.split("=", 1) for config in configs)
    return topics


def test_services() -> None:
    """Kafka, a one-shot creator of topics, and a worker that waits for both."""
    assert set(SERVICES) == {"kafka", "topics", "worker"}
    assert re.fullmatch(r"apache/kafka:4\.\d+\.\d+", SERVICES["kafka"]["image"])
    assert SERVICES["topics"]["image"] == SERVICES["kafka"]["image"]
    assert SERVICES["topics"]["restart"] == "no"
    assert SERVICES["worker"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "topics": {"condition": "service_completed_successfully"},
    }
    assert "healthcheck" in SERVICES["kafka"]


def test_the_script_creates_every_topic_with_equal_partitions(tmp_path: Path) -> None:
    """Exactly the topics that the code names, all with the default number of partitions and the record limit."""
    topics = created_topics(tmp_path)
    tokens = topics.pop("siltstone.tokens")
    assert (tokens["partitions"], tokens["cleanup.policy"]) == ("1", "compact")
    assert set(topics) == set(Topics.with_prefix("siltstone.").all())
    assert {topic["partitions"] for topic in topics.values()} == {str(Settings().kafka.partitions)}
    assert {topic["max.message.bytes"] for topic in topics.values()} == {str(MAX_RECORD_BYTES)}
    assert topics["siltstone.long-term"]["retention.ms"] == "-1"
    assert topics["siltstone.dead-letters"]["retention.ms"] == str(30 * 24 * 3600 * 1000)


#: What Kafka tells of a topic that was created without these settings.
UNTOLD = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "retention.bytes": "-1"}


@pytest.mark.parametrize("long_term", ["-1", "31536000000"])
def test_topics_of_the_script_are_as_the_worker_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_term: str
) -> None:
    """Also where `.env` keeps `long-term` for a year: the worker is told so."""
    env = {"LONG_TERM_RETENTION_MS": long_term}
    topics = created_topics(tmp_path, env)
    kafka = worker_settings(monkeypatch, env).kafka
    for spec in (*topic_specs(kafka), tokens_spec(kafka)):
        assert differences(spec, UNTOLD | topics[spec.name], replicas=1) == []


def test_script_and_worker_take_the_same_prefix_and_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`.env` changes both at once."""
    env = {"SILTSTONE_KAFKA__TOPIC_PREFIX": "memory-", "SILTSTONE_KAFKA__PARTITIONS": "3"}
    topics = created_topics(tmp_path, env)
    kafka = worker_settings(monkeypatch, env).kafka
    assert topics.pop(tokens_spec(kafka).name)["partitions"] == "1"
    assert set(topics) == set(Topics.with_prefix(kafka.topic_prefix).all())
    assert {topic["partitions"] for topic in topics.values()} == {str(kafka.partitions)} == {"3"}


def test_kafka_takes_the_largest_record() -> None:
    """Changelogs of an earlier version have no limit of their own: the broker's holds."""
    assert environment("kafka")["KAFKA_MESSAGE_MAX_BYTES"] == str(MAX_RECORD_BYTES)


def test_the_workers_environment_is_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable is a known setting, with the code's default where the container needs no other."""
    settings = worker_settings(monkeypatch)
    assert settings.data_dir == Path("/data")
    assert settings.kafka.bootstrap_servers == "kafka:19092"
    assert not settings.kafka.create_topics
    changed = {"bootstrap_servers", "create_topics"}
    assert settings.kafka.model_dump(exclude=changed) == Settings.model_fields["kafka"].default.model_dump(
        exclude=changed
    )
    for name in SERVICES["worker"]["environment"].keys() - set(SUMMARY_VARIABLES):
        section: Any = Settings
        assert name.startswith("SILTSTONE_")
        for part in name.removeprefix("SILTSTONE_").lower().split("__"):
            section = section.model_fields[part].annotation


def test_security_settings_reach_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `.env` says of TLS and SASL is what the worker's settings hold."""
    env = {
        "SILTSTONE_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "SILTSTONE_KAFKA__SASL_MECHANISM": "SCRAM-SHA-512",
        "SILTSTONE_KAFKA__SASL_USERNAME": "siltstone",
        "SILTSTONE_KAFKA__SASL_PASSWORD": "secret",
        "SILTSTONE_KAFKA__SSL_CAFILE": "/certs/ca.pem",
    }
    kafka = worker_settings(monkeypatch, env).kafka
    assert (kafka.security_protocol, kafka.sasl_mechanism, kafka.sasl_username) == (
        "SASL_SSL",
        "SCRAM-SHA-512",
        "siltstone",
    )
    assert kafka.sasl_password.get_secret_value() == "secret"
    assert kafka.ssl_cafile == Path("/certs/ca.pem")
    assert kafka.ssl_certfile is None


def test_ports_are_on_loopback() -> None:
    """Nothing is published to other machines."""
    ports = [interpolated(port) for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_api_is_reached_from_outside_of_its_container_with_tokens_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them it is on the container's loopback, where the published port leads nowhere."""
    assert [interpolated(port) for port in SERVICES["worker"]["ports"]] == ["127.0.0.1:8000:8000"]
    without = worker_settings(monkeypatch)
    assert (without.access.tokens, without.http.host, without.http.port) == (False, "127.0.0.1", 8000)
    switched = dict(_ASSIGNMENT.findall(EXAMPLE.partition("# --- The API from outside")[2].partition("# ---")[0]))
    outside = worker_settings(monkeypatch, switched)
    assert (outside.access.tokens, outside.access.open_probes, outside.http.host) == (True, True, "0.0.0.0")
    with pytest.raises(SettingsError, match=r"http\.host: 0\.0\.0\.0 is not loopback"):
        worker_settings(monkeypatch, switched | {"SILTSTONE_ACCESS__TOKENS": "false"})


def test_a_provider_reaches_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    switched = dict(_ASSIGNMENT.findall(EXAMPLE.partition("# --- An OIDC provider")[2].partition("# ---")[0]))
    oidc = worker_settings(monkeypatch, {"SILTSTONE_ACCESS__TOKENS": "true"} | switched).access.oidc
    assert (oidc.issuer, oidc.audience) == ("https://id.example.com/realms/chat", "siltstone")
    assert (oidc.user_claim, oidc.scopes_claim, oidc.scope_prefix) == ("sub", "scope", "siltstone:")


def test_the_first_token_is_made_by_the_command_of_the_example() -> None:
    (command,) = re.findall(r"docker compose exec worker (siltstone token add .*)", EXAMPLE)
    given = shlex.split(command)[3:]
    options = {name for option in token.commands["add"].params for name in option.opts}
    assert set(given[::2]) <= options
    assert dict(zip(given[::2], given[1::2], strict=True))["--users"] == "*"


def test_env_example_names_exactly_what_compose_uses() -> None:
    """Each variable of the example is used, each variable that is used is in the example."""
    passed = {name for name, value in SERVICES["worker"]["environment"].items() if value is None}
    used = {name for name, _ in _VARIABLE.findall(COMPOSE)} | passed
    assert {name for name, _ in _ASSIGNMENT.findall(EXAMPLE)} == used


def test_env_example_shows_the_defaults() -> None:
    """The first value of a variable in the example is compose's default, up to the own cluster's."""
    shown: dict[str, str] = {}
    for name, value in _ASSIGNMENT.findall(EXAMPLE.partition("# --- Your own cluster")[0]):
        shown.setdefault(name, value)
    defaults = dict(_VARIABLE.findall(COMPOSE))
    assert shown == {name: defaults[name] for name in shown}


def test_the_image_asks_readyz_and_runs_as_a_user() -> None:
    """The health check asks the worker's default port; data is a volume; the process is not root."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"http://127.0.0.1:{Settings().http.port}/readyz" in dockerfile
    assert 'CMD ["siltstone", "worker"]' in dockerfile
    assert re.search(r"^USER (?!root|0\b)\S+$", dockerfile, re.MULTILINE)
    assert "VOLUME /data" in dockerfile
    assert "SILTSTONE_DATA_DIR=/data" in dockerfile
    assert SERVICES["worker"]["volumes"] == ["siltstone-data:/data"]


def test_every_metric_is_documented() -> None:
    """Each metric has a row in docs/reference.md, by the name that Prometheus sees and with its labels."""
    docs = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(siltstone_\w+)(?:\{([\w,]+)\})?`", docs, re.MULTILINE))
    metrics = [metric for metric in vars(Metrics()).values() if isinstance(metric, MetricWrapperBase)]
    assert rows == {
        metric._name + ("_total" if isinstance(metric, Counter) else ""): ",".join(metric._labelnames)
        for metric in metrics
    }
