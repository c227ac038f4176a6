"""The caller of an MCP tool. It is stored in a context variable, because tools do not receive the HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request

from schemas.tokens import Scope
from streams.access.authorize import Principal, authorize
from streams.doors.http.asker import asker

#: Headers that identify the caller and its web page. A tool's requests to the API carry the same headers.
_PASSED_ON: Final = ("authorization", "cookie", "host", "origin")
#: The principal of every caller if no tokens are required. It has all rights for all users.
_ANYBODY: Final = Principal("anybody", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's principal, and the headers by which the API recognizes the caller."""

    principal: Principal
    headers: Mapping[str, str]

    @classmethod
    def of(cls, request: Request) -> Self:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        return cls(asker(request) or _ANYBODY, headers)

    def admit(self, user_id: str | None, scope: Scope) -> None:
        """Check that the caller has the scope for this user. Otherwise raises `AccessDenied`.

        If `user_id` is None, check the only user of the caller's token, or all users if the token is not of one user.
        """
        authorize(self.principal, self.principal.only_user if user_id is None else user_id, scope)


CALLER: Final = ContextVar[Caller]("siltstone.mcp.caller")
