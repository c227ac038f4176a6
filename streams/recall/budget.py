"""Chooses what fits into a prompt of limited length. A memory, a note or an exchange is shown whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

from schemas.exchanges import Exchange
from schemas.memories import SearchHit
from streams.models.token_count import estimated_tokens
from streams.recall.prompt import Contents, LeftOut, Prompt
from streams.recall.windows import ShownWindow

T = TypeVar("T")


class _Room:
    """The tokens that are left."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def takes(self, text: str, kept_free: int = 0) -> bool:
        """Take the tokens of a line, if they are there, and `kept_free` tokens remain."""
        tokens = estimated_tokens(f"{text}\n")
        fits = tokens <= self.left - kept_free
        self.left -= tokens if fits else 0
        return fits


def fitted(prompt: Prompt, contents: Contents, max_tokens: int, session_id: str) -> tuple[Contents, LeftOut]:
    """Return the part of a session's contents that fits into `max_tokens` (estimated), and what is left out.

    Notes come first, the newest before others. The newest exchanges get at most half of the rest, and memories, in
    their order, what remains; a memory that is too long is skipped. More exchanges fill the end. A memory whose
    exchange is shown is not shown again. If there is no room for anything, only the headings remain.
    """
    room = _Room(max_tokens - _around(prompt, contents))
    notes = _newest(contents.notes, lambda note: room.takes(prompt.note(note)))
    half = room.left // 2
    said = _newest(contents.exchanges, lambda one: room.takes(prompt.exchange(one), half))
    hits = [hit for hit in _unshown(contents.hits, session_id, said) if room.takes(prompt.memory(hit))]
    earlier = contents.exchanges[: len(contents.exchanges) - len(said)]
    said = [*_newest(earlier, lambda one: room.takes(prompt.exchange(one))), *said]
    wanted = _unshown(contents.hits, session_id, said)
    hits = _unshown(hits, session_id, said)
    left_out = LeftOut(len(wanted) - len(hits), len(contents.notes) - len(notes), len(contents.exchanges) - len(said))
    return Contents(hits, notes, said), left_out


def _unshown(hits: Iterable[SearchHit], session_id: str, said: Iterable[Exchange]) -> list[SearchHit]:
    """Return the hits that these exchanges of the session do not show."""
    window = ShownWindow.of(session_id, said)
    return [hit for hit in hits if not window.repeats(hit)]


def _around(prompt: Prompt, contents: Contents) -> int:
    """Return the tokens of everything but the contents: the day, the headings, and the counts of what is left out."""
    counts = LeftOut(len(contents.hits), len(contents.notes), len(contents.exchanges))
    return estimated_tokens(prompt.text(Contents((), (), ()), counts)) + 1


def _newest(items: Sequence[T], fits: Callable[[T], bool]) -> list[T]:
    """Return the newest items up to the first that does not fit, oldest first. `items` are oldest first."""
    return [*takewhile(fits, reversed(items))][::-1]
