"""What a run says of tests that fail once, and of those that fail again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.second_look import MOST_FLAKY

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.support.second_look import NAME, SecondLook

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondLook(config), NAME)
"""
#: It fails where its mark is not there yet, so in its first run alone.
ONCE = """
def test_once_{number}(tmp_path_factory):
    mark = __import__("pathlib").Path(__file__).with_suffix(".{number}")
    print("said at first" if not mark.exists() else "said at last")
    there, _ = mark.exists(), mark.touch()
    assert there, "no mark\\nand more of it"
"""
ALWAYS = "def test_always():\n    assert 1 == 2\n"

pytestmark = pytest.mark.slow


def run(folder: Path, tests: str, *options: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}"},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), ("--numprocesses=2",)], ids=["one process", "several"])
def test_what_passes_alone_is_flaky_and_the_run_goes_on(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, said = run(tmp_path, ONCE.format(number=1) + "def test_fine(): pass\n", *options)
    assert code == 0, said
    assert "FLAKY: test_some.py::test_once_1: AssertionError: no mark\n" in said
    assert "1 passed, 1 flaky" in said
    kept = (tmp_path / "build" / "flaky" / "test_some.py-test_once_1.txt").read_text()
    assert kept.index("said at first") < kept.index("===== the second look") < kept.index("1 passed")


def test_what_fails_again_fails_the_run(tmp_path: Path) -> None:
    """So it does beside a flaky one, which is named all the same."""
    code, said = run(tmp_path, ONCE.format(number=1) + ALWAYS)
    assert code == 1
    assert "FLAKY: test_some.py::test_once_1" in said
    assert "FLAKY: test_some.py::test_always" not in said
    assert "1 failed, 1 flaky" in said


def test_a_failed_set_up_is_looked_at_too(tmp_path: Path) -> None:
    setting_up = ONCE.replace("def test_once", "@__import__('pytest').fixture\ndef set_up").format(number=1)
    code, said = run(tmp_path, f"{setting_up}\ndef test_it(set_up_1): pass\n")
    assert code == 0, said
    assert "FLAKY: test_some.py::test_it: AssertionError: no mark" in said


def test_many_flaky_ones_fail_the_run(tmp_path: Path) -> None:
    code, said = run(tmp_path, "".join(ONCE.format(number=number) for number in range(MOST_FLAKY + 1)))
    assert code == 1
    assert said.count("FLAKY: ") == MOST_FLAKY + 1


def test_nothing_is_run_again_where_all_is_well(tmp_path: Path) -> None:
    code, said = run(tmp_path, "def test_fine(): pass\n")
    assert code == 0
    assert "FLAKY" not in said
    assert not (tmp_path / "build").exists()
