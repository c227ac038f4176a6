"""Tokens, and the rule that stands before every way in."""

from __future__ import annotations

import pytest

from schemas.errors import NotReady, OtherUser, ScopeMissing, TokenRefused
from schemas.lifecycle import DAY_MS
from schemas.tokens import Scope, TokenRecord, digest, id_of, issue
from streams.access.authorize import Principal, authorize
from streams.access.known_tokens import KnownTokens

NOW = 1_000_000
ANN = Principal.of("ann's", ["ann"], [Scope.READ])
ALL = Principal.of("all", ["*"], [Scope.READ])


def known(**changes: object) -> tuple[KnownTokens, str]:
    """One token of Ann's, and its secret."""
    made = issue()
    record = TokenRecord(
        id=made.id, name="ann's", sha256=made.sha256, users=("ann",), scopes=(Scope.READ,), created_at=0
    ).model_copy(update=changes)
    tokens = KnownTokens(lambda: NOW)
    tokens.take(record)
    tokens.complete = True
    return tokens, made.secret


def test_a_secret_has_43_random_characters_and_only_its_digest_is_kept() -> None:
    made = issue()
    prefix, identity, rest = made.secret.split("_", 2)
    assert (prefix, identity, len(rest)) == ("slt", made.id, 43)
    assert (id_of(made.secret), digest(made.secret)) == (made.id, made.sha256)
    assert issue().secret != made.secret


def test_what_is_no_secret_has_no_id() -> None:
    assert [id_of(text) for text in ("", "slt", "slt_1", "abc_1_2")] == [None] * 4


def test_a_token_is_who_it_was_made_for() -> None:
    tokens, secret = known()
    assert tokens.principal(secret) == ANN


@pytest.mark.parametrize("changes", [{"revoked_at": NOW}, {"expires_at": NOW}, {"sha256": "0" * 64}])
def test_a_token_that_is_revoked_expired_or_of_another_secret_is_refused(changes: dict[str, object]) -> None:
    tokens, secret = known(**changes)
    with pytest.raises(TokenRefused):
        tokens.principal(secret)


def test_a_token_is_good_until_it_expires() -> None:
    tokens, secret = known(expires_at=NOW + 1)
    assert tokens.principal(secret).name == "ann's"


def test_a_clock_that_is_ahead_for_a_moment_takes_no_token_for_good() -> None:
    (tokens, secret), now = known(expires_at=NOW + 1), [NOW]
    tokens._clock = lambda: now[0]
    now[0] += 400 * DAY_MS
    with pytest.raises(TokenRefused):
        tokens.principal(secret)
    now[0] = NOW
    assert tokens.principal(secret) == ANN


def test_one_that_was_deleted_or_never_was_is_refused() -> None:
    tokens, secret = known()
    tokens.drop(id_of(secret) or "")
    for given in (secret, issue().secret, "", "slt_é_ü"):
        with pytest.raises(TokenRefused):
            tokens.principal(given)


def test_nobody_is_refused_before_the_tokens_are_read() -> None:
    tokens, secret = known()
    tokens.complete = False
    with pytest.raises(NotReady):
        tokens.principal(secret)


def test_ones_own_memories_and_no_others() -> None:
    """Another user's are not there, whatever else the token lacks."""
    authorize(ANN, "ann", Scope.READ)
    for scope in Scope:
        with pytest.raises(OtherUser):
            authorize(ANN, "bob", scope)


def test_no_scope_includes_another() -> None:
    for scope in (Scope.WRITE, Scope.ADMIN):
        with pytest.raises(ScopeMissing, match=scope.value):
            authorize(ANN, "ann", scope)


def test_what_concerns_all_users_takes_a_token_for_all_of_them() -> None:
    authorize(ALL, None, Scope.READ)
    authorize(ALL, "anybody", Scope.READ)
    with pytest.raises(ScopeMissing, match="all users"):
        authorize(ANN, None, Scope.READ)


def test_only_a_token_of_one_user_says_who_is_meant() -> None:
    assert [ANN.only_user, ALL.only_user, Principal.of("two", ["ann", "bob"], []).only_user] == ["ann", None, None]
