"""An LRU cache, limited in bytes. All shards of a worker may share one `Recent`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final

#: The limit in bytes for all shards of a worker together. It is enough for the terms and memories of thousands of
#: users, and small compared with the other memory of a worker, about a gigabyte. To read an evicted entry again costs
#: one scan of a RocksDB, or one SQL statement.
RECENT_BYTES: Final = 64 * 1024 * 1024


class Recent:
    """A cache that evicts the least recently used value first. Thread-safe, because each shard has its own thread."""

    def __init__(self, most: int = RECENT_BYTES) -> None:
        self._most, self.held = most, 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """Return the value, or None if it is not in the cache."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Cache a value of `size` bytes. A value that is larger than the limit is not cached, and evicts nothing."""
        with self._lock:
            self._drop(key)
            if size > self._most:
                return
            self._values[key] = value, size
            self.held += size
            while self.held > self._most:
                self._drop(next(iter(self._values)))

    def drop(self, key: Hashable) -> None:
        with self._lock:
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        _, size = self._values.pop(key, (None, 0))
        self.held -= size

    def drop_all(self, owner: Hashable) -> None:
        """Drop the values whose key is a tuple that begins with `owner`."""
        with self._lock:
            for key in [key for key in self._values if isinstance(key, tuple) and key[0] is owner]:
                self._drop(key)
