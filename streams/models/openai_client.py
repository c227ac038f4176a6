"""Creates API clients of the `openai` package. Each client has one key and one URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from openai import AsyncOpenAI
from pydantic import SecretStr

#: Maximum pause in seconds that a service can ask for. A longer `Retry-After` is shortened to it.
LONGEST_PAUSE_SECONDS = 60.0


def connected(api_key: SecretStr, base_url: str) -> AsyncOpenAI:
    """Return a client that sends only the key `api_key`, and only to `base_url`.

    Keys, organisations and projects in environment variables are not sent, because they may be for other services.
    The package's retries are off, because the caller decides about retries. Its time-outs are off, because they would
    start again with each received byte, but the caller's time-out must limit the whole answer.
    """
    key = api_key.get_secret_value()
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        # Without this header, an Authorization header in OPENAI_CUSTOM_HEADERS would replace the key.
        default_headers={"Authorization": f"Bearer {key}"},
        max_retries=0,
        timeout=None,
    )
    client.organization = client.project = None
    return client


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the pause in seconds that a service asks for, at most `LONGEST_PAUSE_SECONDS`; 0 if it asks for none.

    If `Retry-After` is a date, it is compared with the response's `Date`, because our clock may differ.
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
