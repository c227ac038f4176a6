"""A day's file, rendered for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.markdown import Markdown


def shown(markdown: str) -> Markdown:
    """Render it without comments and control characters: people may have edited the file."""
    from rich.markdown import Markdown  # imported here: it takes 0.1 s, which --json need not wait for

    return Markdown("".join(char if char.isprintable() or char == "\n" else " " for char in markdown))
