"""The lines of a section of a profile in a model's words, and the check that they tell the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streams.language.faithful import fault_of, names_relative_time
from streams.language.personal_fact import Part
from streams.language.secrets_told import is_secret
from streams.models.reworder import Rewording
from streams.models.token_count import estimated_tokens
from streams.recall.profile import Line
from streams.recall.prompt import one_line

#: The number of tokens by which a rewording may be longer than its lines, such as "I am" and "The user is".
LONGER_TOKENS: Final = 4


class NotTheSame(ValueError):
    """Raised for a section that was reworded wrongly. The reason quotes no text of the user or of the model."""


def reworded_lines(part: Part, lines: Mapping[int, Line], rewordings: Sequence[Rewording] | None) -> tuple[Line, ...]:
    """Return the rewordings of a section's numbered lines as lines, in the order of the section.

    A line has the memories of all lines that it stands for, the newest first, and the newest of their times. Raises
    `NotTheSame`.
    """
    if rewordings is None:
        raise NotTheSame("it has no list")
    numbers = [number for one in rewordings for number in one.lines]
    if sorted(numbers) != sorted(lines):
        raise NotTheSame("not each line stands in it once")
    ordered = sorted((one for one in rewordings if one.lines), key=lambda one: min(one.lines))
    if len(ordered) < len(rewordings):
        raise NotTheSame("a text stands for no line")
    return tuple(_line(part, [lines[number] for number in sorted(one.lines)], one.text) for one in ordered)


def _line(part: Part, sources: Sequence[Line], text: str) -> Line:
    """Return the line that stands for these lines. Raises `NotTheSame`."""
    text = _tidied(text)
    sentences = [one.text for one in sources]
    if not text:
        raise NotTheSame("a text is empty")
    if len(sources) > 1 and (part is Part.TASKS or any(map(names_relative_time, sentences))):
        raise NotTheSame("lines with times of their own are one")
    if estimated_tokens(text) > sum(map(estimated_tokens, sentences)) + LONGER_TOKENS:
        raise NotTheSame("a text is longer than its lines")
    if is_secret(text):
        raise NotTheSame("a text may tell a secret")
    if fault := fault_of(text, sentences):
        raise NotTheSame(f"beside its lines, a text has {fault}")
    newest_first = sorted(sources, key=lambda one: -one.said_at)
    ids = dict.fromkeys(identity for one in newest_first for identity in one.memory_ids)
    return Line(_begun(text), tuple(ids), max(one.said_at for one in sources), sources[0].due)


def _begun(text: str) -> str:
    """Return the text with a capital letter at its beginning, unless the first word is spelt like "iPhone"."""
    return f"{text[0].upper()}{text[1:]}" if text.split()[0].islower() else text


def _tidied(text: str) -> str:
    """Return the text as one line without invisible characters. Halves of surrogate pairs are invisible as well."""
    return one_line(" ".join("".join(char if char.isprintable() else " " for char in text).split()))
