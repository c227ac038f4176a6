"""A password that is changed under a worker that runs: it goes on trying, says why, and goes on when it is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.rights import Operation, Right, group_right
from schemas.settings import Settings
from tests.kafka.acls import PREFIXED, grant
from tests.kafka.secured import PASSWORD, USER, Secured, secured
from tests.kafka.source import Source
from tests.kafka.test_missing_rights import worker
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.workers import asked


@pytest.fixture
def own(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker of one's own: it is restarted."""
    with secured(source, tmp_path_factory.mktemp("certificates")) as running:
        yield running


def give_password(safe: Secured, password: str) -> None:
    (node,) = safe.brokers.nodes
    config = f"SCRAM-SHA-256=[password={password}]"
    where = ("--bootstrap-server", safe.brokers.inside, "--entity-type", "users", "--entity-name", USER)
    assert node.run("kafka-configs.sh", *where, "--alter", "--add-config", config).wait(60) == 0


async def test_a_changed_password_is_told_in_log_and_health_until_it_is_right(
    own: Secured, settings: Settings, tmp_path: Path
) -> None:
    kafka = own.settings(settings.kafka, "SASL")
    operations: tuple[Operation, ...] = ("READ", "WRITE", "CREATE")
    for name in (kafka.topic_prefix, f"{kafka.group_id}-"):
        rights = [Right(operation, "topic", name) for operation in operations]
        await grant(own.brokers, USER, rights, pattern=PREFIXED)
    await grant(own.brokers, USER, [group_right(kafka)])
    (node,) = own.brokers.nodes
    port, said = free_port(), tmp_path / "said"
    wanted = f"refuses access: the password of user {USER} is wrong: correct kafka.sasl_password"
    with worker(settings, kafka, port, said) as process:
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        give_password(own, "another")
        node.kill()
        node.start()
        own.brokers.wait_until_up()
        await until(lambda: wanted in str(asked(port, "/readyz")), alive=process)
        await until(lambda: wanted in said.read_text(), alive=process)
        assert said.read_text().count(wanted) == 1
        give_password(own, PASSWORD)
        await until(lambda: bool(asked(port, "/readyz").get("ready")), alive=process)
        assert process.poll() is None
        assert PASSWORD not in said.read_text()
