"""The insights of a day: facts of the user's life that are worth knowing in a month."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.summaries import Insight
from streams.language.secrets_told import is_secret
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import REMEMBER
from streams.summaries.rules.sentences import content
from streams.summaries.rules.talk import Found, Talk


def insights(talk: Talk) -> Iterator[Found[Insight]]:
    """Yield the facts that the user tells. A request to remember is left out of the text.

    Passwords, codes and numbers of cards are noted only if the user asks for it.
    """
    for line in talk.of(Kind.INSIGHT):
        text = REMEMBER.sub("", line.text)
        if len(content(text)) > 1 and (text != line.text or not is_secret(text)):
            yield Found(Insight(text=text, sources=(line.message_id,)), line.worth, line.at)
