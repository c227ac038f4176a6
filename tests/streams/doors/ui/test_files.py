"""The files that pages load are in the wheel, are those that are named, and ask no other host for anything."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from schemas.settings import Settings
from streams.doors.ui.files import STATIC, VERSION
from tests.streams.doors.ui.opened import unsafe_parts
from tests.support.late_api import api_of

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "streams" / "doors" / "ui"
#: Of the npm packages that static/README.md names.
VENDORED = {
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


@pytest.fixture
def asked(settings: Settings) -> Iterator[Any]:
    with TestClient(api_of(settings), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.mark.parametrize("name", sorted(VENDORED))
def test_what_is_not_ours_is_unchanged_and_named_with_its_licence(name: str) -> None:
    assert sha256((FOLDER / "static" / name).read_bytes()).hexdigest() == VENDORED[name]
    readme = (FOLDER / "static" / "README.md").read_text(encoding="utf-8")
    assert f"`{name}`" in readme
    licence = "LICENSE.htmx" if name.startswith("htmx") else "LICENSE.uplot"
    assert f"`{licence}`" in readme
    assert (FOLDER / "static" / licence).is_file()


def test_every_file_of_the_dashboard_goes_into_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    globs = project["tool"]["setuptools"]["package-data"]["streams"]
    packed = {path for one in globs for path in (ROOT / "streams").glob(one)}
    there = {path for path in FOLDER.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert there
    assert there <= packed


def test_scripts_styles_and_pictures_are_served_and_nothing_else(asked: Any) -> None:
    assert set(STATIC) == {
        path.name for path in (FOLDER / "static").iterdir() if path.suffix in (".css", ".js", ".svg")
    }
    for name, (kind, content) in STATIC.items():
        answer = asked.get(f"/ui/static/{name}", params={"v": VERSION})
        assert (answer.content, answer.headers["content-type"]) == (content, kind)
        assert "immutable" in answer.headers["cache-control"]
        again = asked.get(f"/ui/static/{name}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
    for name in ("README.md", "LICENSE.htmx", "..%2Fpages.py", "nothing.js"):
        assert asked.get(f"/ui/static/{name}").status_code == 404, name


def test_ours_ask_no_other_host() -> None:
    """An address with a host is a namespace's, or a link that somebody follows."""
    for name in ("siltstone.css", "siltstone.js", "theme.js", "strata.svg"):
        text = STATIC[name][1].decode()
        assert re.sub(r"http://www\.w3\.org/2000/svg", "", text).count("://") == 0, name
        assert "eval(" not in text
        assert "innerHTML" not in text


def test_templates_have_nothing_inline() -> None:
    for template in sorted((FOLDER / "templates").glob("*.html")):
        text = re.sub(r"\{[%#].*?[%#]\}", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"\{\{.*?\}\}", "/x", text, flags=re.DOTALL)
        assert unsafe_parts(text) == [], template.name
        assert "|safe" not in text
        assert "autoescape" not in text
