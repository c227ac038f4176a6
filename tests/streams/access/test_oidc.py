"""Tokens of a provider: what of them is checked, and what their claims grant. Real keys, real HTTP."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from schemas.errors import ProviderUnavailable, TokenRefused
from schemas.settings.oidc import OidcSettings
from schemas.tokens import Scope
from streams.access.admission import Admission
from streams.access.authorize import Principal
from streams.access.known_tokens import REFUSED
from streams.access.oidc import OidcTokens, principal_of
from streams.access.oidc_provider import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    LOOKED_AT_SECONDS,
    PAUSE_SECONDS,
    ProviderKeys,
    fetched_keys,
)
from tests.streams.access.test_authorize import known
from tests.support.oidc_provider import DISCOVERY, KEYS, Provider
from tests.support.waiting import until, until_it_is

LATER, EARLIER = int(time.time()) + 3600, int(time.time()) - 3600


class Clock:
    """Seconds that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


def keys_of(oidc: OidcSettings, clock: Clock) -> ProviderKeys:
    return ProviderKeys(partial(fetched_keys, oidc), clock)


def admission(oidc: OidcSettings, clock: Clock | None = None) -> Admission:
    return Admission(known()[0], OidcTokens(oidc, keys_of(oidc, clock or Clock())))


async def test_a_sound_token_is_its_subject_with_its_scopes(provider: Provider) -> None:
    who = await admission(provider.settings()).principal(provider.token(azp="chat"))
    assert who == Principal("oidc/chat", frozenset({"ann"}), frozenset({Scope.READ, Scope.WRITE}))
    assert provider.asked == [DISCOVERY, KEYS]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_each_of_the_usual_algorithms_is_taken(provider: Provider, algorithm: str) -> None:
    provider.rotate("one", algorithm)
    oidc = provider.settings(jwks_url=provider.keys_url)
    assert (await admission(oidc).principal(provider.token("one"))).only_user == "ann"
    assert provider.asked == [KEYS]


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://elsewhere.example/"},
        {"iss": None},
        {"aud": "another-api"},
        {"aud": None},
        {"exp": EARLIER},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": LATER},
        {"iat": LATER},
        {"sub": None},
        {"sub": ""},
        {"sub": "*"},
        {"sub": 7},
        {"sub": "a" * 257},
    ],
    ids=lambda changes: "-".join(changes),  # not the values: of processes that collect them, each has another time
)
async def test_a_claim_that_is_not_as_it_must_be_is_refused(provider: Provider, changes: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused) as caught:
        await admission(provider.settings()).principal(provider.token(**changes))
    assert str(caught.value) == REFUSED


def part(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


def forged(provider: Provider) -> dict[str, str]:
    """What somebody could try who has no key of the provider's."""
    key, _ = provider.private["first"]
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header, claims, signature = provider.token().split(".")
    with Provider() as another:
        others, _ = another.private["first"]
    unsigned = part({"alg": "none", "kid": "first"})
    hmac = jwt.PyJWS().encode(  # PyJWT refuses to make this one by its usual way
        orjson.dumps(provider.claims()), base64.b64encode(public), "HS256", headers={"kid": "first"}
    )
    return {
        "none": f"{unsigned}.{claims}.",
        "none, signed": f"{unsigned}.{claims}.{signature}",
        "hmac": hmac,
        "another key": jwt.encode(provider.claims(), others, "RS256", headers={"kid": "first"}),
        "no kid": jwt.encode(provider.claims(), key, "RS256"),
        "kid of a list": f"{part({'alg': 'RS256', 'kid': ['first']})}.{claims}.{signature}",
        "unknown kid": jwt.encode(provider.claims(), key, "RS256", headers={"kid": "never"}),
        "other claims": f"{header}.{part(provider.claims(sub='bob'))}.{signature}",
        "critical": jwt.encode(provider.claims(), key, "RS256", headers={"kid": "first", "crit": ["b64"]}),
        "no parts": "eyJ",
        "junk": "...",
        "deep": f"{base64.urlsafe_b64encode(b'[' * 3000).decode()}.{claims}.{signature}",
        "not ascii": "é.ü.ß",
        "too long": provider.token(padding="a" * 9000),
        "ours, and unknown": "slt_0011223344556677_abc",
    }


async def test_what_nobody_signed_is_refused_with_the_same_text(provider: Provider) -> None:
    """No answer says what was wrong."""
    asked = admission(provider.settings())
    texts = {}
    for name, secret in forged(provider).items():
        with pytest.raises(TokenRefused) as caught:
            await asked.principal(secret)
        texts[name] = str(caught.value)
    assert set(texts.values()) == {REFUSED}


async def test_clocks_may_differ_by_the_leeway_and_no_more(provider: Provider) -> None:
    now = int(time.time())
    asked = admission(provider.settings(leeway_seconds=60))
    assert (await asked.principal(provider.token(exp=now - 20, nbf=now + 20))).only_user == "ann"
    with pytest.raises(TokenRefused):
        await admission(provider.settings(leeway_seconds=0)).principal(provider.token(exp=now - 20))


# What the provider is asked


async def test_keys_are_asked_for_once_and_anew_for_a_key_that_is_not_known(provider: Provider) -> None:
    """And no more often than every few seconds, whatever tokens arrive."""
    clock = Clock()
    oidc = provider.settings(jwks_url=provider.keys_url)
    asked = admission(oidc, clock)
    for _ in range(3):
        await asked.principal(provider.token())
    assert provider.asked == [KEYS]
    provider.rotate("second", "ES256")
    for number in range(50):
        with pytest.raises(TokenRefused):
            await asked.principal(provider.token("second" if number % 2 else "first", aud="other"))
    assert provider.asked == [KEYS]
    clock.now += PAUSE_SECONDS
    assert (await asked.principal(provider.token("second"))).only_user == "ann"
    assert provider.asked == [KEYS] * 2


async def with_a_key_taken_back(provider: Provider) -> tuple[Clock, Admission]:
    """A token of the key `first` was checked; the provider has `second` now."""
    clock = Clock()
    asked = admission(provider.settings(jwks_url=provider.keys_url), clock)
    await asked.principal(provider.token())
    provider.rotate("second", "RS256")
    del provider.published["first"]
    return clock, asked


async def test_keys_that_the_provider_took_back_are_none_when_they_are_looked_at_again(provider: Provider) -> None:
    clock, asked = await with_a_key_taken_back(provider)
    clock.now += LOOKED_AT_SECONDS
    with pytest.raises(TokenRefused):
        await asked.principal(provider.token())
    assert provider.asked == [KEYS] * 2


async def test_keys_in_use_are_looked_at_beside_the_tokens_that_need_them(provider: Provider) -> None:
    clock, asked = await with_a_key_taken_back(provider)
    clock.now += FRESH_SECONDS
    assert (await asked.principal(provider.token())).only_user == "ann", "who finds that it is time does not wait"

    async def refused() -> bool:
        with suppress(TokenRefused):
            await asked.principal(provider.token())
            return False
        return True

    await until_it_is(refused)
    assert provider.asked == [KEYS] * 2


async def test_a_provider_that_hangs_delays_nobody_whose_key_is_known(provider: Provider) -> None:
    """Again and again, whatever unknown keys arrive beside; those wait for it."""
    clock, hanging, asked = Clock(), threading.Event(), list[int]()
    oidc = provider.settings(jwks_url=provider.keys_url)

    def fetch() -> dict[str, Any]:
        asked.append(len(asked))
        if len(asked) > 1:
            hanging.wait()
        return fetched_keys(oidc)

    keys = ProviderKeys(fetch, clock)
    tokens = OidcTokens(oidc, keys)
    await tokens.principal(provider.token())
    provider.rotate("second", "RS256")
    clock.now += FRESH_SECONDS
    stranger = asyncio.create_task(tokens.principal(provider.token("second")))
    await until(lambda: len(asked) == 2)
    for _ in range(5):
        assert (await tokens.principal(provider.token())).only_user == "ann"
        clock.now += FRESH_SECONDS
    assert (stranger.done(), len(asked)) == (False, 2)
    hanging.set()
    assert (await stranger).only_user == "ann"
    await keys.close()


async def test_a_provider_that_does_not_answer_is_no_fault_of_the_token(provider: Provider) -> None:
    """It is asked seldom, our own tokens go on working, and what was known stays good for an hour."""
    clock = Clock()
    oidc = provider.settings(jwks_url=provider.keys_url)
    ours, secret = known()
    asked = Admission(ours, OidcTokens(oidc, keys_of(oidc, clock)))
    provider.answers[KEYS] = 500
    for _ in range(20):
        with pytest.raises(ProviderUnavailable):
            await asked.principal(provider.token())
    assert provider.asked == [KEYS]
    assert (await asked.principal(secret)).name == "ann's"
    with pytest.raises(TokenRefused):  # no key could open it, whoever's
        await asked.principal(forged(provider)["none"])

    del provider.answers[KEYS]
    clock.now += PAUSE_SECONDS
    await asked.principal(provider.token())
    provider.answers[KEYS] = 500
    clock.now += FRESH_SECONDS
    assert (await asked.principal(provider.token())).only_user == "ann"
    provider.rotate("second", "RS256")
    with pytest.raises(ProviderUnavailable):
        await asked.principal(provider.token("second"))
    clock.now += KEPT_SECONDS
    with pytest.raises(ProviderUnavailable):
        await asked.principal(provider.token())


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        (DISCOVERY, 404, "no discovery document (404)"),
        (DISCOVERY, 302, "no discovery document (302)"),
        (DISCOVERY, b"<html>", "names no issuer"),
        (DISCOVERY, b"[]", "names no issuer"),
        (
            DISCOVERY,
            b'{"issuer": "https://other.example/", "jwks_uri": "https://other.example/k"}',
            "another issuer's",
        ),
        (DISCOVERY, b'{"issuer": "%s", "jwks_uri": "http://other.example/k"}', "no keys at https://"),
        (KEYS, 500, "does not give the keys"),
        (KEYS, 302, "does not give the keys"),
        (KEYS, b"<html>", "no keys (JSONDecodeError)"),
        (KEYS, b"[]", "no keys (PyJWKClientError)"),
        (KEYS, b'{"keys": []}', "no keys (PyJWKSetError)"),
        (KEYS, b'{"keys": [{"kty": "oct", "kid": "first", "k": "c2VjcmV0c2VjcmV0"}]}', "has no keys for RS256"),
    ],
)
def test_what_is_wrong_with_a_provider_is_told_with_what_to_do(
    provider: Provider, path: str, answer: int | bytes, why: str
) -> None:
    if isinstance(answer, bytes) and b"%s" in answer:
        answer = answer % provider.issuer.encode()
    provider.answers[path] = answer
    with pytest.raises(ProviderUnavailable) as caught:
        fetched_keys(provider.settings())
    assert why in caught.value.why
    assert caught.value.todo
    assert caught.value.why not in str(caught.value), "who asks is told nothing about the provider"


def test_nobody_at_the_providers_address_is_told_too() -> None:
    with Provider() as gone:
        oidc = gone.settings()
    with pytest.raises(ProviderUnavailable) as caught:
        fetched_keys(oidc)
    assert "does not answer (ConnectError)" in caught.value.why


# What claims grant


def granted(claims: dict[str, Any], **settings: Any) -> tuple[set[str] | None, set[str]]:
    oidc = OidcSettings(issuer="https://id.example", audience="a", **settings)
    who = principal_of(claims, oidc)
    return None if who.users is None else set(who.users), {scope.value for scope in who.scopes}


def test_one_user_by_the_claim_that_the_settings_name() -> None:
    claims = {"sub": "7", "email": "ann@example.com", "scope": "openid read"}
    assert granted(claims) == ({"7"}, {"read"})
    assert granted(claims, user_claim="email") == ({"ann@example.com"}, {"read"})


@pytest.mark.parametrize(
    ("value", "users"),
    [(["ann", "bob"], {"ann", "bob"}), ("ann bob", {"ann bob"}), ("*", None), (["*"], None), (None, {"7"})],
)
def test_several_users_or_everybody_by_a_claim_of_their_own(value: object, users: set[str] | None) -> None:
    claims = {"sub": "7"} | ({} if value is None else {"may_see": value})
    assert granted(claims, users_claim="may_see") == (users, set())


@pytest.mark.parametrize("value", [[], [""], [7], {"a": 1}, True, "", [["ann"]], ["a" * 257]])
def test_a_claim_of_several_users_that_names_none_is_no_subjects_token(value: object) -> None:
    with pytest.raises(ValueError, match=r"name|valid"):
        granted({"sub": "7", "may_see": value}, users_claim="may_see")


@pytest.mark.parametrize(
    ("claims", "settings", "scopes"),
    [
        ({"scope": "read write admin"}, {}, {"read", "write", "admin"}),
        ({"scp": ["read", 7, None]}, {"scopes_claim": "scp"}, {"read"}),
        ({"scope": "siltstone:read write"}, {"scope_prefix": "siltstone:"}, {"read"}),
        ({"scope": "READ readers rea"}, {}, set()),
        ({"scope": {"read": True}}, {}, set()),
        ({}, {}, set()),
    ],
)
def test_scopes_are_words_or_a_list(claims: dict[str, Any], settings: dict[str, Any], scopes: set[str]) -> None:
    assert granted({"sub": "ann", **claims}, **settings)[1] == scopes


@pytest.mark.parametrize("algorithm", ["HS256", "none", "ES256K"])
def test_algorithms_with_a_shared_key_are_no_setting(algorithm: str) -> None:
    with pytest.raises(ValueError, match="algorithms"):
        OidcSettings(issuer="https://id.example", audience="a", algorithms=(algorithm,))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"issuer": "https://id.example"}, "audience: is empty"),
        ({"audience": "a"}, "issuer: is empty"),
        ({"issuer": "http://id.example", "audience": "a"}, "needs the form https"),
        ({"issuer": "file:///etc/passwd", "audience": "a"}, "needs the form https"),
        ({"issuer": "https://me:secret@id.example", "audience": "a"}, "needs the form https"),
    ],
)
def test_settings_that_would_let_in_anybody_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        OidcSettings(**given)
