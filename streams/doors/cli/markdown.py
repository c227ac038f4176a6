"""Shows the Markdown of a daily summary in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.markdown import Markdown


def shown(markdown: str) -> Markdown:
    """Return the rendered text of a summary file, without the HTML comments in it.

    Control characters become spaces: the file may have been edited, and they could change the terminal.
    """
    from rich.markdown import Markdown  # takes 0.1 s to import, and --json does not need it

    return Markdown("".join(char if char.isprintable() or char == "\n" else " " for char in markdown))
