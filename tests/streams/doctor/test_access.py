"""`siltstone doctor` about who may ask: the topic of tokens, on a real broker, and the OIDC provider."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from schemas.settings import AccessSettings, Settings
from schemas.settings.oidc import OidcSettings
from schemas.times import now_ms
from schemas.topic_specs import tokens_spec
from streams.access.token_log import write_token
from streams.doctor.access import check_access
from streams.doctor.finding import Finding, Outcome
from streams.kafka.clients.broker import client_options
from tests.support.oidc_provider import KEYS, Provider
from tests.support.tokens import made


@pytest.fixture
async def admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(**client_options(settings.kafka))
    await client.start()
    yield client
    await client.close()


def asking(settings: Settings, oidc: OidcSettings | None = None, **kafka: object) -> Settings:
    access = AccessSettings(tokens=True, oidc=oidc or OidcSettings())
    return settings.model_copy(update={"access": access, "kafka": settings.kafka.model_copy(update=kafka)})


async def only(settings: Settings) -> Finding:
    (finding,) = await check_access(settings)
    return finding


async def test_without_tokens_it_says_who_may_ask(settings: Settings) -> None:
    found = await only(settings)
    assert (found.outcome, "127.0.0.1 has full access" in found.what) == (Outcome.OK, True)


async def test_a_topic_that_is_not_there_is_not_made_by_looking(
    settings: Settings, admin: AIOKafkaAdminClient
) -> None:
    found = await only(asking(settings))
    assert (found.outcome, "no client has access" in found.what) == (Outcome.WARNING, True)
    found = await only(asking(settings, create_topics=False))
    assert (found.outcome, "cleanup.policy=compact" in found.todo) == (Outcome.FAILED, True)
    assert tokens_spec(settings.kafka).name not in await admin.list_topics()


async def test_tokens_are_counted_and_one_that_is_valid_is_wanted(settings: Settings) -> None:
    record, _ = await made(settings, "ann")
    expired = record.model_copy(update={"id": "0" * 16, "expires_at": now_ms()})
    await write_token(settings.kafka, expired)
    found = await only(asking(settings))
    assert (found.outcome, found.what) == (Outcome.OK, "1 valid token, 1 expired, 0 revoked")
    await write_token(settings.kafka, record.model_copy(update={"revoked_at": now_ms()}))
    found = await only(asking(settings))
    assert (found.outcome, found.what) == (
        Outcome.WARNING,
        "0 valid tokens, 1 expired, 1 revoked: no client has access",
    )
    assert found.todo.startswith("create one: siltstone token add")


async def test_a_topic_that_forgets_tokens_is_a_failure_with_its_command(
    settings: Settings, admin: AIOKafkaAdminClient
) -> None:
    """Without compaction all of them are gone after a week."""
    name = tokens_spec(settings.kafka).name
    await admin.create_topics([NewTopic(name, 2, 1, topic_configs={"cleanup.policy": "delete"})])
    parts, policy, count = await check_access(asking(settings))
    assert (parts.outcome, "2 partitions" in parts.what) == (Outcome.WARNING, True)
    assert (policy.outcome, "cleanup.policy is delete" in policy.what) == (Outcome.FAILED, True)
    assert f"--entity-name {name} --add-config cleanup.policy=compact" in policy.todo
    assert count.outcome is Outcome.WARNING


async def test_the_provider_is_asked_for_its_keys(settings: Settings) -> None:
    """With one, nobody needs a token of ours."""
    with Provider() as provider:
        tokens, oidc = await check_access(asking(settings, provider.settings()))
        assert (tokens.outcome, oidc.outcome) == (Outcome.OK, Outcome.OK)
        assert "publishes 1 key (RS256); tokens must be for siltstone-api" in oidc.what
        provider.answers[KEYS] = 503
        _, oidc = await check_access(asking(settings, provider.settings()))
        assert (oidc.outcome, "access.oidc.jwks_url" in oidc.todo) == (Outcome.FAILED, True)
