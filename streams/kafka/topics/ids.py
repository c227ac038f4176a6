"""Ids of topics. Kafka gives each topic a unique id when the topic is created.

Version 12 of Kafka's Metadata request returns these ids. aiokafka has only the versions up to 5, so the request is
defined here. The request never creates a topic.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

UNKNOWN_TOPIC = 3
NO_ID = uuid.UUID(int=0)


class Identity(NamedTuple):
    """A topic's id (None if the broker has no ids) and number of partitions (0 if the topic does not exist)."""

    id: uuid.UUID | None
    partitions: int


GONE = Identity(None, 0)


async def identities(admin: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, Identity]:
    """Return the identity of each topic, by name; `GONE` for a topic that does not exist.

    If the broker reports another error for a topic, such as a missing leader or right, the topic is left out.
    """
    try:
        answer = await admin._send_request(_MetadataRequest(list(names)))
    except (IncompatibleBrokerVersion, NotImplementedError):  # before Kafka 2.8
        counts = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
        return {name: Identity(None, counts.get(name, 0)) for name in names}
    found = {}
    for code, name, identity, _, partitions, *_ in answer.topics:
        if code == UNKNOWN_TOPIC:
            found[name] = GONE
        elif not code:
            found[name] = Identity(None if identity == NO_ID else identity, len(partitions))
    return found


class _Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]  # aiokafka has no types here
    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("topic", CompactString()),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _MetadataRequestStruct(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 12
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("topic", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _MetadataRequest(Request[_MetadataRequestStruct]):  # type: ignore[misc]
    API_KEY = 3

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_MetadataRequestStruct]) -> Any:
        return request_struct_class([(NO_ID, name, {}) for name in self._names], False, False, {})
