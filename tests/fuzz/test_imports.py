"""Whatever a file holds: it is read, or told what is wrong with it, and nothing else happens."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import parse_timestamp
from streams.doors.importing.formats import Format
from streams.doors.importing.found import Given, NamesNoSpeaker, NamesNoUser, NotReadable, Record
from streams.doors.importing.records import records

NOW = parse_timestamp("2026-03-10T12:00:00Z")
NAMES = (
    "role", "content", "messages", "tool_calls", "from", "value", "conversations", "items", "id", "mapping",
    "message", "author", "parts", "content_type", "metadata", "create_time", "current_node", "parent", "recipient",
    "memory", "results", "user_id", "run_id", "session_id", "type", "timestamp", "name", "text", "chat_messages",
    "sender", "uuid", "chats", "list", "date", "date_unixtime", "from_id", "ts", "user", "thread_id", "data",
)  # fmt: skip
WORDS = st.sampled_from(("user", "assistant", "human", "gpt", "session_end", "text", "a", "", "\ud800", "2026-01-01"))
PLAIN = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | WORDS | st.text(max_size=5)
PIECES = (
    "[", "]", "31/12/25", "12.31.2025", "99/99/99", "0/0/0", "2025-02-30", ", ", " ", "23:59", "9:05 PM", "25:61",
    "下午9:05", " - ", " – ", "Ann", "Bob", ": ", ":", "hi", "\n", "\r\n", "\u200e", "<", ">", "\ud800", "\u2028",
)  # fmt: skip
ANYTHING = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)


def written(value: Any) -> bytes:
    """As any program may have written it, also what is no JSON to a strict reader."""
    return json.dumps(value).encode()


@given(
    st.lists(ANYTHING, max_size=4), st.booleans(), st.sampled_from((None, *Format)), st.sampled_from((None, "ann"))
)
def test_any_json_is_read_or_refused(values: list[Any], as_array: bool, of: Format | None, user: str | None) -> None:
    content = written(values) if as_array else b"\n".join(written(value) for value in values)
    check(content, Given(NOW, user, None, NOW, of, speaker="a", dry=as_array))


@given(
    st.binary(max_size=60)
    | st.sampled_from((b"[{", b'{"a":', b"[1,", b"\xef\xbb\xbf")).flatmap(
        lambda head: st.binary(max_size=20).map(lambda tail: head + tail)
    )
)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    check(content, Given(NOW, "ann", None, None))


def packed(name: str) -> bytes:
    """A file as a service delivers it, compressed by gzip or in a ZIP archive."""
    chat = written([{"messages": [{"role": "user", "content": "I live in Oslo"}]}])
    if not name:
        return gzip.compress(chat)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", b"[]")
        archive.writestr(name, chat)
    return content.getvalue()


PACKED = [packed(name) for name in ("", "conversations.json", "general/2026-01-01.json")]


@given(st.sampled_from(PACKED), st.data())
def test_any_damage_of_a_packed_file_is_read_or_refused(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]), Given(NOW, "ann", None, None, speaker="a"))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_like_a_chat_is_read_or_refused(text: str) -> None:
    check(text.encode(errors="surrogatepass"), Given(NOW, "Ann", None, NOW))
    check(text.encode(errors="surrogatepass"), Given(NOW, "Ann", None, NOW, Format.WHATSAPP, dry=True))


def check(content: bytes, given_with: Given) -> None:
    try:
        found = list(records(io.BufferedReader(io.BytesIO(content)), given_with))
    except (NotReadable, NamesNoUser, NamesNoSpeaker):
        return
    for one in found:
        if isinstance(one, Record):
            assert isinstance(orjson.loads(one.value), dict)
            assert one.user_id
