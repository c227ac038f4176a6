"""The summary of a user's day: extracted from the messages or written by a model, checked, and rendered as Markdown.

turns = turns_of(messages, limits)
summary = extracted(turns)  # or grounded(a model's summary, turns, zone, "auto").summary
text = rendered(summary, language="zh", …)
"""

from streams.summaries.rules.extracting import extracted
from streams.summaries.rules.grounding import grounded
from streams.summaries.rules.labels import Language, language_of
from streams.summaries.rules.rendering import rendered
from streams.summaries.rules.turns import Turn, turns_of

__all__ = ["Language", "Turn", "extracted", "grounded", "language_of", "rendered", "turns_of"]
