"""The person who views the dashboard. The viewer's rights decide which screens and buttons are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request

from schemas.tokens import Scope
from streams.access.authorize import Principal
from streams.doors.http.asker import Asker
from streams.doors.ui.session import form_token, held

#: The principal of every viewer if no tokens are required. It has all rights for all users.
ANYBODY: Final = Principal("", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who views a page.

    `token` is the form token that the page's forms carry. If `logged_in` is true, the page offers a logout.
    """

    principal: Principal
    token: str
    logged_in: bool

    @property
    def sees_all(self) -> bool:
        """Return whether the viewer sees the screens about all users.

        A viewer whose token is limited to some users sees only `/ui/me`.
        """
        return self.principal.users is None and Scope.READ in self.principal.scopes

    @property
    def writes(self) -> bool:
        return Scope.WRITE in self.principal.scopes

    @property
    def administers(self) -> bool:
        return self.principal.users is None and Scope.ADMIN in self.principal.scopes

    @property
    def users(self) -> list[str]:
        """The users to which the viewer's token is limited. The list is empty if the token is for all users."""
        return sorted(self.principal.users or ())


def _viewer(request: Request, asker: Asker) -> Viewer:
    """Return the viewer of a request that the guard has admitted."""
    return Viewer(asker or ANYBODY, form_token(held(request.scope)), asker is not None)


Looking = Annotated[Viewer, Depends(_viewer)]
