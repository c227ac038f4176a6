"""The summary of a user's day: taken out of the messages or written by a model, checked, and rendered as Markdown.

turns = turns_of(messages, limits)
summary = extracted(turns)  # or grounded(what a model wrote, turns)
text = rendered(summary, language="zh", …)
"""

from streams.rules.summary.extracting import extracted
from streams.rules.summary.grounding import grounded
from streams.rules.summary.labels import Language, language_of
from streams.rules.summary.rendering import rendered
from streams.rules.summary.turns import Turn, turns_of

__all__ = ["Language", "Turn", "extracted", "grounded", "language_of", "rendered", "turns_of"]
