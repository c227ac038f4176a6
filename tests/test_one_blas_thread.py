"""Whatever is started has one BLAS thread, before numpy is loaded, and whoever starts it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.one_blas_thread import ONE_THREAD

ROOT = Path(__file__).parent.parent

#: OpenBLAS and OpenMP start their threads when they are loaded, or at the first product that is large enough.
COUNTED = """
import sys
assert "numpy" not in sys.modules
{entry}
import numpy, faiss, os
numpy.ones((600, 600), "f4") @ numpy.ones((600, 600), "f4")
index = faiss.IndexFlatIP(64)
index.add(numpy.ones((5_000, 64), "f4"))
index.search(numpy.ones((50, 64), "f4"), 5)
print(len(os.listdir("/proc/self/task")))
"""


def threads(entry: str, **environment: str) -> int:
    """How many threads a process has that came in by `entry` and did some algebra."""
    outer = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    done = subprocess.run(
        [sys.executable, "-c", COUNTED.format(entry=entry)],
        env={**outer, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux shows them")
@pytest.mark.parametrize("entry", ["import streams.doors.cli", "import tests", "import schemas.one_blas_thread"])
def test_an_entry_point_has_one_thread(entry: str) -> None:
    assert threads(entry) == 1


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux shows them")
def test_what_the_environment_says_holds() -> None:
    """The count can tell: two are asked for, and there are more than one."""
    assert threads("import streams.doors.cli", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2") > 1


@pytest.mark.parametrize("benchmark", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_a_benchmark_sets_it_before_anything_else(benchmark: Path) -> None:
    imported = [
        node.names[0].name if isinstance(node, ast.Import) else node.module
        for node in ast.parse(benchmark.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert imported[:2] == ["__future__", "schemas.one_blas_thread"]
