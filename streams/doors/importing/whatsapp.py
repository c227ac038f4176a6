"""Convert a chat that WhatsApp exported: a text in which each message begins with a date, a time and a name.

    [31.12.23, 23:59:01] Ann: Happy new year!              exported by an iPhone
    12/31/23, 11:59 PM - Ann: Happy new year!              exported by an Android phone
    second line of this message

The export does not name the time zone. The format of dates depends on the phone's language, so we choose the order of
day, month and year for which the dates of the file are valid and do not decrease.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from schemas.errors import BadRecord
from streams.doors.importing.people import Spoken, Talk
from streams.doors.importing.reading import MOST

_DATE: Final = r"(\d{1,4})[./-]\s?(\d{1,2})[./-]\s?(\d{1,4})\.?"
_HALF: Final = r"[AaPp]\.?[\s\u202f]?[Mm]\.?|上午|下午|午前|午後|오전|오후"
_TIME: Final = rf"(?:({_HALF})[\s\u202f]?)?(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?(?:[\s\u202f]?({_HALF}))?"
_WHEN: Final = rf"{_DATE},?\s{{1,2}}{_TIME}"
_HEAD: Final = re.compile(rf"[\u200e\u200f\u202a-\u202c]*(?:\[{_WHEN}\]\s|{_WHEN}\s[-–]\s)(.*)", re.DOTALL)
_AFTERNOON: Final = ("p", "下", "午後", "오후")
#: The first character of texts that WhatsApp writes in place of missing pictures, calls and deleted messages.
_MARK: Final = "\u200e"
_IN_ANGLES: Final = re.compile(r"<[^<>]{1,200}>")
_EDITED: Final = re.compile(r"[\s\u200e]{0,4}<[^<>]{1,60}>\Z")
#: The maximum number of bytes of the first line that are examined to recognise a chat of WhatsApp.
_FIRST_LINE: Final = 2000
_YEARS: Final = 2000


class _Line(NamedTuple):
    """A message of the file. `date` has the three numbers of its date in the same order as in the file.

    `american` is True if the time ends with an upper-case AM or PM, and the last number of the date has two digits.
    """

    date: tuple[int, int, int]
    hour: int
    minute: int
    second: int
    american: bool
    text: str


def begins(opened: io.BufferedReader) -> bool:
    """Return True if the file begins like a chat of WhatsApp. The position in the file does not change."""
    first = opened.peek(_FIRST_LINE)[:_FIRST_LINE].decode("utf-8-sig", "replace").lstrip()
    return _read(first.partition("\n")[0]) is not None


def talk_in(opened: io.BufferedReader, zone: tzinfo, now: int) -> Talk:
    """Read a chat of WhatsApp. `zone` is its time zone, and `now` is the present time in epoch ms.

    Raises `BadRecord` if the file is too large or is not UTF-8.
    """
    raw = opened.read(MOST + 1)
    if len(raw) > MOST:
        raise BadRecord("too_large", f"it has more than {MOST // 1024 // 1024} MiB: split the file")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as exc:
        raise BadRecord("not_utf8", f"it is not UTF-8: {exc.reason}: save it as UTF-8") from exc
    lines = _messages(text)
    order = _order_of(lines, datetime.fromtimestamp(now / 1000, UTC).replace(tzinfo=None) + timedelta(days=1))
    spoken, left_out, problems = list[Spoken](), 0, list[BadRecord]()
    for place, line in enumerate(lines, start=1):
        name, colon, words = line.text.partition(": ")
        words = _EDITED.sub("", words.strip()) if not _IN_ANGLES.fullmatch(words.strip()) else ""
        if not colon or not words or words.startswith(_MARK):
            left_out += 1
            continue
        try:
            at = _moment(line, order, zone)
        except ValueError:
            problems.append(BadRecord("invalid_fields", f"message {place}: its date is invalid"))
            continue
        spoken.append(Spoken(place, name.strip("\u200e\u200f\u202a\u202c~ \u202f"), words, at))
    return Talk(spoken, left_out=left_out, problems=tuple(problems))


def _messages(text: str) -> list[_Line]:
    """Split the file's text into messages. A line that does not begin with a date continues the message before it."""
    found = list[_Line]()
    for raw in io.StringIO(text):
        line = _read(raw)
        if line is not None:
            found.append(line)
        elif found:
            found[-1] = found[-1]._replace(text=found[-1].text + raw)
    return found


def _read(raw: str) -> _Line | None:
    head = _HEAD.match(raw)
    if head is None:
        return None
    *fields, text = head.groups()
    first, second, third, before, hour, minute, seconds, after = fields[:8] if fields[0] else fields[8:]
    half, hours = (before or after or "").lower(), int(hour)
    if half:
        hours = hours % 12 + (12 if half.startswith(_AFTERNOON) else 0)
    if hours > 23 or int(minute) > 59:
        return None
    date = int(first), int(second), int(third)
    return _Line(date, hours, int(minute), int(seconds or 0), after in ("AM", "PM") and len(third) == 2, text)


#: Possible orders of a date's numbers. Each has the positions of the year, the month and the day in `_Line.date`.
_DAY_FIRST: Final = (2, 1, 0)
_MONTH_FIRST: Final = (2, 0, 1)
_YEAR_FIRST: Final = (0, 1, 2)
#: A message cannot be older than this date, because WhatsApp did not exist before 2009.
_FIRST: Final = datetime(2009, 1, 1)


def _order_of(lines: Sequence[_Line], newest: datetime) -> tuple[int, int, int]:
    """Return the order of year, month and day with which the dates of the file have the fewest faults.

    It is a fault if a date is invalid, is not between `_FIRST` and `newest`, or is earlier than a date before it. If
    several orders are equally good, the month comes first for American phones, otherwise the day comes first.
    """

    def misfits(order: tuple[int, int, int]) -> int:
        wrong, before = 0, datetime.min
        for line in lines:
            try:
                at = _local(line, order)
            except ValueError:
                wrong += len(lines)
                continue
            wrong += not max(before, _FIRST) <= at <= newest
            before = max(before, at)
        return wrong

    american = bool(lines) and all(line.american for line in lines)
    usual = (_MONTH_FIRST, _DAY_FIRST) if american else (_DAY_FIRST, _MONTH_FIRST)
    return min((*usual, _YEAR_FIRST), key=misfits)


def _local(line: _Line, order: tuple[int, int, int]) -> datetime:
    """Return the local time of a message. Raises `ValueError` if its date is invalid with this order of numbers."""
    year, month, day = (line.date[place] for place in order)
    return datetime(year + _YEARS if year < 100 else year, month, day, line.hour, line.minute, line.second)


def _moment(line: _Line, order: tuple[int, int, int], zone: tzinfo) -> int:
    return round(_local(line, order).replace(tzinfo=zone).timestamp() * 1000)
