"""RocksDB, as the windows and the search rows use it: memory that stores share, errors, and the rewrite of files."""

from __future__ import annotations

import os
from typing import Any, Final

import rocksdict

#: Beginnings of RocksDB's error messages for a damaged store.
DAMAGE: Final = ("Corruption", "Invalid argument", "Not implemented")
#: RocksDB holds a lock on this file while the store is open.
LOCK: Final = "LOCK"

#: Bytes of the block cache and of the write buffers. All stores that share a `Memory` share them.
CACHE_BYTES: Final = 16 << 20
WRITE_BYTES: Final = 16 << 20
#: When the new rows of one store take this many bytes of memory, RocksDB writes them to a file.
MEMTABLE_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 8 << 10
OPEN_FILES: Final = 48


class Memory:
    """RocksDB's block cache and write buffers, which several stores of a process share."""

    def __init__(self) -> None:
        self.cache = rocksdict.Cache(CACHE_BYTES)
        self.buffers = rocksdict.WriteBufferManager(WRITE_BYTES, False)

    def options(self) -> Any:
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(self.cache)
        blocks.set_block_size(BLOCK_BYTES)
        blocks.set_bloom_filter(10, False)
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(False)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self.buffers)
        options.set_write_buffer_size(MEMTABLE_BYTES)
        options.set_max_write_buffer_number(2)
        options.set_arena_block_size(64 << 10)
        options.set_max_open_files(OPEN_FILES)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(1 << 20)
        options.set_stats_dump_period_sec(0)
        options.set_skip_stats_update_on_db_open(True)
        return options


class StoreDamaged(Exception):
    """RocksDB found the store damaged."""


def rewrite(db: rocksdict.Rdict, begin: bytes | None = None, end: bytes | None = None) -> None:
    """Rewrite the files with keys from `begin` to `end`, without deleted rows. None is the first or last key."""
    thorough = rocksdict.CompactOptions()
    thorough.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
    db.compact_range(begin, end, thorough)


def after(prefix: bytes) -> bytes:
    """Return the first key after all keys with this prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def line(exc: Exception) -> str:
    """Return the first line of RocksDB's message; for a full disk, that of the operating system."""
    said = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    return os.strerror(28) if "No space left" in said else said
