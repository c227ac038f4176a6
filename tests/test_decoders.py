"""Decoders of msgspec are made when their module is imported.

msgspec reads a type's annotations at its first use and leaves them half read in the type's cache meanwhile: a second
thread that uses the type then follows a null pointer, and the process dies of a segmentation fault.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layers import modules, tree

#: A fresh process, as only the first use is dangerous: many shards are opened at once, each on a thread.
OPENED_AT_ONCE = """
import sys, threading, uuid
from pathlib import Path
from tables.vectors.manifest import Manifest, Named, read_manifest, write_manifest

sys.setswitchinterval(1e-6)
folder = Path(sys.argv[1])
written = Manifest(uuid.uuid4(), 1, 8, [Named(1, 2, 3)])
write_manifest(folder, written)
together = threading.Barrier(8)
found = []

def read():
    together.wait()
    found.append(read_manifest(folder))

threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [written] * 8, found
"""


def test_no_type_is_used_for_the_first_time_in_a_function() -> None:
    made_later = [
        f"{path}:{call.lineno}: {ast.unparse(call.func)}"
        for path in modules()
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and _reads_a_type(call)
    ]
    assert not made_later, "make a `msgspec.json.Decoder` of the type beside it"


def _reads_a_type(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    if name.startswith("msgspec."):
        return name.endswith((".Decoder", ".convert")) or any(given.arg == "type" for given in call.keywords)
    return False


@pytest.mark.parametrize("attempt", range(3))
def test_manifests_are_read_on_many_threads_at_once(attempt: int, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", OPENED_AT_ONCE, str(tmp_path)], check=True, timeout=60)
