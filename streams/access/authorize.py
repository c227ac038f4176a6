"""The rule of authorization: which users and which operations (scopes) the caller of a request may use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from schemas.errors import OtherUser, ScopeMissing
from schemas.sources import TOKEN
from schemas.tokens import EVERYBODY, Scope


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request. `users` are the users whose memories it may access; None means all users."""

    name: str
    users: frozenset[str] | None
    scopes: frozenset[Scope]

    @classmethod
    def of(cls, name: str, users: Collection[str], scopes: Collection[Scope]) -> Self:
        """Build from the grants of a token or of claims; `*` among the users means all users."""
        return cls(name, None if EVERYBODY in users else frozenset(users), frozenset(scopes))

    @property
    def sources(self) -> list[str]:
        """The list with the one source that is recorded with each write of this principal."""
        return [f"{TOKEN}{self.name}"]

    @property
    def only_user(self) -> str | None:
        """The principal's user if it has exactly one, else None. A request that names no user is for this user."""
        if self.users is None or len(self.users) != 1:
            return None
        (user,) = self.users
        return user


def authorize(principal: Principal, user_id: str | None, scope: Scope) -> None:
    """Check that the principal may use the scope on this user's memories. If `user_id` is None, it means all users.

    Raises `OtherUser` if the principal may not access this user, regardless of the scope. Otherwise raises
    `ScopeMissing` if the principal lacks the scope, or if `user_id` is None and it may not access all users.
    """
    if user_id is not None and principal.users is not None and user_id not in principal.users:
        raise OtherUser("there is no such memory")
    require(principal, scope)
    if user_id is None and principal.users is not None:
        raise ScopeMissing(f"this requires a token for all users, with the scope {scope.value}")


def require_any(principal: Principal) -> None:
    """Check that the principal has at least one scope. Otherwise raise `ScopeMissing`.

    This is for requests that concern no user and need no particular scope.
    """
    if not principal.scopes:
        raise ScopeMissing("this requires a token with any scope")


def require(principal: Principal, scope: Scope) -> None:
    """Check that the principal has the scope, without a check of the user. Otherwise raise `ScopeMissing`."""
    if scope not in principal.scopes:
        raise ScopeMissing(f"this requires a token with the scope {scope.value}")
