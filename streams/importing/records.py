"""From a file to records of ours: messages and ends of sessions, or commands to remember.

    for one in records(opened, Given(user="ann", now=now_ms())): ...

Everything is a function of the file and of what was given with it. Ids follow from the file, so the same file gives
the same records again, and a worker that has them changes nothing.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from schemas.conversations import SessionEnded, model_of
from schemas.errors import BadRecord, NothingSaid
from schemas.record_values import message_or_end
from schemas.times import iso
from streams.importing import chatgpt, exported, mem0, openai, openmemory, sharegpt
from streams.importing.chats import Chat
from streams.importing.conversations import Names, of_chat
from streams.importing.formats import Format, each, recognised
from streams.importing.found import Found, Given, LeftOut, NamesNoUser, NotReadable, Problem, Record, TakenFor, digest
from streams.importing.packed import unpacked
from streams.importing.reading import Item, items

#: Of a conversation that is an array of messages, which is known only when all of it is read.
MOST_MESSAGES: Final = 100_000
_OPTIONS: Final = {"user_id": "--user", "session_id": "--session"}
_CHATS: Final = {Format.OPENAI: openai.chat_of, Format.SHAREGPT: sharegpt.chat_of, Format.CHATGPT: chatgpt.chat_of}


def records(opened: io.BufferedReader, given: Given) -> Iterator[Found]:
    """What the file says, in its order. Raises `NotReadable`, and `NamesNoUser`."""
    read = items(unpacked(opened), by_lines=given.format is Format.SILTSTONE)
    for item in read:
        of = given.format
        if of is None and item.problem is None:
            of = recognised(item.value)
            if of is None:
                raise NotReadable(_unknown(item))
        if of is not None:
            if of not in _CONVERTS and given.user is None:
                raise NamesNoUser(of)
            yield TakenFor(of)
            yield from _of_format(of, itertools.chain([item], read), given)
            return
        yield _problem(item)


def _unknown(item: Item) -> str:
    fields = ", ".join(str(name)[:40] for name in list(item.value)[:8]) if isinstance(item.value, dict) else ""
    what = f"the fields {fields}" if fields else f"a JSON {type(item.value).__name__}"
    return (
        f"{item.where} has {what}, as none of the formats does that are read ({', '.join(Format)}): "
        "name the one that it is with --format, or write one message a line as the README shows"
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
    """A message, the end of a session, or a memory of an export. Raises `BadRecord`.

    Where it has neither time nor id, its id follows from its place in the file.
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
    """What could be named on the command line."""
    lacking = [option for name, option in _OPTIONS.items() if name not in fields and f"{name}: " in str(why)]
    if not lacking:
        return why
    return BadRecord(why.kind, f"{why}; name what no line names with {' and '.join(lacking)}")


def _memories(value: Any, _: int, given: Given) -> Iterator[Found]:
    """A command to remember. Raises `BadRecord`."""
    if not isinstance(value, dict) or not mem0.is_mem0(value):
        raise BadRecord("invalid_fields", "it is no memory: it has no text in the field memory")
    yield Record.of_event(mem0.remembered(value, given.user, given.session, _undated(given)))


def _rows(value: Any, _: int, given: Given) -> Iterator[Found]:
    """A memory of OpenMemory's, which may lie in the archive. Raises `BadRecord`."""
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
    names, together = Names(given.session), list[Any]()
    whole = Item("the conversation")
    for item in read:
        if item.problem is not None:
            yield _problem(item)
            continue
        for value in each(item.value, of):
            if of is Format.OPENAI and isinstance(value, dict) and "messages" not in value:
                together.append(value)
                if len(together) > MOST_MESSAGES:
                    raise NotReadable(f"one conversation has more than {MOST_MESSAGES:,} messages: split the file")
                continue
            try:
                chat = _chat(of, value)
            except BadRecord as exc:
                yield _problem(item, exc)
                continue
            yield from of_chat(chat, names, item, given)
    if together:
        yield from of_chat(openai.chat_of_messages(together), names, whole, given)


def _chat(of: Format, value: Any) -> Chat:
    if of is Format.OPENAI and isinstance(value, list):
        return openai.chat_of_messages(value)
    if not isinstance(value, dict):
        raise BadRecord("not_an_object", f"it is a JSON {type(value).__name__}, not a conversation")
    return _CHATS[of](value)
