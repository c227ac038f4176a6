"""Paths that the documentation, comments and docstrings name are there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = ("schemas", "streams", "tables", "client", "tests", "benchmarks")

#: `streams/app.py`, or `app.py` where the folder is clear; not a part of a longer path, nor a pattern.
NAMED = re.compile(r"(?<![\w./<>{}*$~-])((?:[\w-]+/)*[\w-]+\.(?:py|sql|toml)|docs/[\w-]+\.md)\b(?![\w*/(])")
FOLDER = re.compile(rf"(?<![\w./<>{{}}*$~-])((?:{'|'.join((*PACKAGES, 'docs'))})/(?:[\w-]+/)*)(?![\w*.{{<])")

EXAMPLES = {"tables/database/sql/m002_what_it_does.sql"}


def missing(text: str, there: set[str]) -> list[str]:
    return [
        named
        for named in (*NAMED.findall(text), *FOLDER.findall(text))
        if not (named in there if "." in named else (ROOT / named).is_dir())
    ]


def comments(source: str) -> str:
    """Comments and docstrings, those of attributes as well."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    statements = [one.value for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Expr)]
    return "\n".join([*found, *(str(one.value) for one in statements if isinstance(one, ast.Constant))])


def endings() -> set[str]:
    """Each file's path, and what is left of it without its outer folders."""
    files = [path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.*")]
    files += [path.relative_to(ROOT) for pattern in ("*.*", "docs/**/*.*") for path in ROOT.glob(pattern)]
    return {"/".join(path.parts[outer:]) for path in files for outer in range(len(path.parts))}


def test_files_and_folders_that_pages_name_are_there() -> None:
    there = endings() | EXAMPLES
    pages = (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("client/*.md"))
    assert {page.name: found for page in pages if (found := missing(page.read_text(encoding="utf-8"), there))} == {}


def test_files_and_folders_that_comments_and_docstrings_name_are_there() -> None:
    there, found = endings() | EXAMPLES, {}
    for package in PACKAGES:
        for module in (ROOT / package).rglob("*.py"):
            source = module.read_text(encoding="utf-8")
            if missing(source, there) and (stale := missing(comments(source), there)):  # parsed where it has to be
                found[module.relative_to(ROOT)] = stale
    assert found == {}


def test_a_file_that_is_gone_is_found() -> None:
    """The check can fail."""
    assert NAMED.findall("see `streams/gone.py`, or gone.py") == ["streams/gone.py", "gone.py"]
    assert NAMED.findall("`docs/gone.md` is not read as gone.md is") == ["docs/gone.md"]
    assert FOLDER.findall("in `streams/gone/`") == ["streams/gone/"]
    assert comments('x = 1  # gone.py\n"""also.py"""\ny = "not.py"\n') == "# gone.py\nalso.py"
