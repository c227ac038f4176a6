"""The hashes of aiokafka's functions that the patches replace, or that our code relies on."""

from __future__ import annotations

from typing import Final

from aiokafka import client, conn
from aiokafka.admin import client as admin
from aiokafka.consumer import consumer, fetcher, group_coordinator
from aiokafka.producer import producer
from aiokafka.record import default_records, memory_records

from streams.kafka.patches.library_sources import LibrarySources

_EXPECTED: Final = {
    "AIOKafkaClient.bootstrap": "198943b004e5",
    "AIOKafkaClient.close": "02119d4d618a",
    "AIOKafkaClient._get_conn": "68ce5d839171",
    "AIOKafkaClient._metadata_update": "06dc51ed3e0d",
    "AIOKafkaAdminClient._send_request": "1ed126f126dd",
    "AIOKafkaConsumer.stop": "bc5da9c98595",
    "AIOKafkaProducer.stop": "43ef97147111",
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
_OWNERS: Final = {
    "AIOKafkaClient": client.AIOKafkaClient,
    "AIOKafkaAdminClient": admin.AIOKafkaAdminClient,
    "AIOKafkaConsumer": consumer.AIOKafkaConsumer,
    "AIOKafkaProducer": producer.AIOKafkaProducer,
    "conn": conn,
    "AIOKafkaConnection": conn.AIOKafkaConnection,
    "Fetcher": fetcher.Fetcher,
    "NoGroupCoordinator": group_coordinator.NoGroupCoordinator,
    "PartitionRecords": fetcher.PartitionRecords,
    "_MemoryRecordsPy": memory_records._MemoryRecordsPy,
    "_DefaultRecordBatchPy": default_records._DefaultRecordBatchPy,
}

#: Those that are replaced, as they were before.
_ORIGINALS: Final = {
    f"AIOKafkaClient.{name}": getattr(client.AIOKafkaClient, name) for name in ("bootstrap", "close", "_get_conn")
}

AIOKAFKA: Final = LibrarySources("aiokafka", _EXPECTED, _OWNERS, originals=_ORIGINALS)
