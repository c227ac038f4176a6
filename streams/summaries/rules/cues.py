"""Cues of a language: patterns over clauses, read from a data file. They say where a line begins and ends.

A section of the file begins with its name in brackets. Each line of a section is an alternative of its pattern, and
`#` begins a comment. `{name}` stands for the pattern of an earlier section. If a pattern has a capturing group, it
captures the task, the reason, or the chosen thing. An apostrophe stands for both of its forms (' and ’), so it cannot
be used inside a character class.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

_TITLE: Final = re.compile(r"\[([a-z_]+)\]")
_NAMED: Final = re.compile(r"\{([A-Za-z_]+)\}")


class Cues:
    """The patterns of a language. Patterns marked "First" must begin a clause; others match anywhere in it.

    Each pattern is compiled at its first use. To compile all of them takes a third of a second, and most processes
    that import this module never use them.
    """

    openers: re.Pattern[str]
    """First: any number of words that are not part of the clause itself, such as "well, by the way"."""
    idle: re.Pattern[str]
    """Small talk, and talk about the conversation itself. It gives no topic."""
    asks: re.Pattern[str]
    """First: a question, with or without a question mark."""
    styles: re.Pattern[str]
    """A request for a way of answering. Each alternative is one way, and is in a group of its own."""
    tools: re.Pattern[str]
    """Captures a tool that is chosen."""
    wishes: re.Pattern[str]
    """Captures the kind of thing that the user asks for."""
    technical: re.Pattern[str]
    """First: a tool, a model, a method."""
    because: re.Pattern[str]
    """Captures a reason."""
    must: re.Pattern[str]
    """Captures a task that the user has to do, or wants to be reminded of."""
    will: re.Pattern[str]
    """Captures a task that the user is going to do."""
    when: re.Pattern[str]
    """A time."""
    own: re.Pattern[str]
    """First: a new subject."""
    offers: re.Pattern[str]
    """Captures what a speaker proposes or promises."""
    refuses: re.Pattern[str]
    """First: a proposal is refused."""
    worked: re.Pattern[str]
    """The end of a step that helped: "clearing the cache did"."""
    habits: re.Pattern[str]
    """Words of a habit: "always", "every Friday"."""

    def __init__(self, sections: dict[str, list[str]]) -> None:
        self._sections = {field: sections[field] for field in self.__annotations__}

    def __getattr__(self, field: str) -> re.Pattern[str]:
        """Compile a pattern at its first use, and set it as an attribute."""
        if field not in type(self).__annotations__:
            raise AttributeError(field)
        pattern = re.compile(_either(self._sections[field]), re.IGNORECASE)
        setattr(self, field, pattern)
        return pattern

    @classmethod
    def read(cls, name: str) -> Self:
        """Read the cues of a language from the data file `name` in this folder."""
        sections: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
            if title := _TITLE.fullmatch(line):
                lines = sections[title[1]] = []
            elif line and not line.startswith("#"):
                pattern = line.replace("'", "['’]")
                lines.append(_NAMED.sub(lambda found: f"(?:{'|'.join(sections[found[1]])})", pattern))
        sections["openers"] = [rf"\s*(?:{'|'.join(sections['openers'])})*+"]
        sections["styles"] = [f"({style})" for style in sections["styles"]]
        return cls(sections)


def _either(alternatives: list[str]) -> str:
    r"""Return a pattern for any of the alternatives.

    If all of them begin with `\b`, the pattern tests the word boundary once, before the alternatives. This is faster,
    because most positions in a text are no word boundary.
    """
    if all(alternative.startswith(r"\b") for alternative in alternatives):
        return rf"\b(?:{'|'.join(alternative[2:] for alternative in alternatives)})"
    return "|".join(alternatives)


def captured(found: re.Match[str]) -> str:
    """Return the text of the last group that matched; "" if no group matched."""
    return found[found.lastindex] if found.lastindex else ""
