"""Applies all patches of this folder to aiokafka."""

from __future__ import annotations

import functools

from streams.kafka.patches.aiokafka_sources import AIOKAFKA
from streams.kafka.patches.closing import close_completely
from streams.kafka.patches.header_names import take_any_header_name
from streams.kafka.patches.topic_creation import create_no_topics


@functools.cache
def patch_aiokafka() -> None:
    """Patch all clients of this process, once. Raises `LibraryChanged` if a source of aiokafka differs."""
    AIOKAFKA.check()
    create_no_topics()
    close_completely()
    take_any_header_name()
