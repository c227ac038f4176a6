"""Asks a model to reword the lines of a profile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streams.models.answers import NoAnswer
from streams.models.prompting import Prompt

if TYPE_CHECKING:
    from streams.models.chat import ChatModel

#: The maximum number of tokens of an answer: those of a profile in any vocabulary, and the form around its texts.
ANSWER_TOKENS: Final = 1_500
_THOUGHTS: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


class Rewording(NamedTuple):
    """A text that stands for the lines with these numbers."""

    lines: tuple[int, ...]
    text: str


def rewordings_in(answer: str, sections: Sequence[str]) -> dict[str, list[Rewording]]:
    """Return the rewordings of each section in a model's answer. Sections of another form are left out.

    Thoughts, other text and the line of a code block may precede the JSON object. Raises ValueError if there is none.

    >>> rewordings_in('{"about": [{"lines": [1], "text": "lives in Oslo"}], "people": "none"}', ["about", "people"])
    {'about': [Rewording(lines=(1,), text='lives in Oslo')]}
    """
    text = _THOUGHTS.sub("", answer)
    start = text.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in the answer")
    found, _ = json.JSONDecoder().raw_decode(text, start)
    return {name: items for name in sections if (items := _items(found.get(name))) is not None}


def _items(listed: Any) -> list[Rewording] | None:
    if not isinstance(listed, list):
        return None
    items = []
    for one in listed:
        numbers, text = (one.get("lines"), one.get("text")) if isinstance(one, dict) else (None, None)
        if not isinstance(text, str) or not isinstance(numbers, list):
            return None
        if not all(type(number) is int for number in numbers):
            return None
        items.append(Rewording(tuple(numbers), text))
    return items


class ModelReworder:
    """Asks a chat model to reword a profile. The model sees one user's sentences, as quoted data.

    reworder = ModelReworder(ChatModel(settings.rater()))
    await reworder.reworded({"about": {1: "I live in Oslo."}})   # {"about": [Rewording((1,), "lives in Oslo")]}
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat, self._prompt = chat, Prompt.named("profile")

    async def reworded(self, lines: Mapping[str, Mapping[int, str]]) -> Mapping[str, Sequence[Rewording]] | None:
        """Return rewordings of the numbered lines of each section, without any check of what they say.

        If the model's answer cannot be read, there are none. If its service gave no answer, return None.
        """
        data = [
            {"section": name, "lines": [{"number": number, "text": text} for number, text in numbered.items()]}
            for name, numbered in lines.items()
        ]
        answer = await self._chat.attempt(
            self._prompt.about({"sections": data}),
            read=lambda text: rewordings_in(text, list(lines)),
            max_tokens=ANSWER_TOKENS,
            whole=True,
        )
        if not isinstance(answer, NoAnswer):
            return answer
        self._chat.tell(answer, "a profile keeps the user's words")
        return {} if answer.said else None
