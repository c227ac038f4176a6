"""Makes clients of the `openai` package, each for one key and one URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from openai import AsyncOpenAI
from pydantic import SecretStr

#: Maximum pause that a service can ask for. A longer `Retry-After` counts as this.
LONGEST_PAUSE_SECONDS = 60.0


def connected(api_key: SecretStr, base_url: str) -> AsyncOpenAI:
    """Return a client that sends only this key, and only to this URL.

    Keys, organisations and projects that the environment has for other services are not sent. The package's retries
    and time-outs are off. The caller decides about retries. A time-out must limit the whole answer, but the package's
    time-out would start again with each byte.
    """
    key = api_key.get_secret_value()
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        # The header is set here too, because it then overrides an Authorization in OPENAI_CUSTOM_HEADERS.
        default_headers={"Authorization": f"Bearer {key}"},
        max_retries=0,
        timeout=None,
    )
    client.organization = client.project = None
    return client


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the pause in seconds that a service asks for, at most `LONGEST_PAUSE_SECONDS`; 0 if it asks for none.

    A date is compared with the response's own date, because the two clocks may differ.
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
