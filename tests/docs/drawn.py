"""Docstrings and comments, drawn by a seed, for a reader who has not seen the code: `python -m tests.docs.drawn 7`.

The reader marks those that need a second reading. At most five of sixty may.
"""

from __future__ import annotations

import ast
import io
import random
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("schemas", "tables", "streams", "client/siltstone_client")
#: Comments that say less are directives, or names of parts.
LEAST_WORDS: Final = 4


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring and comment of a file; the lines of one comment together."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            text := ast.get_docstring(node)
        ):
            yield node.body[0].lineno, text
    together, last = list[str](), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if together and token.start[0] != last + 1:
            yield last - len(together) + 1, " ".join(together)
            together.clear()
        together.append(token.string.lstrip("#: "))
        last = token.start[0]
    if together:
        yield last - len(together) + 1, " ".join(together)


def drawn(seed: int, count: int = 60) -> list[tuple[str, str]]:
    """Places and texts, in random order."""
    found = [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for place in PLACES
        for path in sorted((ROOT / place).rglob("*.py"))
        for line, text in texts(path)
        if len(text.split()) >= LEAST_WORDS and not text.startswith(("noqa", "type:", "fmt:"))
    ]
    return random.Random(seed).sample(found, count)


if __name__ == "__main__":
    for number, (place, text) in enumerate(drawn(int(sys.argv[1])), start=1):
        sys.stdout.write(f"{number}. {place}\n{text}\n\n")
