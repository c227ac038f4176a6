"""What an exchange is worth remembering, 0-10, as an OpenAI-compatible model rates it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streams.models.prompting import Prompt, quotation, shortened

if TYPE_CHECKING:
    from streams.models.chat import ChatModel

#: What is quoted of each side's text: its beginning and its end, half of this each.
QUOTED_CHARS = 4_000

#: A minus counts where it is a sign, not where it joins words. 18 digits say all that the clamping needs.
_INTEGER = re.compile(r"(?:(?<!\w)[-−－])?\d{1,18}")


def rating_in(answer: str) -> int | None:
    """The first integer in a model's answer, clamped to 0-10; None where there is none.

    >>> rating_in("7分"), rating_in("重要性：8"), rating_in("99"), rating_in("-3"), rating_in("important")
    (7, 8, 10, 0, None)
    """
    found = _INTEGER.search(answer)
    if found is None:
        return None
    return 0 if found[0][0] in "-−－" else min(10, int(found[0]))


class ModelRater:
    """Has a model rate exchanges.

    rater = ModelRater(ChatModel(settings.rater()))
    await rater.rate("我叫小明，我对花生过敏", "好的，我记下了")     # 9
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.model = chat.name
        self._prompt = Prompt.named("rating")

    async def rate(self, user: str, assistant: str) -> int | None:
        """0-10; None where the model did not say, or its service asked to be left alone for now."""
        return await self._chat.ask(
            self._prompt.about(_exchange(user, assistant)),
            read=_rating,
            max_tokens=5,
            failure="an exchange was not rated",
        )

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return self._chat.resumes_in()


def quoted(user: str, assistant: str) -> tuple[str, str]:
    """The mark above and below the exchange, and the exchange, as the model sees them."""
    return quotation(_exchange(user, assistant))


def _exchange(user: str, assistant: str) -> dict[str, str]:
    return {"user": shortened(user, QUOTED_CHARS), "assistant": shortened(assistant, QUOTED_CHARS)}


def _rating(answer: str) -> int:
    rating = rating_in(answer)
    if rating is None:
        raise ValueError("no integer in the answer")
    return rating
