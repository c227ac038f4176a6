"""Siltstone installs: as a wheel away from the checkout, after an interruption, with the versions that were tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLIENT = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras of the client that are installed beside frameworks, in an environment of their own.
ADAPTERS = {"langgraph", "adk", "openai-agents", "strands", "agent-framework", "adapters-test"}


def locked(path: str) -> list[Requirement]:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def wanted(project: dict[str, Any], *extras: str) -> list[str]:
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *chain.from_iterable(optional[extra] for extra in extras)]


PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: What sets a process apart from the environment of the checkout.
OF_THE_CHECKOUT = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def run(*words: str | Path, cwd: Path, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in OF_THE_CHECKOUT}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done


def clone(folder: Path) -> Path:
    """The files of the checkout as they are now, without what is installed in it."""
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=ROOT).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    return folder


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", ["constraints.txt", "client/constraints-adapters.txt"])
def test_the_lock_has_one_version_of_every_dependency(lock: str, python: str) -> None:
    """For each Python, one that the range in pyproject.toml allows."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    of_client = CLIENT["optional-dependencies"].keys()
    needed = (
        [*wanted(PROJECT, *PROJECT["optional-dependencies"]), *wanted(CLIENT, *(of_client - ADAPTERS))]
        if lock == "constraints.txt"
        else wanted(CLIENT, *ADAPTERS)
    )
    pins = locked(lock)
    for requirement in map(Requirement, needed):
        if requirement.name == CLIENT["name"]:
            continue  # the sum of its own extras
        if requirement.marker and not requirement.marker.evaluate(environment):
            continue
        versions = [
            next(iter(pin.specifier)).version
            for pin in pins
            if pin.name == requirement.name and (not pin.marker or pin.marker.evaluate(environment))
        ]
        assert len(versions) == 1, f"{requirement.name}: {versions}; make update"
        assert requirement.specifier.contains(versions[0]), f"{requirement} is locked to {versions[0]}; make update"


def test_the_pythons_that_are_named_are_those_that_were_tried() -> None:
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert tuple(named) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_whatever_installs_uses_the_lock() -> None:
    """The Makefile and the image; nothing else installs anything."""
    makefile = "".join((ROOT / name).read_text(encoding="utf-8") for name in (".ci/environments.mk", "Makefile"))
    assert re.findall(r"\$\(PIP\) install .*", makefile) == [
        "$(PIP) install --quiet $(addprefix --constraint ,$(CONSTRAINTS))",
        '$(PIP) install --quiet --upgrade "pip>=25,<27"',
        '$(PIP) install --quiet "uv>=0.9,<1"',
    ]
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (install,) = re.findall(r"pip install.*", image)
    assert "--constraint constraints.txt" in install


@pytest.mark.slow
def test_the_wheel_runs_the_demo_away_from_the_checkout(tmp_path: Path) -> None:
    """Schemas, SQL, prompts, word lists and samples are in it."""
    pip = sys.executable, "-m", "pip"
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, clone(tmp_path / "c"), cwd=tmp_path)
    (wheel,) = tmp_path.glob("siltstone-*.whl")
    venv.create(tmp_path / "v", with_pip=True)
    binaries = tmp_path / "v" / "bin"
    constraints = ROOT / "constraints.txt"
    run(binaries / "python", "-m", "pip", "install", "--quiet", "-c", constraints, f"{wheel}[embedded]", cwd=tmp_path)
    shown = run(binaries / "siltstone", "demo", "--data", tmp_path / "data", "--json", cwd=tmp_path)
    assert orjson.loads(shown.stdout)["memories"] > 20
    where = run(binaries / "python", "-c", "import streams; print(streams.__file__)", cwd=tmp_path).stdout
    assert Path(where.strip()).is_relative_to(tmp_path / "v")


@pytest.mark.slow
def test_the_client_needs_nothing_of_the_worker(tmp_path: Path) -> None:
    """Its wheel in an empty environment, with what it names and nothing else."""
    pip, client = (sys.executable, "-m", "pip"), clone(tmp_path / "c") / "client"
    run(*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, client, cwd=tmp_path)
    (wheel,) = tmp_path.glob("siltstone_client-*.whl")
    venv.create(tmp_path / "v", with_pip=True)
    python = tmp_path / "v" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    listed = run(python, "-m", "pip", "list", "--format", "json", cwd=tmp_path).stdout
    installed = {one["name"].lower().replace("_", "-") for one in orjson.loads(listed)}
    assert {"httpx", "pydantic", "tenacity"} <= installed
    assert not installed & {"siltstone", "faust-streaming", "aiokafka", "duckdb", "faiss-cpu", "fastapi", "numpy"}
    script = """
import siltstone_client as s
try:
    s.Memory("http://127.0.0.1:1", retries=s.Retries(attempts=1)).search("x", user_id="ann")
except s.Unreachable as exc:
    print(exc.sent)
try:
    import siltstone_client.kafka
except ModuleNotFoundError as exc:
    print(exc)
"""
    said = run(python, "-c", script, cwd=tmp_path).stdout.splitlines()
    assert said == ["False", "siltstone_client.kafka needs aiokafka: pip install 'siltstone-client[kafka]'"]


@pytest.mark.slow
@pytest.mark.soak
def test_an_interrupted_installation_is_finished_by_the_next_make(tmp_path: Path) -> None:
    """Even where it left no pip behind."""
    checkout = clone(tmp_path)
    python = f"PYTHON={sys.executable}"
    run("make", python, ".venv/.installed", cwd=checkout)
    (checkout / ".venv" / ".installed").unlink()  # as an interruption does
    run("rm", "-rf", *(checkout / ".venv" / "lib").glob("python*/site-packages/pip"), cwd=checkout)
    run("make", python, ".venv/.installed", cwd=checkout)
    assert "Usage: siltstone" in run(checkout / ".venv" / "bin" / "siltstone", "--help", cwd=checkout).stdout
    assert "up to date" in run("make", python, ".venv/.installed", cwd=checkout).stdout
