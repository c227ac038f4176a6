"""Who looks at the dashboard, and so which screens and buttons there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request

from schemas.tokens import Scope
from streams.access.authorize import Principal
from streams.doors.http.asker import Asker
from streams.doors.ui.session import form_token, held

#: Where no tokens are asked for: any user of this machine.
ANYBODY: Final = Principal("", None, frozenset(Scope))


@dataclass(frozen=True, slots=True)
class Viewer:
    """`token` is what the forms of the page carry; `logged_in` is whether there is a way to log out."""

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
        """Those that a bound token has to choose from."""
        return sorted(self.principal.users or ())


def _viewer(request: Request, asker: Asker) -> Viewer:
    """The guard has let the request through by now."""
    return Viewer(asker or ANYBODY, form_token(held(request.scope)), asker is not None)


Looking = Annotated[Viewer, Depends(_viewer)]
