"""Keeps aiokafka's clients from creating topics: each of their requests allows it, and many clusters then do it."""

from __future__ import annotations

from functools import partial

import aiokafka.admin.client
import aiokafka.client
from aiokafka.protocol.metadata import MetadataRequest


def create_no_topics() -> None:
    """From now on, no client of this process creates a topic by asking about it. A second call changes nothing."""
    asked = partial(MetadataRequest, allow_auto_topic_creation=False)
    aiokafka.client.MetadataRequest = asked
    aiokafka.admin.client.MetadataRequest = asked
