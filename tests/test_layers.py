"""Imports point down: schemas ← tables ← streams."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("schemas", "tables", "streams")


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    """A layer imports itself and those below it, never one above."""
    above = set(LAYERS[LAYERS.index(layer) + 1 :])
    wrong = []
    files = list((ROOT / layer).rglob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            wrong += [f"{path.name}: {name}" for name in names if name.split(".")[0] in above]
    assert not wrong
