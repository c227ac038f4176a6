"""The MCP resource: who a user is. It is what the tool `get_profile` tells, for clients that attach resources."""

from __future__ import annotations

from typing import Final

from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, Resource

from schemas.errors import AccessDenied
from streams.access.authorize import Principal
from streams.doors.http.policies import TOOLS
from streams.doors.mcp import rendering
from streams.doors.mcp.caller import CALLER
from streams.doors.mcp.own_api import OwnApi, Refused

PROFILE: Final = "siltstone://users/{user_id}/profile"
NAME: Final = "profile"
TITLE: Final = "Who the user is"
DESCRIPTION: Final = "Pinned memories, home, job, people, likes, and appointments to come, in at most 300 tokens."
MIME_TYPE: Final = "text/plain"
_URIS: Final = UriTemplate.parse(PROFILE)


def may_read(principal: Principal) -> bool:
    """Return whether the scopes of the principal allow it to read profiles."""
    return TOOLS["get_profile"] in principal.scopes


def listed(principal: Principal) -> list[Resource]:
    """Return the resources to list: the profile of the principal's only user. Of several users, none is chosen."""
    user = principal.only_user
    if user is None or not may_read(principal):
        return []
    uri = _URIS.expand({"user_id": user})
    return [Resource(uri=uri, name=NAME, title=TITLE, description=DESCRIPTION, mime_type=MIME_TYPE)]


class Profiles:
    """The text of users' profiles, from the worker's own API."""

    def __init__(self, api: OwnApi) -> None:
        self._ask = api.ask

    async def text(self, user_id: str) -> str:
        """Return the text of the tool `get_profile`. Raises `MCPError` with the text of its refusal."""
        try:
            CALLER.get().admit(user_id, TOOLS["get_profile"])
            return rendering.profile(await self._ask("GET", "/v1/profile", params={"user_id": user_id}))
        except AccessDenied as exc:
            raise MCPError(INVALID_PARAMS, str(exc)) from exc
        except Refused as exc:
            raise MCPError(INVALID_PARAMS if exc.status < 500 else INTERNAL_ERROR, str(exc)) from exc
