"""What a model is told: prompts, which are files of their own, and within them what users wrote, quoted as data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NamedTuple, Self

_PROMPTS = Path(__file__).parent / "prompts"


class Messages(NamedTuple):
    """What a chat model is asked: one message of each role."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """`<name>_system.md`, and `<name>_user.md` with `$mark` above and below `$data`, and `$words` of its own."""

    system: str
    user: Template

    @classmethod
    def named(cls, name: str) -> Self:
        return cls(_read(f"{name}_system"), template(f"{name}_user"))

    def about(self, data: object, **words: str) -> Messages:
        """The question about this data, which is quoted; the words are not."""
        mark, line = quotation(data)
        return Messages(self.system, self.user.substitute(words, mark=mark, data=line))


def template(name: str) -> Template:
    """`<name>.md`."""
    return Template(_read(name))


def quotation(data: object) -> tuple[str, str]:
    """A mark to set above and below the data, and the data: one line of JSON.

    Nothing in its texts can pass for the end of the quotation. The line has no line ends, and `<` and what is
    invisible are escaped, so that it holds no <|control token|> of a chat template either. The mark is a hash of the
    line: to contain it, a text would have to know its own hash. The same data give the same quotation, so that a
    replay asks the same.
    """
    line = _harmless(json.dumps(data, ensure_ascii=False))
    return _mark(line), line


def fenced(text: str) -> str:
    """A text between a line above and the same below it, for who reads it as text: its lines stay as they are.

    As in `quotation`, nothing in it can pass for its end, and what is invisible is escaped.
    """
    shown = "\n".join(map(_harmless, text.splitlines()))
    mark = _mark(shown)
    return f"{mark}\n{shown}\n{mark}"


def shortened(text: str, chars: int) -> str:
    """A text's beginning and end, half of `chars` each, where it is longer."""
    half = chars // 2
    return text if len(text) <= chars else f"{text[:half]} … {text[-half:]}"


def _read(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def _mark(text: str) -> str:
    return f"=== {hashlib.sha256(text.encode()).hexdigest()[:32]} ==="


def _harmless(line: str) -> str:
    return "".join(char if char.isprintable() and char not in "<>" else _escaped(char) for char in line)


def _escaped(char: str) -> str:
    """As JSON: a code unit is \\uXXXX."""
    return f"\\u{ord(char):04x}" if char.isascii() else json.dumps(char)[1:-1]
