"""On a broker without rights of any kind, nothing is missing, and trying it leaves nothing behind."""

from __future__ import annotations

from schemas.rights import Right, not_allowed
from schemas.settings import KafkaSettings, Settings
from streams.kafka.access.rights import try_rights
from streams.kafka.clients.broker import missing_topics


async def test_a_broker_that_knows_no_rights_allows_everything(settings: Settings) -> None:
    """And is asked nothing that it would take for an order: the embedded one creates what is to be validated."""
    kafka = settings.kafka
    tried = await try_rights(kafka, frozenset({f"{kafka.group_id}-notes-changelog"}))
    assert (list(tried.missing), list(tried.absent)) == ([], [])
    assert len(await missing_topics(kafka)) == 5


def test_a_missing_right_is_one_line_with_the_command_that_gives_it() -> None:
    kafka = KafkaSettings(security_protocol="SASL_SSL", sasl_username="ann", sasl_password="secret")
    said = str(not_allowed(kafka, [Right("READ", "topic", "siltstone.conversations")]))
    assert said == (
        "Kafka does not allow User:ann READ on topic siltstone.conversations: kafka-acls.sh --bootstrap-server "
        "127.0.0.1:9092 --command-config admin.properties --add --allow-principal 'User:ann' --operation Read "
        "--topic siltstone.conversations"
    )


def test_what_is_missing_on_the_group_alone_is_waited_for() -> None:
    kafka = KafkaSettings()
    group, topic = Right("READ", "group", "siltstone"), Right("WRITE", "topic", "siltstone.long-term")
    assert not_allowed(kafka, [group]).waits
    assert not not_allowed(kafka, [group, topic]).waits
