"""The tree of all exceptions that we raise on purpose.

SiltstoneError                 every error that we raise on purpose
├── SettingsError              a setting is wrong: names its key and the allowed values
├── BadRecord                  a record that cannot be used; it becomes a dead letter
│   └── NothingSaid            a message without words; it is skipped
├── BrokerUnavailable          no Kafka broker answers at the configured address
│   └── BrokerRefused          a broker answers, but denies access
├── NotAllowed                 the Kafka user of the settings lacks rights that are needed
├── AccessDenied               a request's token does not permit the request
│   ├── TokenRefused           the token is missing or invalid
│   ├── ScopeMissing           the token lacks the required scope
│   └── OtherUser              the token does not cover the user's memories
├── BrokerEmptied              the broker came back without our topics
│   └── TopicsRemade           topics were deleted and recreated
├── TopicsUnfit                topics are configured so that memory would be lost
├── PartitionsChanged          a topic's number of partitions changed while the worker was running
├── DataDirError               the data directory cannot be created, read or written
│   └── WindowsLocked          another worker has a partition's windows open
├── JournalError               the embedded broker's journal cannot be read or written
├── EmbeddedBrokerEnded        the embedded broker was killed, or has ended by itself
├── SummaryFilesError          the files of daily summaries cannot be read or removed
│   └── SummaryNotWritten      a summary could be written to neither of its two directories
├── ShardError                 a shard cannot be opened or used
│   ├── ShardLocked            another process holds the shard's DuckDB file
│   ├── ShardNotHere           this worker does not own the partition (any more)
│   ├── ShardComingBack        this worker owns the partition, but its data is not restored yet
│   ├── DamagedShard           bytes of the shard's catalog are missing or have changed
│   └── EmbeddingMismatch      the shard was written with another model or dimension
├── MemoryNotFound             the user has no such memory
│   └── MemoryElsewhere        this worker does not have the memory, but another worker may have it
├── ReembeddingRefused         a change of the embedding model cannot be started or stopped now
├── CheckpointError            a checkpoint cannot be taken, read or used
│   ├── StoreUnavailable       the store of checkpoints does not answer, or not in time
│   │   ├── StoreRefused       the store answers, but denies access
│   │   ├── StoreFull          the store is full
│   │   └── StoreMissing       the store's bucket, container or folder does not exist
│   ├── Fenced                 another worker owns the partition now, and has taken a checkpoint of it
│   ├── DamagedCheckpoint      bytes of a checkpoint are missing or have changed
│   ├── CheckpointMismatch     a checkpoint is sound, but was made with other settings
│   ├── NoCheckpoint           the partition has no checkpoint, or none from before the requested time
│   └── SnapshotChanged        a file changed while a checkpoint was taken of it
├── NotReady                   the worker cannot answer yet, or not at this moment
│   └── ProviderUnavailable    the OIDC provider's keys cannot be fetched
├── ConsistencyTokenError      a consistency token is damaged, or of another log or user
├── EmbeddingUnavailable       no vectors can be computed now: the embedding service or model does not answer
├── ApiError                   a running worker answered with an error, or did not answer
│   └── NoWorker               no worker answers at the address
└── LibraryChanged             the installed Faust or aiokafka is not the one that streams/kafka overrides
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from schemas.contents import NOTHING_SAID
from schemas.stores import shown_store


class SiltstoneError(Exception):
    """The base class of all errors that we raise on purpose. The text of most errors also says what to do."""


class SettingsError(SiltstoneError):
    """One or more settings are wrong. `problems` has one line for each. Correct the settings, and start again."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class BadRecord(SiltstoneError):
    """A record cannot be used. Processing continues, and the record goes to the topic `dead-letters`."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


class NothingSaid(BadRecord):
    """A message has no words. This is not an error of its producer, so the message is only skipped and counted."""

    def __init__(self) -> None:
        super().__init__("nothing_said", NOTHING_SAID)


class AccessDenied(SiltstoneError):
    """A request's token does not permit the request."""


class TokenRefused(AccessDenied):
    """A request's token is missing or invalid. Create a token with `siltstone token add`."""


class ScopeMissing(AccessDenied):
    """A request's token lacks the required scope, or does not cover all users. Create a token that does."""


class OtherUser(AccessDenied):
    """A request's token does not cover the user's memories. The API answers as if the memory did not exist."""


class BrokerUnavailable(SiltstoneError):
    """No Kafka broker answers. Start the broker, or correct `kafka.bootstrap_servers`."""

    def __init__(self, bootstrap_servers: str, reason: str = "") -> None:
        self.bootstrap_servers = bootstrap_servers
        why = f" ({reason})" if reason else ""
        super().__init__(
            f"no Kafka broker answers at {bootstrap_servers}{why}: start it or set kafka.bootstrap_servers"
        )


class BrokerRefused(BrokerUnavailable):
    """A Kafka broker answers, but denies access. Change the setting that `todo` names. Waiting does not help."""

    def __init__(self, address: str, cause: str, todo: str) -> None:
        self.bootstrap_servers = address
        self.cause, self.todo = cause, todo
        SiltstoneError.__init__(self, f"Kafka at {address} refuses access: {cause}: {todo}")


class NotAllowed(SiltstoneError):
    """The Kafka user in the settings lacks the rights in `rights`. `command` grants the first of them.

    `siltstone doctor` prints the commands for all missing rights. If `waits` is true, only rights on the consumer
    group are missing, and a worker waits until they are granted. Otherwise the worker ends.
    """

    def __init__(self, user: str, rights: Sequence[object], command: str, *, waits: bool = False) -> None:
        self.rights, self.command, self.waits = tuple(rights), command, waits
        more = "" if len(self.rights) == 1 else " (siltstone doctor has the commands for the others)"
        super().__init__(f"Kafka does not allow {user} {', '.join(map(str, self.rights))}: {command}{more}")


class BrokerEmptied(SiltstoneError):
    """The broker came back without the topics in `topics`. A worker restarts by itself, and recreates these topics.

    Records that were not in a shard yet are lost, unless their producers send them again.
    """

    def __init__(self, topics: list[str]) -> None:
        self.topics = topics
        super().__init__(f"the broker has lost its topics ({', '.join(topics)}): start the worker again")


class TopicsRemade(BrokerEmptied):
    """The topics in `topics` were deleted and recreated, so they are new logs. A worker reads them from the start.

    Records of the deleted topics that had not been read are lost, unless their producers send them again.
    """

    def __init__(self, topics: list[str]) -> None:
        self.topics = topics
        SiltstoneError.__init__(
            self, f"topics were deleted and recreated ({', '.join(topics)}): start the worker again"
        )


class TopicsUnfit(SiltstoneError):
    """The configuration of some topics would cause a loss of memories.

    `problems` has one line for each fault, with the command that corrects it.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class PartitionsChanged(SiltstoneError):
    """The number of a topic's partitions changed while a worker was running.

    Producers now send a user's records to another partition than before. The worker stops. At its next start, the
    worker prints the right number of partitions, and how to restore the topic.
    """

    def __init__(self, topic: str, partitions: int, before: int) -> None:
        self.topic, self.partitions, self.before = topic, partitions, before
        super().__init__(
            f"topic {topic} now has {partitions} partitions instead of {before}: producers would send users to "
            "shards that do not hold their memories; stop the producers, and run siltstone doctor, which says how to "
            "restore the topic"
        )


class DataDirError(SiltstoneError):
    """The data directory is unusable. Give the worker's user the rights, or choose another directory (`--data`)."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(
            f"cannot write to the data directory {path}: {reason}; choose another with --data or data_dir"
        )


class WindowsLocked(DataDirError):
    """Another worker has a partition's windows open. Stop it, or wait until it hands the partition over."""

    def __init__(self, path: Path) -> None:
        self.path = path
        SiltstoneError.__init__(self, f"another worker uses {path}: stop it, or give this worker its own --data")


class JournalError(SiltstoneError):
    """The journal of `siltstone dev` cannot be read or written. Do what the error's text says, and start again.

    No acknowledged record is lost. Only a record that was not written completely is cut off.
    """

    def __init__(self, path: Path, reason: str, todo: str = "correct that, and start again") -> None:
        self.path, self.reason, self.todo = path, reason, todo
        super().__init__(f"the journal {path} cannot be used: {reason}: {todo}; no acknowledged record is lost")


class EmbeddedBrokerEnded(SiltstoneError):
    """The embedded broker was killed, or ended by itself. Start `siltstone dev` again: its journal is complete."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the embedded broker has ended ({how}): start siltstone dev again; no acknowledged record is lost"
        )


class Unusable(NamedTuple):
    """A path that cannot be used, and the reason that the operating system gives."""

    path: Path
    errno: int
    reason: str

    @classmethod
    def of(cls, path: Path, exc: OSError) -> Unusable:
        return cls(path, exc.errno or 0, exc.strerror or type(exc).__name__)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class SummaryFilesError(SiltstoneError):
    """Files of daily summaries cannot be read or removed. Grant the worker's user the rights to `unusable`."""

    def __init__(self, what: str, unusable: Sequence[Unusable]) -> None:
        self.unusable = tuple(unusable)
        super().__init__(f"{what}: {'; '.join(map(str, self.unusable))}")


class SummaryNotWritten(SummaryFilesError):
    """A summary could be written neither to the data directory nor to the second directory.

    Grant the rights, free disk space, or set another second directory (`agents.summary.fallback_dir`).
    """

    def __init__(self, unusable: Sequence[Unusable]) -> None:
        super().__init__(
            "a summary could not be written; free disk space, grant the worker's user the rights, or set "
            "agents.summary.fallback_dir",
            unusable,
        )


class ShardError(SiltstoneError):
    """A shard cannot be opened or used. `partition` is the number of the shard's partition."""

    def __init__(self, partition: int, message: str) -> None:
        self.partition = partition
        super().__init__(f"shard {partition}: {message}")


class ShardLocked(ShardError):
    """Another process has the shard's DuckDB file open. Stop it, or wait until it hands the partition over."""


class ShardNotHere(ShardError):
    """This worker does not own the shard's partition (any more). Ask again: another worker is taking it over."""


class ShardComingBack(ShardError):
    """This worker has not restored the partition's data yet. Repeat the request after `retry_after` seconds.

    `/readyz` shows the progress. A request with `partial=allow` gets an answer from the data that is already
    restored.
    """

    def __init__(self, partition: int, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(partition, message)


class DamagedShard(ShardError):
    """The shard's catalog is damaged. Put a backup of its folder in place, or run the command in the error's text."""


class EmbeddingMismatch(ShardError):
    """The shard's vectors come from another embedding model than the one in the settings.

    Change the section `embedding` back, or run `siltstone reembed`. Without options, and while no worker is running,
    this command computes new vectors with the model in the settings.
    """


class NotReady(SiltstoneError):
    """The worker is starting, or its partitions are moving. Repeat the request; `/readyz` shows the reason."""


class ProviderUnavailable(NotReady):
    """The keys of the OIDC provider cannot be fetched. Only the log and `siltstone doctor` show `why` and `todo`."""

    def __init__(self, why: str, todo: str) -> None:
        self.why, self.todo = why, todo
        super().__init__("the keys of this token's OIDC provider cannot be fetched; ask again")


class MemoryNotFound(SiltstoneError):
    """The user has no memory with this id. The text names the user and the id."""


class MemoryElsewhere(MemoryNotFound):
    """A request without a user names a memory that this worker does not have. The other workers are asked."""


class ReembeddingRefused(SiltstoneError):
    """A change of the embedding model cannot be started, stopped or dropped now. The error's text has the reason."""


class CheckpointError(SiltstoneError):
    """A checkpoint cannot be taken, read or used. A worker can do without it: it uses its disk and the log."""


class StoreUnavailable(CheckpointError):
    """The object store for checkpoints does not answer. The next checkpoint includes the changes of the failed one.

    `url` is `checkpoints.url` without its secrets. The error's text shows no path of a folder, because API answers
    may contain the text.
    """

    def __init__(self, url: str, reason: str, todo: str = "check the store, or correct checkpoints.url") -> None:
        self.url, self.reason = url, reason
        super().__init__(f"the checkpoints' store {shown_store(url)} cannot be used: {reason}: {todo}")


class StoreRefused(StoreUnavailable):
    """The object store for checkpoints denies access. Set credentials in the environment, or grant rights to them."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            url, reason, "set its credentials in the environment, with the rights to read, write, list and delete"
        )


class StoreFull(StoreUnavailable):
    """The object store for checkpoints is full. Free space in the store, or raise its quota."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason, "free space in it, raise its quota, or lower checkpoints.keep")


class StoreMissing(StoreUnavailable):
    """The bucket, container or folder for checkpoints does not exist. Create it, or correct `checkpoints.url`."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason, "create it, or correct checkpoints.url")


class Fenced(CheckpointError):
    """A newer owner of the partition has taken a checkpoint of it.

    This worker therefore takes no checkpoint, and stops serving the partition.
    """

    def __init__(self, partition: int, epoch: int, newer: int) -> None:
        self.partition, self.epoch, self.newer = partition, epoch, newer
        super().__init__(
            f"partition {partition}: a worker of group generation {newer} has taken a checkpoint; this worker is of "
            f"generation {epoch}, so it takes none"
        )


class DamagedCheckpoint(CheckpointError):
    """Bytes of a checkpoint are missing or have changed. Use the previous generation.

    `pack` is the name of the damaged object, or None if the checkpoint's manifest is damaged.
    """

    def __init__(self, partition: int, generation: int, what: str, pack: str | None = None) -> None:
        self.partition, self.generation, self.what, self.pack = partition, generation, what, pack
        super().__init__(
            f"checkpoint {generation} of partition {partition} is damaged: {what}: use the previous generation"
        )


class CheckpointMismatch(CheckpointError):
    """A checkpoint was made with other settings or by a newer version. The worker reads the log instead."""

    def __init__(self, partition: int, reason: str) -> None:
        self.partition, self.reason = partition, reason
        super().__init__(f"the checkpoint of partition {partition} cannot be used here: {reason}")


class NoCheckpoint(CheckpointError):
    """The partition has no checkpoint, or none from before the requested time. Request a later time.

    From now on, a higher `checkpoints.keep` keeps more checkpoints.
    """


class SnapshotChanged(CheckpointError):
    """A file became shorter, or its bytes changed, while a checkpoint was taken. Take the checkpoint again."""

    def __init__(self, partition: int, name: str) -> None:
        self.partition, self.name = partition, name
        super().__init__(f"partition {partition}: {name} changed while it was copied: take another checkpoint")


class ConsistencyTokenError(SiltstoneError):
    """A consistency token cannot be used. Pass it exactly as the write returned it, and for the same user."""


class EmbeddingUnavailable(SiltstoneError):
    """The embedding service or model computes no vectors now. Check the service that the error's text names.

    New memories wait in their topic. `passing` is true if the service may soon recover by itself. `retry_after` is
    the number of seconds for which the service asked not to be called, or 0.
    """

    def __init__(self, message: str, *, passing: bool = True, retry_after: float = 0.0) -> None:
        self.passing, self.retry_after = passing, retry_after
        super().__init__(message)


class ApiError(SiltstoneError):
    """A command got no result from a worker. `status` is the HTTP status, or None if no worker answered.

    If no worker is running, start one with `siltstone dev`. If the worker has another address, pass it with `--url`.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class NoWorker(ApiError):
    """No worker answers at the address. Start one with `siltstone dev`, or pass the worker's address with `--url`."""


class LibraryChanged(SiltstoneError):
    """The installed Faust or aiokafka is not the version that streams/kafka overrides. Install the pinned one."""
