"""The format of a day's file: a heading, and an entry for each summary. An entry names the runs that it answers."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

SEPARATOR: Final = b"\n---\n\n"

_RUN: Final = re.compile(rb"^<!-- run: ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) -->", re.MULTILINE)
#: The comments with which an entry begins.
_RUNS: Final = re.compile(rb"(?:^<!-- run: [0-9a-f-]{36} -->[ \t]*\r?(?:\n|\Z))+", re.MULTILINE)
_OTHER_RUNS: Final = re.compile(r"\A(?:<!-- run: [0-9a-f-]{36} -->\n)+")
_STAMP: Final = re.compile(r"^<!-- run: \S{36} -->\n\*([^*\n]+)\*$", re.MULTILINE)
_USER: Final = re.compile(rb"^<!-- user: [^\n]*-->[ \t]*\r?\n(?:[ \t]*\r?\n)*", re.MULTILINE)
_OWN_MARK: Final = re.compile("<(?=!-- (?:run:|/?siltstone:))")


class Entry(NamedTuple):
    """A summary in a file, with the runs that it answers. `text` is without the comments that name the runs."""

    runs: tuple[uuid.UUID, ...]
    text: str


def heading(user_id: str, day: date) -> bytes:
    """Return the heading of a day's file: the day and the user id, and below them a comment with the id as JSON.

    In the first line, characters of the id that cannot be shown are replaced.
    """
    quoted = json.dumps(user_id).replace("<", "\\u003c").replace(">", "\\u003e")
    shown = "".join(char if char.isprintable() and char not in "<>&" else "�" for char in user_id)
    return f"# {day.isoformat()} · {shown}\n\n<!-- user: {quoted} -->\n\n".encode()


def entry(runs: Sequence[uuid.UUID], text: str, at: datetime) -> bytes:
    """Return the entry of a summary: comments that name its runs, then its time, then its text."""
    marks = "".join(f"<!-- run: {run} -->\n" for run in runs)
    stamp = at.isoformat(sep=" ", timespec="seconds")
    return f"{marks}*{stamp}*\n\n{escaped(text.strip())}\n".encode("utf-8", "replace")


def escaped(text: str) -> str:
    """Return a text in which this format's own comments are escaped, because they could be taken for real ones."""
    return _OWN_MARK.sub("&lt;", text)


def lengthened(content: bytes, beginning: bytes, added: bytes) -> bytes:
    """Return a file's content with one more entry. An empty file begins with the heading (`beginning`)."""
    if not content.strip():
        return beginning + added
    return content + (b"" if content.endswith(b"\n") else b"\n") + SEPARATOR + added


def runs_in(content: bytes) -> dict[uuid.UUID, None]:
    """Return the runs that a file names, in the order of the text."""
    return {uuid.UUID(found.decode()): None for found in _RUN.findall(content)}


def entries_in(content: bytes) -> list[Entry]:
    """Return the entries of a file, in the order of the text."""
    heads = list(_RUNS.finditer(content))
    ends = [*(head.start() for head in heads[1:]), len(content)]
    return [
        Entry(tuple(runs_in(head[0])), content[head.end() : end].decode("utf-8", "replace"))
        for head, end in zip(heads, ends, strict=False)
    ]


def beginning_of(content: bytes) -> int:
    """Return the place below the heading, but above the first entry.

    Without a heading, return the place of the first entry, or the end of the file if there is none.
    """
    first = _RUNS.search(content)
    end = len(content) if first is None else first.start()
    user = _USER.search(content, 0, end)
    return end if user is None else user.end()


def begun(content: str) -> float | None:
    """Return the time of a file's first summary (epoch ms); None if the file has no time that can be read."""
    try:
        times = [datetime.fromisoformat(stamp).timestamp() for stamp in _STAMP.findall(content)]
    except ValueError:
        return None
    return min(times) * 1000 if times else None


def entry_of(run_id: uuid.UUID, markdown: str) -> str | None:
    """Return the text of the run's entry; None if the file lacks the run."""
    _, found, rest = markdown.partition(f"<!-- run: {run_id} -->\n")
    return _OTHER_RUNS.sub("", rest.partition(f"{SEPARATOR.decode()}<!-- run: ")[0]).strip() if found else None
