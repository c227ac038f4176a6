"""Refining of long-term memories by a model: which older memory a new one replaces, and summaries of several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from schemas.fields import Content
from schemas.memories import Memory
from schemas.times import iso
from streams.models.prompting import Prompt, shortened

if TYPE_CHECKING:
    from streams.models.chat import ChatModel

#: Characters quoted of each memory in a question about replacing; of a longer one the model sees only the ends.
QUOTED_CHARS = 4_000
#: Characters quoted of all memories that are summed up, divided equally among them.
SUMMED_UP_CHARS = 32_000
SUMMARY_TOKENS = 1_000

#: At the beginning, or after punctuation only: in "none of the 3" the 3 is no verdict. A minus does not count as
#: punctuation.
_NUMBER = re.compile(r"[^\w−－-]*(\d{1,4})(?!\d)")
_CONTENT: TypeAdapter[str] = TypeAdapter(Content)


def verdict_in(answer: str, candidates: int) -> int:
    """Return the candidate's number at the beginning of an answer; 0 for none of them.

    Raises ValueError for any other answer. A number that is too high is not clamped: a memory that is replaced by
    mistake is lost to searches, one that is kept by mistake is still found.

    >>> verdict_in("2", 3), verdict_in("0。", 3), verdict_in("**1**", 3)
    (2, 0, 1)
    """
    found = _NUMBER.match(answer)
    if found is None or int(found[1]) > candidates:
        raise ValueError("the answer names no candidate")
    return int(found[1])


def summary_in(answer: str) -> str:
    """Return the text of a summary. Raises ValueError if it is empty, not valid text, or too long for a memory."""
    text = answer.strip()
    if not text:
        raise ValueError("the answer is empty")
    text.encode()  # raises for half a surrogate pair
    return _CONTENT.validate_python(text)


class ModelRefiner:
    """Asks a model to refine memories. It sees one user's memories, as quoted data.

    refiner = ModelRefiner(ChatModel(settings.rater()))
    await refiner.replaced(moved_to_osaka, [likes_tea, lives_in_lyon])     # 2
    await refiner.summary(memories)                                        # "Lived in Lyon until May 2026. …"
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._supersede, self._overflow = Prompt.named("supersede"), Prompt.named("overflow")

    async def replaced(self, new: Memory, older: Sequence[Memory]) -> int | None:
        """Return the number (from 1) of the `older` memory that no longer holds; 0: none; None: no usable answer."""
        data = {
            "new": _shown(new, QUOTED_CHARS),
            "older": [
                {"number": number, **_shown(memory, QUOTED_CHARS)} for number, memory in enumerate(older, start=1)
            ],
        }
        return await self._chat.ask(
            self._supersede.about(data),
            read=lambda answer: verdict_in(answer, len(older)),
            max_tokens=5,
            failure="the model did not say what a memory replaces",
        )

    async def summary(self, members: Sequence[Memory]) -> str | None:
        """Return a summary of these memories, given oldest first; None if there is no usable answer."""
        each = SUMMED_UP_CHARS // len(members)
        return await self._chat.ask(
            self._overflow.about({"memories": [_shown(memory, each) for memory in members]}),
            read=summary_in,
            max_tokens=SUMMARY_TOKENS,
            failure="a summary keeps its extracted words",
            whole=True,
        )

    def resumes_in(self) -> float:
        """Return the seconds left of the pause that the service asked for; 0 if it may be asked now."""
        return self._chat.resumes_in()


def _shown(memory: Memory, chars: int) -> dict[str, str]:
    return {"date": iso(memory.created_at)[:10], "text": shortened(memory.text, chars)}
