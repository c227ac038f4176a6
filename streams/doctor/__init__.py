"""`siltstone doctor`: checks whether a worker could run on this machine with its settings.

    for finding in await examine(ReadSettings.now()):
        print(finding.check, finding.outcome, finding.what, finding.todo)

All checks run at the same time, each with its own time limit. A failed check does not stop the others. The checks
change nothing. If the settings name a rating model, a reranker or an embedding service, each gets invented texts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiokafka.errors import KafkaError

from schemas.errors import SiltstoneError
from schemas.settings import Settings
from schemas.times import now_ms
from streams.doctor import access, broker, checkpoints, data, embedding, http, mcp, memory, rating, rerank, rights
from streams.doctor.finding import Finding, Outcome, failed, warning
from streams.doctor.settings import CORRECT, ReadSettings
from streams.doctor.waiting import in_daemon
from streams.models.embedding.choice import embedder_of

__all__ = ["Finding", "Outcome", "ReadSettings", "examine"]

DATA_SECONDS = 10.0
STORE_SECONDS = 30.0
BROKER_SECONDS = 10.0
#: The other sections that some embedding backends use.
_ALSO_NEEDED: Final = {"openai": {"llm"}, "auto": {"data_dir"}}
HTTP_SECONDS = http.ANSWER_SECONDS + 2


@dataclass(frozen=True, slots=True)
class _Check:
    """One of the doctor's checks. `needs` has the names of the sections of the settings that the check uses.

    `silent` is the advice to show if the check does not end within `seconds`, or ends with an unexpected error.
    """

    name: str
    needs: frozenset[str]
    seconds: float
    silent: str
    run: Callable[[], Awaitable[list[Finding]]]


async def examine(reading: ReadSettings, patience: float | None = None) -> list[Finding]:
    """Run all checks, and return their findings, grouped by check.

    `patience` (seconds) replaces the time limit of every check.
    """
    settings = reading.settings or Settings.model_construct()
    unknown = reading.settings is None or "data_dir" in reading.wrong
    shards = asyncio.ensure_future(in_daemon(data.Shards if unknown else partial(data.Shards.of, settings.data_dir)))
    unkept = reading.settings is None or "checkpoints" in reading.wrong
    stored = checkpoints.Kept if unkept else partial(checkpoints.Kept.of, settings.checkpoints)
    kept = asyncio.ensure_future(in_daemon(stored))
    try:
        found = await asyncio.gather(
            *(_found(check, reading, patience or check.seconds) for check in _checks(settings, shards, kept))
        )
    finally:
        shards.cancel()
        kept.cancel()
    return [*reading.findings(), *(finding for of_one in found for finding in of_one)]


def _checks(
    settings: Settings, shards: asyncio.Future[data.Shards], kept: asyncio.Future[checkpoints.Kept]
) -> list[_Check]:
    return [
        _Check(
            broker.CHECK,
            frozenset({"kafka"}),
            10.0,
            broker.unreachable(settings.kafka),
            partial(broker.check_broker, settings),
        ),
        _Check(
            rights.CHECK,
            frozenset({"kafka"}),
            15.0,
            broker.unreachable(settings.kafka),
            partial(rights.check_rights, settings),
        ),
        _Check(
            data.CHECK,
            frozenset({"data_dir", "kafka"}),
            DATA_SECONDS,
            "check the drive",
            partial(_data, settings, shards),
        ),
        _Check(
            embedding.CHECK,
            frozenset({"embedding"} | _ALSO_NEEDED.get(settings.embedding.backend, set())),
            300.0,  # a missing transformer is downloaded first
            "check the network if the model is being downloaded, or set embedding.backend to `use`",
            partial(_embedding, settings, shards, kept),
        ),
        _Check(
            rating.CHECK,
            frozenset({"memory", "llm"}),
            rating.LONGEST_SECONDS + 5,
            "check the service",
            partial(rating.check_rating, settings),
        ),
        _Check(
            rerank.CHECK,
            frozenset({"rerank", "llm"} if settings.rerank.backend == "service" else {"rerank"}),
            300.0,  # a missing model is downloaded first
            "check the network if the model is being downloaded, or leave out rerank.model",
            partial(rerank.check_rerank, settings),
        ),
        _Check(
            checkpoints.CHECK,
            frozenset({"checkpoints", "kafka"}),
            STORE_SECONDS,
            checkpoints.SILENT,
            partial(_checkpoints, settings, kept),
        ),
        _Check(
            memory.CHECK,
            frozenset({"memory_limit", "data_dir", "kafka"}),
            DATA_SECONDS,
            "check the drive",
            partial(_memory, settings),
        ),
        _Check(
            access.CHECK,
            frozenset({"access", "kafka"}),
            20.0,
            access.SILENT,
            partial(access.check_access, settings),
        ),
        _Check(http.CHECK, frozenset({"http"}), HTTP_SECONDS, http.TAKEN, partial(http.check_http, settings)),
        _Check(mcp.CHECK, frozenset({"http", "access"}), HTTP_SECONDS, mcp.RESTART, partial(mcp.check_mcp, settings)),
    ]


async def _found(check: _Check, reading: ReadSettings, seconds: float) -> list[Finding]:
    if reading.settings is None or check.needs & reading.wrong:
        return [warning(check.name, "not checked: its settings are wrong", "correct them first")]
    try:
        async with asyncio.timeout(seconds):
            return await check.run()
    except TimeoutError:
        return [failed(check.name, f"no answer within {seconds:g} s", check.silent)]
    except SiltstoneError as exc:
        return [failed(check.name, " ".join(str(exc).split()), CORRECT)]
    except Exception as exc:  # the other checks' findings are still wanted
        return [failed(check.name, f"the check failed: {type(exc).__name__}", check.silent)]


async def _data(settings: Settings, shards: asyncio.Future[data.Shards]) -> list[Finding]:
    folder = await in_daemon(partial(data.check_folder, settings.data_dir))
    partitions = settings.kafka.partitions
    noted = await in_daemon(partial(data.partition_findings, settings.data_dir, partitions))
    return [*folder, *noted, *data.shard_findings(await asyncio.shield(shards), partitions)]


async def _memory(settings: Settings) -> list[Finding]:
    return await in_daemon(partial(memory.check_memory, settings))


async def _checkpoints(settings: Settings, kept: asyncio.Future[checkpoints.Kept]) -> list[Finding]:
    """Check the checkpoints, and compare them with the log.

    If no broker answers, they are not compared, and only the check of the broker reports the missing answer.
    """
    bounds, topic_id = None, ""
    if settings.checkpoints.url:
        with contextlib.suppress(KafkaError, OSError, ValueError, TimeoutError):
            async with asyncio.timeout(BROKER_SECONDS):
                bounds, topic_id = await checkpoints.log_bounds(settings.kafka)
    found = await asyncio.shield(kept)
    return checkpoints.checkpoint_findings(
        settings.checkpoints, settings.kafka.partitions, found, bounds, topic_id, now_ms()
    )


async def _embedding(
    settings: Settings, shards: asyncio.Future[data.Shards], kept: asyncio.Future[checkpoints.Kept]
) -> list[Finding]:
    started = time.monotonic()
    embedder = await in_daemon(partial(embedder_of, settings))
    why = await in_daemon(partial(embedding.by_auto, settings))
    model = await embedding.load(embedder)
    if isinstance(model, Finding):
        return [model]
    seconds = time.monotonic() - started
    # If the shards cannot be read, only the check of the data directory reports it.
    await asyncio.wait([shards], timeout=DATA_SECONDS)
    readable = shards.done() and not shards.cancelled() and shards.exception() is None
    found = embedding.fitting(model, seconds, shards.result().read if readable else {}, why)
    found += embedding.untold(embedder, model)
    await asyncio.wait([kept], timeout=STORE_SECONDS)
    told = kept.done() and not kept.cancelled() and kept.exception() is None
    return [*found, *(checkpoints.model_findings(kept.result(), model) if told else [])]
