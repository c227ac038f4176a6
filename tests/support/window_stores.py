"""Closes what a test has opened of the windows' stores."""

from __future__ import annotations

from tables.windows.window_stores import WindowStores


def close_stores(stores: WindowStores) -> None:
    for partition in stores.partitions():
        stores.leave(partition).close()
