"""A reader finds the way: each page is in the site, opens with its questions, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import LINK, OUTSIDE, PAGES, ROOT, anchors, broken, configuration, prose

EVERY = [*PAGES, *OUTSIDE.values()]


def test_every_page_is_in_the_sites_navigation() -> None:
    named = [name for entry in configuration()["nav"] for name in entry.values()]
    assert sorted(named) == sorted([*OUTSIDE, *(page.name for page in PAGES)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_opens_with_whom_it_is_for_and_where_its_questions_are_answered(page: Path) -> None:
    """Title, one paragraph, and a table of questions that ends on the first screen, each with a link."""
    title, opening, table, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert re.fullmatch(r"# .+", title)
    assert opening.startswith("For ")
    head, rule, *rows = table.splitlines()
    assert (head, rule) == ("| question | answer |", "|---|---|")
    assert 3 <= len(rows) <= 20
    assert [row for row in rows if not LINK.search(row) and "`" not in row] == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    assert broken(page, prose(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_two_headings_of_a_page_share_an_anchor(page: Path) -> None:
    """GitHub and the site number such anchors differently."""
    assert [anchor for anchor, times in anchors(page).items() if times > 1] == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    """The check can fail."""
    page = ROOT / "docs" / "run.md"
    assert broken(page, "[a](#memory) [b](#gone) [c](gone.md) [d](troubleshooting.md#dead-letters)") == [
        "#gone",
        "gone.md#",
    ]
