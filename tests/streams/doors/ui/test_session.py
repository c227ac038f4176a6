"""The dashboard's cookie in what browsers, and others, send."""

from __future__ import annotations

import pytest

from streams.doors.ui.session import COOKIE, MOST_COOKIE_BYTES, fits, held


def scope(*headers: str) -> dict[str, list[tuple[bytes, bytes]]]:
    return {"headers": [(b"cookie", one.encode("latin-1")) for one in headers]}


@pytest.mark.parametrize(
    "header",
    [
        f"{COOKIE}=slt_1",
        f"theme=dark; {COOKIE}=slt_1; last=2",
        f"{COOKIE}=slt_1;theme=dark",
        f"{{ \\ ;=; ;;{COOKIE}=slt_1",
        f'theme="dark; {COOKIE}=slt_1',
        f'{COOKIE}="no; {COOKIE}=slt_1',
        ";" * 4000 + f"{COOKIE}=slt_1",
    ],
)
def test_ours_is_found_among_whatever_else_there_is(header: str) -> None:
    assert held(scope(header)) == "slt_1"


@pytest.mark.parametrize(
    "header", ["", "theme=dark", f"x{COOKIE}=slt_1", COOKIE, f"{COOKIE}=", f'{COOKIE}="slt_1"', f"a={COOKIE}=slt_1"]
)
def test_what_is_none_of_ours_is_none(header: str) -> None:
    assert held(scope(header)) == ""


def test_no_header_is_none() -> None:
    assert held(scope()) == ""


def test_a_header_that_no_browser_sends_is_not_looked_at() -> None:
    """What is read before any login is bounded."""
    assert held(scope(f"{COOKIE}=slt_1; " + "a=b; " * 20_000)) == ""


def test_a_secret_is_kept_up_to_the_length_that_browsers_keep() -> None:
    most = "x" * (MOST_COOKIE_BYTES - len(COOKIE))
    assert fits(most)
    assert not fits(most + "x")
    assert held(scope(f"theme=dark; {COOKIE}={most}")) == most
