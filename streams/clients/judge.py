"""What an exchange is worth remembering, 0-10, as an OpenAI-compatible model judges it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from string import Template

from openai import APIStatusError, AsyncOpenAI

from schemas.settings import JudgeSettings

log = logging.getLogger(__name__)

#: What is quoted of each side's text: its beginning and its end, half of this each.
QUOTED_CHARS = 4_000
#: The longest that a service's Retry-After is heeded.
LONGEST_PAUSE_SECONDS = 60.0

_PROMPTS = Path(__file__).parent / "prompts"
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


class ModelJudge:
    """Asks a model. Every failure is a None and one warning, so that it never holds up the stream.

    `settings.timeout_seconds` bounds each asking as a whole, from when it has its place among the
    `settings.concurrency` simultaneous ones: waiting for a place is not the service's fault.

        judge = ModelJudge(settings.judge())
        await judge.rate("我叫小明，我对花生过敏", "好的，我记下了")     # 9
        await judge.close()

    `monotonic` gives seconds; it only measures how long a service asked to be left alone. `failure` names
    the type of the newest failure; empty where there was none.
    """

    def __init__(self, settings: JudgeSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self.model = settings.model
        self.failure = ""
        self._monotonic = monotonic
        self._resume_at = monotonic()
        self._system = _prompt("judge_system")
        self._user = Template(_prompt("judge_user"))
        self._client: AsyncOpenAI | None = None
        self._places: asyncio.Semaphore | None = None

    async def rate(self, user: str, assistant: str) -> int | None:
        """0-10; None where the model did not say, or its service asked to be left alone for now."""
        if self._places is None:
            self._places = asyncio.Semaphore(self._settings.concurrency)
        if self._paused():
            return None
        async with self._places:
            if self._paused():  # since it began to wait for its place
                return None
            try:
                async with asyncio.timeout(self._settings.timeout_seconds):
                    return await self._ask(user, assistant)
            except Exception as exc:  # whatever it is: an unrated exchange is tried again later
                self._failed(exc)
                return None

    def resumes_in(self) -> float:
        """Seconds until the service wants to be asked again; 0 where it may be asked now."""
        return max(0.0, self._resume_at - self._monotonic())

    async def close(self) -> None:
        """Close the connections. Ratings under way end as None."""
        if self._client is not None:
            await self._client.close()

    async def _ask(self, user: str, assistant: str) -> int:
        if self._client is None:
            self._client = _connected(self._settings)
        mark, exchange = quoted(user, assistant)
        answer = await self._client.chat.completions.create(
            model=self._settings.model,
            messages=[
                {"role": "system", "content": self._system},
                {"role": "user", "content": self._user.substitute(mark=mark, exchange=exchange)},
            ],
            max_tokens=5,
            temperature=0,
        )
        rating = rating_in(answer.choices[0].message.content or "")
        if rating is None:
            raise ValueError("no integer in the answer")
        return rating

    def _paused(self) -> bool:
        return self.resumes_in() > 0

    def _failed(self, exc: Exception) -> None:
        """One line, without the exception's text: that may quote the key, or what was said."""
        self.failure = type(exc).__name__
        pause = retry_after(exc.response.headers) if isinstance(exc, APIStatusError) else 0.0
        self._resume_at = max(self._resume_at, self._monotonic() + pause)
        log.warning(
            "an exchange was not rated: %s, api_key_empty=%s%s",
            type(exc).__name__,
            not self._settings.api_key.get_secret_value(),
            f"; none is asked for within {pause:g} s" if pause else "",
        )


def quoted(user: str, assistant: str) -> tuple[str, str]:
    """A mark to set above and below the exchange, and the exchange: one line of JSON.

    Nothing in the texts can pass for the end of the quotation. The line has no line ends, and `<` and what is
    invisible are escaped, so that it holds no <|control token|> of a chat template either. The mark is a hash of the
    line: to contain it, a text would have to know its own hash. The same texts give the same quotation, so that
    a replay asks the same.
    """
    exchange = json.dumps({"user": _shortened(user), "assistant": _shortened(assistant)}, ensure_ascii=False)
    line = "".join(char if char.isprintable() and char not in "<>" else _escaped(char) for char in exchange)
    return f"=== {hashlib.sha256(line.encode()).hexdigest()[:32]} ===", line


def retry_after(headers: Mapping[str, str]) -> float:
    """How many seconds a service asks to be left alone, at most `LONGEST_PAUSE_SECONDS`; 0 where it does not.

    A date counts from the answer's own date: the two clocks may differ.
    """
    asked = headers.get("retry-after", "")
    try:
        if re.fullmatch(r"\s*\d+(\.\d*)?\s*", asked):
            seconds = float(asked)
        else:
            seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers["date"])).total_seconds()
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0
    return max(0.0, min(LONGEST_PAUSE_SECONDS, seconds))


def _connected(settings: JudgeSettings) -> AsyncOpenAI:
    """A client that sends this key to this URL, and nothing that the environment holds for other services.

    Neither retries nor time-outs are its own: an exchange is tried again at the next trigger, and the time-out
    bounds an answer as a whole, where the package's would begin anew with each byte.
    """
    key = settings.api_key.get_secret_value()
    client = AsyncOpenAI(
        api_key=key,
        base_url=settings.base_url,
        # Said here too, it wins over an Authorization in OPENAI_CUSTOM_HEADERS.
        default_headers={"Authorization": f"Bearer {key}"},
        max_retries=0,
        timeout=None,
    )
    client.organization = client.project = None
    return client


def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def _shortened(text: str) -> str:
    half = QUOTED_CHARS // 2
    return text if len(text) <= QUOTED_CHARS else f"{text[:half]} … {text[-half:]}"


def _escaped(char: str) -> str:
    """As JSON: a code unit is \\uXXXX."""
    return f"\\u{ord(char):04x}" if char.isascii() else json.dumps(char)[1:-1]
