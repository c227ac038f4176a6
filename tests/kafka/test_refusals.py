"""Who is not let in is told why, by the cause's own name and with the setting to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from schemas.errors import BrokerRefused
from schemas.settings import KafkaSettings, Settings
from streams.doctor.broker import check_broker
from streams.doctor.finding import Outcome
from streams.doors.cli import running
from streams.kafka.clients.broker import ensure_topics, missing_topics
from tests.kafka.secured import Secured

Wrong = Callable[[Secured, KafkaSettings], KafkaSettings]


def changed(listener: str, **changes: Any) -> Wrong:
    return lambda safe, kafka: safe.settings(kafka, listener, **changes)


def elsewhere(safe: Secured, kafka: KafkaSettings) -> KafkaSettings:
    at = safe.settings(kafka)
    return at.model_copy(update={"bootstrap_servers": at.bootstrap_servers.replace("127.0.0.1", "localhost")})


def strange_authority(safe: Secured, kafka: KafkaSettings) -> KafkaSettings:
    return safe.settings(kafka, ssl_cafile=safe.other.certificate)


def strange_certificate(safe: Secured, kafka: KafkaSettings) -> KafkaSettings:
    shown = {"ssl_certfile": safe.stranger.certificate, "ssl_keyfile": safe.stranger.key}
    return safe.settings(kafka, "MUTUAL", **shown)


CAUSES: dict[str, tuple[Wrong, str, str]] = {
    "wrong password": (
        changed("CLIENT", sasl_password=SecretStr("secret")),
        "the password of user worker is wrong",
        "kafka.sasl_password",
    ),
    "unknown user": (
        changed("CLIENT", sasl_username="nobody"),
        "has no user nobody for SCRAM-SHA-256",
        "kafka.sasl_username",
    ),
    "wrong mechanism": (
        changed("CLIENT", sasl_mechanism="PLAIN"),
        "does not accept SASL with PLAIN, only with SCRAM-SHA-256",
        "kafka.sasl_mechanism",
    ),
    "wrong authority": (strange_authority, "not signed by an authority in", "kafka.ssl_cafile"),
    "the machine's authorities": (
        changed("CLIENT", ssl_cafile=None),
        "not signed by an authority that this machine trusts",
        "kafka.ssl_cafile",
    ),
    "another host's certificate": (elsewhere, "not for localhost", "kafka.bootstrap_servers"),
    "expired certificate": (changed("EXPIRED"), "has expired", "renew it on the broker"),
    "TLS against plaintext": (
        changed("BROKER", security_protocol="SSL"),
        "does not speak TLS",
        "set kafka.security_protocol to PLAINTEXT",
    ),
    "SASL over TLS against SASL": (
        changed("SASL", security_protocol="SASL_SSL"),
        "does not speak TLS",
        "set kafka.security_protocol to SASL_PLAINTEXT",
    ),
    "plaintext against TLS": (
        changed("TLS", security_protocol="PLAINTEXT"),
        "speaks TLS",
        "set kafka.security_protocol to SSL",
    ),
    "SASL against SASL over TLS": (
        changed("CLIENT", security_protocol="SASL_PLAINTEXT"),
        "speaks TLS",
        "set kafka.security_protocol to SASL_SSL",
    ),
    "no user where one is wanted": (
        changed("SASL", security_protocol="PLAINTEXT"),
        "requires a user and a password",
        "set kafka.security_protocol to SASL_PLAINTEXT",
    ),
    "a user where none is known": (
        changed("TLS", security_protocol="SASL_SSL"),
        "does not use SASL",
        "set kafka.security_protocol to SSL",
    ),
    "no client's certificate": (
        changed("MUTUAL", ssl_certfile=None, ssl_keyfile=None),
        "requires a client certificate",
        "kafka.ssl_certfile and kafka.ssl_keyfile",
    ),
    "a strange client's certificate": (strange_certificate, "refuses the client certificate", "kafka.ssl_certfile"),
}


@pytest.mark.parametrize("name", CAUSES)
async def test_each_cause_is_named_with_the_setting_to_change(safe: Secured, name: str) -> None:
    """In one line, with the address, and without the password; `doctor` says the same."""
    wrong, cause, todo = CAUSES[name]
    kafka = wrong(safe, KafkaSettings())
    with pytest.raises(BrokerRefused) as refused:
        await missing_topics(kafka)
    said = str(refused.value)
    assert (cause in said, todo in said) == (True, True), said
    assert kafka.bootstrap_servers in said
    assert "\n" not in said
    assert kafka.sasl_password.get_secret_value() not in said
    (finding,) = await check_broker(Settings(kafka=kafka))
    assert (finding.outcome, cause in finding.what, todo in finding.todo) == (Outcome.FAILED, True, True), finding


@pytest.mark.parametrize("listener", ["CLIENT", "SASL", "TLS", "MUTUAL"])
async def test_who_shows_the_right_thing_is_let_in(safe: Secured, listener: str) -> None:
    assert await missing_topics(safe.settings(KafkaSettings(), listener))


async def test_a_worker_that_is_refused_at_its_start_ends(safe: Secured, settings: Settings) -> None:
    """A patient one as well: waiting mends no password."""
    kafka = safe.settings(settings.kafka, sasl_password=SecretStr("secret"))
    with pytest.raises(BrokerRefused, match="the password of user worker is wrong"):
        async with running.started(settings.model_copy(update={"kafka": kafka}), patient=True):
            pass


async def test_two_brokers_of_which_one_lets_us_in_are_enough(safe: Secured) -> None:
    kafka = safe.settings(KafkaSettings(), "TLS")
    servers = f"{safe.brokers.servers('EXPIRED')},{kafka.bootstrap_servers}"
    await ensure_topics(kafka.model_copy(update={"bootstrap_servers": servers, "create_topics": False}), check=False)
