"""`ChatModel`: sends questions to a chat model by an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import Final, TypeVar

from openai import APIStatusError, AsyncOpenAI, BadRequestError, UnprocessableEntityError, omit
from openai.types.chat.chat_completion import Choice
from openai.types.shared_params import ResponseFormatJSONObject, ResponseFormatJSONSchema

from schemas.settings import ChatSettings
from streams.models.answers import NoAnswer
from streams.models.openai_client import connected, retry_after
from streams.models.prompting import Messages

log = logging.getLogger(__name__)

T = TypeVar("T")
ResponseFormat = ResponseFormatJSONSchema | ResponseFormatJSONObject

#: A request that FastAPI rejects. The server of llama-cpp-python reports it with the status 500.
_INVALID_BODY: Final = re.compile(r"""['"]loc['"]:\s*[\[(]\s*['"]body['"]""")


class ChatModel:
    """Sends questions to a chat model. It never raises failures, so that they never stop the stream of records.

    At most `settings.concurrency` requests run at the same time. `settings.timeout_seconds` limits each request as a
    whole. This time starts when the request is sent, because a slow service is not the cause of the wait before.

        chat = ChatModel(settings.rater())
        await chat.ask(prompt.about(data), read=int, max_tokens=5, failure="it was not counted")
        await chat.close()

    `monotonic` returns seconds; it only measures the pause that a service asked for. `failure` is the name of the
    last exception's type; empty if there was no failure.
    """

    def __init__(self, settings: ChatSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self.name = settings.model
        self.failure = ""
        self._monotonic = monotonic
        self._resume_at = monotonic()
        self._client: AsyncOpenAI | None = None
        self._places: asyncio.Semaphore | None = None

    async def ask(
        self, question: Messages, *, read: Callable[[str], T], max_tokens: int, failure: str, whole: bool = False
    ) -> T | None:
        """Ask as `attempt` does. After a failure, log a warning that begins with `failure`, and return None."""
        answer = await self.attempt(question, read=read, max_tokens=max_tokens, whole=whole)
        if isinstance(answer, NoAnswer):
            self.tell(answer, failure)
            return None
        return answer

    async def attempt(
        self,
        question: Messages,
        *,
        read: Callable[[str], T],
        max_tokens: int,
        whole: bool = False,
        response_format: ResponseFormat | None = None,
    ) -> T | NoAnswer:
        """Ask once. Return the result of `read` for the answer; `NoAnswer` after a failure. Nothing is logged.

        `read` must raise ValueError if it cannot use the answer. With `whole`, an answer that was cut off at
        `max_tokens` also counts as a failure.
        """
        if self._places is None:
            self._places = asyncio.Semaphore(self._settings.concurrency)
        if self._paused():
            return NoAnswer()
        async with self._places:
            if self._paused():  # a pause may have begun while this request waited
                return NoAnswer()
            said = False
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    choice = await self._answer(question, max_tokens, response_format)
                said = True
                if whole and choice.finish_reason == "length":
                    raise ValueError("the answer was cut off")
                return read(choice.message.content or "")
            except Exception as exc:  # after any failure, the caller continues without an answer
                return self._failed(exc, said)

    def tell(self, none: NoAnswer, failure: str) -> None:
        """Log the failure `none`, without the exception's text, in one line that begins with the text `failure`."""
        if none.exception is not None:
            log.warning(
                "%s: %s, api_key_empty=%s%s",
                failure,
                none.reason,
                not self._settings.api_key.get_secret_value(),
                f"; no requests for {none.pause:g} s" if none.pause else "",
            )

    def resumes_in(self) -> float:
        """Return the remaining seconds of a pause that the service asked for; 0 if requests may be sent now."""
        return max(0.0, self._resume_at - self._monotonic())

    async def close(self) -> None:
        """Close the connections to the service. Requests in progress end without an answer."""
        if self._client is not None:
            await self._client.close()

    async def _answer(self, question: Messages, max_tokens: int, response_format: ResponseFormat | None) -> Choice:
        if self._client is None:
            self._client = connected(self._settings.api_key, self._settings.base_url)
        answer = await self._client.chat.completions.create(
            model=self._settings.model,
            messages=[
                {"role": "system", "content": question.system},
                {"role": "user", "content": question.user},
            ],
            max_tokens=max_tokens,
            temperature=0,
            response_format=response_format or omit,
        )
        return answer.choices[0]

    def _paused(self) -> bool:
        return self.resumes_in() > 0

    def _failed(self, exc: Exception, said: bool) -> NoAnswer:
        pause = retry_after(exc.response.headers) if isinstance(exc, APIStatusError) else 0.0
        none = NoAnswer(exc, said, _refusal(exc), pause)
        self.failure = none.reason
        self._resume_at = max(self._resume_at, self._monotonic() + pause)
        return none


def _refusal(exc: Exception) -> str:
    if not isinstance(exc, APIStatusError):
        return ""
    body = exc.body
    refusal = f"{body.get('param')}: {body.get('message')}" if isinstance(body, dict) else exc.message
    rejected = isinstance(exc, BadRequestError | UnprocessableEntityError) or _INVALID_BODY.search(refusal)
    return refusal if rejected else ""
