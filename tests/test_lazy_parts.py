"""No part of numpy is loaded by a thread that works: two that are the first at one moment end in a RecursionError."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: What `numpy.__getattr__` loads when it is asked for. `linalg` is loaded by numpy itself.
LAZY = ("fft", "dtypes", "random", "polynomial", "ma", "ctypeslib", "testing", "matlib", "rec", "char", "strings")

#: Hands over a NULL as numpy's, and says what of `LAZY` that loaded which the worker had not.
LOADED = f"""
import sys
import streams.app
before = set(sys.modules)
from tables.database.database import connect
connect().execute("SELECT unnest([1, NULL]) AS n, unnest(['a', NULL]) AS s, now() AS t").fetchnumpy()
print([name for name in {LAZY} if f"numpy.{{name}}" in set(sys.modules) - before])
"""


def test_duckdb_loads_no_part_of_numpy_later() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_asks_numpy_for_a_part_that_is_loaded_then() -> None:
    asked = re.compile(rf"\bnp\.(?:{'|'.join(LAZY)})\b")
    modules = [path for folder in ("schemas", "streams", "tables") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in modules if asked.search(path.read_text(encoding="utf-8"))] == []
