"""The viewer of the dashboard, who determines the screens and buttons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request

from schemas.tokens import Scope
from streams.access.authorize import Principal
from streams.doors.http.asker import Asker
from streams.doors.ui.session import form_token, held

#: The principal if no tokens are required: any user of this machine.
ANYBODY: Final = Principal("", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Viewer:
    """`token` is the value that the page's forms carry; `logged_in`: whether a logout is offered."""

    principal: Principal
    token: str
    logged_in: bool

    @property
    def sees_all(self) -> bool:
        """Whether the screens of all users are shown; a token bound to users shows only theirs."""
        return self.principal.users is None and Scope.READ in self.principal.scopes

    @property
    def writes(self) -> bool:
        return Scope.WRITE in self.principal.scopes

    @property
    def administers(self) -> bool:
        return self.principal.users is None and Scope.ADMIN in self.principal.scopes

    @property
    def users(self) -> list[str]:
        """The users of a bound token."""
        return sorted(self.principal.users or ())


def _viewer(request: Request, asker: Asker) -> Viewer:
    """The viewer of a request that the guard has admitted."""
    return Viewer(asker or ANYBODY, form_token(held(request.scope)), asker is not None)


Looking = Annotated[Viewer, Depends(_viewer)]
