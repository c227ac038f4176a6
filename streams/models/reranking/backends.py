"""What a reranker's backends have in common: `Backend`, and `NotScored`, the reason why there are no scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

#: Two texts that are scored to find out whether a model answers. Neither is of a user.
HARMLESS = "Where does Ann live?", ("Ann lives in Oslo.", "The train was late.")


class NotScored(Exception):
    """The model gave no scores. The text of the exception says why, and quotes neither texts nor keys.

    `late` is true if the model is only not ready yet.
    """

    def __init__(self, message: str, *, late: bool = False) -> None:
        self.late = late
        super().__init__(message)


class Backend(Protocol):
    """Scores texts by how well they answer a question. It may be cancelled at any time."""

    def start(self) -> None:
        """Start loading the model in the background."""

    async def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each of the texts, in their order; a higher one is better. Raises `NotScored`."""

    async def close(self) -> None:
        """Release connections and processes."""
