"""The `openai` package, for one key and one URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from openai import AsyncOpenAI
from pydantic import SecretStr

#: The longest that a service's Retry-After is heeded.
LONGEST_PAUSE_SECONDS = 60.0


def connected(api_key: SecretStr, base_url: str) -> AsyncOpenAI:
    """A client that sends this key to this URL, and nothing that the environment holds for other services.

    Neither retries nor time-outs are its own: what is tried again, and when, is the caller's to say, and a time-out
    is to bound an answer as a whole, where the package's would start over with each byte.
    """
    key = api_key.get_secret_value()
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        # Said here too, it wins over an Authorization in OPENAI_CUSTOM_HEADERS.
        default_headers={"Authorization": f"Bearer {key}"},
        max_retries=0,
        timeout=None,
    )
    client.organization = client.project = None
    return client


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
