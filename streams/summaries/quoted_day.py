"""A day's conversation as it is quoted to a model: with short ids, and within the model's context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from schemas.conversations import Role
from streams.models.prompting import quotation, shortened
from streams.models.token_count import most_tokens

if TYPE_CHECKING:
    from streams.summaries.rules.turns import Turn

#: The maximum number of characters of a quoted message. If a message is longer, only its beginning and end are
#: quoted.
QUOTED_CHARS = 4_000
#: The maximum number of characters of an answer, and of a question, if the whole day is too long for the model.
BRIEF_ANSWER_CHARS, BRIEF_QUESTION_CHARS = 160, 400


class QuotedMessage(NamedTuple):
    """A message in the form in which the prompt quotes it."""

    id: str
    turn: int
    role: str
    time: str
    text: str

    @property
    def tokens(self) -> int:
        return most_tokens(quotation(self._asdict())[1] + ", ")


@dataclass(frozen=True, slots=True)
class QuotedDay:
    """The quoted messages of a day. Each one has a short id: m1, m2, … `ids` has their own ids by the short ones."""

    date: str
    said: tuple[QuotedMessage, ...]
    ids: Mapping[str, str]

    @classmethod
    def of(cls, turns: Sequence[Turn], date: str, zone: tzinfo, tokens: int) -> QuotedDay:
        """Quote the day in at most `tokens` tokens: shorten or drop first the oldest answers, then old questions."""
        own: dict[str, str] = {}
        said = []
        for turn in turns:
            for message in turn.messages:
                short = f"m{len(own) + 1}"
                own[short] = message.message_id
                at, text = _clock(message.timestamp, zone), shortened(message.content, QUOTED_CHARS)
                said.append(QuotedMessage(short, turn.number, message.role.value, at, text))
        shown = tuple(_fitted(said, tokens))
        return cls(date, shown, {one.id: own[one.id] for one in shown})

    @property
    def data(self) -> dict[str, object]:
        """The data that the prompt quotes."""
        return {"date": self.date, "messages": [one._asdict() for one in self.said]}


def _clock(millis: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(millis / 1000, zone).strftime("%H:%M")


def _fitted(said: Sequence[QuotedMessage], tokens: int) -> list[QuotedMessage]:
    """Fit the messages into `tokens`. Each step shortens or drops messages, oldest first, until they fit."""
    kept: list[QuotedMessage | None] = list(said)
    cost = [one.tokens for one in said]
    over = sum(cost) - tokens
    for step in (_brief_answer, _no_answer, _brief_question, _nothing):
        for place, one in enumerate(kept):
            if over <= 0:
                break
            if one is not None and (less := step(one)) is not one:
                kept[place], before = less, cost[place]
                cost[place] = 0 if less is None else less.tokens
                over -= before - cost[place]
    return [one for one in kept if one is not None]


def _brief_answer(one: QuotedMessage) -> QuotedMessage:
    return one if one.role == Role.USER else one._replace(text=shortened(one.text, BRIEF_ANSWER_CHARS))


def _no_answer(one: QuotedMessage) -> QuotedMessage | None:
    return one if one.role == Role.USER else None


def _brief_question(one: QuotedMessage) -> QuotedMessage:
    return one._replace(text=shortened(one.text, BRIEF_QUESTION_CHARS))


def _nothing(_: QuotedMessage) -> QuotedMessage | None:
    return None
