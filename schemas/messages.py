"""Records of the `conversations` topic, and the exchange that they add up to."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, date, datetime, tzinfo
from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import msgspec
import orjson
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

#: Namespace of every deterministic id of ours (uuid5).
SILTSTONE = uuid.uuid5(uuid.NAMESPACE_URL, "https://siltstone.dev/memory")

MAX_CONTENT_BYTES = 32 * 1024
MAX_ID_CHARS = 256
MAX_METADATA_BYTES = 32 * 1024
#: At least as many as any record of ours puts around metadata: session, open, message.
LEVELS_OF_OUR_OWN = 16
#: Timestamps outside of [1990, 2100) are a producer's mistake (seconds for milliseconds, a zeroed clock).
EARLIEST_MS = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp() * 1000)
LATEST_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)


def parse_timestamp(value: object) -> int:
    """Epoch milliseconds of an ISO 8601 text (UTC where it names no zone) or of a number of milliseconds."""
    if type(value) is str:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be ISO 8601 or epoch milliseconds") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        millis = round(moment.timestamp() * 1000)
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18:
        millis = int(value)
    else:
        raise ValueError("must be ISO 8601 or epoch milliseconds")
    if not EARLIEST_MS <= millis < LATEST_MS:
        raise ValueError("must lie between the years 1990 and 2100 (epoch values are in milliseconds)")
    return millis


def iso(millis: int) -> str:
    """ISO 8601 in UTC, to the millisecond: what our records and answers carry."""
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_of(millis: int, zone: tzinfo) -> date:
    """The day of a moment (epoch ms), in a time zone."""
    return datetime.fromtimestamp(millis / 1000, zone).date()


def _fits(content: str) -> str:
    if len(content) > MAX_CONTENT_BYTES // 4 and len(content.encode()) > MAX_CONTENT_BYTES:
        raise ValueError(f"must be at most {MAX_CONTENT_BYTES} bytes of UTF-8")
    return content


def _writable(value: Any) -> int:
    """The size of the value in a record that keeps it: JSON is read to a greater depth than it is written."""
    within = value
    for _ in range(LEVELS_OF_OUR_OWN):
        within = [within]
    try:
        return len(orjson.dumps(within))
    except TypeError as exc:
        raise ValueError(f"cannot be kept: {exc}") from None


def _keepable(value: Any) -> Any:
    if _writable(value) > MAX_METADATA_BYTES:
        raise ValueError(f"must be at most {MAX_METADATA_BYTES} bytes of JSON")
    return value


def _nestable(value: Any) -> Any:
    _writable(value)
    return value


Timestamp = Annotated[
    int,
    BeforeValidator(parse_timestamp),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "integer", "description": "epoch milliseconds"},
            ]
        }
    ),
]
Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Content = Annotated[str, AfterValidator(_fits)]
Metadata = Annotated[dict[str, Any], AfterValidator(_keepable)]
#: That of all messages of an exchange, each of which has no more than fits.
MetadataOfMany = Annotated[dict[str, Any], AfterValidator(_nestable)]
Label = Annotated[str, Field(max_length=MAX_ID_CHARS)]


class Role(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class ChatMessage(BaseModel):
    """One chat message. Unknown fields are kept, with `metadata` (see `all_metadata`); both have one limit."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
    __pydantic_extra__: dict[str, Annotated[Any, AfterValidator(_keepable)]]

    user_id: Id
    session_id: Id = Field(validation_alias=AliasChoices("session_id", "run_id"))
    message_id: Id | None = None
    role: Role
    content: Content
    timestamp: Timestamp = Field(validation_alias=AliasChoices("timestamp", "created_at"))
    emotion: Label | None = None
    name: Label | None = None
    agent_id: Label | None = None
    metadata: Metadata | None = None

    @model_validator(mode="after")
    def _little_enough_together(self) -> Self:
        if self.__pydantic_extra__ and _writable(self.all_metadata) > MAX_METADATA_BYTES:
            raise ValueError(
                f"metadata and unknown fields must be at most {MAX_METADATA_BYTES} bytes of JSON together"
            )
        return self

    @property
    def all_metadata(self) -> dict[str, Any]:
        """`metadata` and the fields that the schema does not know."""
        return {**(self.model_extra or {}), **(self.metadata or {})}


class SessionEnded(BaseModel):
    """The chat service says that a session is over."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    type: Literal["session_end"]
    user_id: Id
    session_id: Id = Field(validation_alias=AliasChoices("session_id", "run_id"))
    timestamp: Timestamp = Field(validation_alias=AliasChoices("timestamp", "created_at"))


class Silence(BaseModel):
    """The worker's own note in the log: up to `timestamp` the session has said nothing.

    Written when a session has been quiet for as long as closes an exchange or ends a session. The wall clock
    thus acts only through the log, and a replay decides as the live run did.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["silence"] = "silence"
    user_id: Id
    session_id: Id
    timestamp: Timestamp


#: Those whose words are a conversation.
SPEAKERS = (Role.USER, Role.ASSISTANT)

ConversationRecord = ChatMessage | SessionEnded | Silence


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message within a window: a validated `ChatMessage` with an id and nothing but what we use.

    One is made of every message: a struct takes a fraction of a named tuple's time to make, and the garbage collector
    need not look at it. Nothing that it holds can refer back to it: `metadata` is JSON.
    """

    message_id: str
    role: Role
    content: str
    timestamp: int
    emotion: str | None = None
    name: str | None = None
    agent_id: str | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def of(cls, said: ChatMessage) -> Message:
        return cls(
            said.message_id or content_id(said),
            said.role,
            said.content,
            said.timestamp,
            said.emotion,
            said.name,
            said.agent_id,
            (said.all_metadata or None) if said.metadata or said.model_extra else None,
        )


def content_id(said: ChatMessage) -> str:
    """The id of a message that came without one: a hash of session, role, timestamp and content."""
    return id_of_content(said.session_id, said.role, said.timestamp, said.content)


def id_of_content(session_id: str, role: Role, timestamp: int, content: str) -> str:
    """As `content_id`."""
    basis = f"{session_id}\0{role}\0{timestamp}\0{content}"
    return hashlib.blake2b(basis.encode(), digest_size=16).hexdigest()


class Exchange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One run of user messages and the run of assistant messages that answers it: the unit of promotion.

    Messages are in time order.
    """

    seq: int
    messages: tuple[Message, ...]

    @property
    def started_at(self) -> int:
        """Epoch milliseconds of the earliest message."""
        return self.messages[0].timestamp

    @property
    def ended_at(self) -> int:
        """Epoch milliseconds of the latest message: what expiry counts from."""
        return self.messages[-1].timestamp

    @property
    def spoken(self) -> bool:
        """Whether a user or an assistant said anything; system and tool messages alone are never promoted."""
        for message in self.messages:  # noqa: SIM110 - a generator takes twice as long, for every exchange
            if message.role in SPEAKERS:
                return True
        return False

    def said(self) -> tuple[str, str]:
        """What the user and what the assistant said, a line a message."""
        user, assistant = [], []
        for message in self.messages:
            if message.role is Role.USER:
                user.append(message.content)
            elif message.role is Role.ASSISTANT:
                assistant.append(message.content)
        return "\n".join(user), "\n".join(assistant)

    def memory_id(self, user_id: str, session_id: str) -> uuid.UUID:
        """The id of the memory that it becomes."""
        return memory_id(user_id, session_id, tuple(message.message_id for message in self.messages))

    def metadata(self) -> dict[str, Any]:
        """That of all messages, the latest one's where several have a key, and the emotion."""
        metadata: dict[str, Any] = {}
        for message in self.messages:
            metadata |= message.metadata or {}
        if emotions := self.emotions():
            metadata["emotion"] = emotions[0]
        return metadata

    @property
    def agent_id(self) -> str | None:
        """The first agent that it names."""
        return next((message.agent_id for message in self.messages if message.agent_id), None)

    def speakers(self) -> list[str]:
        """Whose names are known, in alphabetical order."""
        return sorted({message.name for message in self.messages if message.name})

    def emotions(self) -> list[str]:
        return [message.emotion for message in self.messages if message.emotion]


def render(exchange: Exchange) -> str:
    """The text of an exchange as a memory: user lines, then assistant lines, with speakers' names if known."""
    return "\n".join(
        f"{message.name}: {message.content}" if message.name else message.content
        for role in (Role.USER, Role.ASSISTANT)
        for message in exchange.messages
        if message.role is role and message.content
    )


def memory_id(user_id: str, session_id: str, message_ids: tuple[str, ...]) -> uuid.UUID:
    """The id of the memory that these messages become; the same messages always give the same id."""
    sources = ",".join(quote(part, safe="") for part in message_ids)
    return uuid.uuid5(SILTSTONE, f"{quote(user_id, safe='')}/{quote(session_id, safe='')}/{sources}")
