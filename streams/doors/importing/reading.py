"""Read the JSON values of a file one at a time, each with its place in the file.

A file has one object per line, an array, or one object. Lines and array elements are read one after the other, so the
file may have any size. `MOST` limits the size of one value, and therefore the memory that the reading needs.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from schemas.errors import BadRecord
from schemas.halves import json_text, read_json

#: The maximum size of one JSON value: in bytes for a line or an object, in characters for an element of an array.
MOST: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024
_SKIPPED: Final = b" \t\r\n\xef\xbb\xbf"  # white space, and the UTF-8 byte order mark that some editors write
_BETWEEN: Final = re.compile(r"[\s,]*")
_DECODER: Final = json.JSONDecoder()
#: A part of the text of orjson's error if there is content after the end of a value.
_BEHIND: Final = "unexpected content after document"


class Item(NamedTuple):
    """A JSON value of the file, or the problem because of which a value could not be read.

    `where` is a text with the value's place in the file, such as `line 3`. `line` is the line number, or 0 if the
    value has no line of its own.
    """

    where: str
    value: Any = None
    problem: BadRecord | None = None
    line: int = 0


def items(opened: io.BufferedReader, *, by_lines: bool = False) -> Iterator[Item]:
    """Yield the JSON values of a file. If `by_lines`, each line is a value; otherwise the file's form is detected.

    After an invalid line, reading continues with the next line. After an error in an array, or in an object of
    several lines, reading stops. Several arrays or objects may follow one another.
    """
    number, first = _begin(opened)
    if first == b"[" and not by_lines:
        yield from _elements(opened)
        return
    line = opened.readline(MOST + 1)
    if first == b"{" and not by_lines and _goes_on(line):
        yield from _objects(line + opened.read(max(0, MOST + 1 - len(line))))
        return
    while line:
        if line.strip():
            yield _line(number, line)
        while len(line) > MOST and not line.endswith(b"\n"):  # skip the rest of a line that is too long
            line = opened.readline(MOST + 1)
        line, number = opened.readline(MOST + 1), number + 1


def _begin(opened: io.BufferedReader) -> tuple[int, bytes]:
    """Skip white space. Return the line number of the next byte, and the byte. The byte itself is not consumed."""
    number = 1
    while (first := opened.peek(1)[:1]) and first in _SKIPPED:
        number += opened.read(1) == b"\n"
    return number, first


def _goes_on(line: bytes) -> bool:
    """Return True if the JSON object in the line continues on the next line."""
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        return exc.msg.startswith("unexpected end of data")
    return False


def _line(number: int, line: bytes) -> Item:
    where = f"line {number}"
    if len(line) > MOST:
        return Item(where, problem=_too_large("the line"), line=number)
    try:
        return Item(where, read_json(line.rstrip()), line=number)
    except orjson.JSONDecodeError as exc:
        return Item(where, problem=_no_json(line, exc), line=number)


def _objects(content: bytes) -> Iterator[Item]:
    """Yield the JSON objects in `content`: one object of several lines, or several objects one after the other."""
    if len(content) > MOST:
        yield Item("the object", problem=_too_large("it"))
        return
    try:
        yield Item("the object", read_json(content))
    except orjson.JSONDecodeError as exc:
        if _BEHIND in exc.msg:
            yield from _elements(io.BufferedReader(io.BytesIO(content)))
        else:
            yield Item(f"line {exc.lineno}", problem=_no_json(content, exc))


def _elements(opened: io.BufferedReader) -> Iterator[Item]:
    """Yield the elements of a JSON array. The file is read in pieces, until the next element is complete.

    Values after the end of the array, and elements of further arrays, are yielded too.
    """
    reader = io.TextIOWrapper(opened, encoding="utf-8", newline="")
    number = 1
    try:
        text, at, ended, inside = reader.read(_CHUNK), 0, False, False
        while True:
            at = _past_separators(text, at)
            if at == len(text) and not ended:
                text, at = reader.read(_CHUNK), 0
                ended = not text
                continue
            if at == len(text) and not inside:
                return
            if text.startswith("]" if inside else "[", at):
                inside, at = not inside, at + 1
                continue
            try:
                value, end = _DECODER.raw_decode(text, at)
            except json.JSONDecodeError as exc:
                if ended or len(text) - at > MOST:
                    yield Item(f"element {number}", problem=_broken(exc, ended, inside))
                    return
                more = reader.read(max(_CHUNK, len(text) - at))
                text, at, ended = text[at:] + more, 0, not more
                continue
            if "\\u" in text[at:end]:
                value = json.loads(json_text(value))
            yield Item(f"element {number}", value)
            at, number = end, number + 1
    except UnicodeDecodeError as exc:
        yield Item(
            f"element {number}", problem=BadRecord("not_utf8", f"it is not UTF-8: {exc.reason}: save it as UTF-8")
        )
    except RecursionError:
        yield Item(f"element {number}", problem=BadRecord("not_json", "it is nested too deeply"))
    finally:
        if not opened.closed:  # if the caller stopped early, it has already closed the file
            reader.detach()


def _past_separators(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _broken(exc: json.JSONDecodeError, ended: bool, inside: bool) -> BadRecord:
    if not ended:
        return _too_large("it")
    if not inside:
        return BadRecord("not_json", f"the text after the end of a value is not JSON: {exc.msg}")
    return BadRecord(
        "not_json", f"the array is cut off or damaged here: {exc.msg}: download or export the file again"
    )


def _no_json(content: bytes, exc: orjson.JSONDecodeError) -> BadRecord:
    try:
        content.decode()
    except UnicodeDecodeError as not_text:
        return BadRecord(
            "not_utf8", f"it is not UTF-8 ({not_text.reason} at byte {not_text.start}): save it as UTF-8"
        )
    return BadRecord("not_json", f"it is not JSON: {exc.msg} (character {exc.colno})")


def _too_large(what: str) -> BadRecord:
    return BadRecord("too_large", f"{what} has more than {MOST // 1024 // 1024} MiB: split the file")
