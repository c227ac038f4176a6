"""Convert a file to our records: messages and session ends, or events of long-term memory.

    for one in records(opened, Given(user="ann", now=now_ms())): ...

The records depend only on the file and the options. The ids are derived from the file, so a second import of the file
gives the same records. A worker that has already processed these records then changes nothing.
"""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from schemas.conversations import SessionEnded, model_of
from schemas.errors import BadRecord, NothingSaid
from schemas.record_values import message_or_end
from schemas.times import iso
from streams.doors.importing import (
    exported,
    mem0,
    openai,
    openmemory,
    slack,
    telegram,
    whatsapp,
)
from streams.doors.importing.chats import Chat
from streams.doors.importing.conversations import Names, of_chat
from streams.doors.importing.formats import CHATS, NAMES, Format, each, recognised
from streams.doors.importing.found import (
    Found,
    Given,
    LeftOut,
    NamesNoSpeaker,
    NamesNoUser,
    NotReadable,
    Problem,
    Record,
    TakenFor,
    digest,
)
from streams.doors.importing.packed import unpacked
from streams.doors.importing.people import Talk
from streams.doors.importing.reading import Item, items

#: The maximum number of messages in a conversation whose messages are separate values of the file. Such messages are
#: kept in memory until the end of the file, because the conversation may continue until there.
MOST_MESSAGES: Final = 100_000
_OPTIONS: Final = {"user_id": "--user", "session_id": "--session"}
#: The maximum number of values that are read to find the first value with a known format.
MOST_PASSED: Final = 1000
#: If the first lines of a file are not JSON, reading stops after this number of lines, with one error for the file.
NO_JSON_LINES: Final = 3


def records(opened: io.BufferedReader, given: Given) -> Iterator[Found]:
    """Yield the format of the file, then its records, problems and left-out entries.

    Raises `NotReadable`, `NamesNoUser` and `NamesNoSpeaker`.
    """
    of, content, passed = given.format, unpacked(opened), list[Item]()
    if isinstance(content, zipfile.ZipFile):
        if of not in (None, Format.SLACK):
            raise NotReadable(f"it is {NAMES[Format.SLACK]}, not {NAMES[of]}")
        of, read = Format.SLACK, slack.channels(content)
    elif of is Format.WHATSAPP or (of is None and whatsapp.begins(content)):
        of, read = Format.WHATSAPP, iter([Item("the chat", content)])
    else:
        read = items(content, by_lines=of is Format.SILTSTONE)
    if of is None:
        of, passed, read = _recognised(read)
    if of is not None:
        if of not in _CONVERTS and given.user is None:
            raise NamesNoUser(of)
        yield TakenFor(of)
    for item in passed:
        if item.problem is not None or item.value:
            yield _problem(item, item.problem or BadRecord("invalid_fields", f"it is not in the format {of}"))
    if of is not None:
        yield from _of_format(of, read, given)


def _recognised(read: Iterator[Item]) -> tuple[Format | None, list[Item], Iterator[Item]]:
    """Find the first item with a known format. Return the format, the items before it, and an iterator from it on.

    The format is None if no value could be read. Raises `NotReadable` if values were read, but none has a known
    format.
    """
    passed = list[Item]()
    for item in itertools.islice(read, MOST_PASSED):
        of = recognised(item.value) if item.problem is None else None
        if of is not None:
            return of, passed, itertools.chain([item], read)
        passed.append(item)
        if len(passed) == NO_JSON_LINES and all(one.line and one.problem is not None for one in passed):
            raise NotReadable(
                f"its first {NO_JSON_LINES} lines are neither JSON nor a WhatsApp chat: export it as JSON, or write "
                "one message a line, as the README shows"
            )
    for item in passed:
        if item.problem is None:
            raise NotReadable(_unknown(item))
    return None, passed, read


def _unknown(item: Item) -> str:
    fields = ", ".join(str(name)[:40] for name in list(item.value)[:8]) if isinstance(item.value, dict) else ""
    what = f"the fields {fields}" if fields else f"a JSON {type(item.value).__name__}"
    return (
        f"{item.where} has {what}, which no supported format has ({', '.join(Format)}): "
        "name the format with --format, or write one message a line, as the README shows"
    )


def _problem(item: Item, why: BadRecord | None = None, within: str = "") -> Problem:
    found = why or item.problem
    assert found is not None
    return Problem(item.line, item.where + within, found)


def _of_format(of: Format, read: Iterable[Item], given: Given) -> Iterator[Found]:
    if of not in _CONVERTS:
        yield from _of_chats(of, read, given)
        return
    convert = _CONVERTS[of]
    for number, item in enumerate(read, start=1):
        if item.problem is not None:
            yield _problem(item)
            continue
        for value in each(item.value, of):
            try:
                yield from convert(value, number, given)
            except BadRecord as exc:
                yield _problem(item, exc)


def _ours(value: Any, number: int, given: Given) -> Iterator[Found]:
    """Convert a value in our own format: a message, the end of a session, or a line of an export. Raises `BadRecord`.

    If a message has no time and no id, its id is derived from its content and its place in the file (`number`). This
    is not done on standard input.
    """
    if not isinstance(value, dict):
        raise BadRecord("not_an_object", f"it is a JSON {type(value).__name__}, not an object")
    if exported.is_exported(value):
        for place, event in enumerate(exported.events_of(value, given.user)):
            yield Record.of_event(event, in_file=place == 0 and value["type"] == exported.MEMORY)
        return
    fields = dict(value)
    if given.user is not None:
        fields.setdefault("user_id", given.user)
    if given.session is not None and "run_id" not in fields:
        fields.setdefault("session_id", given.session)
    ends = model_of(fields) is SessionEnded
    dated = "timestamp" in fields or "created_at" in fields
    if not dated and given.undated is not None:
        fields["timestamp"] = iso(given.undated)
        if not ends and fields.get("message_id") is None:
            named = [fields.get(name) for name in ("user_id", "session_id", "run_id", "role", "content")]
            fields["message_id"] = digest(number, *named)
    try:
        read = message_or_end(fields if dated or given.undated else {**fields, "timestamp": given.now})
    except NothingSaid:
        yield LeftOut(1)
        return
    except BadRecord as exc:
        raise _with_options(exc, fields) from exc
    yield Record(read.user_id, orjson.dumps(fields), read.timestamp)


def _with_options(why: BadRecord, fields: Mapping[str, Any]) -> BadRecord:
    """Return the error with a hint at the command line options that supply the missing fields."""
    lacking = [option for name, option in _OPTIONS.items() if name not in fields and f"{name}: " in str(why)]
    if not lacking:
        return why
    return BadRecord(why.kind, f"{why}; for lines that do not name it, pass {' and '.join(lacking)}")


def _memories(value: Any, _: int, given: Given) -> Iterator[Found]:
    """Convert a memory of mem0 to a command to remember it. Raises `BadRecord` if the memory is invalid."""
    if not isinstance(value, dict) or not mem0.is_mem0(value):
        raise BadRecord("invalid_fields", "it is not a memory: it has no text in the field memory")
    yield Record.of_event(mem0.remembered(value, given.user, given.session, _undated(given)))


def _rows(value: Any, _: int, given: Given) -> Iterator[Found]:
    """Convert a memory of OpenMemory. A deleted memory is left out. Raises `BadRecord` if the memory is invalid."""
    if isinstance(value, dict) and value.get("state") == openmemory.DELETED:
        yield LeftOut(1)
        return
    for place, event in enumerate(openmemory.events_of(value, given.user, given.session, _undated(given))):
        yield Record.of_event(event, in_file=place == 0)


def _undated(given: Given) -> int:
    return given.now if given.undated is None else given.undated


_CONVERTS: Final[dict[Format, Callable[[Any, int, Given], Iterator[Found]]]] = {
    Format.SILTSTONE: _ours,
    Format.MEM0: _memories,
    Format.OPENMEMORY: _rows,
}


def _of_chats(of: Format, read: Iterable[Item], given: Given) -> Iterator[Found]:
    names, loose = Names(given.session), dict[str, list[Any]]()
    for item in read:
        if item.problem is not None:
            yield _problem(item)
            continue
        for value in each(item.value, of):
            if isinstance(value, dict) and (thread := _loose(of, value)) is not None:
                together = loose.setdefault(thread, [])
                together.append(value)
                if len(together) > MOST_MESSAGES:
                    raise NotReadable(f"one conversation has more than {MOST_MESSAGES:,} messages: split the file")
                continue
            try:
                chat = _chat(of, value, given)
            except BadRecord as exc:
                yield _problem(item, exc)
                continue
            yield from of_chat(chat, names, item, given)
    for thread, together in loose.items():
        if of is Format.SLACK:
            chat = _between(slack.talk_of(together, {}, None), given)
        else:
            chat = openai.chat_of_messages(together, thread or None)
        yield from of_chat(chat, names, Item("the conversation"), given)


def _loose(of: Format, value: Mapping[str, Any]) -> str | None:
    """Return the id of the conversation to which a single message belongs, or an empty text if it has no such id.

    Returns None if the value is a whole conversation.
    """
    if of is Format.OPENAI and "messages" not in value and not openai.is_openai(value):
        return openai.thread_of(value)
    return "" if of is Format.SLACK and slack.is_slack(value) else None


def _chat(of: Format, value: Any, given: Given) -> Chat:
    """Convert a value of the file to a chat.

    Raises `BadRecord` if it is not a conversation, and `NamesNoSpeaker` if it is unknown which speaker is the user.
    """
    if of is Format.OPENAI and isinstance(value, list):
        return openai.chat_of_messages(value)
    if of is Format.WHATSAPP:
        return _between(whatsapp.talk_in(value, given.zone, given.now), given)
    if not isinstance(value, dict):
        raise BadRecord("not_an_object", f"it is a JSON {type(value).__name__}, not a conversation")
    if of is Format.TELEGRAM:
        return _between(telegram.talk_of(value, given.zone), given)
    if of is Format.SLACK:
        return _between(slack.talk_of(*slack.of_channel(value)), given)
    return CHATS[of](value)


def _between(talk: Talk, given: Given) -> Chat:
    """Convert a chat between people. Raises `NamesNoSpeaker` if it is unknown which speaker is the user."""
    mine = [given.speaker] if given.speaker is not None else [*talk.owner, *([given.user] if given.user else [])]
    elsewhere = talk.of_many and (given.speaker is not None or bool(talk.owner))
    if talk.spoken and not (given.dry or elsewhere or talk.is_by_any_of(mine)):
        raise NamesNoSpeaker(talk.names, given)
    return talk.chat(mine)
