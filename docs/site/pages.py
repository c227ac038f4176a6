"""Pages of the site that lie outside of `docs/`, and the links between them and those inside."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

#: The files of the repository that are pages as well: path → page.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "client/README.md": "client.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the pages from outside."""
    root = Path(config.config_file_path).parent
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turns links, which are right in the repository, into those that are right in the site."""
    here = {site: path for path, site in OUTSIDE.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), found[1]))
        return OUTSIDE.get(target, target.removeprefix("docs/"))

    return LINK.sub(link, markdown)
