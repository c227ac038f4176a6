"""The hashes of Faust's functions that this folder overrides or relies on."""

from __future__ import annotations

from typing import Final

import faust
from faust.assignor.partition_assignor import PartitionAssignor
from faust.tables.base import Collection
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport import consumer
from faust.transport.drivers import aiokafka as driver

from streams.kafka.patches.library_sources import LibrarySources

_EXPECTED: Final = {
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
_OWNERS: Final = {
    "Consumer": consumer.Consumer,
    "ThreadDelegateConsumer": consumer.ThreadDelegateConsumer,
    "driver.Consumer": driver.Consumer,
    "driver.AIOKafkaConsumerThread": driver.AIOKafkaConsumerThread,
    "Stream": faust.Stream,
    "Collection": Collection,
    "Recovery": Recovery,
    "TableManager": TableManager,
    "PartitionAssignor": PartitionAssignor,
}

FAUST: Final = LibrarySources("faust-streaming", _EXPECTED, _OWNERS)
