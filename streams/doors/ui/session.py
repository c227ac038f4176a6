"""The cookie of the dashboard's login, and its protection against other sites.

The cookie contains the token itself. So every worker can check it, no worker keeps sessions, and a revoked token ends
the login immediately. Scripts cannot read the cookie (`HttpOnly`). Browsers do not send it with requests from other
sites (`SameSite=Strict`). They send it only to `/ui`, so it gives no access to `/v1`. If no tokens are required, the
cookie contains a random value.

A form carries `form_token`. This value is derived from the cookie, and other sites cannot read it.
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
#: The maximum size of a cookie that browsers keep: name and value together, in bytes.
MOST_COOKIE_BYTES: Final = 4096
#: The maximum length of a `Cookie` header, in bytes. A longer header is ignored.
_MOST_HEADER_BYTES: Final = 2 * MOST_COOKIE_BYTES
#: The maximum size of a form, in bytes: a memory's text and the other fields, percent-encoded.
MOST_FORM_BYTES: Final = 1024 * 1024
_PURPOSE: Final = b"siltstone dashboard form"
_RANDOM_BYTES: Final = 32

_NOT_OURS: Final = "this form is not from this page, or the login has changed: load the page again"


def header_of(scope: Scope, name: bytes) -> str:
    """Return the value of the first header with this name (lower case), or an empty text if there is none."""
    return next((value.decode("latin-1") for one, value in scope["headers"] if one == name), "")


def held(scope: Scope) -> str:
    """Return the value of the dashboard's cookie, or an empty text if there is none.

    `http.cookies` is not used, because its time grows with the square of the header's length. This function runs
    before a token is checked, so anyone could send long headers.
    """
    given = header_of(scope, b"cookie")
    if len(given) > _MOST_HEADER_BYTES:
        return ""
    cookies = (one.strip().partition("=") for one in given.split(";"))
    return next((value for name, _, value in cookies if name == COOKIE and '"' not in value), "")


def anonymous() -> str:
    """Return a random value for the cookie of a browser that needs no token."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def form_token(secret: str) -> str:
    """Return the value that the dashboard's forms carry while the cookie has the value `secret`.

    >>> form_token("a") == form_token("a"), form_token("a") == form_token("b")
    (True, False)
    """
    return hmac.new(secret.encode(), _PURPOSE, sha256).hexdigest()


def fits(secret: str) -> bool:
    """Return whether the cookie with this value is small enough for browsers to keep it."""
    return len(COOKIE) + len(secret) <= MOST_COOKIE_BYTES


def cookie(value: str, secure: bool) -> str:
    """Return the value of the `Set-Cookie` header. An empty `value` deletes the cookie.

    The cookie has no expiry time, so browsers also delete it when they are closed.
    """
    gone = "" if value else "; Max-Age=0"
    return f"{COOKIE}={value}; Path=/ui; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}{gone}"


def is_secure(request: Request) -> bool:
    """Return whether the browser loaded the page by https.

    Behind a proxy, the worker may be reached by http although the page was loaded by https. The `Origin` of a form
    still shows https.
    """
    headers = request.headers
    return (
        request.url.scheme == "https"
        or headers.get("x-forwarded-proto", "") == "https"
        or headers.get("origin", "").startswith("https://")
    )


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a form. If a name is repeated, the last value counts.

    Raises `HTTPException` if the body is not a form, or is empty, too large or malformed. `http/hosts.py` has already
    checked that no other site sent the form.
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
    """Return the fields of a form. Raises `HTTPException` (403) if its page was not made for the current cookie."""
    given, secret = fields.pop(FIELD, "") or request.headers.get(HEADER, ""), held(request.scope)
    if not secret or not hmac.compare_digest(given.encode(), form_token(secret).encode()):
        raise HTTPException(403, _NOT_OURS)
    return fields


#: The fields of a form that carries `form_token`. All POST routes except the login use it.
Form = Annotated[dict[str, str], Depends(protected_form)]
#: The fields of the login form. It carries no `form_token`, because there may be no cookie yet.
LoginForm = Annotated[dict[str, str], Depends(form)]
