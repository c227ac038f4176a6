"""The pages that a program writes are what it writes now: `make pages` renews them."""

from __future__ import annotations

import pytest

from docs.site.written import DOCS, api_page, cli_page, openapi


@pytest.mark.usefixtures("_like_a_command")
def test_the_page_of_the_api_has_its_routes() -> None:
    assert (DOCS / "api.md").read_text(encoding="utf-8") == api_page(openapi())


def test_the_page_of_the_commands_has_their_help() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == cli_page()
