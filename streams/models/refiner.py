"""What a model makes of long-term memories: which older one a new one replaces, and a summary of several."""

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

#: What is quoted of one memory where one is to be replaced; a longer older one would be judged by its ends.
QUOTED_CHARS = 4_000
#: What is quoted of all the memories that are summed up; each may have as much of it as the others.
SUMMED_UP_CHARS = 32_000
SUMMARY_TOKENS = 1_000

#: At the beginning, or behind signs alone: in "none of the 3" the 3 is no verdict. A minus is none of those signs.
_NUMBER = re.compile(r"[^\w−－-]*(\d{1,4})(?!\d)")
_CONTENT: TypeAdapter[str] = TypeAdapter(Content)


def verdict_in(answer: str, candidates: int) -> int:
    """The number of the candidate that an answer begins with, 0 for none of them.

    Raises ValueError for every other answer. A number that no candidate has is not clamped to one that some has: a
    memory that is replaced by mistake is found no more, one that is kept by mistake is.

    >>> verdict_in("2", 3), verdict_in("0。", 3), verdict_in("**1**", 3)
    (2, 0, 1)
    """
    found = _NUMBER.match(answer)
    if found is None or int(found[1]) > candidates:
        raise ValueError("the answer names no candidate")
    return int(found[1])


def summary_in(answer: str) -> str:
    """The text of a summary. Raises ValueError where it is empty, no text, or longer than a memory may be."""
    text = answer.strip()
    if not text:
        raise ValueError("the answer is empty")
    text.encode()  # half a surrogate pair is no text
    return _CONTENT.validate_python(text)


class ModelRefiner:
    """Has a model refine memories. What it is shown is one user's, and quoted.

    refiner = ModelRefiner(ChatModel(settings.rater()))
    await refiner.replaced(moved_to_osaka, [likes_tea, lives_in_lyon])     # 2
    await refiner.summary(memories)                                        # "Lived in Lyon until May 2026. …"
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._supersede, self._overflow = Prompt.named("supersede"), Prompt.named("overflow")

    async def replaced(self, new: Memory, older: Sequence[Memory]) -> int | None:
        """The number, from 1, of the one of `older` that no longer holds; 0: none; None: the model did not say."""
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
            failure="it was not found out what a memory replaces",
        )

    async def summary(self, members: Sequence[Memory]) -> str | None:
        """A summary of these memories, oldest first; None where there is none that can be used."""
        each = SUMMED_UP_CHARS // len(members)
        return await self._chat.ask(
            self._overflow.about({"memories": [_shown(memory, each) for memory in members]}),
            read=summary_in,
            max_tokens=SUMMARY_TOKENS,
            failure="a summary keeps its extracted words",
            whole=True,
        )

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return self._chat.resumes_in()


def _shown(memory: Memory, chars: int) -> dict[str, str]:
    return {"date": iso(memory.created_at)[:10], "text": shortened(memory.text, chars)}
