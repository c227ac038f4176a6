"""The principal of a request. The guard attaches it to the request, and routes read it from there."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends
from starlette.requests import HTTPConnection

from streams.access.authorize import Principal

_KEY: Final = "siltstone.principal"


def with_asker(scope: Any, principal: Principal) -> Any:
    """The ASGI scope with this principal attached."""
    return {**scope, "state": {**scope.get("state", {}), _KEY: principal}}


def asker(connection: HTTPConnection) -> Principal | None:
    """The request's principal; None if the worker requires no tokens, or the route is open to everyone."""
    found = connection.scope.get("state", {}).get(_KEY)
    assert found is None or isinstance(found, Principal)
    return found


def sources_by(principal: Principal | None) -> list[str]:
    """The sources to record with the principal's writes.

    Empty if there is no principal: then the default sources of the written data apply.
    """
    return [] if principal is None else principal.sources


Asker = Annotated[Principal | None, Depends(asker)]
