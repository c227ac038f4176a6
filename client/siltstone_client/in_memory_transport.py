"""The base class of the in-memory Siltstone: an httpx transport that answers requests without a worker."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import httpx

from siltstone_client.in_memory import Held, User

#: The HTTP status and the JSON of an answer.
Answered = tuple[int, Any]


class Refusal(Exception):
    """Raised by a route to answer with an error: `status` is the HTTP status, and `detail` has the reason."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


class InMemoryTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """An httpx transport that calls a Python function, the route, for each request.

    The route gets the fields of the request and the variable parts of its path. The fields are those of the query and
    of the body; a body that is a list is the field `messages`.
    """

    #: Method, path and handler of each route.
    routes: Sequence[tuple[str, re.Pattern[str], Callable[..., Answered]]] = ()

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._users: dict[str, User] = {}
        self._written = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        try:
            status, answer = self._answer(request)
        except Refusal as exc:
            status, answer = exc.status, {"detail": exc.detail}
        return httpx.Response(status, json=answer, request=request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        return self.handle_request(request)

    def _answer(self, request: httpx.Request) -> Answered:
        path, body = request.url.raw_path.decode().partition("?")[0], json.loads(request.content or b"null")
        fields = {
            **dict(request.url.params),
            **(body if isinstance(body, dict) else {"messages": body} if body else {}),
        }
        for method, pattern, route in self.routes:
            if method == request.method and (found := pattern.fullmatch(path)) is not None:
                return route(self, fields, *map(unquote, found.groups()))
        raise Refusal(404, f"there is no {request.method} {path}")

    def _user(self, fields: Mapping[str, Any]) -> User:
        user_id = fields.get("user_id")
        if not user_id:
            raise Refusal(422, "user_id: field required")
        return self._users.setdefault(user_id, User(user_id))

    def _memory(self, fields: Mapping[str, Any], memory_id: str) -> tuple[User, Held]:
        user, identity = self._user(fields), uuid.UUID(memory_id)
        if identity not in user.memories:
            raise Refusal(404, f"user {user.id} has no memory {identity}")
        return user, user.memories[identity]

    def _accepted(self, event_id: object, topic: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        offset, self._written = self._written, self._written + 1
        place: dict[str, Any] = {"topic": topic, "partition": 0, "offset": offset, "event_id": str(event_id)}
        return {**place, "token": f"{topic}-{offset}", "applied": True if "wait" in fields else None}

    def _moment(self, given: Any) -> datetime:
        if given is None:
            return self._now()
        if isinstance(given, int | float):
            return datetime.fromtimestamp(given / 1000, UTC)
        try:
            found = datetime.fromisoformat(given)
        except ValueError:
            raise Refusal(422, "timestamp: must be ISO 8601 or epoch milliseconds") from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def _as_of(self, fields: Any) -> datetime | None:
        """The moment at which memories must have held: the end of a day that is given."""
        given = str(fields.get("as_of") or "")
        whole_day = "T23:59:59.999+00:00" if len(given) == len("2026-03-14") else ""
        return self._moment(given + whole_day) if given else None

    def _validity(self, fields: Any) -> dict[str, Any]:
        """The fields of a memory's validity that the request has."""
        given = {name: fields.get(name) for name in ("valid_from", "valid_to")}
        return {name: self._moment(at) for name, at in given.items() if at is not None}
