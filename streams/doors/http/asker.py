"""The principal (the authenticated caller) of a request. The guard stores it in the request, and routes read it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends
from starlette.requests import HTTPConnection

from streams.access.authorize import Principal

_KEY: Final = "siltstone.principal"


def with_asker(scope: Any, principal: Principal) -> Any:
    """Return a copy of the ASGI scope that also holds the principal, so that routes can read it."""
    return {**scope, "state": {**scope.get("state", {}), _KEY: principal}}


def asker(connection: HTTPConnection) -> Principal | None:
    """Return the request's principal. It is None if no tokens are required, or if the route is open to everyone."""
    found = connection.scope.get("state", {}).get(_KEY)
    assert found is None or isinstance(found, Principal)
    return found


def sources_by(principal: Principal | None) -> list[str]:
    """Return the sources to record with the principal's writes.

    The list is empty if there is no principal. Then the default sources of the written data apply.
    """
    return [] if principal is None else principal.sources


Asker = Annotated[Principal | None, Depends(asker)]
