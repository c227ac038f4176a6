"""What the conversations topic accepts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.conversations import ChatMessage, Role, SessionEnded, Silence, content_id, model_of
from schemas.exchanges import Exchange, Message, render
from schemas.fields import MAX_CONTENT_BYTES
from schemas.ids import MAX_ID_CHARS, beginning_ids, memory_id
from schemas.times import EARLIEST_MS, LATEST_MS, iso, parse_timestamp
from schemas.topics import partition_of
from tests.support.making import START, message, spoken


def test_aliases_are_taken() -> None:
    """`run_id` is `session_id`, `created_at` is `timestamp`."""
    fields = {"user_id": "u", "run_id": "r", "role": "user", "content": "x", "created_at": "2026-01-01T00:00:00Z"}
    said = ChatMessage.model_validate(fields)
    assert (said.session_id, said.timestamp) == ("r", START)


def test_unknown_fields_are_kept_with_metadata() -> None:
    assert message(1, mood="x", metadata={"a": 1}).all_metadata == {"mood": "x", "a": 1}


SAID = {"user_id": "u", "session_id": "s", "role": "user", "content": "x", "timestamp": START}
NOTHING_SAID = {"user_id": "u", "session_id": "s", "timestamp": START}


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        (SAID, ChatMessage),
        (SAID | {"type": None}, ChatMessage),
        (SAID | {"type": "message"}, ChatMessage),
        (SAID | {"type": ["silence"]}, ChatMessage),
        (SAID | {"type": "silence"}, ChatMessage),
        (NOTHING_SAID | {"type": "silence"}, Silence),
        (NOTHING_SAID | {"type": "silence", "role": "user"}, Silence),
        (NOTHING_SAID | {"type": "session_end"}, SessionEnded),
        (NOTHING_SAID | {"type": "session_end", "content": "bye"}, SessionEnded),
        (SAID | {"type": "session_end"}, SessionEnded),
        (NOTHING_SAID, ChatMessage),
    ],
)
def test_what_is_said_is_a_message_though_its_type_says_silence(fields: dict[str, Any], model: type[object]) -> None:
    assert model_of(fields) is model


def test_a_type_of_the_senders_own_is_kept_with_the_metadata() -> None:
    assert ChatMessage.model_validate(SAID | {"type": "silence"}).all_metadata == {"type": "silence"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "robot"},
        {"content": "记" * (MAX_CONTENT_BYTES // 3 + 1)},
        {"user_id": ""},
        {"session_id": "s" * 257},
        {"timestamp": "yesterday"},
        {"timestamp": 12},
        {"timestamp": True},
        {"timestamp": "9999-01-01T00:00:00Z"},
    ],
)
def test_wrong_fields_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        message(1, **wrong)


def test_content_may_be_as_long_as_the_limit() -> None:
    assert message(1, content="x" * MAX_CONTENT_BYTES).content


def test_ids_are_deterministic() -> None:
    """The same message or messages give the same id, others another."""
    said = message(1, message_id=None)
    assert content_id(said) == content_id(message(1, message_id=None)) != content_id(message(2, message_id=None))
    assert memory_id("u", "s", ("a", "b")) == memory_id("u", "s", ("a", "b")) != memory_id("u", "s", ("a",))


def test_rendering_puts_users_lines_first_with_names_where_known() -> None:
    said = (
        Message("1", Role.ASSISTANT, "hello", START),
        Message("2", Role.USER, "hi", START, name="Ann"),
        Message("3", Role.TOOL, "{}", START),
    )
    assert render(Exchange(0, said)) == "Ann: hi\nhello"


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40), st.integers(1, 64))
def test_partitions_are_those_of_the_kafka_client(user_id: str, partitions: int) -> None:
    """Our murmur2 is aiokafka's, and so Kafka's."""
    from aiokafka.partitioner import DefaultPartitioner

    theirs = DefaultPartitioner()(user_id.encode(), list(range(partitions)), list(range(partitions)))
    assert partition_of(user_id, partitions) == theirs


@pytest.mark.parametrize(
    ("written", "millis"),
    [
        ("2026-01-01T00:00:00Z", START),
        ("2026-01-01T08:00:00+08:00", START),
        ("2026-01-01T00:00:00", START),
        ("2026-01-01", START),
        ("2026-01-01T00:00:00.1234Z", START + 123),
        (START, START),
        (START + 0.9, START),
        (EARLIEST_MS, EARLIEST_MS),
        (LATEST_MS - 1, LATEST_MS - 1),
    ],
)
def test_timestamps_are_iso_or_epoch_milliseconds(written: object, millis: int) -> None:
    """A text without a zone is UTC; both ends of the accepted years are named here."""
    assert parse_timestamp(written) == millis


@pytest.mark.parametrize(
    "written",
    [
        True,
        False,
        None,
        "",
        "now",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        str(START),
        [START],
        float("nan"),
        float("inf"),
        1e300,
        -1,
        0,
        START // 1000,
        EARLIEST_MS - 1,
        LATEST_MS,
    ],
)
def test_timestamps_that_no_producer_means_are_refused(written: object) -> None:
    """Booleans, texts that are no date, seconds for milliseconds, and years outside of 1990-2099."""
    with pytest.raises(ValueError, match=r"^must "):
        parse_timestamp(written)


@given(st.integers(EARLIEST_MS, LATEST_MS - 1))
def test_iso_text_reads_back_as_the_same_millisecond(millis: int) -> None:
    assert parse_timestamp(iso(millis)) == millis


@pytest.mark.parametrize("letter", ["a", "é", "记", "🪨"])
def test_content_is_measured_in_bytes_of_utf8(letter: str) -> None:
    """One, two, three or four bytes a character: 32 KiB fit, one character more does not."""
    fits = letter * (MAX_CONTENT_BYTES // len(letter.encode()))
    assert message(1, content=fits).content == fits
    with pytest.raises(ValidationError, match="at most 32768 bytes"):
        message(1, content=fits + letter)


@pytest.mark.parametrize("field", ["user_id", "session_id", "message_id"])
def test_ids_have_1_to_256_characters(field: str) -> None:
    """Characters, not bytes: 256 Chinese ones fit."""
    assert getattr(message(1, **{field: "石" * MAX_ID_CHARS}), field) == "石" * MAX_ID_CHARS  # type: ignore[arg-type]
    for wrong in ("", "石" * (MAX_ID_CHARS + 1)):
        with pytest.raises(ValidationError):
            message(1, **{field: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["emotion", "name", "agent_id"])
def test_what_describes_a_message_has_at_most_256_characters(field: str) -> None:
    with pytest.raises(ValidationError):
        message(1, **{field: "x" * (MAX_ID_CHARS + 1)})  # type: ignore[arg-type]


@pytest.mark.parametrize("role", list(Role))
def test_the_four_roles_are_taken(role: Role) -> None:
    assert message(1, role.value).role is role


def test_the_role_is_spelled_in_lower_case() -> None:
    with pytest.raises(ValidationError):
        message(1, "User")


def test_metadata_wins_over_an_unknown_field_of_the_same_name() -> None:
    assert message(1, mood="fine", metadata={"mood": "blue"}).all_metadata == {"mood": "blue"}


def test_a_known_field_is_not_repeated_in_the_metadata() -> None:
    assert message(1, name="Ann", emotion="sad").all_metadata == {}


def test_metadata_that_json_writers_cannot_nest_is_refused() -> None:
    """JSON readers take deeper nesting than writers: such a message could be read, and never be kept."""
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(ValidationError):
        message(1, metadata=deep)
    with pytest.raises(ValidationError):
        message(1, an_unknown_field=deep)


def test_a_message_of_the_window_takes_everything_that_was_said() -> None:
    said = message(7, "assistant", "fine", 3, emotion="sad", name="Bo", agent_id="bot", metadata={"a": 1}, lang="en")
    assert Message.of(said) == Message(
        "m7", Role.ASSISTANT, "fine", START + 3000, "sad", "Bo", "bot", {"lang": "en", "a": 1}
    )


def test_a_message_without_an_id_gets_one_from_what_it_says() -> None:
    said = message(1, message_id=None)
    assert Message.of(said).message_id == content_id(said)


@pytest.mark.parametrize(
    "change", [{"session_id": "t"}, {"role": "tool"}, {"timestamp": START + 1}, {"content": "?"}]
)
def test_content_ids_differ_with_session_role_time_and_content(change: dict[str, Any]) -> None:
    fields = {"user_id": "u", "session_id": "s", "role": "user", "content": "x", "timestamp": START}
    one, other = ChatMessage.model_validate(fields), ChatMessage.model_validate(fields | change)
    assert content_id(one) != content_id(other)


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.lists(st.uuids().map(str))), min_size=2))
def test_memory_ids_are_the_same_for_the_same_messages_only(named: list[tuple[str, str, list[str]]]) -> None:
    """For ids without the separators `/` and `,` (as services make them), different messages never share one."""
    plain = [(user, session, tuple(ids)) for user, session, ids in named if not set("/,") & set(user + session)]
    assert len({memory_id(*names) for names in plain}) == len(set(plain))


def test_separators_within_ids_do_not_make_two_memories_one() -> None:
    """Ids are the services' own: `tenant/user` is a usual one, and one user's memory must not hide another's."""
    assert memory_id("a/b", "c", ("1",)) != memory_id("a", "b/c", ("1",))
    assert memory_id("u", "s", ("1,2",)) != memory_id("u", "s", ("1", "2"))


@given(st.text(max_size=5), st.text(max_size=5), st.lists(st.text(min_size=1, max_size=5), max_size=6))
def test_ids_of_beginnings_are_those_of_the_shorter_exchanges(user: str, session: str, ids: list[str]) -> None:
    """Each digest goes on from the one before it, and is the same as a digest of the whole."""
    shorter = [memory_id(user, session, tuple(ids[:end])) for end in range(len(ids) - 1, 0, -1)]
    assert beginning_ids(user, session, ids) == shorter


def test_memory_ids_are_those_of_earlier_versions() -> None:
    """A change of the formula would give every replayed memory a second id."""
    assert str(memory_id("u", "s", ("m1", "m2"))) == "53b8ca5e-c9dc-5ec6-84e9-36f9d06a1551"
    assert content_id(message(1, message_id=None)) == "ec3fc17bddfd1afc99e3af65a05a181b"


def test_an_exchange_lasts_from_its_earliest_to_its_latest_message() -> None:
    exchange = Exchange(0, (Message("a", Role.USER, "", START + 2), Message("b", Role.ASSISTANT, "", START + 9)))
    assert (exchange.started_at, exchange.ended_at) == (START + 2, START + 9)


def test_system_and_tool_messages_alone_are_not_spoken() -> None:
    assert not spoken(0, ("system", "be kind"), ("tool", "{}")).spoken
    assert spoken(0, ("tool", "{}"), ("assistant", "done")).spoken


def test_each_line_of_a_memory_has_its_speakers_name() -> None:
    """User lines before assistant lines, each in the order in which it was said; empty ones are left out."""
    said = (
        Message("1", Role.USER, "first", START, name="小明"),
        Message("2", Role.ASSISTANT, "answer", START, name="Bot"),
        Message("3", Role.USER, "", START, name="小明"),
        Message("4", Role.USER, "second", START),
        Message("5", Role.SYSTEM, "hidden", START),
    )
    assert render(Exchange(0, said)) == "小明: first\nsecond\nBot: answer"


def test_a_session_end_takes_the_same_aliases() -> None:
    ended = SessionEnded.model_validate(
        {"type": "session_end", "user_id": "u", "run_id": "r", "created_at": START, "why": "closed"}
    )
    assert (ended.session_id, ended.timestamp) == ("r", START)


@pytest.mark.parametrize("fields", [{"metadata": {"a": "x" * 40_000}}, {"mood": "x" * 40_000}])
def test_metadata_beyond_32_kib_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="at most 32768 bytes"):
        message(1, **fields)
