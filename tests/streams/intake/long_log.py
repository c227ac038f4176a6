"""A long log of `conversations` as a service in trouble writes it, the same every time.

Sessions interleave; each user has a few. Messages come late, twice, without ids, without times, with fields that the
schema does not know, under foreign keys and in wrong partitions; sessions fall silent, end, and go on; some records
are none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from schemas.times import iso
from schemas.topics import REROUTED_HEADER, route_of
from tests.support.making import START

PARTITIONS = 4
RECORDS_OF_A_USER = 150

QUESTIONS = (
    "What is the difference between a list and a tuple?",
    "Thanks, that was quick.",
    "My name is Ada and I have lived in Berlin since 1987.",
    "I love hiking, and my sister loves jazz.",
    "remember that I am allergic to nuts",
    "请记住我叫小明，我住在杭州。",
    "我喜欢围棋，我的生日是五月三日。",
    "好的，谢谢你的说明。",
    "总结今天的对话",
    "Please summarize today",
    "ΟΔΥΣΣΕΥΣ İstanbul ǅ 🪨👩‍👩‍👧",
    "",
    "   \n\t",
    "I promised to call Tom on Friday; don't forget.",
)
ANSWERS = (
    "A list can be changed after it was made, a tuple cannot.",
    "Not for now. Tell me when you get stuck.",
    "知道了，以后聊到这个的时候会想到这一点。",
    "Good to know: I like it, too.",
    '\u2028line\u2029 \x7f "quoted" \\ / \u0000',
)
EMOTIONS = ("sad", "悲伤", "Angry", "calm", "", "SURPRISED", "ẞad")
#: Of no session; what becomes of each is a dead letter or a message, and always the same one.
ODD: tuple[bytes | None, ...] = (
    None,
    b"",
    b"not json",
    b"[1, 2]",
    b"\xff\xfe",
    b'{"user_id": "u"}',
    b'{"user_id": 1, "session_id": "s", "role": "user", "content": "c", "timestamp": 1767225600000}',
    b'{"user_id": "", "session_id": "s", "role": "user", "content": "c", "timestamp": 1767225600000}',
    b'{"user_id": "u", "session_id": "s", "role": "USER", "content": "c", "timestamp": 1767225600000}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": null, "timestamp": 1767225600000}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": 1767225600}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": "1767225600000"}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": "yesterday"}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": true}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "\\ud800", "timestamp": 1767225600000}',
    b'{"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": NaN}',
    b'{"type": "session_end", "user_id": "u", "session_id": "", "timestamp": 1767225600000}',
    b'{"type": "silence", "user_id": "u", "session_id": "s", "timestamp": "never"}',
    orjson.dumps({"user_id": "u" * 257, "session_id": "s", "role": "user", "content": "c", "timestamp": START}),
    orjson.dumps({"user_id": "u", "session_id": "s", "role": "user", "content": "记" * 11_000, "timestamp": START}),
    orjson.dumps(
        {"user_id": "u", "session_id": "s", "role": "user", "content": "c", "timestamp": START, "x": "y" * 33_000}
    ),
)


class Logged(NamedTuple):
    """What the agent reads of a Kafka record."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


@dataclass
class _Talk:
    """A session as its chat service sees it; `at` is epoch ms."""

    user_id: str
    session_id: str
    at: int
    turns: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)


def long_log(records: int, seed: int = 14) -> Iterator[Logged]:
    """So many records, in the order in which they were appended to their partitions."""
    chance = random.Random(seed)
    users = max(3, records // RECORDS_OF_A_USER)
    talks = [
        _Talk(f"user-{n}" if n % 5 else f"石头 {n}", f"s/{one}" if one else "会话", START + n * 1000)
        for n in range(users)
        for one in range(1 + n % 3)
    ]
    ends = [0] * PARTITIONS
    for _ in range(records):
        talk = chance.choice(talks)
        value = chance.choice(ODD) if chance.random() < 0.01 else _said(chance, talk)
        key, partition = route_of(talk.user_id, PARTITIONS)
        headers: tuple[tuple[str, bytes], ...] = ()
        if chance.random() < 0.01:
            headers = chance.choice(((), (("trace", b"1"),), ((REROUTED_HEADER, b"1"),)))
            key, partition = chance.choice(((key, (partition + 1) % PARTITIONS), (b"another", partition)))
        yield Logged("conversations", partition, ends[partition], talk.at + 7, key, value, headers)
        ends[partition] += 1 + (chance.random() < 0.01)  # transactions leave holes


def _said(chance: random.Random, talk: _Talk) -> bytes:
    """What comes next of a session: mostly the next message."""
    dice = chance.random()
    if dice < 0.03 and talk.sent:
        return _written(chance, chance.choice(talk.sent[-30:]))  # a retry
    talk.at += chance.choice((1, 900, 5_000, 20_000, 40_000))
    if dice < 0.035:
        talk.at += chance.choice((119_999, 120_000, 400_000, 1_800_000, 2_000_000, 90_000_000))
    if dice < 0.04:
        kind, later = chance.choice((("session_end", 0), ("silence", 130_000), ("silence", 1_800_000)))
        fields = {"type": kind, "user_id": talk.user_id, "session_id": talk.session_id, "timestamp": talk.at + later}
        return orjson.dumps(fields | ({"note": "extra"} if chance.random() < 0.3 else {}))
    at = talk.at - chance.choice((1_000, 30_000, 100_000, 3_000_000)) if chance.random() < 0.03 else talk.at
    fields = _message(chance, talk, at)
    talk.turns += 1
    talk.sent.append(fields)
    return _written(chance, fields)


def _message(chance: random.Random, talk: _Talk, at: int) -> dict[str, Any]:
    role = "assistant" if talk.turns % 2 else "user"
    if chance.random() < 0.06:
        role = chance.choice(("user", "assistant", "system", "tool"))
    fields: dict[str, Any] = {
        "user_id": talk.user_id,
        "session_id": talk.session_id,
        "message_id": f"m-{talk.turns}",
        "role": role,
        "content": chance.choice(ANSWERS if role == "assistant" else QUESTIONS),
        "timestamp": iso(at),
        "agent_id": "assistant",
    }
    if chance.random() < 0.7:
        return fields
    for change in chance.sample(_CHANGES, chance.choice((1, 1, 2, 3))):
        change(chance, fields, at)
    return fields


def _without_id(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    if chance.random() < 0.5:
        del fields["message_id"]
    else:
        fields["message_id"] = None


def _otherwise_timed(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    del fields["timestamp"]
    match chance.randrange(7):
        case 0:
            fields["created_at"] = iso(at)
        case 1:
            fields["timestamp"] = at
        case 2:
            fields["timestamp"] = at + 0.75
        case 3:
            fields["timestamp"] = iso(at).replace("Z", "")
        case 4:
            fields["timestamp"] = iso(at + 19_800_000).replace("Z", "+05:30")
        case 5:
            fields |= {"created_at": "never", "timestamp": iso(at).replace("Z", "789Z")}
        case _:
            pass  # the record's own


def _aliased(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields["run_id"] = fields["session_id"]
    if chance.random() < 0.7:
        del fields["session_id"]


def _with_feeling(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields["emotion"] = chance.choice(EMOTIONS)


def _with_names(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields |= {"name": chance.choice(("Ada", "小明", "", None)), "agent_id": chance.choice(("bot", None, ""))}


def _with_metadata(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields["metadata"] = chance.choice(
        ({}, {"tags": ["a", {"b": None}], "文": 1.5}, {"n": 10**17}, {"mood": 1}, None)
    )


def _with_extras(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields |= chance.choice(({"mood": {"of": [1, 2.5]}}, {"type": "message"}, {"x": None, "y": True}, {"": "empty"}))


def _long(chance: random.Random, fields: dict[str, Any], at: int) -> None:
    fields["content"] = chance.choice(("w ", "记", "é")) * chance.choice((201, 4_000, 9_000))


_CHANGES = (
    _without_id,
    _otherwise_timed,
    _aliased,
    _with_feeling,
    _with_names,
    _with_metadata,
    _with_extras,
    _long,
)


def _written(chance: random.Random, fields: dict[str, Any]) -> bytes:
    """As different clients write JSON."""
    value = orjson.dumps(fields)
    dice = chance.random()
    if dice < 0.02:
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2)
    if dice < 0.04:
        return value[:-1] + b', "agent_id": "the last one counts"}'
    if dice < 0.06:
        return value.replace("记".encode(), b"\\u8bb0").replace(b"/", b"\\/")
    return value


def batches(log: Iterator[Logged], seed: int = 41) -> Iterator[list[Logged]]:
    """The log as it is fetched: each batch is of one partition; now and then some of it is read again."""
    chance = random.Random(seed)
    waiting: list[list[Logged]] = [[] for _ in range(PARTITIONS)]
    before: list[list[Logged]] = [[] for _ in range(PARTITIONS)]
    sizes = [1] * PARTITIONS
    for record in log:
        of_partition = waiting[record.partition]
        of_partition.append(record)
        if len(of_partition) < sizes[record.partition]:
            continue
        yield of_partition
        if chance.random() < 0.03:
            yield before[record.partition][-5:] + of_partition
        before[record.partition] = of_partition
        waiting[record.partition] = []
        sizes[record.partition] = chance.choice((1, 2, 17, 100, 400, 1000))
    yield from filter(None, waiting)
