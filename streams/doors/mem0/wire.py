"""Requests and refusals of mem0's API. A refusal has status 400 and one line in `detail`, which the client shows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, model_validator

from streams.access.authorize import Principal, authorize
from streams.doors.http.asker import Asker, asker, sources_by
from streams.doors.http.policies import READ, WRITE

#: The maximum number of seconds that a write waits until its effect can be read, so that the client's next search
#: finds it.
WAIT_SECONDS: Final = 10.0
UNNAMED: Final = (
    "user_id: name the user, with user_id in filters (in add: as a field): memories belong to users here; "
    "for an agent's own memories, name a user such as agent:guide"
)
#: Fields that mem0's client sends, but that have no effect. For instance, every search is hybrid, and every answer
#: has the format v1.1.
_NO_DIFFERENCE: Final = ("version", "output_format", "async_mode", "org_id", "project_id", "rerank", "keyword_search")


def refused(detail: str) -> HTTPException:
    return HTTPException(400, detail)


class WireRoute(APIRoute):
    """A route that refuses invalid input with 400 and one line of text. Routes of Siltstone's own API use 422."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as exc:
                raise refused("; ".join(map(_said, exc.errors()))) from exc

        return answered


def _said(error: Any) -> str:
    """Return the text of a validation error: the place of the invalid value in the request, and the message."""
    where = ".".join(str(part) for part in error["loc"][1:])
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown field: leave it out"
    why = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {why}" if where else why


class Body(BaseModel):
    """The body of a request. Unknown fields are refused instead of ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_what_makes_no_difference(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in _NO_DIFFERENCE and value is not None}


class Caller:
    """The caller of a route that finds the user itself. `principal` is None if no tokens are required."""

    def __init__(self, principal: Principal | None, writes: bool) -> None:
        self._principal, self._scope = principal, WRITE if writes else READ

    @property
    def users(self) -> frozenset[str] | None:
        """The users whose memories the caller may access. None means that the caller may access all users."""
        return None if self._principal is None else self._principal.users

    @property
    def sources(self) -> list[str]:
        """The sources to record with the caller's writes."""
        return sources_by(self._principal)

    def user(self, named: str | None) -> str:
        """Return the user of a request, after a check that the caller may access this user.

        If the caller's token is of one user, the request may omit the user. Raises `OtherUser` or `ScopeMissing` if
        the token does not allow the access, and an `HTTPException` (400) if the user is missing.
        """
        if named is None:
            named = self._principal.only_user if self._principal else None
            if named is None:
                raise refused(UNNAMED)
        if self._principal is not None:
            authorize(self._principal, named, self._scope)
        return named


def _reader(principal: Asker) -> Caller:
    return Caller(principal, writes=False)


def _writer(request: Request) -> Caller:
    """Return the caller of a write.

    A write waits until its effect can be read. A worker that forwards the request must wait for the same time.
    """
    request.state.waits = WAIT_SECONDS
    return Caller(asker(request), writes=True)


Reader = Annotated[Caller, Depends(_reader)]
Writer = Annotated[Caller, Depends(_writer)]
