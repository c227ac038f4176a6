"""What a rule finds in a sentence."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """What a sentence speaks of (`about`), and its value, in the sentence's words. `own`: it is the speaker's."""

    about: str
    value: str
    own: bool
