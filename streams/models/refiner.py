"""Asks a model to refine long-term memories.

The model says which older memory a new one replaces, and writes summaries of several memories.
"""

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

#: Maximum number of characters of a memory in the question which older memory a new one replaces. Of a longer memory,
#: the model sees only the beginning and the end.
QUOTED_CHARS = 4_000
#: Maximum number of characters of all memories in a request for a summary. Each memory gets an equal share.
SUMMED_UP_CHARS = 32_000
SUMMARY_TOKENS = 1_000

#: A number at the beginning of an answer. Only punctuation may precede it, because the 3 in "none of the 3" is no
#: verdict. A minus does not count as punctuation.
_NUMBER = re.compile(r"[^\w−－-]*(\d{1,4})(?!\d)")
_CONTENT: TypeAdapter[str] = TypeAdapter(Content)


def verdict_in(answer: str, candidates: int) -> int:
    """Return the number at the beginning of an answer: the number of a candidate, or 0 for none of them.

    Raises ValueError for any other answer. A number that is too high is not clamped, because a wrong number would
    hide a true memory from searches. To keep an outdated memory is less harmful.

    >>> verdict_in("2", 3), verdict_in("0。", 3), verdict_in("**1**", 3)
    (2, 0, 1)
    """
    found = _NUMBER.match(answer)
    if found is None or int(found[1]) > candidates:
        raise ValueError("the answer names no candidate")
    return int(found[1])


def summary_in(answer: str) -> str:
    """Return the summary in a model's answer. Raises ValueError if it is empty, invalid, or too long for a memory."""
    text = answer.strip()
    if not text:
        raise ValueError("the answer is empty")
    text.encode()  # raises ValueError if the text contains half of a surrogate pair
    return _CONTENT.validate_python(text)


class ModelRefiner:
    """Asks a chat model to refine memories. For each question, the model sees one user's memories, as quoted data.

    refiner = ModelRefiner(ChatModel(settings.rater()))
    await refiner.replaced(moved_to_osaka, [likes_tea, lives_in_lyon])     # 2
    await refiner.summary(memories)                                        # "Lived in Lyon until May 2026. …"
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._supersede, self._overflow = Prompt.named("supersede"), Prompt.named("overflow")

    async def replaced(self, new: Memory, older: Sequence[Memory]) -> int | None:
        """Return the number, from 1, of the memory in `older` that is no longer true because of the memory `new`.

        Return 0 if all older memories are still true, and None if the model gave no usable answer.
        """
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
        """Return a summary of `members`, which must be sorted, oldest first; None if there is no usable answer."""
        each = SUMMED_UP_CHARS // len(members)
        return await self._chat.ask(
            self._overflow.about({"memories": [_shown(memory, each) for memory in members]}),
            read=summary_in,
            max_tokens=SUMMARY_TOKENS,
            failure="a summary keeps its extracted words",
            whole=True,
        )

    def resumes_in(self) -> float:
        """Return the remaining seconds of a pause that the service asked for; 0 if requests may be sent now."""
        return self._chat.resumes_in()


def _shown(memory: Memory, chars: int) -> dict[str, str]:
    return {"date": iso(memory.created_at)[:10], "text": shortened(memory.text, chars)}
