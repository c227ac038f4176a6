"""Finds the reason why a broker refuses us. It sends requests of its own, because aiokafka drops the reason.

Each cause has its own message, with the setting to change. The requests contain only data that the settings have for
this broker. A password is sent only with the SASL mechanism of the settings.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any

import aiokafka.errors
from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest
from aiokafka.protocol.metadata import MetadataRequest

from schemas.errors import BrokerRefused
from schemas.settings import KafkaSettings

#: Seconds within which a broker must answer. A missing answer is not a refusal.
ANSWER_SECONDS = 5.0
#: The first two bytes of a TLS alert. A Kafka client without TLS reads them as a part of the answer's length.
TLS_ALERT = 0x1503
FAILURES = (aiokafka.errors.KafkaError, OSError, TimeoutError, EOFError)

Cause = tuple[str, str]


async def refusal(kafka: KafkaSettings, options: Mapping[str, Any]) -> BrokerRefused | None:
    """Return the refusal of the first broker that refuses us; None if any broker grants access, or no broker refuses.

    `options` are the options of an aiokafka client.
    """
    found = None
    for host, port, _ in collect_hosts(kafka.bootstrap_servers, randomize=False):
        attempt = _Attempt(kafka, options, host, port)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await attempt.enter()
            return None
        except FAILURES as exc:
            await asyncio.sleep(0)  # lets the event loop close the socket of a failed handshake
            cause = await attempt.cause_of(exc)
        if cause is not None and found is None:
            found = BrokerRefused(f"{host}:{port}", *cause)
    return found


class _Connection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    """A connection that counts its authentication requests in `proofs`.

    With SCRAM, the broker checks the user name in the first request and the password in the second one.
    """

    proofs = 0

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:
        self.proofs += isinstance(request, SaslAuthenticateRequest)
        answer: Awaitable[Any] = super().send(request, expect_response)
        return answer


class _Attempt:
    """An attempt to connect to one broker as a client does.

    If the attempt fails, `cause_of` finds the cause, by further requests if necessary.
    """

    def __init__(self, kafka: KafkaSettings, options: Mapping[str, Any], host: str, port: int) -> None:
        self._kafka, self._host, self._port = kafka, host, port
        self._options = {name: value for name, value in options.items() if name != "bootstrap_servers"}
        self._proofs = 0

    async def enter(self) -> None:
        connection = self._connection()
        try:
            await connection.connect()
            await connection.send(MetadataRequest([]))  # a broker that requires a user refuses this request
        finally:
            self._proofs = connection.proofs
            connection.close()

    async def cause_of(self, exc: BaseException) -> Cause | None:
        """Return the problem and its correction, as two texts; None if the error is not a known refusal."""
        for one in _with_causes(exc):
            match one:
                case ssl.SSLCertVerificationError():
                    return self._distrusted(one)
                case ssl.SSLError() if "ALERT" in (one.reason or ""):
                    return self._own_certificate(one.reason)
                case aiokafka.errors.SaslAuthenticationFailed():
                    return self._credentials()
                case asyncio.IncompleteReadError(expected=int(length)) if length >> 16 == TLS_ALERT:
                    return "it speaks TLS", f"set kafka.security_protocol to {self._protocol(tls=True)}"
        return await self._mechanism_or_protocol()

    def _distrusted(self, exc: ssl.SSLCertVerificationError) -> Cause:
        match exc.verify_code:  # OpenSSL's X509_V_ERR_…
            case 9:
                return "its certificate is not valid yet", "correct this machine's clock, or renew the certificate"
            case 10:
                return "its certificate has expired", "renew it on the broker; kafka.ssl_cafile can stay"
            case 62 | 64:
                return (
                    f"its certificate is not for {self._host}",
                    "use the certificate's name in kafka.bootstrap_servers, or renew the certificate for this name",
                )
        cafile = self._kafka.ssl_cafile
        if cafile is None:
            return (
                "its certificate is not signed by an authority that this machine trusts",
                "set kafka.ssl_cafile to its authority's certificate",
            )
        return (
            f"its certificate is not signed by an authority in {cafile} ({exc.verify_message})",
            "set kafka.ssl_cafile to its authority's certificate",
        )

    def _own_certificate(self, reason: str) -> Cause:
        shown = self._kafka.ssl_certfile
        if shown is None:
            return "it requires a client certificate", "set kafka.ssl_certfile and kafka.ssl_keyfile"
        alert = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
        return (
            f"it refuses the client certificate {shown} ({alert})",
            "set kafka.ssl_certfile and kafka.ssl_keyfile to a valid pair of an authority that it trusts",
        )

    def _credentials(self) -> Cause:
        user, mechanism = self._kafka.sasl_username, self._kafka.sasl_mechanism
        if mechanism == "PLAIN":
            return f"user {user} or the password is wrong", "correct kafka.sasl_username or kafka.sasl_password"
        if self._proofs < 2:
            return (
                f"it has no user {user} for {mechanism}",
                "correct kafka.sasl_username, or set a password for it on the broker with kafka-configs",
            )
        return f"the password of user {user} is wrong", "correct kafka.sasl_password"

    async def _mechanism_or_protocol(self) -> Cause | None:
        """Find out why the broker closed the connection without a reason. Return None if no cause is found.

        The broker is asked for its SASL mechanisms, and they are compared with the settings. If it does not answer
        over TLS, it is asked again without TLS.
        """
        tls, sasl = "SSL" in self._kafka.security_protocol, self._kafka.security_protocol.startswith("SASL")
        asked = await self._mechanisms(tls)
        if asked is None:
            if tls and (asked := await self._mechanisms(False)) is not None:
                wanted = "SASL_PLAINTEXT" if asked else "PLAINTEXT"
                return "it does not speak TLS", f"set kafka.security_protocol to {wanted}"
            return None
        if asked and not sasl:
            return (
                "it requires a user and a password",
                f"set kafka.security_protocol to {'SASL_SSL' if tls else 'SASL_PLAINTEXT'}, and kafka.sasl_mechanism "
                f"({', '.join(asked)}), kafka.sasl_username and kafka.sasl_password",
            )
        if sasl and not asked:
            return "it does not use SASL", f"set kafka.security_protocol to {'SSL' if tls else 'PLAINTEXT'}"
        if sasl and self._kafka.sasl_mechanism not in asked:
            return (
                f"it does not accept SASL with {self._kafka.sasl_mechanism}, only with {', '.join(asked)}",
                "set kafka.sasl_mechanism to one of these",
            )
        return None

    async def _mechanisms(self, tls: bool) -> list[str] | None:
        """Return the broker's SASL mechanisms: an empty list if it does not use SASL, None if it does not answer."""
        connection = self._connection(security_protocol="SSL" if tls else "PLAINTEXT")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.connect()
                answer = await connection.send(SaslHandShakeRequest(self._kafka.sasl_mechanism))
        except FAILURES:
            return None
        finally:
            connection.close()
        return list(answer.enabled_mechanisms)

    def _protocol(self, *, tls: bool) -> str:
        sasl = self._kafka.security_protocol.startswith("SASL")
        return f"SASL_{'SSL' if tls else 'PLAINTEXT'}" if sasl else "SSL" if tls else "PLAINTEXT"

    def _connection(self, **other: Any) -> _Connection:
        return _Connection(self._host, self._port, request_timeout_ms=ANSWER_SECONDS * 1000, **self._options | other)


def _with_causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__
