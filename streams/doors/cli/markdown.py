"""How a day's file looks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.markdown import Markdown


def shown(markdown: str) -> Markdown:
    """Without its comments, and without what a terminal would obey: people may have edited the file."""
    from rich.markdown import Markdown  # a tenth of a second to import, for which --json need not wait

    return Markdown("".join(char if char.isprintable() or char == "\n" else " " for char in markdown))
