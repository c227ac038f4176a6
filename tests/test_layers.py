"""Imports point down: schemas ← tables ← streams."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("schemas", "tables", "streams")
#: Rules that lie beside what asks them.
RULES = ("streams.recall.ranking", "streams.language.estimator", "streams.language.phrases")
MOST_LINES = 400
#: Files that are longer, with the lines that they may have. Of the errors, all are in one file: it draws their tree.
LONGER = {
    "schemas/errors.py": 450,
    # It seals and merges segments, beside the index.
    "tables/vectors/segmented.py": 440,
}
#: The modules of `streams` that belong to no room.
BESIDE = ("app", "service")
#: What workers and replays are put together from.
PARTS = (
    "DeadLetters",
    "EventLog",
    "Inbox",
    "LongTermAgent",
    "OwnedShards",
    "Ratings",
    "Rerouting",
    "SessionNotes",
    "SessionRules",
    "ShortTermAgent",
    "ShortTermStore",
    "SummariesAgent",
)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_down(layer: str) -> None:
    """A layer imports itself and those below it, never one above."""
    above = set(LAYERS[LAYERS.index(layer) + 1 :])
    wrong = []
    files = list((ROOT / layer).rglob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            wrong += [f"{path.name}: {name}" for name in names if name.split(".")[0] in above]
    assert not wrong


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not for their types either."""
    imported = imports()
    while free := [name for name, others in imported.items() if not others & imported.keys()]:
        for name in free:
            del imported[name]
    assert sorted(imported) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    """A folder is a room: what it is made of lies below it, not beside it and in it at once.

    The two modules beside the rooms of `streams` are by themselves: the ways in ask `service`, `app` opens them.
    """
    imported: dict[str, set[str]] = {}
    for name, others in imports().items():
        imported.setdefault(room(name), set()).update(room(other) for other in others)
    for name, rooms in imported.items():
        rooms.discard(name)
    while free := [name for name, rooms in imported.items() if not rooms & imported.keys()]:
        for name in free:
            del imported[name]
    assert sorted(imported) == []


def test_rules_import_no_store() -> None:
    """They are functions of values: what search or a reader of times makes of a text is a value, a table is not."""
    rules = {
        name: others
        for name, others in imports().items()
        if ".rules." in name or ".grounding." in name or name in RULES
    }
    assert len(rules) > 20
    stores = {other for others in rules.values() for other in others if other.startswith("tables.")}
    assert stores <= {"tables.search.terms", "tables.search.tokens", "tables.time_expressions.windows"}


def test_a_file_has_no_more_lines_than_a_reader_keeps_in_mind() -> None:
    """Those that have more are named, and each may only get shorter."""
    client = ROOT / "client"
    sources = [*modules(), *client.glob("*.py"), *(client / "siltstone_client").rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in sources}
    assert {name for name, count in lines.items() if count > MOST_LINES} == LONGER.keys()
    assert [name for name, most in LONGER.items() if lines[name] > most] == []


def test_two_modules_lie_beside_the_rooms() -> None:
    assert {path.name for path in (ROOT / "streams").glob("*.py")} == {
        "__init__.py",
        *(f"{one}.py" for one in BESIDE),
    }


def test_each_part_of_a_pipeline_is_built_in_one_place() -> None:
    """A replay's are a worker's: nobody has to change two places when a part is given something new."""
    places: dict[str, list[str]] = {part: [] for part in PARTS}
    for path in (ROOT / "streams").rglob("*.py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places:
                places[node.func.id].append(path.parent.name)
    assert places == {part: ["wiring"] for part in PARTS}


def room(name: str) -> str:
    """The folder of a module, or of a package. All of `schemas` is one: its settings are one module in many files."""
    layer, _, module = name.partition(".")
    if layer == "streams" and module in BESIDE:
        return name
    if layer == "schemas":
        return layer
    return name if (ROOT / Path(*name.split("."))).is_dir() else name.rpartition(".")[0]


def imports() -> dict[str, set[str]]:
    """Which of our modules each of them imports."""
    files = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules()}
    names = {name.removesuffix(".__init__"): path for path, name in files.items()}
    found = {}
    for name, path in names.items():
        wanted: set[str] = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                within = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= {one if one in names else node.module for one in within}
        found[name] = wanted & names.keys() - {name}
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules() -> list[Path]:
    return [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
