"""What a model makes of a user's day: its summary, with the messages that each item comes from."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from schemas.settings import SummaryPlan
from schemas.summaries import Summary
from streams.models.answers import NoAnswer
from streams.models.prompting import Messages, Prompt, template
from streams.summaries.quoted_day import QuotedDay, estimated_tokens
from streams.summaries.summary_answer import response_format, summary_in

if TYPE_CHECKING:
    from streams.models.chat import ChatModel
    from streams.summaries.rules.turns import Turn

#: What an answer has room for, however long the day was.
LEAST_ANSWER_TOKENS = 1_000
#: What differs from one question to another besides the day: its date, the marks, and what was wrong with an answer.
VARYING_TOKENS = 150

_LANGUAGES = {
    "auto": "对话所用的语言，混用时用占多数的语言 (the language of most of the conversation)",
    "zh": "中文 (Chinese)",
    "en": "英文 (English)",
    "ja": "日文 (Japanese)",
    "ko": "韩文 (Korean)",
}
_TOKENS = re.compile(r"max_(?:\w+_)?tokens|context[ _](?:length|window|size)|maximum context|too many tokens", re.I)
_FORMAT = re.compile(r"response_?format|json_?schema|structured[ _]output", re.I)


class Malformed(NamedTuple):
    """The model answered twice, and neither was a summary. `reason` holds no word of its answers."""

    reason: str


class Unavailable(NamedTuple):
    """The service does not answer. `reason` is the error's type; empty where it was not asked.

    It wants to be left alone for `retry_after` seconds.
    """

    reason: str
    retry_after: float


class ModelSummariser:
    """Has a model sum up a day. What it is shown is one user's, and quoted.

    summariser = ModelSummariser(ChatModel(plan.model), plan)
    await summariser.summarise(turns, "2026-01-05")          # Summary, Malformed or Unavailable

    A service that refuses the form of the answer (400) is asked again without it, and so from then on; one that
    refuses the number of tokens is asked for half of them.
    """

    def __init__(self, chat: ChatModel, plan: SummaryPlan) -> None:
        self._chat, self._plan = chat, plan
        self._prompt, self._again = Prompt.named("summary"), template("summary_again")
        self._format = response_format()
        self._formed = True
        empty = self._prompt.about(QuotedDay("", (), {}, {}).data, language=max(_LANGUAGES.values(), key=len))
        around = "".join((*empty, self._again.template, json.dumps(self._format)))
        self._around = estimated_tokens(around) + VARYING_TOKENS

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable:
        """The summary of a user's turns of that day (YYYY-MM-DD, as it is shown); of none, an empty one unasked.

        A failure is logged as one warning, without a word of what was said.
        """
        if not turns:
            return Summary()
        # A long day takes a second to be quoted, in which others are served.
        day, question, tokens = await asyncio.to_thread(self._question, turns, date)
        if not day.said:
            return Malformed("nothing of the day fits into the model's context")
        answer = await self._asked(question, day, tokens)
        if isinstance(answer, NoAnswer) and answer.said:
            problem = self._again.substitute(problem=answer.exception)
            answer = await self._asked(question._replace(user=f"{question.user}\n\n{problem}"), day, tokens)
        if not isinstance(answer, NoAnswer):
            return answer
        self._chat.tell(answer, "a day was not summed up by the model")
        return Malformed(str(answer.exception)) if answer.said else Unavailable(answer.reason, self.resumes_in())

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return self._chat.resumes_in()

    def _question(self, turns: Sequence[Turn], date: str) -> tuple[QuotedDay, Messages, int]:
        """What is quoted of the day, the question about it, and how many tokens its answer may have."""
        room = self._plan.context_tokens - self._around
        least = min(LEAST_ANSWER_TOKENS, self._plan.max_tokens)
        day = QuotedDay.of(turns, date, self._plan.timezone, room - least)
        question = self._prompt.about(day.data, language=_LANGUAGES[self._plan.language])
        return day, question, max(least, min(self._plan.max_tokens, room - sum(one.tokens for one in day.said)))

    async def _asked(self, question: Messages, day: QuotedDay, tokens: int) -> Summary | NoAnswer:
        """One answer; what the service refuses to be asked for is left out, each thing once."""
        formed, most = self._formed, tokens
        while True:
            answer = await self._chat.attempt(
                question,
                read=partial(summary_in, day=day),
                max_tokens=most,
                whole=True,
                response_format=self._format if formed else None,
            )
            refusal = answer.refusal if isinstance(answer, NoAnswer) else ""
            too_many = bool(_TOKENS.search(refusal)) and most == tokens
            if too_many and not (formed and _FORMAT.search(refusal)):
                most = tokens // 2
            elif refusal and formed:
                formed = False
            else:
                if not isinstance(answer, NoAnswer):
                    self._formed = formed
                return answer
