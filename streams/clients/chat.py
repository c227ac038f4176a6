"""One question to an OpenAI-compatible chat model."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from openai import APIStatusError, AsyncOpenAI

from schemas.settings import JudgeSettings
from streams.clients.openai_client import connected, retry_after
from streams.clients.prompting import Question

log = logging.getLogger(__name__)

T = TypeVar("T")


class ChatModel:
    """Asks a model. Every failure is a None and one warning, so that it never holds up the stream.

    `settings.timeout_seconds` bounds each asking as a whole, from when it has its place among the
    `settings.concurrency` simultaneous ones, whoever asks: waiting for a place is not the service's fault.

        chat = ChatModel(settings.judge())
        await chat.ask(prompt.about(data), read=int, max_tokens=5, failure="it was not counted")
        await chat.close()

    `monotonic` gives seconds; it only measures how long a service asked to be left alone. `failure` names
    the type of the newest failure; empty where there was none.
    """

    def __init__(self, settings: JudgeSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self.name = settings.model
        self.failure = ""
        self._monotonic = monotonic
        self._resume_at = monotonic()
        self._client: AsyncOpenAI | None = None
        self._places: asyncio.Semaphore | None = None

    async def ask(
        self, question: Question, *, read: Callable[[str], T], max_tokens: int, failure: str, whole: bool = False
    ) -> T | None:
        """What `read` makes of the answer; None where there is none, or the service asked to be left alone for now.

        `read` raises ValueError for an answer that says nothing. One that was cut off at `max_tokens` says nothing
        where the `whole` is needed. `failure` says in the log what did not come about.
        """
        if self._places is None:
            self._places = asyncio.Semaphore(self._settings.concurrency)
        if self._paused():
            return None
        async with self._places:
            if self._paused():  # since it began to wait for its place
                return None
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    return read(await self._answer(question, max_tokens, whole))
            except Exception as exc:  # whatever it is, the stream goes on without an answer
                self._failed(exc, failure)
                return None

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return max(0.0, self._resume_at - self._monotonic())

    async def close(self) -> None:
        """Close the connections. What is being asked ends as None."""
        if self._client is not None:
            await self._client.close()

    async def _answer(self, question: Question, max_tokens: int, whole: bool) -> str:
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
        )
        choice = answer.choices[0]
        if whole and choice.finish_reason == "length":
            raise ValueError("the answer was cut off")
        return choice.message.content or ""

    def _paused(self) -> bool:
        return self.resumes_in() > 0

    def _failed(self, exc: Exception, failure: str) -> None:
        """One line, without the exception's text: that may quote the key, or what was said."""
        self.failure = type(exc).__name__
        pause = retry_after(exc.response.headers) if isinstance(exc, APIStatusError) else 0.0
        self._resume_at = max(self._resume_at, self._monotonic() + pause)
        log.warning(
            "%s: %s, api_key_empty=%s%s",
            failure,
            type(exc).__name__,
            not self._settings.api_key.get_secret_value(),
            f"; nothing is asked within {pause:g} s" if pause else "",
        )
