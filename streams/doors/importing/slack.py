"""Convert an export of Slack.

The export is a ZIP archive with a folder for each channel. A folder has a file per day, with an array of messages:

{"type": "message", "user": "U024BE7LH", "text": "Hello <@U0G9QF9C6>", "ts": "1704103200.000100"}

The file `users.json` of the archive has the names of people.
"""

from __future__ import annotations

import html
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from schemas.errors import BadRecord
from schemas.halves import read_json, without_halves
from streams.doors.importing.chats import moment, text_id
from streams.doors.importing.people import Spoken, Talk
from streams.doors.importing.reading import MOST, Item

#: The file in the archive that has the names of people.
_USERS: Final = "users.json"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
#: Subtypes of messages that people wrote. Other subtypes are notices, such as that a person has joined.
_SAID: Final = (None, "me_message", "thread_broadcast", "file_share")
#: Mentions and links in a text, such as <@U1|ann>, <#C1|general>, <!here>, <https://…|a page>.
_MARKED: Final = re.compile(r"<([@#!]?)([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")


def is_slack(value: Mapping[str, Any]) -> bool:
    """Return True if the value is a message in the form of a Slack export."""
    return value.get("type") == "message" and isinstance(value.get("ts"), str) and "role" not in value


def is_export(archive: zipfile.ZipFile) -> bool:
    names = archive.namelist()
    return _USERS in names and any(map(_channel, names))


def _channel(name: str) -> str | None:
    """Return the name of the channel to which a day's file in the archive belongs, or None for any other file."""
    folder, _, file = name.rpartition("/")
    return folder.rpartition("/")[2] or None if _DAY.fullmatch(file) else None


def channels(archive: zipfile.ZipFile) -> Iterator[Item]:
    """Yield an item for each channel, with the channel's messages of all days and the names of people.

    If a file of the channel cannot be read, an item with the problem is yielded first.
    """
    names = _names(archive)
    days: dict[str, list[str]] = {}
    for name in sorted(archive.namelist()):
        if channel := _channel(name):
            days.setdefault(channel, []).append(name)
    for channel, files in days.items():
        messages, size, problem = list[Any](), 0, None
        for name in files:
            size += archive.getinfo(name).file_size
            if size > MOST:
                problem = BadRecord("too_large", f"it has more than {MOST // 1024 // 1024} MiB: split it")
                break
            try:
                of_day = read_json(archive.read(name))
            except orjson.JSONDecodeError as exc:
                problem = BadRecord("not_json", f"{name} is not JSON: {exc.msg}")
                continue
            messages += of_day if isinstance(of_day, list) else [of_day]
        if problem is not None:
            yield Item(f"channel {channel}", problem=problem)
        yield Item(f"channel {channel}", {"channel": channel, "messages": messages, "names": names})


def of_channel(value: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, str], str]:
    """Return the messages, names and channel of a value from `channels`. Raises `BadRecord` for other values."""
    try:
        return value["messages"], value["names"], value["channel"]
    except KeyError:
        raise BadRecord("invalid_fields", "it is not a message: it needs the type message and a ts") from None


def talk_of(messages: Sequence[Any], names: Mapping[str, str], channel: str | None) -> Talk:
    spoken, left_out, problems = list[Spoken](), 0, list[BadRecord]()
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            problems.append(BadRecord("invalid_fields", f"message {place} is not an object"))
            continue
        who, text = text_id(message.get("user")), message.get("text")
        if (
            message.get("type") != "message"
            or message.get("subtype") not in _SAID
            or who is None
            or not isinstance(text, str)
            or not text.strip()
        ):
            left_out += 1
            continue
        ts = text_id(message.get("ts"))
        identity = f"{channel or 'slack'}-{ts}" if ts else None
        words = without_halves(_plain(text, names))
        spoken.append(Spoken(place, names.get(who, who), words, moment(ts), identity, (who,)))
    return Talk(spoken, channel, left_out, tuple(problems), of_many=channel is not None)


def _names(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the names of people in the archive, by user id."""
    try:
        people = read_json(archive.read(_USERS))
    except orjson.JSONDecodeError:
        return {}
    names = dict[str, str]()
    for one in people if isinstance(people, list) else ():
        if not isinstance(one, dict) or (identity := text_id(one.get("id"))) is None:
            continue
        profile = given if isinstance(given := one.get("profile"), dict) else {}
        called = (profile.get("real_name"), one.get("real_name"), profile.get("display_name"), one.get("name"))
        names[identity] = next((name for name in called if isinstance(name, str) and name), identity)
    return names


def _plain(text: str, names: Mapping[str, str]) -> str:
    def said(mark: re.Match[str]) -> str:
        kind, what, label = mark.groups()
        if kind == "@":
            return f"@{names.get(what, label or what)}"
        if kind == "#":
            return f"#{label or what}"
        return label or (f"@{what}" if kind == "!" else what)

    return html.unescape(_MARKED.sub(said, text))
