"""Summaries by a model: a user's day becomes a summary whose items cite the ids of their messages."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from schemas.settings import SummaryPlan
from schemas.summaries import Summary
from streams.models.answers import NoAnswer
from streams.models.prompting import Messages, Prompt, template
from streams.models.token_count import most_tokens
from streams.summaries.grounding import Fault, grounded
from streams.summaries.quoted_day import QuotedDay
from streams.summaries.summary_answer import response_format, summary_in

if TYPE_CHECKING:
    from streams.models.chat import ChatModel, ResponseFormat
    from streams.summaries.rules.turns import Turn
    from streams.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

#: Minimum number of tokens that are reserved for the answer, even on a long day.
LEAST_ANSWER_TOKENS = 1_000
#: The number of tokens for those parts of a prompt whose length varies, except the messages: the date, the marks, and
#: the description of an error in the first answer.
VARYING_TOKENS = 150

#: What the model is told if nothing is left of its answer.
NO_SOURCE, NOT_SAID = "no item lists the id of a message", "no item states only what the messages say"

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
    """The model answered twice, but neither answer was a summary. `reason` does not quote the answers."""

    reason: str


class Unavailable(NamedTuple):
    """The model's service does not answer. `reason` is the error's type, or empty if no request was sent.

    No further request must be sent for `retry_after` seconds.
    """

    reason: str
    retry_after: float


class ModelSummariser:
    """Asks a model for the summary of a day, and cuts the lines that no message holds.

    The model sees one user's messages, quoted. If nothing is left of its answer, it is asked once more, as after an
    answer of another form.

        summariser = ModelSummariser(ChatModel(plan.model), plan, Metrics())
        await summariser.summarise(turns, "2026-01-05")          # Summary, Malformed or Unavailable

    If the service refuses the response format (status 400), the request is repeated with the format of any JSON
    object, and then without a format. Later requests have the format that the service accepted. If the service
    refuses the number of tokens, the request is repeated with half of this number, down to `LEAST_ANSWER_TOKENS`.
    """

    def __init__(self, chat: ChatModel, plan: SummaryPlan, metrics: Metrics) -> None:
        self._chat, self._plan, self._metrics = chat, plan, metrics
        self._prompt, self._again = Prompt.named("summary"), template("summary_again")
        self._formats: tuple[ResponseFormat | None, ...] = (response_format(), {"type": "json_object"}, None)
        self._format = 0
        empty = self._prompt.about(QuotedDay("", (), {}).data, language=max(_LANGUAGES.values(), key=len))
        around = "".join((*empty, self._again.template, json.dumps(self._formats[0])))
        self._around = most_tokens(around) + VARYING_TOKENS

    async def summarise(self, turns: Sequence[Turn], date: str) -> Summary | Malformed | Unavailable:
        """Sum up a user's turns of a day. Without turns, return an empty summary, and do not ask the model.

        `date` is the day that the model sees, as YYYY-MM-DD. A failure is logged as one warning, without users'
        texts.
        """
        if not turns:
            return Summary()
        # Quoting a long day takes a second, so do it in a thread, where it does not block the event loop.
        day, question, tokens = await asyncio.to_thread(self._question, turns, date)
        if not day.said:
            return Malformed("nothing of the day fits into the model's context")
        answer = await self._checked(await self._asked(question, day, tokens), turns)
        if isinstance(answer, NoAnswer) and answer.said:
            problem = self._again.substitute(problem=answer.exception)
            again = question._replace(user=f"{question.user}\n\n{problem}")
            answer = await self._checked(await self._asked(again, day, tokens), turns)
        if not isinstance(answer, NoAnswer):
            return answer
        self._chat.tell(answer, "a day was not summed up by the model")
        return Malformed(str(answer.exception)) if answer.said else Unavailable(answer.reason, self.resumes_in())

    def resumes_in(self) -> float:
        """Return the seconds until the service may be asked again; 0 if it may be asked now."""
        return self._chat.resumes_in()

    def _question(self, turns: Sequence[Turn], date: str) -> tuple[QuotedDay, Messages, int]:
        """Return the quoted day, the question about it, and the maximum number of tokens of the answer."""
        room = self._plan.context_tokens - self._around
        least = min(LEAST_ANSWER_TOKENS, self._plan.max_tokens)
        day = QuotedDay.of(turns, date, self._plan.timezone, room - least)
        question = self._prompt.about(day.data, language=_LANGUAGES[self._plan.language])
        return day, question, max(least, min(self._plan.max_tokens, room - sum(one.tokens for one in day.said)))

    async def _checked(self, answer: Summary | NoAnswer, turns: Sequence[Turn]) -> Summary | NoAnswer:
        """Return an answer without what no message holds. It cannot be used if nothing is left of it."""
        if isinstance(answer, NoAnswer) or answer == Summary():
            return answer
        # Reading all words of a long day takes a while, so do it in a thread, too.
        found, cut = await asyncio.to_thread(grounded, answer, turns, self._plan.timezone, self._plan.language)
        for fault, texts in cut.items():
            self._metrics.summary_texts_cut.labels(fault).inc(texts)
        if cut:
            counts = ", ".join(f"{fault} {texts}" for fault, texts in sorted(cut.items()))
            log.info("texts were cut from a model's summary: %s", counts)
        if found != Summary():
            return found
        problem = NO_SOURCE if cut.keys() == {Fault.SOURCE} else NOT_SAID
        return NoAnswer(ValueError(problem), said=True)

    async def _asked(self, question: Messages, day: QuotedDay, tokens: int) -> Summary | NoAnswer:
        """Ask the model, and return its answer.

        If the service refuses a parameter, take the next format or fewer tokens, and ask again.
        """
        form, most = self._format, tokens
        while True:
            answer = await self._chat.attempt(
                question,
                read=partial(summary_in, day=day),
                max_tokens=most,
                whole=True,
                response_format=self._formats[form],
            )
            refusal = answer.refusal if isinstance(answer, NoAnswer) else ""
            has_next = form + 1 < len(self._formats)
            too_many = bool(_TOKENS.search(refusal)) and most > LEAST_ANSWER_TOKENS
            if too_many and not (has_next and _FORMAT.search(refusal)):
                most = max(most // 2, LEAST_ANSWER_TOKENS)
            elif refusal and has_next:
                form += 1
            else:
                if not isinstance(answer, NoAnswer) or answer.said:
                    self._format = form
                return answer
