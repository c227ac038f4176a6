"""Sources and pages name who does what: words that hide it stay rare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
HIDING: Final = re.compile(r"\b(?:whoever|whatever|nobody|somebody|anew)\b", re.IGNORECASE)
PLACES: Final = ("schemas", "tables", "streams", "client", "benchmarks", "docs")
#: Word lists, prompts and conversations are data: they say what people say.
KINDS: Final = (".py", ".sql", ".md", ".html")
#: Lines that may have such a word: a prompt, a quoted judgement, the name of a constant.
MOST: Final = 20


def test_words_that_hide_who_does_something_are_rare() -> None:
    """The caller, an operator, another worker, rewritten: these say more."""
    read = [path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in KINDS]
    read += [*ROOT.glob("*.md")]
    read.remove(ROOT / "CHANGELOG.md")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in read
        for line in path.read_text(encoding="utf-8").splitlines()
        if HIDING.search(line)
    ]
    assert len(read) > 500
    assert len(found) <= MOST, "\n".join(found)
