"""Rendering of a summary file in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.markdown import Markdown


def shown(markdown: str) -> Markdown:
    """Render the text without its comments. Control characters become spaces, because people may edit the files."""
    from rich.markdown import Markdown  # imported here, because it takes 0.1 s, and --json does not need it

    return Markdown("".join(char if char.isprintable() or char == "\n" else " " for char in markdown))
