"""`make docs` builds a site of the same files, which asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import OUTSIDE, PAGES, ROOT

#: What a browser fetches by itself, unlike a link that somebody follows.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
)
STYLE = re.compile(r"(?:@import\s*[\"']|url\([\"']?)((?:https?:)?//[^\"')]+)")


def from_elsewhere(text: str) -> list[str]:
    return [found[1] or found[2] for found in FETCHED.finditer(text)] + STYLE.findall(text)


def test_what_is_fetched_from_another_host_is_found() -> None:
    """The check can fail."""
    page = '<script src="https://a/b.js"></script><link rel=x href=//c/d.css> <a href="https://e/f">'
    assert from_elsewhere(page) == ["https://a/b.js", "//c/d.css"]
    assert from_elsewhere("@import 'https://a/b.css'; x { background: url(https://c/d.png) }") == [
        "https://a/b.css",
        "https://c/d.png",
    ]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material comes with the extra test-all")
def test_the_site_is_built_strictly_and_asks_no_other_host(tmp_path: Path) -> None:
    """Every page is there, no link leads nowhere, and scripts, styles, fonts and the search are the site's own."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (tmp_path / "site").glob("*.html")}
    assert pages.keys() - {"404"} == {Path(name).stem for name in (*OUTSIDE, *(page.name for page in PAGES))}
    styles = {str(style): style.read_text(encoding="utf-8") for style in (tmp_path / "site").rglob("*.css")}
    found = {name: hosts for name, text in {**pages, **styles}.items() if (hosts := from_elsewhere(text))}
    assert found == {}
    # The theme's script would fetch what draws such a diagram.
    assert [name for name, text in pages.items() if 'class="mermaid"' in text] == []
    assert "siltstone_lag_records" in (tmp_path / "site" / "search" / "search_index.js").read_text(encoding="utf-8")
    assert all('src="site/iframe-worker.js"' in text for name, text in pages.items() if name != "404")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material comes with the extra test-all")
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    """Of a copy of the pages, one of which names a heading that is not there."""
    for path in (ROOT / "mkdocs.yml", *OUTSIDE.values(), *PAGES, *(ROOT / "docs" / "site").glob("*.*")):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    with (tmp_path / "docs" / "run.md").open("a", encoding="utf-8") as page:
        page.write("\n[nowhere](troubleshooting.md#no-such-heading)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (done.returncode, "#no-such-heading" in done.stderr) == (1, True), done.stderr
