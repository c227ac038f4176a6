"""What the pages hold, as GitHub reads them: headings, links and the page's opening."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Pages of the site that lie elsewhere: see docs/site/pages.py.
OUTSIDE = {
    "index.md": ROOT / "README.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "changelog.md": ROOT / "CHANGELOG.md",
    "benchmarks.md": ROOT / "benchmarks" / "README.md",
    "client.md": ROOT / "client" / "README.md",
}

LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


class Lenient(yaml.SafeLoader):
    """Reads mkdocs.yml, and calls none of the functions that it names."""


Lenient.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, suffix, _node: suffix)


def configuration() -> dict[str, Any]:
    """What mkdocs.yml says."""
    found = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Lenient)
    assert isinstance(found, dict)
    return found


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> Counter[str]:
    """Of its headings: in lower case, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return Counter(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings)


def broken(page: Path, text: str) -> list[str]:
    """The links that lead to no file, or to no heading in it."""
    found = []
    for path, anchor in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{path}#{anchor}")
    return found
