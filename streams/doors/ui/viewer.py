"""The viewer of the dashboard. The shown screens and buttons depend on the viewer's rights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request

from schemas.tokens import Scope
from streams.access.authorize import Principal
from streams.doors.http.asker import Asker
from streams.doors.ui.session import form_token, held

#: The principal if no tokens are required: any user of this machine has all rights.
ANYBODY: Final = Principal("", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who views a page.

    `token` is the form token that the page's forms carry. If `logged_in`, the page offers a logout.
    """

    principal: Principal
    token: str
    logged_in: bool

    @property
    def sees_all(self) -> bool:
        """Whether the viewer sees the screens about all users.

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
        """The users to which the viewer's token is limited; empty if it is for all users."""
        return sorted(self.principal.users or ())


def _viewer(request: Request, asker: Asker) -> Viewer:
    """The viewer of a request that the guard has admitted."""
    return Viewer(asker or ANYBODY, form_token(held(request.scope)), asker is not None)


Looking = Annotated[Viewer, Depends(_viewer)]
