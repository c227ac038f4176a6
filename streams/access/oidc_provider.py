"""Fetches and caches the public keys of an OpenID Connect provider.

Their address is in `access.oidc.jwks_url`. If that is not set, it is in the provider's discovery document.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt
from pydantic import TypeAdapter, ValidationError

from schemas.errors import ProviderUnavailable
from schemas.settings.oidc import OidcSettings, ProviderUrl
from streams.runtime.background import in_background

log = logging.getLogger(__name__)

#: The maximum number of seconds for one answer of the provider (`ANSWER_SECONDS`), and for the whole fetch of the
#: keys (`ALL_SECONDS`).
ANSWER_SECONDS: Final = 5.0
ALL_SECONDS: Final = 12.0
#: Keys up to this age (seconds) are used without a request to the provider.
FRESH_SECONDS: Final = 300.0
#: Keys up to this age (seconds) are used while they are fetched again in the background. If the keys are older, the
#: token that starts the fetch waits for it.
LOOKED_AT_SECONDS: Final = 2 * FRESH_SECONDS
#: The maximum age (seconds) of keys that are used while a fetch is running, or after the last fetch has failed.
KEPT_SECONDS: Final = 3600.0
#: The minimum number of seconds between two requests to the provider, regardless of the number of tokens that arrive.
PAUSE_SECONDS: Final = 10.0

_SETTINGS_TODO: Final = "correct access.oidc.issuer, or set access.oidc.jwks_url"
_WAY_TODO: Final = "check the provider, and the network to it"
_Keys = Mapping[str, jwt.PyJWK]


class ProviderKeys:
    """A cache of the provider's keys by id. A token's check starts a fetch if needed; there is one fetch at a time.

    `clock` gives monotonic seconds. A key that the provider withdraws stays valid for `FRESH_SECONDS`, and then until
    the end of the fetch that the next token starts. While a fetch is running, or after it has failed, a token whose
    key is known and at most `KEPT_SECONDS` old is checked at once, with this key.
    """

    def __init__(self, fetch: Callable[[], _Keys], clock: Callable[[], float]) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: _Keys = {}
        self._had_at = self._tried_at = float("-inf")
        self._failure: ProviderUnavailable | None = None
        self._asking: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> jwt.PyJWK | None:
        """Return the key with the id `kid`, or None if the provider has no such key.

        Raises `ProviderUnavailable` if the provider gives no keys, and no known key may be used instead.
        """
        found = self._keys.get(kid)
        if found is not None and self._age < FRESH_SECONDS:
            return found
        if found is not None and self._good_meanwhile:
            self._look()
            return found
        if (asking := self._look()) is not None:
            await asyncio.shield(asking)  # other requests wait for this fetch too: a cancelled one must not end it
        if self._failure is None:
            return self._keys.get(kid)
        if kid in self._keys and self._age < KEPT_SECONDS:
            return self._keys[kid]
        raise self._failure

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    @property
    def _age(self) -> float:
        return self._clock() - self._had_at

    @property
    def _good_meanwhile(self) -> bool:
        """True if a known key may be used while all keys are fetched again."""
        troubled = self._failure is not None or self._asking is not None
        return self._age < (KEPT_SECONDS if troubled else LOOKED_AT_SECONDS)

    def _look(self) -> asyncio.Task[None] | None:
        """Return the running fetch of the keys. If none is running, start one.

        Returns None if the last fetch ended less than `PAUSE_SECONDS` ago, because then no fetch may start yet.
        """
        if self._asking is None and self._clock() - self._tried_at >= PAUSE_SECONDS:
            self._asking = asyncio.create_task(self._renew())
        return self._asking

    async def _renew(self) -> None:
        self._tried_at = self._clock()
        try:
            self._keys = await keys_in_time(self._fetch)
            self._had_at, self._failure = self._clock(), None
        except ProviderUnavailable as exc:
            log.warning("access.oidc: its tokens cannot be checked: %s; %s", exc.why, exc.todo)
            self._failure = exc
        finally:
            self._tried_at, self._asking = self._clock(), None


async def keys_in_time(fetch: Callable[[], _Keys]) -> _Keys:
    """Fetch the keys in a thread. Raises `ProviderUnavailable` if that fails or takes more than `ALL_SECONDS`."""
    try:
        async with asyncio.timeout(ALL_SECONDS):
            return await in_background(fetch, "oidc-keys")
    except TimeoutError as exc:
        raise ProviderUnavailable("there was no answer in time", _WAY_TODO) from exc


def fetched_keys(oidc: OidcSettings) -> dict[str, jwt.PyJWK]:
    """Fetch the signing keys, and return them by id. This blocks the thread. Raises `ProviderUnavailable`.

    Keys without an id, and keys for algorithms that the settings do not allow, are left out.
    """
    url = oidc.jwks_url or _discovered(oidc)
    client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=ANSWER_SECONDS)
    try:
        found = client.get_signing_keys()
    except jwt.PyJWKClientConnectionError as exc:
        raise ProviderUnavailable(
            f"{_where(url)} does not give the keys", "check the provider, or correct access.oidc.jwks_url"
        ) from exc
    except (jwt.PyJWTError, ValueError, OSError, RecursionError) as exc:
        raise ProviderUnavailable(
            f"the answer of {_where(url)} contains no keys ({type(exc).__name__})", "correct access.oidc.jwks_url"
        ) from exc
    usable = {key.key_id: key for key in found if key.key_id and key.algorithm_name in oidc.algorithms}
    if not usable:
        kinds = ", ".join(sorted({key.algorithm_name for key in found}))
        raise ProviderUnavailable(
            f"{_where(url)} has no keys for {', '.join(oidc.algorithms)} (only for {kinds})",
            "name the provider's algorithm in access.oidc.algorithms",
        )
    return usable


def _discovered(oidc: OidcSettings) -> str:
    """Fetch the provider's discovery document, and return the URL of the keys in it.

    The document must name our issuer. Otherwise the keys of another issuer would be trusted.
    """
    url = f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        answer = httpx.get(url, timeout=ANSWER_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise ProviderUnavailable(f"{_where(url)} does not answer ({type(exc).__name__})", _WAY_TODO) from exc
    if answer.status_code != HTTPStatus.OK:
        raise ProviderUnavailable(f"{_where(url)} has no discovery document ({answer.status_code})", _SETTINGS_TODO)
    try:
        document: Any = answer.json()
        issuer, address = document["issuer"], document["jwks_uri"]
        keys_at = TypeAdapter(ProviderUrl).validate_python(address)
    except (ValueError, KeyError, TypeError, ValidationError, RecursionError) as exc:
        raise ProviderUnavailable(
            f"the discovery document of {_where(url)} names no issuer, or no keys at https://", _SETTINGS_TODO
        ) from exc
    if issuer != oidc.issuer or not keys_at:
        raise ProviderUnavailable(
            f"the discovery document of {_where(url)} is another issuer's",
            "set access.oidc.issuer exactly as in the document, to the last slash",
        )
    return str(keys_at)


def _where(url: str) -> str:
    """Return the host and port of a URL for error messages. The path is left out, because it may be confidential."""
    return urlsplit(url).netloc
