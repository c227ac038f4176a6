"""`NoAnswer`: the result of a question to a chat model if the model gave no usable answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The reason why a chat model gave no usable answer.

    `exception` is the failure; None if no request was made, because the service had asked for a pause. `said` is true
    if the model answered, but its answer cannot be used. `refusal` is the service's message about a request that it
    rejects (HTTP 400, 422, or 500 with a message of FastAPI's validation). `pause` is the time for which the service
    wants no requests (seconds). Do not log the exception or the refusal, because their texts may quote the API key or
    a user's message.
    """

    exception: Exception | None = field(default=None, repr=False)
    said: bool = False
    refusal: str = field(default="", repr=False)
    pause: float = 0.0

    @property
    def reason(self) -> str:
        """The name of the exception's type; empty if no request was made."""
        return type(self.exception).__name__ if self.exception else ""
