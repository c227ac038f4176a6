"""The page that says where each requirement is shown tells the truth."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
#: Of the sections; the page opens with a table of what they are.
SECTIONS = PAGE.partition("\n## ")[2].splitlines()
ROWS = [line for line in SECTIONS if line.startswith("| ") and not line.startswith(("| scenario", "| decision"))]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS)
def test_each_requirement_names_a_test(row: str) -> None:
    assert re.search(r"`tests/[\w/]+\.py::test_\w+`", row)


def test_the_page_names_many() -> None:
    """The two tests above cannot pass by finding nothing."""
    assert len(ROWS) >= 100
    assert len(NAMED) >= 80


def test_each_scenario_of_the_daily_summaries_is_there() -> None:
    """Text 003 has 27."""
    section = PAGE.partition("## Daily summaries (text 003)")[2].partition("\n## ")[0]
    scenarios = {found[1] for found in re.finditer(r"^\| ([^|:]+): ", section, re.MULTILINE)}
    assert len(scenarios) == 27
