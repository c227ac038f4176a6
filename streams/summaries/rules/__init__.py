"""The summary of a user's day: extracted from the messages, and rendered as Markdown.

turns = turns_of(messages, limits)
summary = extracted(turns)
text = rendered(summary, language="zh", …)
"""

from streams.summaries.rules.extracting import extracted
from streams.summaries.rules.labels import Language, language_of
from streams.summaries.rules.rendering import rendered
from streams.summaries.rules.turns import Turn, turns_of

__all__ = ["Language", "Turn", "extracted", "language_of", "rendered", "turns_of"]
