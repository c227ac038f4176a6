"""One question to an OpenAI-compatible chat model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from openai import APIStatusError, AsyncOpenAI, BadRequestError, UnprocessableEntityError, omit
from openai.types.chat.chat_completion import Choice
from openai.types.shared_params import ResponseFormatJSONSchema

from schemas.settings import ChatSettings
from streams.models.answers import NoAnswer
from streams.models.openai_client import connected, retry_after
from streams.models.prompting import Messages

log = logging.getLogger(__name__)

T = TypeVar("T")


class ChatModel:
    """Asks a model. It never raises a failure, so that it never holds up the stream.

    `settings.timeout_seconds` limits each request as a whole, from when it has one of the `settings.concurrency`
    places, which all callers share: waiting for a place is not the service's fault.

        chat = ChatModel(settings.rater())
        await chat.ask(prompt.about(data), read=int, max_tokens=5, failure="it was not counted")
        await chat.close()

    `monotonic` gives seconds; it only measures how long a service asked to be left alone. `failure` names
    the type of the newest failure; empty where there was none.
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
        """As `attempt`, and a failure is None and one warning. `failure` says in it what did not come about."""
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
        response_format: ResponseFormatJSONSchema | None = None,
    ) -> T | NoAnswer:
        """What `read` makes of the answer, or why there is none; nothing is logged.

        `read` raises ValueError for an answer that says nothing. One that was cut off at `max_tokens` says nothing
        where the `whole` is needed.
        """
        if self._places is None:
            self._places = asyncio.Semaphore(self._settings.concurrency)
        if self._paused():
            return NoAnswer()
        async with self._places:
            if self._paused():  # since it began to wait for its place
                return NoAnswer()
            said = False
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    choice = await self._answer(question, max_tokens, response_format)
                said = True
                if whole and choice.finish_reason == "length":
                    raise ValueError("the answer was cut off")
                return read(choice.message.content or "")
            except Exception as exc:  # after any failure, the stream goes on without an answer
                return self._failed(exc, said)

    def tell(self, none: NoAnswer, failure: str) -> None:
        """Log one line, without the exception's text. `failure` says what did not come about."""
        if none.exception is not None:
            log.warning(
                "%s: %s, api_key_empty=%s%s",
                failure,
                none.reason,
                not self._settings.api_key.get_secret_value(),
                f"; nothing is asked within {none.pause:g} s" if none.pause else "",
            )

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return max(0.0, self._resume_at - self._monotonic())

    async def close(self) -> None:
        """Close the connections. What is being asked ends as None."""
        if self._client is not None:
            await self._client.close()

    async def _answer(
        self, question: Messages, max_tokens: int, response_format: ResponseFormatJSONSchema | None
    ) -> Choice:
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
    if not isinstance(exc, BadRequestError | UnprocessableEntityError):
        return ""
    body = exc.body
    return f"{body.get('param')}: {body.get('message')}" if isinstance(body, dict) else exc.message
