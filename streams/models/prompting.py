"""Prompts for chat models. The prompts are read from files. Users' texts are quoted in them as data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NamedTuple, Self

_PROMPTS = Path(__file__).parent / "prompts"


class Messages(NamedTuple):
    """A question to a chat model: a system message and a user message."""

    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt from two files: the system message, `<name>_system.md`, and a template of the user message.

    The template, `<name>_user.md`, has the variable `$data` between two lines with `$mark`. It may have more
    variables.
    """

    system: str
    user: Template

    @classmethod
    def named(cls, name: str) -> Self:
        return cls(_read(f"{name}_system"), template(f"{name}_user"))

    def about(self, data: object, **words: str) -> Messages:
        """Return the question about `data`, which is quoted.

        `words` are the values of the template's other variables. These values are not quoted.
        """
        mark, line = quotation(data)
        return Messages(self.system, self.user.substitute(words, mark=mark, data=line))


def template(name: str) -> Template:
    """Return the template in the file `<name>.md`."""
    return Template(_read(name))


def quotation(data: object) -> tuple[str, str]:
    """Return a mark to set above and below the data, and the data as one line of JSON.

    A text in the data cannot imitate the end of the quotation, because the mark is a hash of the whole line, and a
    line cannot contain its own hash. `<`, `>` and invisible characters are escaped, so the line cannot contain a
    <|control token|> of a chat template. The same data give the same quotation, so a replay asks the same question.
    """
    line = _harmless(json.dumps(data, ensure_ascii=False))
    return _mark(line), line


def fenced(text: str) -> str:
    """Return a text between two equal marker lines. Its line breaks are kept, so that a model sees its structure.

    As in `quotation`, the text cannot contain its marker, and `<`, `>` and invisible characters are escaped.
    """
    shown = "\n".join(map(_harmless, text.splitlines()))
    mark = _mark(shown)
    return f"{mark}\n{shown}\n{mark}"


def shortened(text: str, chars: int) -> str:
    """Return a text, shortened if it has more than `chars` characters: its first and last `chars` / 2 characters."""
    half = chars // 2
    return text if len(text) <= chars else f"{text[:half]} … {text[-half:]}"


def _read(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def _mark(text: str) -> str:
    return f"=== {hashlib.sha256(text.encode()).hexdigest()[:32]} ==="


def _harmless(line: str) -> str:
    return "".join(char if char.isprintable() and char not in "<>" else _escaped(char) for char in line)


def _escaped(char: str) -> str:
    """Escape a character as JSON does: each UTF-16 code unit becomes \\uXXXX."""
    return f"\\u{ord(char):04x}" if char.isascii() else json.dumps(char)[1:-1]
