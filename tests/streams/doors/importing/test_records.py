"""Files of each format become records: who said what, when, under which ids."""

from __future__ import annotations

import gc
import gzip
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.conversations import ChatMessage
from schemas.events import Remember
from schemas.settings import MemorySettings
from schemas.times import parse_timestamp
from streams.doors.importing import reading
from streams.doors.importing.formats import Format
from streams.doors.importing.found import Found, Given, LeftOut, NamesNoUser, NotReadable, Problem, Record, TakenFor
from streams.doors.importing.records import records

NOW = parse_timestamp("2026-03-10T12:00:00Z")
GIVEN = Given(NOW, undated=NOW - 1_000_000)
FOR_ANN = replace(GIVEN, user="ann")


def found(content: bytes | str | Any, given: Given = FOR_ANN) -> list[Found]:
    if not isinstance(content, bytes | str):
        content = orjson.dumps(content)
    raw = content.encode() if isinstance(content, str) else content
    return list(records(io.BufferedReader(io.BytesIO(raw)), given))


def taken_for(all_found: Sequence[Found]) -> list[Format]:
    return [one.format for one in all_found if isinstance(one, TakenFor)]


def values(all_found: Sequence[Found]) -> list[dict[str, Any]]:
    return [orjson.loads(one.value) for one in all_found if isinstance(one, Record)]


def said(all_found: Sequence[Found]) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in values(all_found) if "role" in one]


def problems(all_found: Sequence[Found]) -> list[str]:
    return [f"{one.where}: {one.why}" for one in all_found if isinstance(one, Problem)]


def left_out(all_found: Sequence[Found]) -> int:
    return sum(one.messages for one in all_found if isinstance(one, LeftOut))


OPENAI = [
    {"role": "developer", "content": "You are a guide."},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a stave church"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "A stave church in Borgund."}]},
]
SHAREGPT = {
    "id": "QWJhYvA_0",
    "conversations": [
        {"from": "human", "value": "My son is called Emil."},
        {"from": "gpt", "value": "A fine name."},
        {"from": "function_call", "value": "{}"},
    ],
}
MEM0 = {
    "results": [
        {
            "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
            "memory": "Likes to play cricket on weekends",
            "hash": "285d07801ae42054732314853e9eadd7",
            "metadata": {"place": "Bergen"},
            "categories": ["sports"],
            "created_at": "2025-07-01T12:00:00.000000-07:00",
            "updated_at": None,
            "user_id": "alex",
            "run_id": "r7",
        }
    ],
    "relations": [],
}


def node(name: str, parent: str | None, role: str, text: str, at: float | None = None, **more: Any) -> dict[str, Any]:
    message = {
        "id": f"id-{name}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def chatgpt(current: str | None = "g") -> dict[str, Any]:
    """Asked, answered, answered again; behind it a tool that was called."""
    hidden: dict[str, Any] = {"metadata": {"is_visually_hidden_from_conversation": True}}
    context = {"content": {"content_type": "user_editable_context", "user_profile": "I am a cook"}}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    seen = {"content": {"content_type": "multimodal_text", "parts": [picture, "And this knife?"]}}
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["a"]},
        node("a", "root", "system", "", **hidden),
        node("b", "a", "user", "", 1_772_000_000.25, **context),
        node("c", "b", "user", "Which pan is for omelettes?", 1_772_000_001.25),
        node("d", "c", "assistant", "A large one.", 1_772_000_002.0),
        node("e", "c", "assistant", "A small one.", 1_772_000_050.0),
        node("f", "e", "assistant", "search('knife')", 1_772_000_060.0, recipient="browser"),
        node("g", "f", "user", "", None, **seen),
    ]
    return {
        "title": "Pans",
        "create_time": 1_772_000_000.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current,
        "conversation_id": "c-1",
    }


@pytest.mark.parametrize(
    ("content", "of"),
    [
        (b'{"user_id": "a", "session_id": "s", "role": "user", "content": "hi"}\n', Format.SILTSTONE),
        (b'\xef\xbb\xbf\n {"session_id": "s", "role": "user", "content": "hi", "memory": "x"}', Format.SILTSTONE),
        ([{"user_id": "a", "run_id": "s", "role": "user", "content": "hi"}], Format.SILTSTONE),
        (OPENAI, Format.OPENAI),
        ({"messages": OPENAI}, Format.OPENAI),
        (orjson.dumps({"messages": OPENAI}, option=orjson.OPT_INDENT_2), Format.OPENAI),
        (b"\n".join(orjson.dumps({"messages": OPENAI}) for _ in range(2)), Format.OPENAI),
        (b"\n".join(orjson.dumps(message) for message in OPENAI), Format.OPENAI),
        (SHAREGPT, Format.SHAREGPT),
        ([SHAREGPT], Format.SHAREGPT),
        ({"id": "x", "items": SHAREGPT["conversations"]}, Format.SHAREGPT),
        ([chatgpt()], Format.CHATGPT),
        (chatgpt(), Format.CHATGPT),
        ({"conversations": [chatgpt()]}, Format.CHATGPT),
        (MEM0, Format.MEM0),
        (MEM0["results"], Format.MEM0),
        (orjson.dumps(MEM0, option=orjson.OPT_INDENT_2), Format.MEM0),
    ],
)
def test_a_file_is_known_by_its_first_object(content: Any, of: Format) -> None:
    everything = found(content)
    assert (taken_for(everything), problems(everything)) == ([of], [])
    assert values(everything)


def test_openais_parts_are_joined_and_calls_of_tools_left_out() -> None:
    everything = found(OPENAI)
    assert said(everything) == [
        ("system", "You are a guide."),
        ("user", "What is this?"),
        ("tool", "a stave church"),
        ("assistant", "A stave church in Borgund."),
    ]
    assert left_out(everything) == 1


def test_sharegpts_speakers_are_ours() -> None:
    everything = found([SHAREGPT])
    assert said(everything) == [("user", "My son is called Emil."), ("assistant", "A fine name.")]
    assert ({one["session_id"] for one in values(everything)}, left_out(everything)) == ({"QWJhYvA_0"}, 1)


def test_of_a_chatgpt_tree_the_path_to_the_current_node_is_taken() -> None:
    """Without what is hidden, the answer that was replaced, and what was said to tools."""
    everything = found([chatgpt()])
    messages = [one for one in values(everything) if "role" in one]
    assert [(one["message_id"], one["content"], one["timestamp"][11:]) for one in messages] == [
        ("id-c", "Which pan is for omelettes?", "06:13:21.250Z"),
        ("id-e", "A small one.", "06:14:10.000Z"),
        ("id-g", "And this knife?", "06:14:10.000Z"),
    ]
    assert left_out(everything) == 3
    assert values(everything)[-1] == {
        "type": "session_end",
        "user_id": "ann",
        "session_id": "c-1",
        "timestamp": "2026-02-25T06:14:10.000Z",
    }


def test_without_a_current_node_the_newest_end_of_the_tree_is_taken() -> None:
    tree = chatgpt(current=None)
    del tree["mapping"]["g"], tree["mapping"]["f"]
    assert said(found([tree]))[-1] == ("assistant", "A small one.")


def test_a_memory_of_mem0_is_remembered_with_its_id_and_time() -> None:
    (value,) = values(found(MEM0, GIVEN))
    event = Remember.model_validate(value)
    assert (event.user_id, event.session_id, event.text) == ("alex", "r7", "Likes to play cricket on weekends")
    assert str(event.memory_id) == "892db2ae-06d9-49e5-8b3e-585ef9b85b8e"
    assert event.timestamp == parse_timestamp("2025-07-01T19:00:00Z")
    assert event.metadata == {"place": "Bergen", "categories": ["sports"]}
    assert (value["type"], "importance" in value) == ("remember", False)


@pytest.mark.parametrize("content", [OPENAI, [SHAREGPT], [chatgpt()], MEM0, [{"id": 7, "memory": "has no UUID"}]])
def test_the_same_file_gives_the_same_ids_whenever_it_is_read(content: Any) -> None:
    """Its time may be another one: a copy of the file is the same file."""

    def ids(given: Given) -> list[tuple[Any, ...]]:
        named = ("session_id", "message_id", "event_id", "memory_id")
        return [tuple(one.get(name) for name in named) for one in values(found(content, given))]

    assert ids(FOR_ANN) == ids(replace(FOR_ANN, now=NOW + 99, undated=NOW))


def test_a_chat_that_went_on_keeps_its_session_and_its_ids() -> None:
    more = [*OPENAI, {"role": "user", "content": "Is it old?"}]
    before, after = (values(found(content)) for content in (OPENAI, more))
    assert [one["message_id"] for one in after[:4]] == [one["message_id"] for one in before[:4]]
    assert {one["session_id"] for one in before + after} == {before[0]["session_id"]}


def test_chats_of_one_opening_are_two_sessions() -> None:
    chats = [{"messages": OPENAI}, {"messages": OPENAI}]
    first = values(found(chats))[0]["session_id"]
    assert {one["session_id"] for one in values(found(chats))} == {first, f"{first}-2"}
    named = values(found(chats, replace(FOR_ANN, session="trip")))
    assert {one["session_id"] for one in named} == {"trip", "trip-2"}


def test_undated_messages_lie_a_second_apart_up_to_the_files_time() -> None:
    """On standard input, up to now."""
    undated = [parse_timestamp(one["timestamp"]) for one in values(found(OPENAI)) if "role" in one]
    assert undated == [NOW - 1_000_000 - 1000 * before for before in (3, 2, 1, 0)]
    piped = [parse_timestamp(one["timestamp"]) for one in values(found(OPENAI, replace(FOR_ANN, undated=None)))]
    assert piped[-1] == NOW


def test_a_chat_that_was_taken_up_again_is_a_session_for_each_sitting() -> None:
    """A window holds each as a whole, so what comes a second time is known."""
    hour = 3600
    chat = [{"role": "user", "content": f"on day {n}", "timestamp": 1_772_000_000 + n * 24 * hour} for n in range(3)]
    everything = values(found({"id": "x", "messages": chat}))
    assert [one["session_id"] for one in everything if "role" in one] == ["x", "x.2", "x.3"]
    assert [one["session_id"] for one in everything if "role" not in one] == ["x", "x.2", "x.3"]


def test_a_sitting_has_no_more_exchanges_than_a_window() -> None:
    pair = [{"role": "user", "content": "and then?"}, {"role": "assistant", "content": "it went on"}]
    given = replace(FOR_ANN, memory=MemorySettings(capacity=10))
    sessions = [
        one["session_id"] for one in values(found({"id": "x", "messages": pair * 25}, given)) if "role" in one
    ]
    assert [sessions.count(name) for name in ("x", "x.2", "x.3")] == [20, 20, 10]


def test_our_own_messages_stay_as_they_are() -> None:
    line = {"user_id": "bob", "session_id": "s", "role": "user", "content": "hi", "mood": 3, "created_at": NOW}
    assert values(found([line], GIVEN)) == [line]
    assert values(found(orjson.dumps(line), GIVEN)) == [line]


def test_our_own_messages_without_time_and_id_get_the_files_time_and_an_id_of_their_line() -> None:
    """On standard input they are left to the worker: what is said again there is said twice."""
    line = b'{"user_id": "bob", "session_id": "s", "role": "user", "content": "ok"}\n'
    first, second = values(found(line * 2, GIVEN))
    assert (parse_timestamp(first["timestamp"]), first["timestamp"]) == (NOW - 1_000_000, second["timestamp"])
    assert ChatMessage.model_validate(first).message_id != second["message_id"]
    assert values(found(line * 2, replace(GIVEN, undated=NOW)))[1]["message_id"] == second["message_id"]
    assert values(found(line, replace(GIVEN, undated=None))) == [orjson.loads(line)]


def test_options_name_what_a_line_does_not() -> None:
    lines = (
        b'{"role": "user", "content": "hi", "session_id": "s"}\n{"user_id": "bob", "role": "user", "content": "ho"}'
    )
    given = replace(FOR_ANN, session="t")
    named = values(found(lines, given))
    assert [(one["user_id"], one["session_id"]) for one in named] == [("ann", "s"), ("bob", "t")]
    assert [what.partition("do not name it,")[2] for what in problems(found(lines, GIVEN))] == [
        " pass --user",
        " pass --session",
    ]


def test_whose_chats_they_are_has_to_be_said() -> None:
    for content in (OPENAI, [SHAREGPT], [chatgpt()]):
        with pytest.raises(NamesNoUser, match="pass --user"):
            found(content, GIVEN)
    (lacking,) = problems(found([{"memory": "likes tea"}], GIVEN))
    assert lacking == "element 1: user_id: no user is named: pass --user"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b'not json\n{"user_id": "a", "session_id": "s", "role": "user", "content": "hi"}',
            ["line 1: it is not JSON: "],
        ),
        (b'{"session_id": "s", "role": "user", "content": "hi"}\n\n{"role": \n', ["line 3: it is not JSON: "]),
        (b'{"session_id": "s", "role": "user", "content": "\xff"}', ["line 1: it is not UTF-8 "]),
        (b'[{"session_id": "s", "role": "user", "content": "\xff"}]', ["element 1: it is not UTF-8: "]),
        (
            [*OPENAI, {"role": "wizard", "content": "x"}],
            ["the conversation: message 6: role 'wizard' is not one of user, "],
        ),
        (
            [{"messages": OPENAI}, {"messages": 7}, 8],
            ["element 2: it has no list of messages with a role", "element 3: it is a JSON int"],
        ),
        ([{"messages": [*OPENAI, 8]}], ["element 1: message 6 is not an object"]),
        ([SHAREGPT, {"id": "y"}], ["element 2: it has no list of conversations"]),
        (
            [chatgpt(), {"mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}, "current_node": "a"}],
            ["element 2: its tree has a cycle at node 'a': export the chats again"],
        ),
        (orjson.dumps([chatgpt(), chatgpt()])[:-100], ["element 2: the array is cut off or damaged here: "]),
        (orjson.dumps({"messages": OPENAI}, option=orjson.OPT_INDENT_2)[:-9], ["line 43: it is not JSON: "]),
        ([{"memory": "x", "user_id": "u"}, {"text": "y"}], ["element 2: it is not a memory: "]),
        (
            [{"messages": [{"role": "user", "content": "ab" * 20_000}]}],
            ["element 1, message 1: content: Value error, must be at most 32768 bytes"],
        ),
    ],
)
def test_what_is_bad_is_told_with_its_place(content: Any, told: list[str]) -> None:
    everything = problems(found(content))
    assert [what[: len(start)] for what, start in zip(everything, told, strict=True)] == told


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PK\x03\x04....", "it is a damaged ZIP archive"),
        (b"\x1f\x8b", "it is a damaged file compressed by gzip"),
        (gzip.compress(b'{"role": "user"}\n', mtime=0)[:-9], "it is a damaged file compressed by gzip"),
        ([{"colour": "red"}], "element 1 has the fields colour, which no supported format has"),
        (b'{"colour": "red"}\n', "line 1 has the fields colour, which no supported format has"),
        (b"[7]", "element 1 has a JSON int"),
    ],
)
def test_a_file_of_no_format_is_refused_with_advice(content: Any, why: str) -> None:
    with pytest.raises(NotReadable, match=why):
        found(content)


def test_what_is_refused_leaves_no_reader_behind(tmp_path: Path) -> None:
    """Its end comes after that of the file."""
    file = tmp_path / "chats.json"
    file.write_text('[{"a": 1}, {"b": 2}]')
    with file.open("rb") as opened, pytest.raises(NotReadable) as refused:
        list(records(opened, FOR_ANN))
    del refused
    gc.collect()


@pytest.mark.parametrize(
    "content",
    [
        rb'[{"role": "user", "content": "half an emoji \ud83d"}]',
        rb'{"messages": [{"role": "user", "content": "half an emoji \ud83d"}]}',
        rb'{"user_id": "a", "session_id": "s", "role": "user", "content": "half an emoji \ud83d"}',
    ],
)
def test_halves_of_characters_are_replaced(content: bytes) -> None:
    """What cuts texts for an export cuts within emojis as well."""
    assert said(found(content)) == [("user", "half an emoji \ufffd")]
    assert said(found(content.replace(b"\\ud83d", b"\\ud83d\\ude00"))) == [("user", "half an emoji \U0001f600")]


def test_a_format_can_be_forced() -> None:
    """By lines then, where it is our own: each of them is told what it lacks."""
    forced = replace(FOR_ANN, format=Format.SILTSTONE)
    assert problems(found(b'{"role":\n{"role": "user", "content": "hi", "session_id": "s"}', forced)) == [
        "line 1: it is not JSON: unexpected end of data (character 9)"
    ]
    assert len(
        said(found([{"role": "user", "content": "hi", "user_id": "u"}], replace(FOR_ANN, format=Format.OPENAI)))
    )


def test_an_empty_file_says_nothing() -> None:
    assert [found(content) for content in (b"", b"\n \n", b"[]")] == [[], [], []]


def test_an_array_is_read_an_element_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is cut into chunks, and no element may be longer than the most."""
    monkeypatch.setattr(reading, "_CHUNK", 7)
    chats = [{**SHAREGPT, "id": name} for name in ("å", "b", "c")]
    assert {one["session_id"] for one in values(found(chats))} == {"å", "b", "c"}
    monkeypatch.setattr(reading, "MOST", 100)
    assert problems(found([{"id": "x" * 300}, *chats])) == ["element 1: it has more than 0 MiB: split the file"]


def test_a_line_that_is_too_long_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 100)
    line = b'{"user_id": "a", "session_id": "s", "role": "user", "content": "%s"}\n'
    everything = found(line % b"hi" + line % (b"h" * 1000) + line % b"ho")
    assert (said(everything), problems(everything)) == (
        [("user", "hi"), ("user", "ho")],
        ["line 2: the line has more than 0 MiB: split the file"],
    )


def test_behind_the_end_of_an_array_there_may_be_another_value() -> None:
    """Exports are joined by hand; what is no value is told, and none of it is passed over in silence."""
    one, other = orjson.dumps([SHAREGPT]), orjson.dumps([{**SHAREGPT, "id": "other"}])
    both = found([SHAREGPT, {**SHAREGPT, "id": "other"}])
    for joined in (one + other, one + b"\n\n" + other, one + b" , " + other[1:-1], one[1:-1] + b"\n" + other[1:-1]):
        assert values(found(joined)) == values(both)
    read = found(one + b"\nand so on")
    assert said(read) == said(found([SHAREGPT]))
    assert problems(read) == ["element 2: the text after the end of a value is not JSON: Expecting value"]


def test_pretty_printed_objects_stand_one_behind_the_other() -> None:
    chats = [SHAREGPT, {**SHAREGPT, "id": "other"}]
    joined = b"\n".join(orjson.dumps(chat, option=orjson.OPT_INDENT_2) for chat in chats)
    assert values(found(joined)) == values(found(chats))


@pytest.mark.parametrize("shell", [{}, None, [], {"colour": "red"}])
def test_the_first_value_that_is_recognised_decides(shell: Any) -> None:
    read = found([shell, chatgpt()])
    assert taken_for(read) == [Format.CHATGPT]
    assert said(read) == said(found([chatgpt()]))
    assert problems(read) == (["element 1: it is not in the format chatgpt"] if shell else [])


def test_a_chatgpt_tree_of_odd_shape_is_read() -> None:
    whole = said(found([chatgpt()]))
    unknown = {**chatgpt(), "current_node": "nobody"}
    assert said(found([unknown])) == said(found([{**chatgpt(), "current_node": None}]))
    cut = chatgpt()
    root = next(name for name, node in cut["mapping"].items() if node["parent"] is None)
    cut["mapping"] = {name: node for name, node in cut["mapping"].items() if name != root}
    assert said(found([cut])) == whole, "a parent that is not there is the beginning"
    assert said(found([{"title": "", "mapping": {}}, chatgpt()])) == whole


def test_an_object_that_lists_messages_is_a_chat_with_its_id() -> None:
    chats = [{"id": f"c{n}", "conversations": [{"role": "user", "content": f"hello {n}"}]} for n in range(3)]
    for content in (chats, {"data": chats}, b"\n".join(map(orjson.dumps, chats))):
        read = found(content)
        assert taken_for(read) == [Format.OPENAI]
        assert [one["session_id"] for one in values(read) if "role" in one] == ["c0", "c1", "c2"]


def test_threads_of_assistants_are_read_newest_first_or_last() -> None:
    def message(number: int, thread: str) -> dict[str, Any]:
        text = {"type": "text", "text": {"value": f"said {number}", "annotations": []}}
        return {
            "id": f"msg_{thread}{number}",
            "object": "thread.message",
            "created_at": 1_767_261_600 + number,
            "thread_id": thread,
            "role": ("user", "assistant")[number % 2],
            "content": [text],
        }

    listed = {"object": "list", "data": [message(n, t) for t in ("a", "b") for n in (3, 2, 1, 0)], "has_more": False}
    read = found(listed)
    assert said(read) == [(("user", "assistant")[n % 2], f"said {n}") for n in range(4)] * 2
    assert [one["session_id"] for one in values(read) if "role" in one] == ["a"] * 4 + ["b"] * 4
    odd = {**message(4, "a"), "content": [{"type": "text", "text": {"words": "x"}}]}
    assert len(problems(found({"data": [message(0, "a"), odd]}))) == 1
