"""What becomes of a question that a chat model does not answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is no answer: `exception`, or None where the service wants to be left alone and was not asked.

    `said`: the model did answer, and what it said cannot be used. `refusal`: what the service says of a request that
    it does not accept as it is (400, 422). `pause`: for how many seconds it wants to be left alone. Neither exception
    nor refusal is for logs: their texts may quote the key, or what was said.
    """

    exception: Exception | None = field(default=None, repr=False)
    said: bool = False
    refusal: str = field(default="", repr=False)
    pause: float = 0.0

    @property
    def reason(self) -> str:
        """The exception's type."""
        return type(self.exception).__name__ if self.exception else ""
