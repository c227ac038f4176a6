"""Cues for preferences, decisions, tasks and problems in a language: patterns over clauses, read from a data file.

A section of the file begins with its name in brackets; each line is an alternative, `#` begins a comment. `{name}`
stands for a section above it, or for a word class of the estimator, named by its letter. If a pattern has a capturing
group, it captures the subject of the item: the thing that is liked, chosen or to do. An apostrophe stands for both of
its forms, so it cannot be used inside a character class.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

from streams.language.signals import Lexicon

_TITLE: Final = re.compile(r"\[([a-z_]+)\]")
_NAMED: Final = re.compile(r"\{([A-Za-z_]+)\}")


class Cues:
    """The patterns of a language. Those marked "First" begin a clause; the others may be anywhere in it.

    Each is compiled at its first use: all of them take a third of a second, and most processes that import this
    module never cut a sentence.
    """

    openers: re.Pattern[str]
    """First: words before a clause that are no part of it, "well, by the way"; any number of them."""
    idle: re.Pattern[str]
    """Small talk, and talk about the talk: no topic, no insight."""
    asks: re.Pattern[str]
    """First: a question, with or without its mark."""
    own: re.Pattern[str]
    """First: a new subject. The text before is complete without this clause."""
    unreal: re.Pattern[str]
    """Before a statement, in its sentence: the statement is untrue, uncertain, or another person's."""
    likes: re.Pattern[str]
    """Captures what the user likes, dislikes or prefers."""
    vague: re.Pattern[str]
    """The whole captured text: words without lasting meaning, such as a pronoun or "to say"."""
    points: re.Pattern[str]
    """First: a word that points at something said before."""
    standing: re.Pattern[str]
    """First: an instruction from now on."""
    styles: re.Pattern[str]
    """A way of answering is asked for: each alternative is one way, in a group of its own."""
    tools: re.Pattern[str]
    """Captures a tool that is chosen."""
    wishes: re.Pattern[str]
    """Captures the kind of a thing that is asked for."""
    decides: re.Pattern[str]
    """The user decides."""
    adopts: re.Pattern[str]
    """Captures what either speaker settles on; a technical decision if it matches `technical`."""
    technical: re.Pattern[str]
    """First: a tool, a model, a method."""
    settles: re.Pattern[str]
    """The user agrees to what was proposed, without naming it."""
    suggests: re.Pattern[str]
    """Captures a proposal."""
    because: re.Pattern[str]
    """Captures a reason."""
    therefore: re.Pattern[str]
    """First: the text before is the reason."""
    must: re.Pattern[str]
    """Captures what the user has to do, or wants to be reminded of."""
    tasks: re.Pattern[str]
    """The whole of a clause: the next one is a task."""
    will: re.Pattern[str]
    """Captures what the user is going to do."""
    aimless: re.Pattern[str]
    """First in a task: nothing that could be ticked off."""
    when: re.Pattern[str]
    """A time."""
    proposes: re.Pattern[str]
    """Captures what the assistant proposes to do."""
    promises: re.Pattern[str]
    """Captures what the assistant promises to do."""
    accepts: re.Pattern[str]
    """The user will do what was proposed."""
    fails: re.Pattern[str]
    """Something technical fails, regardless of the words around it."""
    may_fail: re.Pattern[str]
    """Something fails: a technical problem if the sentence also matches `device`."""
    device: re.Pattern[str]
    works: re.Pattern[str]
    """Nothing fails: "no errors", "error handling"."""
    solves: re.Pattern[str]
    """A way to solve a problem."""
    solved: re.Pattern[str]
    """The problem is gone."""
    steps: re.Pattern[str]
    """First: an instruction to do something."""
    did: re.Pattern[str]
    """What the user has done."""
    either: re.Pattern[str]
    """One of several things is proposed."""
    helped: re.Pattern[str]
    """The named step helped, after another one did not."""
    unsolved: re.Pattern[str]
    """The proposal did not help."""
    dangling: re.Pattern[str]
    """First: a clause that cannot stand alone."""
    realises: re.Pattern[str]
    """A conclusion."""

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
    def read(cls, name: str, lexicon: Lexicon) -> Self:
        """Read the cues of a data file in this folder."""
        classes: dict[str, list[str]] = {}
        for word, letter in lexicon.letter_of.items():
            classes.setdefault(letter, []).append(re.escape(word))
        sections = {letter: sorted(words, key=len, reverse=True) for letter, words in classes.items()}
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
    r"""A pattern for any of them. If all begin with `\b`, it is tested once: most places are no word boundary."""
    if all(alternative.startswith(r"\b") for alternative in alternatives):
        return rf"\b(?:{'|'.join(alternative[2:] for alternative in alternatives)})"
    return "|".join(alternatives)


def captured(found: re.Match[str]) -> str:
    """The text of the one group that matched, "" if there is none."""
    return found[found.lastindex] if found.lastindex else ""
