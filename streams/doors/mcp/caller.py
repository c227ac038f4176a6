"""Who calls a tool: in the context of the request that is being answered, since tools are not given the request."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request

from schemas.tokens import Scope
from streams.access.authorize import Principal, authorize
from streams.doors.http.asker import asker

#: What of a request says who asks, and from where; it goes along with what a tool asks of the API.
_PASSED_ON: Final = ("authorization", "cookie", "host", "origin")
#: Where no tokens are asked for, everybody on the machine may ask for everything.
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
        """Raises `AccessDenied` where the caller may not do this, with the memories of the user that is meant."""
        authorize(self.principal, self.principal.only_user if user_id is None else user_id, scope)


CALLER: Final = ContextVar[Caller]("siltstone.mcp.caller")
