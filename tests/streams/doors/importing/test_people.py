"""Exports of chats between people, and of Claude: who said what, when; and who of them is the user."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from schemas.times import iso, parse_timestamp
from streams.doors.importing.formats import Format
from streams.doors.importing.found import (
    Found,
    Given,
    LeftOut,
    NamesNoSpeaker,
    NotReadable,
    Problem,
    Record,
    TakenFor,
)
from streams.doors.importing.planning import planned
from streams.doors.importing.records import records

NOW = parse_timestamp("2026-03-10T12:00:00Z")
GIVEN = Given(NOW, user="ann", undated=NOW)


def found(content: bytes | str | Any, given: Given = GIVEN) -> list[Found]:
    raw = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
    return list(records(io.BufferedReader(io.BytesIO(orjson.dumps(content) if raw is None else raw)), given))


def messages(all_found: list[Found]) -> list[dict[str, Any]]:
    values = [orjson.loads(one.value) for one in all_found if isinstance(one, Record)]
    return [value for value in values if "role" in value]


def said(all_found: list[Found]) -> list[tuple[str, str, str]]:
    return [(one["role"], one["name"], one["content"]) for one in messages(all_found)]


def left_out(all_found: list[Found]) -> int:
    return sum(one.messages for one in all_found if isinstance(one, LeftOut))


ANDROID = """31/12/2025, 23:58 - Messages and calls are end-to-end encrypted. Tap to learn more.
31/12/2025, 23:58 - Ann: Shall we meet at the lake?
31/12/2025, 23:59 - Bob: Yes: at ten
bring a towel
01/01/2026, 00:02 - Bob: <Media omitted>
01/01/2026, 00:03 - Ann: Fine. I can't stand cold water <This message was edited>
"""
IPHONE = (
    "\u200e[31.12.25, 23:58:01] Lake: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "[31.12.25, 23:58:30] Ann: Shall we meet at the lake?\r\n"
    "[31.12.25, 23:59:00] \u202aBob\u202c: Yes: at ten\r\nbring a towel\r\n"
    "\u200e[01.01.26, 00:02:00] Bob: \u200eimage omitted\r\n"
    "[01.01.26, 00:03:11] Ann: Fine. I can't stand cold water\r\n"
)
SAID = [
    ("user", "Ann", "Shall we meet at the lake?"),
    ("assistant", "Bob", "Yes: at ten\nbring a towel"),
    ("user", "Ann", "Fine. I can't stand cold water"),
]


@pytest.mark.parametrize("text", [ANDROID, IPHONE, "\ufeff" + ANDROID])
def test_a_chat_of_whatsapp_is_read(text: str) -> None:
    read = found(text)
    assert read[0] == TakenFor(Format.WHATSAPP)
    assert said(read) == SAID
    assert left_out(read) == 2
    assert messages(read)[1]["timestamp"].startswith("2025-12-31T23:59")
    assert len({one["message_id"] for one in messages(read)}) == 3
    assert found(text) == read, "the same file gives the same ids"


def test_the_zone_of_a_phone_can_be_given() -> None:
    read = found(ANDROID, replace(GIVEN, zone=ZoneInfo("Asia/Shanghai")))
    assert messages(read)[0]["timestamp"] == "2025-12-31T15:58:00.000Z"


@pytest.mark.parametrize(
    ("first", "second", "when"),
    [
        ("3/4/25, 9:05 PM - ", "3/14/25, 9:06 PM - ", "2025-03-04T21:05"),
        ("3/4/25, 9:05 PM - ", "3/5/25, 12:06 AM - ", "2025-03-04T21:05"),
        ("03/04/2025, 9:05 pm - ", "04/04/2025, 9:06 pm - ", "2025-04-03T21:05"),
        ("03/04/2025, 21:05 - ", "14/04/2025, 21:06 - ", "2025-04-03T21:05"),
        ("2025/3/4 21:05 - ", "2025/3/14 21:06 - ", "2025-03-04T21:05"),
        ("2025-03-04, 21:05 - ", "2025-03-14, 21:06 - ", "2025-03-04T21:05"),
        ("[2025/3/4 下午9:05:00] ", "[2025/3/14 上午12:06:00] ", "2025-03-04T21:05"),
        ("25. 3. 4. 오후 9:05 - ", "25. 3. 14. 오전 9:06 - ", "2025-03-04T21:05"),
        ("[4/3/25, 9:05:00\u202fPM] ", "[14/3/25, 9:06:00\u202fPM] ", "2025-03-04T21:05"),
        ("25.11.04, 21:05 - ", "25.11.05, 21:05 - ", "2025-11-04T21:05"),
    ],
)
def test_dates_are_read_as_the_phone_writes_them(first: str, second: str, when: str) -> None:
    read = found(f"{first}Ann: Hello\n{second}Bob: Hi\n")
    assert messages(read)[0]["timestamp"].startswith(when)
    assert [one["content"] for one in messages(read)] == ["Hello", "Hi"]


def test_who_of_them_is_the_user_has_to_be_known() -> None:
    assert said(found(ANDROID, replace(GIVEN, user="u7", speaker="bob")))[1][0] == "user"
    with pytest.raises(NamesNoSpeaker, match=r"a chat between Ann, Bob: which of them is u7\?: pass --speaker"):
        found(ANDROID, replace(GIVEN, user="u7"))
    with pytest.raises(NamesNoSpeaker, match="none of them has the name 'Carl'"):
        found(ANDROID, replace(GIVEN, speaker="Carl"))
    assert planned(found(ANDROID, replace(GIVEN, user="u7", dry=True))).sessions


@pytest.mark.parametrize(
    "text",
    ["a\nb\nc\nd\n", "name,text\nann,hello\nbob,hi\n", "<!DOCTYPE html>\n<html>\n<body>\n", "A: b\n" * 3003],
)
def test_what_is_no_chat_is_told_in_one_line(text: str) -> None:
    with pytest.raises(NotReadable, match="its first 3 lines are neither JSON") as refused:
        found(text)
    assert "\n" not in str(refused.value)


def telegram(**more: Any) -> dict[str, Any]:
    return {
        "name": "Bob B.",
        "type": "personal_chat",
        "id": 77,
        "messages": [
            {"id": 1, "type": "service", "date": "2026-01-01T10:00:00", "action": "phone_call", "text": ""},
            {
                "id": 2,
                "type": "message",
                "date": "2026-01-01T10:00:00",
                "date_unixtime": "1767261600",
                "from": "Ann A.",
                "from_id": "user1",
                "text": ["Look at ", {"type": "link", "text": "https://example.org"}, " please"],
            },
            {
                "id": 3,
                "type": "message",
                "date": "2026-01-01T10:00:30",
                "from": "Bob B.",
                "from_id": "user2",
                "text": "I will",
            },
            {"id": 4, "type": "message", "date": "2026-01-01T10:01:00", "from": "Bob B.", "text": "", "photo": "x"},
        ],
        **more,
    }


ASKED = [("user", "Ann A.", "Look at https://example.org please"), ("assistant", "Bob B.", "I will")]


def test_a_chat_of_telegram_is_read() -> None:
    read = found(telegram())
    assert read[0] == TakenFor(Format.TELEGRAM)
    assert said(read) == ASKED, "of two people, it is the export of the one by whose name it is not called"
    assert left_out(read) == 2
    first, second = messages(read)
    assert (first["session_id"], first["message_id"]) == ("77", "77-2")
    assert [one["timestamp"] for one in (first, second)] == [iso(1767261600000), "2026-01-01T10:00:30.000Z"]


def test_all_chats_of_a_telegram_account_are_read() -> None:
    group = telegram(id=78, name="Rowing", type="private_group")
    account = {
        "personal_information": {"user_id": 1, "first_name": "Ann"},
        "chats": {"about": "…", "list": [telegram(), group]},
    }
    read = found(account)
    assert said(read) == ASKED * 2
    assert {one["session_id"] for one in messages(read)} == {"77", "78"}
    with pytest.raises(NamesNoSpeaker, match=r"Ann A\., Bob B\."):
        found(group)
    assert said(found(group, replace(GIVEN, speaker="Ann A."))) == ASKED
    assert said(found({**account, "chats": {"list": [7, telegram(messages=7)]}})) == []


def slack_export(**files: Any) -> bytes:
    content = io.BytesIO()
    users = [
        {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Ask"}},
        {"id": "U2", "name": "bob", "profile": {"real_name": ""}},
    ]
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("users.json", orjson.dumps(users))
        archive.writestr("channels.json", b"[]")
        for name, value in files.items():
            raw = value if isinstance(value, bytes) else orjson.dumps(value)
            archive.writestr(name.replace("__", "/").replace("_", "-") + ".json", raw)
    return content.getvalue()


def slack(ts: str, user: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts, **more}


def test_an_export_of_slack_is_read() -> None:
    joined = slack("1767261500.000100", "U1", "<@U1> has joined", subtype="channel_join")
    content = slack_export(
        lakes__2026_01_02=[slack("1767348000.000200", "U2", "At <#C9|docks> &amp; early: <https://x.org|map>")],
        lakes__2026_01_01=[joined, slack("1767261600.000100", "U1", "Where do we meet, <@U2>?")],
        other__2026_01_01=[slack("1767261600.000300", "U2", "alone here")],
    )
    read = found(content, replace(GIVEN, speaker="U1"))
    assert read[0] == TakenFor(Format.SLACK)
    assert said(read) == [
        ("user", "Ann Ask", "Where do we meet, @bob?"),
        ("assistant", "bob", "At #docks & early: map"),
        ("assistant", "bob", "alone here"),
    ]
    assert [one["session_id"].partition(".")[0] for one in messages(read)] == ["lakes", "lakes", "other"]
    assert left_out(read) == 1
    assert said(found(content, replace(GIVEN, speaker="Ann Ask"))) == said(read)
    with pytest.raises(NamesNoSpeaker, match="Ann Ask, bob"):
        found(content)


def test_a_day_of_slack_and_a_damaged_one() -> None:
    day = [slack("1767261600.000100", "U1", "Where?"), slack("1767261601.000100", "U2", "There")]
    assert said(found(day, replace(GIVEN, speaker="U2"))) == [("assistant", "U1", "Where?"), ("user", "U2", "There")]
    read = found(slack_export(lakes__2026_01_01=b"[{", lakes__2026_01_02=day), replace(GIVEN, speaker="U1"))
    assert len(said(read)) == 2
    (problem,) = [one for one in read if isinstance(one, Problem)]
    assert str(problem.why).startswith("lakes/2026-01-01.json is not JSON")


CLAUDE = {
    "uuid": "c-1",
    "name": "Bees",
    "created_at": "2026-01-01T10:00:00.000000Z",
    "chat_messages": [
        {
            "uuid": "m-1",
            "text": "I keep bees",
            "content": [{"type": "text", "text": "I keep bees"}],
            "sender": "human",
            "created_at": "2026-01-01T10:00:00.000000Z",
        },
        {
            "uuid": "m-2",
            "text": "",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "How many hives?"}],
            "sender": "assistant",
            "created_at": "2026-01-01T10:00:05.000000Z",
        },
        {"uuid": "m-3", "text": "", "content": [], "sender": "human", "files": [{"file_name": "x.png"}]},
        {"uuid": "m-4", "text": "Two", "sender": "human", "created_at": "2026-01-01T10:00:09Z"},
        {"uuid": "m-5", "text": "Two", "sender": "robot", "created_at": "2026-01-01T10:00:09Z"},
    ],
}


def test_an_export_of_claude_is_read() -> None:
    for content in ([CLAUDE], zipped_claude()):
        read = found(content)
        assert read[0] == TakenFor(Format.CLAUDE)
        assert [(one["role"], one["content"], one["message_id"]) for one in messages(read)] == [
            ("user", "I keep bees", "m-1"),
            ("assistant", "How many hives?", "m-2"),
            ("user", "Two", "m-4"),
        ]
        assert {one["session_id"] for one in messages(read)} == {"c-1"}
        assert left_out(read) == 1
        (problem,) = [one for one in read if isinstance(one, Problem)]
        assert "message 5: sender 'robot' is not one of" in str(problem.why)


def zipped_claude() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("users.json", b"[]")
        archive.writestr("conversations.json", orjson.dumps([CLAUDE]))
    return content.getvalue()
