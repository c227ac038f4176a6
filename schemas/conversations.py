"""The records of the topic `conversations`: chat messages, ends of sessions, and silence records."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from schemas.contents import CALLS, ROLES, words_of
from schemas.fields import MAX_METADATA_BYTES, Content, Metadata, Timestamp, keepable, writable
from schemas.ids import Id, Label, id_of_content


class Role(StrEnum):
    """The speaker's role."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


def _role_of(given: Any) -> Any:
    return ROLES.get(given, given) if isinstance(given, str) else given


def _words(given: Any, info: ValidationInfo) -> str:
    return words_of(given, info.data.get("role", ""))


_SaidBy = Annotated[
    Role, BeforeValidator(_role_of), WithJsonSchema({"type": "string", "enum": list(ROLES), "title": "Role"})
]
_Words = Annotated[
    Content,
    BeforeValidator(_words),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "anyOf": [
                            {"type": "string", "minLength": 1},
                            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
                            {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
                        ]
                    },
                },
                {"type": "null"},
            ],
            "title": "Content",
            "description": "a text, or a list of parts, of which those with text are read; null: no words",
        },
        mode="validation",
    ),
]


class ChatMessage(BaseModel):
    """One chat message. `content` is its text, read from any shape of content (see schemas/contents.py).

    Unknown fields are kept together with `metadata` (see `all_metadata`); one size limit covers both.
    """

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
    __pydantic_extra__: dict[str, Annotated[Any, AfterValidator(keepable)]]

    user_id: Id
    session_id: Id = Field(validation_alias=AliasChoices("session_id", "run_id"))
    message_id: Id | None = None
    role: _SaidBy
    content: _Words
    timestamp: Timestamp = Field(validation_alias=AliasChoices("timestamp", "created_at"))
    emotion: Label | None = None
    name: Label | None = None
    agent_id: Label | None = None
    metadata: Metadata | None = None

    @model_validator(mode="before")
    @classmethod
    def _calls_in_place_of_content(cls, given: Any) -> Any:
        if isinstance(given, dict) and "content" not in given and CALLS & given.keys():
            return {**given, "content": None}
        return given

    @model_validator(mode="after")
    def _little_enough_together(self) -> Self:
        if self.__pydantic_extra__ and writable(self.all_metadata) > MAX_METADATA_BYTES:
            raise ValueError(
                f"metadata and unknown fields must be at most {MAX_METADATA_BYTES} bytes of JSON together"
            )
        return self

    @property
    def says_nothing(self) -> bool:
        """True if the message has no words. Messages without words are skipped."""
        return not self.content.strip()

    @property
    def all_metadata(self) -> dict[str, Any]:
        """`metadata`, merged with all unknown fields of the message. If a name is in both, `metadata` wins."""
        return {**(self.model_extra or {}), **(self.metadata or {})}


class SessionEnded(BaseModel):
    """The chat service says that a session is over."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    type: Literal["session_end"]
    user_id: Id
    session_id: Id = Field(validation_alias=AliasChoices("session_id", "run_id"))
    timestamp: Timestamp = Field(validation_alias=AliasChoices("timestamp", "created_at"))


class Silence(BaseModel):
    """A record that the worker writes into the log: the session had no message up to `timestamp`.

    It is written when a session has been silent for long enough to close an exchange or to end the session. The wall
    clock thus acts only through the log, and a replay decides as the live run did.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["silence"] = "silence"
    user_id: Id
    session_id: Id
    timestamp: Timestamp


#: The roles that speak in a conversation. System and tool messages are not part of the conversation itself.
SPEAKERS = (Role.USER, Role.ASSISTANT)

ConversationRecord = ChatMessage | SessionEnded | Silence


def model_of(fields: Mapping[str, Any]) -> type[ConversationRecord]:
    """Return the pydantic model for a record of `conversations` with these fields.

    The type `session_end` always selects `SessionEnded`. The type `silence` selects `Silence`, because only workers
    write it, without role and content. If a record of this type has a role and a content, it is a chat message that
    has its own field `type`. All other records are chat messages.
    """
    match fields.get("type"):
        case "session_end":
            return SessionEnded
        case "silence" if not ("role" in fields and fields.get("content")):
            return Silence
        case _:
            return ChatMessage


def content_id(said: ChatMessage) -> str:
    """Return an id for a message that has no id: a hash of its session, role, timestamp and content."""
    return id_of_content(said.session_id, said.role, said.timestamp, said.content)
