"""An OpenID Connect provider on a free loopback port, with keys of its own: it signs what tests want signed.

with Provider() as provider:
    settings = provider.settings()
    provider.token(sub="ann", scope="read")
    provider.asked        # the paths that were asked for, in order
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final, Self

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from schemas.settings.oidc import OidcSettings

AUDIENCE: Final = "siltstone-api"
DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/keys"

_KINDS: Final[dict[str, tuple[Callable[[], Any], Any]]] = {
    "RS256": (lambda: rsa.generate_private_key(65_537, 2048), RSAAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
}


class Provider:
    """`answers` says what a path is answered with instead: a status, or a body. Keys are added by `rotate`."""

    def __init__(self) -> None:
        self.private: dict[str, tuple[Any, str]] = {}
        self.published: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.answers: dict[str, int | bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/realm/"
        self.rotate("first", "RS256")

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def keys_url(self) -> str:
        return f"{self.issuer.removesuffix('/')}{KEYS}"

    def rotate(self, kid: str, algorithm: str) -> None:
        """A new key, that is published beside the older ones."""
        make, kind = _KINDS[algorithm]
        key = make()
        public = kind.to_jwk(key.public_key(), as_dict=True)
        self.private[kid] = key, algorithm
        self.published[kid] = {**public, "kid": kid, "use": "sig", "alg": algorithm}

    def settings(self, **changes: Any) -> OidcSettings:
        return OidcSettings(**{"issuer": self.issuer, "audience": AUDIENCE, **changes})

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Those of a sound token; None takes one away."""
        now = int(time.time())
        sound = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "ann",
            "iat": now,
            "exp": now + 600,
            "scope": "read write",
        }
        return {name: value for name, value in {**sound, **changes}.items() if value is not None}

    def token(self, kid: str = "first", **changes: Any) -> str:
        """Signed by a key of ours, with these claims in the place of a sound token's."""
        key, algorithm = self.private[kid]
        return jwt.encode(self.claims(**changes), key, algorithm, headers={"kid": kid})

    def answer(self, path: str) -> tuple[int, bytes]:
        path = path.removeprefix("/realm")
        self.asked.append(path)
        said = self.answers.get(path)
        if isinstance(said, int):
            return said, b""
        documents: dict[str, Any] = {
            DISCOVERY: {"issuer": self.issuer, "jwks_uri": self.keys_url},
            KEYS: {"keys": list(self.published.values())},
        }
        if said is None and path not in documents:
            return 404, b""
        return 200, said or orjson.dumps(documents[path])


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = provider.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the tests look at `asked`."""

    return Handler
