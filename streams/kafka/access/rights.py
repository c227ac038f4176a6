"""Finds missing rights by trying them as a worker uses them, without a trace.

A creation is only validated, a fetch asks for one byte, a produce request has no records (the broker checks the right
before the content), and the group's coordinator is asked what we may do with the group.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka import errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DeleteAclsRequest, DescribeGroupsRequest_v3, DescribeGroupsResponse_v3
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest

from schemas.rights import Right, group_right, not_allowed, topic_rights
from schemas.settings import KafkaSettings
from schemas.topic_specs import changelog_specs, tokens_spec, topic_specs
from streams.kafka.clients.broker import admin_client, new_topic

#: A broker's error codes for a refused topic, and a refused group.
TOPIC_REFUSED = errors.TopicAuthorizationFailedError.errno
GROUP_REFUSED = errors.GroupAuthorizationFailedError.errno
#: READ among the bits of operations allowed on a group; the value of a broker that does not report them.
READ_BIT, NOT_SAID = 1 << 3, -(2**31)
#: At first a new topic has no leader, and a new cluster no coordinator.
ATTEMPTS, AGAIN_SECONDS = 50, 0.1
ANSWER_MS = 5_000


class Tried(NamedTuple):
    """The missing rights. `absent`: topics that do not exist, so only their creation could be tried."""

    missing: Sequence[Right]
    absent: Sequence[str]


async def try_rights(kafka: KafkaSettings, changelogs: frozenset[str], *, tokens: bool = False) -> Tried:
    """Try all rights that a worker needs; with `tokens`, one that asks for tokens. Raises `BrokerUnavailable`."""
    wanted = topic_rights(kafka, changelogs, tokens=tokens)
    async with admin_client(kafka) as admin:
        if not await _knows_rights(admin):
            return Tried([], [])
        leaders, absent, unseen = await _described(admin, list(wanted))
        missing = [right for name in unseen for right in wanted[name]]
        missing += await _creations(admin, kafka, [name for name in absent if _is_created(kafka, name, changelogs)])
        missing += await _topics(admin, wanted, leaders)
        if not await _group_allowed(admin, kafka.group_id):
            missing.append(group_right(kafka))
    return Tried(missing, absent)


async def require_rights(kafka: KafkaSettings, changelogs: frozenset[str], *, tokens: bool = False) -> Tried:
    """Raise `NotAllowed` if a right is missing. Also raises `BrokerUnavailable`."""
    tried = await try_rights(kafka, changelogs, tokens=tokens)
    if tried.missing:
        raise not_allowed(kafka, tried.missing)
    return tried


async def require_write(kafka: KafkaSettings, topic: str) -> bool:
    """Whether the topic exists. Raises `NotAllowed` if we may not write to it, and `BrokerUnavailable`."""
    right = Right("WRITE", "topic", topic)
    async with admin_client(kafka) as admin:
        leaders, absent, unseen = await _described(admin, [topic])
        if await _knows_rights(admin) and (unseen or await _topics(admin, {topic: (right,)}, leaders)):
            raise not_allowed(kafka, [right])
    return not absent


def _is_created(kafka: KafkaSettings, name: str, changelogs: frozenset[str]) -> bool:
    return kafka.create_topics or name in changelogs


async def _knows_rights(admin: AIOKafkaAdminClient) -> bool:
    """Whether the broker has rights. Tansu has none: it allows everything, and does not only validate a creation."""
    connection = await admin._client._get_conn(admin._client.get_random_node())
    if connection is None:
        raise errors.KafkaConnectionError("no connection to any broker")
    return DeleteAclsRequest.API_KEY in connection._versions


async def _described(
    admin: AIOKafkaAdminClient, names: Sequence[str]
) -> tuple[dict[int, list[str]], list[str], list[str]]:
    """Return topics by the leader of their first partition, absent topics, and topics that we may not see."""
    for attempt in range(ATTEMPTS):
        answer = await admin._client.send(
            admin._client.get_random_node(), MetadataRequest(list(names), allow_auto_topic_creation=False)
        )
        told = {topic[1]: topic for topic in answer.topics}
        leaders: dict[int, list[str]] = defaultdict(list)
        absent, unseen, waiting = [], [], []
        for name in names:
            error, partitions = told[name][0], told[name][3]
            leader = min(partitions, key=lambda partition: partition[1])[2] if partitions else -1
            if error == TOPIC_REFUSED:
                unseen.append(name)
            elif error == errors.UnknownTopicOrPartitionError.errno:
                absent.append(name)
            elif leader < 0:
                waiting.append(name)
            else:
                leaders[leader].append(name)
        if not waiting or attempt == ATTEMPTS - 1:
            break
        await asyncio.sleep(AGAIN_SECONDS)
    return leaders, absent, unseen


async def _creations(admin: AIOKafkaAdminClient, kafka: KafkaSettings, names: Sequence[str]) -> list[Right]:
    if not names:
        return []
    specs = (*topic_specs(kafka), *changelog_specs(kafka), tokens_spec(kafka))
    topics = [new_topic(spec) for spec in specs if spec.name in names]
    answer = await admin.create_topics(topics, validate_only=True)
    return [Right("CREATE", "topic", name) for name, code, *_ in answer.topic_errors if code == TOPIC_REFUSED]


async def _topics(
    admin: AIOKafkaAdminClient, wanted: Mapping[str, Sequence[Right]], leaders: Mapping[int, Sequence[str]]
) -> list[Right]:
    missing = []
    for leader, names in leaders.items():
        for operation in ("READ", "WRITE"):
            asked = {name: right for name in names for right in wanted[name] if right.operation == operation}
            refused = await _refused(admin, leader, operation, list(asked)) if asked else set()
            missing += [right for name, right in asked.items() if name in refused]
    return missing


async def _refused(admin: AIOKafkaAdminClient, leader: int, operation: str, names: Sequence[str]) -> set[str]:
    """Return those topics on which the broker does not allow the operation."""
    request: Request[Any]
    if operation == "READ":
        request = FetchRequest(0, 0, 1, 0, [(name, [(0, 0, 1)]) for name in names])
    else:
        request = ProduceRequest(None, -1, ANSWER_MS, [(name, [(0, b"")]) for name in names])
    answer = await admin._client.send(leader, request)
    return {topic for topic, partitions, *_ in answer.topics if any(one[1] == TOPIC_REFUSED for one in partitions)}


class _Described(DescribeGroupsRequest_v3):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's own request reads the answer as an older version, without the allowed operations."""

    RESPONSE_TYPE = DescribeGroupsResponse_v3


class _DescribeGroup(Request[_Described]):  # type: ignore[misc]  # as above
    API_KEY = DescribeGroupsRequest_v3.API_KEY

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_Described]) -> _Described:
        return request_struct_class([self._group], True)


async def _group_allowed(admin: AIOKafkaAdminClient, group: str) -> bool:
    """Whether we may read as this group. True if the broker does not report it, and does not refuse us."""
    for _ in range(ATTEMPTS):
        try:
            coordinator = await admin.find_coordinator(group)
            break
        except errors.GroupAuthorizationFailedError:
            return False
        except (errors.CoordinatorNotAvailableError, errors.NotCoordinatorForGroupError):
            await asyncio.sleep(AGAIN_SECONDS)
    else:
        return True
    with contextlib.suppress(errors.IncompatibleBrokerVersion, NotImplementedError):
        answer = await admin._client.send(coordinator, _DescribeGroup(group))
        for error, *_, allowed in answer.groups:
            if error == GROUP_REFUSED or (not error and allowed != NOT_SAID and not allowed & READ_BIT):
                return False
    return True
