"""The one rule that stands before every way in: HTTP, forwarding between workers, and what else is to come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from schemas.errors import OtherUser, ScopeMissing
from schemas.sources import TOKEN
from schemas.tokens import EVERYBODY, Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `users` are those whose memories it may have to do with; None: everybody's."""

    name: str
    users: frozenset[str] | None
    scopes: frozenset[Scope]

    @classmethod
    def of(cls, name: str, users: Collection[str], scopes: Collection[Scope]) -> Self:
        """Of what a token or a claim grants; `*` among the users is everybody."""
        return cls(name, None if EVERYBODY in users else frozenset(users), frozenset(scopes))

    @property
    def sources(self) -> list[str]:
        """As whose what comes by it is recorded."""
        return [f"{TOKEN}{self.name}"]

    @property
    def only_user(self) -> str | None:
        """The user that is meant where none is named; None where that cannot be said."""
        if self.users is None or len(self.users) != 1:
            return None
        (user,) = self.users
        return user


def authorize(principal: Principal, user_id: str | None, scope: Scope) -> None:
    """Check that the principal may use the scope on this user's memories; `user_id` None means all users at once.

    Raises `OtherUser` for another user, regardless of the scope, and `ScopeMissing`.
    """
    if user_id is not None and principal.users is not None and user_id not in principal.users:
        raise OtherUser("there is no such memory")
    require(principal, scope)
    if user_id is None and principal.users is not None:
        raise ScopeMissing(f"this takes a token for all users, with the scope {scope.value}")


def require_any(principal: Principal) -> None:
    """Of what concerns no user and has no scope of its own. Raises `ScopeMissing`."""
    if not principal.scopes:
        raise ScopeMissing("this takes a token with any scope")


def require(principal: Principal, scope: Scope) -> None:
    """The half of it that is known before the user is. Raises `ScopeMissing`."""
    if scope not in principal.scopes:
        raise ScopeMissing(f"this takes a token with the scope {scope.value}")
