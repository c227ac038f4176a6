"""What a language says preferences, decisions, tasks and problems with: patterns over clauses, read from a data file.

A section of the file begins with its name in brackets; each of its lines is an alternative, `#` a comment. `{name}`
stands for a section above it, or for a class of words of the estimator's, named by its letter. The one group that
captures, where a pattern has one, is what the item is about: what is liked, chosen, to be done. An apostrophe stands
for both of its forms, and thus for no single character of a class.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Self

from streams.language.signals import Lexicon

_TITLE: Final = re.compile(r"\[([a-z_]+)\]")
_NAMED: Final = re.compile(r"\{([A-Za-z_]+)\}")


class Cues:
    """The patterns of a language. "First" are those that a clause begins with; the others stand anywhere in it.

    Each is compiled when it is first looked with: all of them take a third of a second, and most processes that
    import this cut no sentence.
    """

    openers: re.Pattern[str]
    """First: what leads to a clause and is no part of it, "well, by the way"; any number of them."""
    idle: re.Pattern[str]
    """Small talk, and talk about the talk: no topic, no insight."""
    asks: re.Pattern[str]
    """First: a question, with or without its mark."""
    own: re.Pattern[str]
    """First: a subject of its own. What came before is complete without this clause."""
    unreal: re.Pattern[str]
    """Before a statement, in its sentence: the statement is untrue, uncertain, or another person's."""
    likes: re.Pattern[str]
    """The user likes, dislikes or prefers what is captured."""
    vague: re.Pattern[str]
    """The whole of what is captured: nothing that means anything tomorrow, a pronoun or "to say"."""
    points: re.Pattern[str]
    """First: a word that points at something said before."""
    standing: re.Pattern[str]
    """First: an instruction from now on."""
    styles: re.Pattern[str]
    """A way of answering is asked for: each alternative is one way, and a group of its own."""
    tools: re.Pattern[str]
    """A tool is chosen: captured."""
    wishes: re.Pattern[str]
    """Something is asked for: its kind is captured."""
    decides: re.Pattern[str]
    """The user decides."""
    adopts: re.Pattern[str]
    """Either speaker settles on what is captured; a technical decision if that is `technical`."""
    technical: re.Pattern[str]
    """First: a tool, a model, a method."""
    settles: re.Pattern[str]
    """The user agrees to what was proposed, without naming it."""
    suggests: re.Pattern[str]
    """What is captured is proposed."""
    because: re.Pattern[str]
    """The reason is captured."""
    therefore: re.Pattern[str]
    """First: the reason is what came before."""
    must: re.Pattern[str]
    """The user has to do, or wants to be reminded of, what is captured."""
    tasks: re.Pattern[str]
    """The whole of a clause: the next one is a task."""
    will: re.Pattern[str]
    """The user is going to do what is captured."""
    aimless: re.Pattern[str]
    """First in a task: nothing that one could tick off."""
    when: re.Pattern[str]
    """A time."""
    proposes: re.Pattern[str]
    """The assistant proposes to do what is captured."""
    promises: re.Pattern[str]
    """The assistant promises to do what is captured."""
    accepts: re.Pattern[str]
    """The user will do what was proposed."""
    fails: re.Pattern[str]
    """Something technical fails, regardless of the words around it."""
    may_fail: re.Pattern[str]
    """Something fails: a technical problem, where a `device` stands in the sentence as well."""
    device: re.Pattern[str]
    works: re.Pattern[str]
    """Nothing fails: "no errors", "error handling"."""
    solves: re.Pattern[str]
    """A way to solve a problem."""
    solved: re.Pattern[str]
    """The problem is gone."""
    steps: re.Pattern[str]
    """First: an order to do something."""
    did: re.Pattern[str]
    """What the user has done."""
    either: re.Pattern[str]
    """One of several things is proposed."""
    helped: re.Pattern[str]
    """What is named helped, after something that did not."""
    unsolved: re.Pattern[str]
    """What was proposed is of no use."""
    dangling: re.Pattern[str]
    """First: a clause that cannot stand alone."""
    realises: re.Pattern[str]
    """A conclusion."""

    def __init__(self, sections: dict[str, list[str]]) -> None:
        self._sections = {field: sections[field] for field in self.__annotations__}

    def __getattr__(self, field: str) -> re.Pattern[str]:
        """Of a pattern that has not been looked with; from then on it is an attribute like any other."""
        if field not in type(self).__annotations__:
            raise AttributeError(field)
        pattern = re.compile(_either(self._sections[field]), re.IGNORECASE)
        setattr(self, field, pattern)
        return pattern

    @classmethod
    def read(cls, name: str, lexicon: Lexicon) -> Self:
        """The cues of a data file, which stands beside this one."""
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
    r"""A pattern for any of them. A `\b` that all begin with is looked for once: most places are none."""
    if all(alternative.startswith(r"\b") for alternative in alternatives):
        return rf"\b(?:{'|'.join(alternative[2:] for alternative in alternatives)})"
    return "|".join(alternatives)


def captured(found: re.Match[str]) -> str:
    """What the one group that took part has captured."""
    return found[found.lastindex] if found.lastindex else ""
