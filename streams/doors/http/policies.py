"""The policy of each route: the users that the route is about, and the scope that it requires.

If tokens are required, the guard answers 404 for a route without a policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from starlette.routing import compile_path

from schemas.tokens import Scope

#: The names of the field that has the user's id in a request. Routes accept both spellings.
USER_NAMES: Final = ("user_id", "userId")


class About(Enum):
    """The users that a route is about, and the part of the request to which the guard adds an omitted user."""

    PUBLIC = "no user: the API's own description"
    PROBE = "the worker: whether it lives, is ready, and its metrics"
    QUERY = "one user: the parameter user_id"
    BODY = "one user: the body's user_id"
    PAGE = "one user: the parameter user_id; the other fields of a form name no user"
    FOUND = "one user, whom the route finds out: it asks `authorize` itself, before anything is read or written"
    ANYBODY = "no user: it takes any valid token"
    SCOPED = "no user: it takes a valid token with any scope"
    ALL = "all users at once"


class Policy(NamedTuple):
    about: About
    scope: Scope


READ, WRITE, ADMIN = Scope.READ, Scope.WRITE, Scope.ADMIN

POLICIES: Final[dict[str, Policy]] = {
    "GET /docs": Policy(About.PUBLIC, READ),
    "GET /redoc": Policy(About.PUBLIC, READ),
    "GET /docs/files/{name}": Policy(About.PUBLIC, READ),
    "GET /openapi.json": Policy(About.PUBLIC, READ),
    "GET /healthz": Policy(About.PROBE, READ),
    "GET /readyz": Policy(About.PROBE, READ),
    "GET /metrics": Policy(About.PROBE, READ),
    "GET /v1/applied": Policy(About.SCOPED, READ),
    "GET /mcp": Policy(About.ANYBODY, READ),  # GET and DELETE get 405: there are no streams or sessions.
    "POST /mcp": Policy(About.ANYBODY, READ),  # POST calls a tool. `TOOLS` has its scope.
    "DELETE /mcp": Policy(About.ANYBODY, READ),
    "POST /v1/messages": Policy(About.BODY, WRITE),
    "GET /v1/sessions/{session_id:path}/exchanges": Policy(About.QUERY, READ),
    "GET /v1/sessions/{session_id:path}/decisions": Policy(About.QUERY, READ),
    "GET /v1/sessions/{session_id:path}/memories": Policy(About.QUERY, READ),
    "POST /v1/sessions/{session_id:path}/end": Policy(About.QUERY, WRITE),
    "GET /v1/context": Policy(About.QUERY, READ),
    "POST /v1/search": Policy(About.BODY, READ),
    "GET /v1/profile": Policy(About.QUERY, READ),
    "GET /v1/memories": Policy(About.QUERY, READ),
    "POST /v1/memories": Policy(About.BODY, WRITE),
    "DELETE /v1/memories": Policy(About.QUERY, WRITE),
    "GET /v1/memories/{memory_id}": Policy(About.QUERY, READ),
    "PATCH /v1/memories/{memory_id}": Policy(About.BODY, WRITE),
    "DELETE /v1/memories/{memory_id}": Policy(About.QUERY, WRITE),
    "GET /v1/memories/{memory_id}/history": Policy(About.QUERY, READ),
    "PUT /v1/memories/{memory_id}/pin": Policy(About.QUERY, WRITE),
    "DELETE /v1/memories/{memory_id}/pin": Policy(About.QUERY, WRITE),
    "GET /v1/memories/{memory_id}/links": Policy(About.QUERY, READ),
    "GET /v1/memories/{memory_id}/related": Policy(About.QUERY, READ),
    "POST /v1/memories/{memory_id}/supersede": Policy(About.BODY, WRITE),
    "POST /v1/links": Policy(About.BODY, WRITE),
    "DELETE /v1/links": Policy(About.QUERY, WRITE),
    "GET /v1/erasures": Policy(About.QUERY, READ),
    "GET /v1/archive": Policy(About.QUERY, READ),
    "POST /v1/archive": Policy(About.BODY, WRITE),
    "POST /v1/archive/deprecated": Policy(About.BODY, WRITE),
    "POST /v1/archive/search": Policy(About.BODY, READ),
    "POST /v1/archive/{memory_id}/restore": Policy(About.BODY, WRITE),
    "DELETE /v1/archive/{memory_id:uuid}": Policy(About.QUERY, WRITE),
    "GET /v1/archive/cleanup": Policy(About.QUERY, READ),
    "POST /v1/archive/cleanup": Policy(About.BODY, ADMIN),
    "GET /v1/summaries": Policy(About.QUERY, READ),
    "POST /v1/summaries": Policy(About.BODY, WRITE),
    "GET /v1/summaries/{date}": Policy(About.QUERY, READ),
    "GET /v1/stats/states": Policy(About.ALL, READ),
    "GET /v1/stats/transitions": Policy(About.ALL, READ),
    "GET /v1/stats/scores": Policy(About.ALL, READ),
    "GET /v1/stats/pipeline": Policy(About.ALL, READ),
    "POST /v1/snapshot": Policy(About.ALL, ADMIN),
    "GET /v1/reembed": Policy(About.ALL, ADMIN),
    "POST /v1/reembed": Policy(About.ALL, ADMIN),
    "DELETE /v1/reembed": Policy(About.ALL, ADMIN),
    "GET /v1/export": Policy(About.QUERY, READ),
    "GET /v1/ping/": Policy(About.ANYBODY, READ),
    "POST /v3/memories/add/": Policy(About.FOUND, WRITE),
    "POST /v3/memories/": Policy(About.FOUND, READ),
    "POST /v3/memories/search/": Policy(About.FOUND, READ),
    "GET /v1/memories/{memory_id}/": Policy(About.FOUND, READ),
    "PUT /v1/memories/{memory_id}/": Policy(About.FOUND, WRITE),
    "DELETE /v1/memories/{memory_id}/": Policy(About.FOUND, WRITE),
    "GET /v1/memories/{memory_id}/history/": Policy(About.FOUND, READ),
    "DELETE /v1/memories/": Policy(About.FOUND, WRITE),
    "GET /v1/entities/": Policy(About.FOUND, READ),
    "DELETE /v2/entities/{kind}/{name:path}/": Policy(About.FOUND, WRITE),
    "GET /v1/checkpoints": Policy(About.ALL, ADMIN),
    "GET /v1/checkpoints/{partition}": Policy(About.ALL, ADMIN),
    "POST /v1/checkpoints/{partition}": Policy(About.ALL, ADMIN),
    "GET /ui": Policy(About.PUBLIC, READ),
    "GET /ui/start": Policy(About.ANYBODY, READ),
    "GET /ui/static/{name}": Policy(About.PUBLIC, READ),
    "GET /ui/login": Policy(About.PUBLIC, READ),
    "POST /ui/login": Policy(About.PUBLIC, READ),
    "POST /ui/logout": Policy(About.PUBLIC, READ),
    "GET /ui/worker": Policy(About.ALL, READ),
    "GET /ui/worker/flow": Policy(About.ALL, READ),
    "GET /ui/worker/people": Policy(About.ALL, READ),
    "GET /ui/worker/lifecycle": Policy(About.ALL, READ),
    "GET /ui/overview": Policy(About.ALL, READ),
    "GET /ui/overview/now": Policy(About.ALL, READ),
    "GET /ui/overview/charts": Policy(About.ALL, READ),
    "GET /ui/flow": Policy(About.ALL, READ),
    "GET /ui/flow/steps": Policy(About.ALL, READ),
    "GET /ui/sessions": Policy(About.ALL, READ),
    "GET /ui/session": Policy(About.ALL, READ),
    "GET /ui/memories": Policy(About.ALL, READ),
    "GET /ui/memories/{memory_id}": Policy(About.ALL, READ),
    "POST /ui/memories/{memory_id}/pin": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/unpin": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/edit": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/supersede": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/hold": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/archive": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/restore": Policy(About.PAGE, WRITE),
    "POST /ui/memories/{memory_id}/forget": Policy(About.PAGE, WRITE),
    "GET /ui/search": Policy(About.ALL, READ),
    "GET /ui/lifecycle": Policy(About.ALL, READ),
    "GET /ui/dead-letters": Policy(About.ALL, ADMIN),
    "POST /ui/dead-letters/{partition}/{offset}": Policy(About.ALL, ADMIN),
    "GET /ui/me": Policy(About.PAGE, READ),
    "GET /ui/me/notes/{date}": Policy(About.PAGE, READ),
    "GET /ui/me/export": Policy(About.PAGE, READ),
    "POST /ui/me/forget": Policy(About.PAGE, WRITE),
}

#: The scope that each MCP tool requires for a user's memories. A tool without an entry is not offered to clients.
TOOLS: Final[dict[str, Scope]] = {
    "remember": WRITE,
    "search_memory": READ,
    "get_context": READ,
    "get_profile": READ,
    "list_memories": READ,
    "get_memory": READ,
    "update_memory": WRITE,
    "forget_memory": WRITE,
    "memory_history": READ,
    "daily_summary": READ,
}

_ROUTES: Final = [
    (method, *compile_path(template)[:2], policy)
    for (method, _, template), policy in ((name.partition(" "), policy) for name, policy in POLICIES.items())
]


def policies_of(method: str, path: str) -> Iterator[Policy]:
    """Yield the policies of all routes that match the request. The request must satisfy each of them.

    If no route matches, nothing is yielded.
    """
    return (policy for _, policy in _matching(method, path))


def route_of(method: str, path: str) -> str | None:
    """Return the template of the first matching route, for instance `/v1/memories/{memory_id}`.

    Return None if no route matches.
    """
    return next((template for template, _ in _matching(method, path)), None)


def _matching(method: str, path: str) -> Iterator[tuple[str, Policy]]:
    method = "GET" if method == "HEAD" else method
    return ((template, policy) for one, pattern, template, policy in _ROUTES if one == method and pattern.match(path))


def methods_of(path: str) -> str:
    """Return the methods of all routes at this path, as the value of the header `Allow`.

    The text is empty if there is no route.
    """
    return ", ".join(sorted({method for method, pattern, _, _ in _ROUTES if pattern.match(path)}))
