"""The doctor's check of API access: the topic of tokens and the OIDC provider, if the settings require them."""

from __future__ import annotations

import asyncio
from functools import partial

import aiokafka.errors

from schemas.errors import BrokerUnavailable, NotAllowed, ProviderUnavailable
from schemas.settings import KafkaSettings, Settings
from schemas.settings.oidc import OidcSettings
from schemas.times import now_ms
from schemas.tokens import TokenRecord
from schemas.topic_specs import tokens_spec
from streams.access.token_log import kept_tokens
from streams.doctor.finding import Finding, failed, ok, warning
from streams.kafka.clients.broker import admin_client
from streams.kafka.topics.contract import settings_of
from streams.kafka.topics.rules import differences, mending

CHECK = "access"
SILENT = "check the broker and the OIDC provider"
_MAKE = "create one: siltstone token add --name … --users … --scopes read,write"


async def check_access(settings: Settings) -> list[Finding]:
    """Check the topic of tokens and the OIDC provider.

    A missing topic is only reported. A worker, or `siltstone token add`, creates it.
    """
    access = settings.access
    if not access.tokens:
        return [ok(CHECK, f"no token is required: any client that reaches {settings.http.host} has full access")]
    tokens, provider = await asyncio.gather(_tokens(settings.kafka, access.oidc), _provider(access.oidc))
    return [*tokens, *provider]


async def _tokens(kafka: KafkaSettings, oidc: OidcSettings) -> list[Finding]:
    spec = tokens_spec(kafka)
    try:
        async with admin_client(kafka) as admin:
            there = {topic["topic"]: topic["partitions"] for topic in await admin.describe_topics()}
            partitions = there.get(spec.name)
            told = {} if not partitions else await settings_of(admin, [spec.name])
        if partitions is None:
            return [_missing(kafka, oidc)]
        records = await kept_tokens(kafka)
    except NotAllowed as exc:
        return [
            failed(CHECK, f"the tokens cannot be read: {', '.join(map(str, exc.rights))} is missing", exc.command)
        ]
    except BrokerUnavailable:
        return []  # the check of the broker reports this
    except aiokafka.errors.KafkaError as exc:
        return [failed(CHECK, f"cannot inspect topic {spec.name} ({type(exc).__name__})", "check the broker")]
    found = []
    if len(partitions) != 1:
        found.append(
            warning(
                CHECK,
                f"topic {spec.name} has {len(partitions)} partitions, but tokens are only in its first one",
                "do nothing, or recreate the topic with one partition, and then all tokens",
            )
        )
    wrong = differences(spec, told.get(spec.name, {}), min(len(one["replicas"]) for one in partitions))
    if wrong:
        what = "; ".join(str(one) for one in wrong)
        loses = any(one.setting == "cleanup.policy" for one in wrong)
        found.append((failed if loses else warning)(CHECK, f"topic {spec.name}: {what}", mending(kafka, wrong)))
    return [*found, _counted(records, oidc, now_ms())]


def _missing(kafka: KafkaSettings, oidc: OidcSettings) -> Finding:
    name = tokens_spec(kafka).name
    if not kafka.create_topics:
        todo = "create it with one partition and cleanup.policy=compact, or set kafka.create_topics to true"
        return failed(CHECK, f"there is no topic {name}", todo)
    if oidc.issuer:
        return ok(CHECK, f"there is no topic {name} yet: the worker creates it")
    return warning(CHECK, f"there is no topic {name} yet, so no client has access", _MAKE)


def _counted(records: list[TokenRecord], oidc: OidcSettings, now: int) -> Finding:
    valid = sum(record.valid(now) for record in records)
    revoked = sum(record.revoked_at is not None for record in records)
    what = (
        f"{valid} valid token{'' if valid == 1 else 's'}, {len(records) - valid - revoked} expired, {revoked} revoked"
    )
    if valid or oidc.issuer:
        return ok(CHECK, what)
    return warning(CHECK, f"{what}: no client has access", _MAKE)


async def _provider(oidc: OidcSettings) -> list[Finding]:
    if not oidc.issuer:
        return []
    from streams.access.oidc_provider import fetched_keys, keys_in_time  # its imports take a tenth of a second

    try:
        keys = await keys_in_time(partial(fetched_keys, oidc))
    except ProviderUnavailable as exc:
        return [failed(CHECK, f"OIDC: {exc.why}", exc.todo)]
    kinds = ", ".join(sorted({key.algorithm_name for key in keys.values()}))
    one = "" if len(keys) == 1 else "s"
    return [
        ok(CHECK, f"OIDC: {oidc.issuer} publishes {len(keys)} key{one} ({kinds}); tokens must be for {oidc.audience}")
    ]
