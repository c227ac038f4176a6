"""The marked part of a day's file: one summary of the whole day, made of the summaries in the file.

    # 2026-01-05 · ann

    <!-- user: "ann" -->

    <!-- siltstone: day -->
    <!-- of: 00000000-0000-0000-0000-000000000001 00000000-0000-0000-0000-000000000002 -->

    …

    ---

    <!-- /siltstone: day -->

    <!-- run: 00000000-0000-0000-0000-000000000001 -->

What is between the marks is replaced when the part is made again, and all other bytes stay. Marks that do not belong
together are text like any other: nothing between them is replaced, and a new part is added.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tables.summaries.day_format import SEPARATOR, beginning_of, entries_in, escaped

BEGIN: Final = b"<!-- siltstone: day -->"
END: Final = b"<!-- /siltstone: day -->"

#: A part. Between its marks there are no other marks, and no summary of a run.
_PART: Final = re.compile(
    rb"^%b(?P<within>(?:(?!^<!-- /?siltstone: day -->|<!-- run: ).)*)^%b" % (BEGIN, END), re.MULTILINE | re.DOTALL
)
_LINE_ENDS: Final = re.compile(rb"(?:\r?\n){0,2}")
_OF: Final = re.compile(rb"^<!-- of:((?: [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})*) -->", re.MULTILINE)


class DayMerge(NamedTuple):
    """How the part is made. `merge` gets the texts of the day's summaries, in the order of the files.

    It returns the summary of the day; "" if the summaries need none, and None if the part must stay as it is. If
    `day_over` is false, a part is not begun, but a part that is there is made again.
    """

    merge: Callable[[Sequence[str]], str | None]
    day_over: bool


def remade(contents: Sequence[bytes], place: int, day: DayMerge) -> bytes:
    """Return the file `contents[place]` with the part made again of the summaries of all files (`contents`).

    If a person has removed a summary of which the part is made, the part stays as it is: it may be all that is left
    of that summary.
    """
    content = contents[place]
    if not (day.day_over or any(_PART.search(one) for one in contents)):
        return content
    entries = [entry for one in contents for entry in entries_in(without_part(one))]
    runs = dict.fromkeys(run for entry in entries for run in entry.runs)
    if not _made_of(content) <= runs.keys() or (text := day.merge([entry.text for entry in entries])) is None:
        return content
    return with_part(content, _part(text, runs)) if text else without_part(content)


def joined(contents: Sequence[bytes], heading: bytes) -> bytes:
    """Return the files of a day as one text, with one heading. It begins with the part that is made of most runs."""
    if len(contents) > 1 and any(BEGIN in one for one in contents):
        parts = [found for one in contents if (found := part_of(one)) is not None]
        bare = [without_part(one) for one in contents]
        newest = max(parts, key=lambda part: len(_made_of(part)), default=None)
        contents = bare if newest is None else [with_part(bare[0], newest), *bare[1:]]
    return SEPARATOR.join((contents[0], *(one.removeprefix(heading) for one in contents[1:])))


def part_of(content: bytes) -> bytes | None:
    """Return the first part of a file, with its marks; None if there is none."""
    found = _PART.search(content)
    return None if found is None else found[0]


def with_part(content: bytes, part: bytes) -> bytes:
    """Return the file with this part in the place of its first one, or below the heading, and without other parts."""
    found = _PART.search(content)
    if found is None:
        at = beginning_of(content)
        line_end = b"\n" if at and content[at - 1 : at] != b"\n" else b""
        return content[:at] + line_end + part + b"\n\n" + content[at:]
    return content[: found.start()] + part + without_part(content[found.end() :])


def without_part(content: bytes) -> bytes:
    """Return the file without its parts, and without the empty lines below them."""
    while (found := _PART.search(content)) is not None:
        below = _LINE_ENDS.match(content, found.end())
        content = content[: found.start()] + content[found.end() if below is None else below.end() :]
    return content


def text_of(part: bytes) -> str:
    """Return the text of a part, without marks and the rule at its end."""
    found = _PART.search(part)
    within = b"" if found is None else _OF.sub(b"", found["within"])
    return within.decode("utf-8", "replace").strip().removesuffix("---").strip()


def _part(text: str, runs: Sequence[uuid.UUID] | dict[uuid.UUID, None]) -> bytes:
    made_of = " ".join(map(str, runs)).encode()
    body = escaped(text.strip()).encode("utf-8", "replace")
    return BEGIN + b"\n<!-- of: " + made_of + b" -->\n\n" + body + b"\n" + SEPARATOR + END


def _made_of(content: bytes) -> frozenset[uuid.UUID]:
    """Return the runs of whose summaries the file's first part is made; empty if there is no part."""
    found = _PART.search(content)
    named = None if found is None else _OF.search(found["within"])
    return frozenset() if named is None else frozenset(uuid.UUID(run.decode()) for run in named[1].split())
