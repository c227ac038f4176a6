"""Rating of exchanges by an OpenAI-compatible model: 0-10, higher if an exchange is more worth remembering."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streams.models.prompting import Prompt, quotation, shortened

if TYPE_CHECKING:
    from streams.models.chat import ChatModel

#: Maximum number of characters of the user's text, and of the assistant's text, that the model sees. A longer text is
#: shortened to its beginning and its end.
QUOTED_CHARS = 4_000

#: Matches an integer. A minus before it is a sign, unless a letter or digit precedes the minus ("7-9"). 18 digits are
#: enough, because the integer is clamped.
_INTEGER = re.compile(r"(?:(?<!\w)[-−－])?\d{1,18}")


def rating_in(answer: str) -> int | None:
    """Return the first integer in a model's answer, clamped to 0-10; None if the answer has no integer.

    >>> rating_in("7分"), rating_in("重要性：8"), rating_in("99"), rating_in("-3"), rating_in("important")
    (7, 8, 10, 0, None)
    """
    found = _INTEGER.search(answer)
    if found is None:
        return None
    return 0 if found[0][0] in "-−－" else min(10, int(found[0]))


class ModelRater:
    """Asks a model to rate exchanges.

    rater = ModelRater(ChatModel(settings.rater()))
    await rater.rate("我叫小明，我对花生过敏", "好的，我记下了")     # 9
    """

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.model = chat.name
        self._prompt = Prompt.named("rating")

    async def rate(self, user: str, assistant: str) -> int | None:
        """Return the rating, 0-10; None if the model gave none, or if its service has asked for a pause."""
        return await self._chat.ask(
            self._prompt.about(_exchange(user, assistant)),
            read=_rating,
            max_tokens=5,
            failure="an exchange was not rated",
        )

    def resumes_in(self) -> float:
        """Return the remaining seconds of a pause that the service asked for; 0 if requests may be sent now."""
        return self._chat.resumes_in()


def quoted(user: str, assistant: str) -> tuple[str, str]:
    """Return an exchange as the rating model sees it: the mark above and below it, and the quoted exchange."""
    return quotation(_exchange(user, assistant))


def _exchange(user: str, assistant: str) -> dict[str, str]:
    return {"user": shortened(user, QUOTED_CHARS), "assistant": shortened(assistant, QUOTED_CHARS)}


def _rating(answer: str) -> int:
    rating = rating_in(answer)
    if rating is None:
        raise ValueError("no integer in the answer")
    return rating
