"""Checks that the installed Faust and aiokafka have the source code for which our overrides and patches are written.

A hash is kept of each function that `faust/` overrides, `patches/` replaces, or one of them relies on.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import faust
from aiokafka import client, conn
from aiokafka.admin import client as admin
from aiokafka.consumer import fetcher, group_coordinator
from aiokafka.record import default_records, memory_records
from faust.assignor.partition_assignor import PartitionAssignor
from faust.tables.base import Collection
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport import consumer as base
from faust.transport.drivers import aiokafka as driver

from schemas.errors import LibraryChanged

#: By function, the first 12 hex digits of the SHA-256 of its source code.
FAUST = {
    "Consumer.getmany": "4b168d84882a",
    "Consumer._wait_next_records": "6218e1969a63",
    "Consumer._drain_messages": "44a2500309e8",
    "Consumer.ack": "5fcf41cf4515",
    "Consumer._add_gap": "4df2573ded7c",
    "Consumer._filter_tps_with_pending_acks": "f6f923977423",
    "Consumer._new_offset": "1d2c7ea89a7a",
    "Consumer._commit_offsets": "1a6979904118",
    "Consumer.perform_seek": "0e8c130ff4b0",
    "Consumer.on_partitions_revoked": "d04b7ae72c6f",
    "Consumer.on_partitions_assigned": "29ce96596f05",
    "driver.Consumer._to_message": "7c24f6511b2f",
    "driver.Consumer._new_consumer_thread": "0870ec53dea7",
    "driver.AIOKafkaConsumerThread._create_worker_consumer": "c2701bfc3e6f",
    "driver.AIOKafkaConsumerThread._wakeup_timer_in_thread": "25a1647d37d5",
    "driver.AIOKafkaConsumerThread._highwaters": "a7f4f97d9f32",
    "ThreadDelegateConsumer._getmany": "f9d47aa9010b",
    "ThreadDelegateConsumer.seek_wait": "e9db5bbc4ceb",
    "Stream.__aiter__": "e815c0e831f1",
    "Stream._py_aiter": "3a48ee257a65",
    "Collection.apply_changelog_batch": "b980a78d3ae9",
    "Collection.persisted_offset": "d473d3ab3fd6",
    "Collection.on_rebalance": "0812ad692171",
    "Collection.on_recovery_completed": "b1526fb39ea0",
    "driver.AIOKafkaConsumerThread._commit": "932852ce7a23",
    "driver.AIOKafkaConsumerThread.seek_to_committed": "775ab0adc4b0",
    "Recovery._restart_recovery": "6bd8a8558a2d",
    "Recovery._build_highwaters": "91b4cc0d3724",
    "Recovery._build_offsets": "27eec86be06c",
    "Recovery._slurp_changelogs": "7825c7e50f76",
    "Recovery._set_recovery_started": "bcfebf81ae13",
    "TableManager.on_start": "365dd25fbc0e",
    "Recovery._wait": "ec7429b70176",
    "PartitionAssignor._perform_assignment": "1e0bf2c5c8f4",
    "PartitionAssignor.on_assignment": "72f34bf053d6",
}

AIOKAFKA = {
    "AIOKafkaClient.bootstrap": "198943b004e5",
    "AIOKafkaClient._metadata_update": "06dc51ed3e0d",
    "AIOKafkaAdminClient._send_request": "1ed126f126dd",
    "conn.create_conn": "673276cbddb4",
    "AIOKafkaConnection.send": "5909ea32f4ef",
    "Fetcher.__init__": "bf21ecb7e0f2",
    "Fetcher.close": "1cd24bc1c442",
    "Fetcher._fetch_requests_routine": "2a8ec5932644",
    "NoGroupCoordinator.close": "3d97a58a3e56",
    "PartitionRecords.__next__": "63ac34a08c30",
    "PartitionRecords._unpack_records": "b803e6d46480",
    "PartitionRecords._consumer_record": "e668541600b0",
    "_MemoryRecordsPy.next_batch": "f1779ecb6d0d",
    "_MemoryRecordsPy._cache_next": "7bb73a2eabca",
    "_DefaultRecordBatchPy._read_msg": "0997ab7a5850",
}

_OWNERS: Final[Mapping[str, Any]] = {
    "Consumer": base.Consumer,
    "ThreadDelegateConsumer": base.ThreadDelegateConsumer,
    "driver.Consumer": driver.Consumer,
    "driver.AIOKafkaConsumerThread": driver.AIOKafkaConsumerThread,
    "Stream": faust.Stream,
    "Collection": Collection,
    "Recovery": Recovery,
    "TableManager": TableManager,
    "PartitionAssignor": PartitionAssignor,
    "AIOKafkaClient": client.AIOKafkaClient,
    "AIOKafkaAdminClient": admin.AIOKafkaAdminClient,
    "conn": conn,
    "AIOKafkaConnection": conn.AIOKafkaConnection,
    "Fetcher": fetcher.Fetcher,
    "NoGroupCoordinator": group_coordinator.NoGroupCoordinator,
    "PartitionRecords": fetcher.PartitionRecords,
    "_MemoryRecordsPy": memory_records._MemoryRecordsPy,
    "_DefaultRecordBatchPy": default_records._DefaultRecordBatchPy,
}


@functools.cache
def fingerprint(name: str) -> str:
    """Return the hash of the installed source of a function, which is a key of `FAUST` or `AIOKAFKA`."""
    owner, method = name.rsplit(".", 1)
    # A patch may have replaced the function in this process, so the original is hashed.
    function = _UNPATCHED.get(name) or getattr(_OWNERS[owner], method)
    source = inspect.getsource(getattr(function, "fun", function))  # `Service.task` of Faust wraps the function
    return hashlib.sha256(source.encode()).hexdigest()[:12]


#: The original functions that `patches/` replaces on their classes.
_UNPATCHED: Final[Mapping[str, Any]] = {"AIOKafkaClient.bootstrap": client.AIOKafkaClient.bootstrap}


def check_faust() -> None:
    """Raise `LibraryChanged` if a source of the installed Faust differs from the expected one."""
    _check("faust-streaming", FAUST)


def check_aiokafka() -> None:
    """Raise `LibraryChanged` if a source of the installed aiokafka differs from the expected one."""
    _check("aiokafka", AIOKAFKA)


def _check(library: str, expected: Mapping[str, str]) -> None:
    changed = [name for name, of_ours in expected.items() if fingerprint(name) != of_ours]
    if changed:
        raise LibraryChanged(
            f"{library} {version(library)} differs in {', '.join(changed)}: install the version that pyproject.toml "
            "pins"
        )
