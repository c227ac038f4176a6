"""The caller of a tool, kept in the context of the current request, since tools do not get the request."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request

from schemas.tokens import Scope
from streams.access.authorize import Principal, authorize
from streams.doors.http.asker import asker

#: Headers that identify the caller and its page; a tool's requests to the API carry them too.
_PASSED_ON: Final = ("authorization", "cookie", "host", "origin")
#: If no tokens are required, every user of the machine may do everything.
_ANYBODY: Final = Principal("anybody", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal, and the headers that prove it."""

    principal: Principal
    headers: Mapping[str, str]

    @classmethod
    def of(cls, request: Request) -> Self:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        return cls(asker(request) or _ANYBODY, headers)

    def admit(self, user_id: str | None, scope: Scope) -> None:
        """Raises `AccessDenied` if the caller may not do this with the user's memories. None: the token's user."""
        authorize(self.principal, self.principal.only_user if user_id is None else user_id, scope)


CALLER: Final = ContextVar[Caller]("siltstone.mcp.caller")
