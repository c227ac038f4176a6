"""Rights on Kafka's resources: those that the Kafka user of a worker needs, and the command that grants each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.errors import NotAllowed
from schemas.settings import KafkaSettings
from schemas.topics import TOKENS, Topics

Operation = Literal["READ", "WRITE", "CREATE", "DESCRIBE"]


@dataclass(frozen=True, slots=True)
class Right:
    """The right to one operation on one Kafka resource.

    >>> str(Right("READ", "topic", "siltstone.conversations"))
    'READ on topic siltstone.conversations'
    """

    operation: Operation
    resource: Literal["topic", "group"]
    name: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} {self.name}"

    def command(self, kafka: KafkaSettings) -> str:
        """Return the command with which a Kafka administrator, who has an `admin.properties`, grants this right."""
        return (
            f"kafka-acls.sh --bootstrap-server {kafka.bootstrap_servers} --command-config admin.properties --add "
            f"--allow-principal '{principal(kafka)}' --operation {self.operation.title()} "
            f"--{self.resource} {self.name}"
        )


def principal(kafka: KafkaSettings) -> str:
    """Return the name by which the broker knows our Kafka user. Mapping rules of the broker can change this name."""
    if kafka.security_protocol.startswith("SASL"):
        return f"User:{kafka.sasl_username}"
    if kafka.security_protocol == "SSL" and kafka.ssl_certfile is not None:
        return f"User:<the subject of {kafka.ssl_certfile}>"
    return "User:ANONYMOUS"


def not_allowed(kafka: KafkaSettings, rights: Sequence[Right]) -> NotAllowed:
    """Return one `NotAllowed` error that names all of these missing rights."""
    waits = all(right.resource == "group" for right in rights)
    return NotAllowed(principal(kafka), rights, rights[0].command(kafka), waits=waits)


def topic_rights(
    kafka: KafkaSettings, changelogs: frozenset[str] = frozenset(), *, tokens: bool = False
) -> dict[str, tuple[Right, ...]]:
    """Return the rights that a worker needs on each of its topics. READ and WRITE include DESCRIBE.

    With `tokens` (`access.tokens`), the worker also needs to read the topic of tokens, but not to write to it.
    """
    names = Topics.with_prefix(kafka.topic_prefix)
    read: tuple[Operation, ...] = ("READ",)
    both: tuple[Operation, ...] = ("READ", "WRITE")
    write: tuple[Operation, ...] = ("WRITE",)
    wanted = {
        names.conversations: both,
        names.long_term: both,
        names.transitions: write,
        names.summary_requests: both,
        names.dead_letters: write,
        **dict.fromkeys(sorted(changelogs), both),
        **({kafka.topic_prefix + TOKENS: read} if tokens else {}),
    }
    return {name: tuple(Right(operation, "topic", name) for operation in of) for name, of in wanted.items()}


def group_right(kafka: KafkaSettings) -> Right:
    """Return the right to join the workers' consumer group and to commit the group's offsets."""
    return Right("READ", "group", kafka.group_id)
