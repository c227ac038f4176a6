"""`make mutants`: each of the decisions in the code is changed, and the tests of its room have to notice.

mutmut makes the changes ("mutants") of one module after the other, in a copy of the code in `build/mutants`. Forks of
a process that has everything imported run the tests that call the changed function, the quickest first, until one
fails. `build/mutants/survivors.diff` has the changes that no test noticed; `survivors.md`, beside this file, says
what was judged of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.signals import default_signals

ROOT: Final = Path(__file__).parents[2]
OUTPUT: Final = ROOT / "build" / "mutants"
LAYERS: Final = ("schemas", "tables", "streams")
#: What is tried where nothing is named, in this order: a wrong rule costs most.
ROOMS: Final = (
    "streams/intake/rules",
    "streams/language",
    "streams/recall/filtering.py",
    "streams/recall/ranking.py",
    "streams/summaries/rules",
    "schemas/lifecycle.py",
    "tables",
)
#: The tests of a module are those of its room; of these, others too.
ALSO: Final = {
    "schemas/lifecycle.py": (
        "tests/tables/memories/catalog/test_catalog.py",
        "tests/tables/memories/catalog/test_ageing.py",
    ),
    "streams/intake/rules/session.py": ("tests/streams/intake/rules/test_summary_trigger_watch.py",),
    "tables/windows/short_term.py": ("tests/streams/intake/rules/test_session.py",),
}
#: mutmut leaves decorated functions alone, and what was remembered before the fork would hide a change.
REMEMBERED: Final = re.compile(r"^@lru_cache\(.*\)\n", re.MULTILINE)
#: By the exit code of a mutant's tests; any other is that of a test which failed, or of a crash.
OUTCOMES: Final = {0: "survived", 5: "no tests", 33: "no tests", None: "not tried", 2: "not tried"} | dict.fromkeys(
    (-24, -9, 24, 36, 152, 255), "timeout"
)
#: mutmut reads its options from the current folder when it is imported.
SHOW: Final = """
import sys
from mutmut.__main__ import get_diff_for_mutant
for name in sys.argv[2:]:
    print(f"# {name}", *get_diff_for_mutant(name, path=sys.argv[1]).splitlines()[2:], "", sep="\\n")
"""
#: Seconds for mutmut to note its results once it is told to end.
PATIENCE: Final = 20
COLUMNS: Final = ("killed", "survived", "timeout", "no tests", "not tried")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", default=ROOMS, help="modules and folders, as tables/windows")
    parser.add_argument("--minutes", type=float, default=60, help="how long to go on; 60 where nothing is said")
    arguments = parser.parse_args()
    deadline = time.monotonic() + 60 * arguments.minutes
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    left = modules(arguments.paths)
    print(f"{'module':<40}{'mutants':>8}" + "".join(f"{column:>10}" for column in COLUMNS), flush=True)
    total: Counter[str] = Counter()
    untried = []
    while left and time.monotonic() < deadline:
        module = left.pop(0)
        if results := tried(module, deadline):
            total += (counts := Counter(results.values()))
            print(row(module, counts), flush=True)
        else:
            untried.append(module)
    print(row("all", total))
    if untried:
        print(f"nothing to change, or no tests that call it (log.txt in the module's folder): {', '.join(untried)}")
    if left:
        print(f"not begun in {arguments.minutes:g} minutes: {', '.join(left)}")
    if total["survived"]:
        print(f"what no test noticed: {(OUTPUT / 'survivors.diff').relative_to(ROOT)}")


def modules(paths: Iterable[str]) -> list[str]:
    """Those of the paths, in order; as `tables/paths.py`."""
    found: list[str] = []
    for path in paths:
        given = ROOT / path
        if not given.exists():
            sys.exit(f"there is no {path}: name a module or a folder of {', '.join(LAYERS)}, as tables/windows")
        files = [given] if given.is_file() else sorted(given.rglob("*.py"), key=lambda file: (len(file.parts), file))
        found += [str(file.relative_to(ROOT)) for file in files if file.name != "__init__.py"]
    return list(dict.fromkeys(found))


def room_tests(module: str) -> list[str]:
    """The tests of its room, and those of `ALSO`."""
    room = ROOT / "tests" / Path(module).parent
    return [*(str(path.relative_to(ROOT)) for path in sorted(room.glob("test_*.py"))), *ALSO.get(module, ())]


def tried(module: str, deadline: float) -> dict[str, str]:
    """What became of each mutant of the module; nothing where mutmut could not begin."""
    folder = copy(module)
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("mutmut"), "run", "--max-children", "1"],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=default_signals,
        )
        try:
            process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # it writes what it knows
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    noted = folder / "mutants" / f"{module}.meta"
    if not noted.exists() or process.returncode not in (0, -signal.SIGINT, -signal.SIGKILL):
        return {}
    codes = json.loads(noted.read_text(encoding="utf-8"))["exit_code_by_key"]
    results = {name: OUTCOMES.get(code, "killed") for name, code in codes.items()}
    note_survivors(folder, module, [name for name, result in results.items() if result in ("survived", "no tests")])
    return results


def copy(module: str) -> Path:
    """A folder with the code, in which mutmut changes this module."""
    folder = OUTPUT / module.removesuffix(".py").replace("/", ".")
    for name in (*LAYERS, "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    source = folder / module
    source.write_text(REMEMBERED.sub("", source.read_text(encoding="utf-8")), encoding="utf-8")
    options = {
        "source_paths": LAYERS,
        "only_mutate": [module],
        "pytest_add_cli_args_test_selection": room_tests(module),
        "pytest_add_cli_args": ["-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "--basetemp", folder / "tmp"],
    }
    lines = [f"{name} =\n    " + "\n    ".join(map(str, values)) for name, values in options.items()]
    (folder / "setup.cfg").write_text("\n".join(["[mutmut]", *lines, ""]), encoding="utf-8")
    return folder


def note_survivors(folder: Path, module: str, names: list[str]) -> None:
    with (OUTPUT / "survivors.diff").open("ab") as file:
        subprocess.run([sys.executable, "-c", SHOW, module, *names], cwd=folder, stdout=file, check=True)


def row(name: str, counts: Counter[str]) -> str:
    return f"{name:<40}{counts.total():>8}" + "".join(f"{counts[column]:>10}" for column in COLUMNS)


if __name__ == "__main__":
    main()
