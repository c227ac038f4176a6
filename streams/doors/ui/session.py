"""The login of the dashboard: a cookie, and its protection against other sites.

The cookie holds the token itself. So every worker knows it, also behind forwarding; no server keeps sessions; and a
revoked token is logged out at once. No script reads it (`HttpOnly`), no other site's request carries it
(`SameSite=Strict`), and it is sent only to `/ui`: for `/v1` it is no token. If no tokens are required, it holds a
random value, to which forms are bound in the same way.

A form carries `form_token`, a value derived from the cookie, which another site cannot read.
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
#: The most bytes of a cookie's name and value that browsers keep.
MOST_COOKIE_BYTES: Final = 4096
#: Longer `Cookie` headers are ignored.
_MOST_HEADER_BYTES: Final = 2 * MOST_COOKIE_BYTES
#: The most bytes of a form: a memory's text and the other fields, percent-encoded.
MOST_FORM_BYTES: Final = 1024 * 1024
_PURPOSE: Final = b"siltstone dashboard form"
_RANDOM_BYTES: Final = 32

_NOT_OURS: Final = "this form is not from this page, or the login has changed: load the page again"


def header_of(scope: Scope, name: bytes) -> str:
    """The first header of this name (in lower case); empty if there is none."""
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), "")


def held(scope: Scope) -> str:
    """The value of the cookie; empty if there is none.

    `http.cookies` is not used: its time grows with the square of the header's length, and this runs before any token
    is checked.
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
    """The value that a form of this session carries.

    >>> form_token("a") == form_token("a"), form_token("a") == form_token("b")
    (True, False)
    """
    return hmac.new(secret.encode(), _PURPOSE, sha256).hexdigest()


def fits(secret: str) -> bool:
    """Whether browsers keep a cookie with this value."""
    return len(COOKIE) + len(secret) <= MOST_COOKIE_BYTES


def cookie(value: str, secure: bool) -> str:
    """The `Set-Cookie` header; an empty value deletes the cookie. It ends when the browser is closed."""
    gone = "" if value else "; Max-Age=0"
    return f"{COOKIE}={value}; Path=/ui; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}{gone}"


def is_secure(request: Request) -> bool:
    """Whether the browser loaded its page by https. With a form, its `Origin` says so, regardless of a proxy."""
    headers = request.headers
    return (
        request.url.scheme == "https"
        or headers.get("x-forwarded-proto", "") == "https"
        or headers.get("origin", "").startswith("https://")
    )


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; of a repeated name, the last one. Raises `HTTPException`.

    `http/hosts.py` has already checked that no other site sent it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form must be sent as application/x-www-form-urlencoded")
    content = bytearray()
    if int(request.headers.get("content-length") or 0) <= MOST_FORM_BYTES:
        content += await request.body()
    if not content or len(content) > MOST_FORM_BYTES:
        raise HTTPException(413, f"a form must have between 1 and {MOST_FORM_BYTES} bytes")
    try:
        return dict(parse_qsl(content.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=100))
    except ValueError as exc:
        raise HTTPException(422, "the form cannot be read") from exc


async def protected_form(request: Request, fields: Annotated[dict[str, str], Depends(form)]) -> dict[str, str]:
    """The fields of a form, if its page was made for this session. Raises `HTTPException`."""
    given, secret = fields.pop(FIELD, "") or request.headers.get(HEADER, ""), held(request.scope)
    if not secret or not hmac.compare_digest(given.encode(), form_token(secret).encode()):
        raise HTTPException(403, _NOT_OURS)
    return fields


#: The form of each POST except the login.
Form = Annotated[dict[str, str], Depends(protected_form)]
#: The form of the login: there is no session yet.
LoginForm = Annotated[dict[str, str], Depends(form)]
