"""`make mutants` tries the modules that are named, on tests that are there."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import ALSO, REMEMBERED, ROOMS, ROOT, modules, room_tests


def test_what_is_tried_where_nothing_is_named_are_the_rules_and_the_tables() -> None:
    found = modules(ROOMS)
    assert found.index("streams/intake/rules/session.py") < found.index("tables/windows/rows.py")
    assert len(found) == len(set(found)) > 50


def test_modules_and_folders_can_be_named() -> None:
    assert modules(["tables/windows/rows.py", "tables/windows"])[:2] == [
        "tables/windows/rows.py",
        "tables/windows/compact_json.py",
    ]


def test_a_path_that_is_not_there_is_one_line_of_advice() -> None:
    with pytest.raises(SystemExit, match=r"^there is no tables/gone\.py: name a module or a folder of schemas, "):
        modules(["tables/gone.py"])


def test_the_tests_of_a_module_are_those_of_its_room_and_others_that_are_named() -> None:
    found = room_tests("schemas/lifecycle.py")
    assert found[-2:] == [*ALSO["schemas/lifecycle.py"]]
    assert "tests/schemas/test_lifecycle.py" in found
    assert [path for paths in ALSO.values() for path in paths if not (ROOT / path).exists()] == []
    assert [path for path in ALSO if not (ROOT / path).exists()] == []


def test_what_a_function_remembers_hides_no_change() -> None:
    """Its memory is left out; what it is called with and by stays."""
    source = "from functools import lru_cache\n\n\n@lru_cache(maxsize=64)\ndef doubled(x):\n    return 2 * x\n"
    assert REMEMBERED.sub("", source) == "from functools import lru_cache\n\n\ndef doubled(x):\n    return 2 * x\n"
