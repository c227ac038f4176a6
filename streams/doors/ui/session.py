"""Who is logged in to the dashboard: a cookie, and what keeps other sites from using it.

The cookie holds the token itself. So any worker knows it, also behind forwarding, nothing is kept on a server, and a
token that is revoked is logged out at once. No script reads it (`HttpOnly`), no other site's request carries it
(`SameSite=Strict`), and it goes to `/ui` alone: for `/v1` it is no token. Where no tokens are asked for, it holds a
random value, which forms are bound to just as well.

A form carries a value that is made of the cookie, which another site cannot read: `form_token`.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from starlette.types import Scope

COOKIE: Final = "siltstone_session"
FIELD: Final = "form_token"
HEADER: Final = "x-form-token"
#: What browsers keep of a cookie: its name and value, in bytes.
MOST_COOKIE_BYTES: Final = 4096
#: Longer `Cookie` headers are ignored.
_MOST_HEADER_BYTES: Final = 2 * MOST_COOKIE_BYTES
#: Of a form: a memory's text and what is around it, percent-encoded.
MOST_FORM_BYTES: Final = 1024 * 1024
_PURPOSE: Final = b"siltstone dashboard form"
_RANDOM_BYTES: Final = 32

_NOT_OURS: Final = "this form is not of this page, or the login has changed: load the page again"


def header_of(scope: Scope, name: bytes) -> str:
    """The first header of this name (in lower case); empty where there is none."""
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), "")


def held(scope: Scope) -> str:
    """What the cookie holds; empty where there is none.

    `http.cookies` takes time that grows with the square of the header's length, and this is asked before any token.
    """
    given = header_of(scope, b"cookie")
    if len(given) > _MOST_HEADER_BYTES:
        return ""
    cookies = (one.strip().partition("=") for one in given.split(";"))
    return next((value for name, _, value in cookies if name == COOKIE and '"' not in value), "")


def anonymous() -> str:
    """A value for the cookie of a browser that needs no token."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def form_token(secret: str) -> str:
    """What a form of this session carries.

    >>> form_token("a") == form_token("a"), form_token("a") == form_token("b")
    (True, False)
    """
    return hmac.new(secret.encode(), _PURPOSE, sha256).hexdigest()


def fits(secret: str) -> bool:
    """Whether browsers keep it."""
    return len(COOKIE) + len(secret) <= MOST_COOKIE_BYTES


def cookie(value: str, secure: bool) -> str:
    """The `Set-Cookie` header; an empty value takes the cookie back. It ends with the browser."""
    gone = "" if value else "; Max-Age=0"
    return f"{COOKIE}={value}; Path=/ui; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}{gone}"


def is_secure(request: Request) -> bool:
    """Whether the browser has its page by https. With a form, the browser says so itself, regardless of a proxy."""
    headers = request.headers
    return (
        request.url.scheme == "https"
        or headers.get("x-forwarded-proto", "") == "https"
        or headers.get("origin", "").startswith("https://")
    )


async def form(request: Request) -> dict[str, str]:
    """Its fields; of a name that comes twice, the last one. Raises `HTTPException`.

    That no other site has sent it is asked before (`http/hosts.py`).
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form is sent as application/x-www-form-urlencoded")
    content = bytearray()
    if int(request.headers.get("content-length") or 0) <= MOST_FORM_BYTES:
        content += await request.body()
    if not content or len(content) > MOST_FORM_BYTES:
        raise HTTPException(413, f"a form has between 1 and {MOST_FORM_BYTES} bytes")
    try:
        return dict(parse_qsl(content.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=100))
    except ValueError as exc:
        raise HTTPException(422, "the form cannot be read") from exc


async def protected_form(request: Request, fields: Annotated[dict[str, str], Depends(form)]) -> dict[str, str]:
    """The fields of a form of a page that this session was given."""
    given, secret = fields.pop(FIELD, "") or request.headers.get(HEADER, ""), held(request.scope)
    if not secret or not hmac.compare_digest(given.encode(), form_token(secret).encode()):
        raise HTTPException(403, _NOT_OURS)
    return fields


#: What each POST but the login takes.
Form = Annotated[dict[str, str], Depends(protected_form)]
#: The login's: there is no session yet.
LoginForm = Annotated[dict[str, str], Depends(form)]
