"""`NoAnswer`: the result of a question that a chat model did not answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is no answer: `exception`, or None if the service was not asked, because it had asked for a pause.

    `said`: the model answered, but the answer cannot be used. `refusal`: the service's message about a request that
    it rejects (400, 422). `pause`: the seconds for which it asks for no requests. Do not log exception or refusal:
    their texts may quote the key or a message.
    """

    exception: Exception | None = field(default=None, repr=False)
    said: bool = False
    refusal: str = field(default="", repr=False)
    pause: float = 0.0

    @property
    def reason(self) -> str:
        """The name of the exception's type."""
        return type(self.exception).__name__ if self.exception else ""
