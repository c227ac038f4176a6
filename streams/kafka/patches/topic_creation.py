"""Prevents aiokafka's clients from creating topics.

Without this patch, each metadata request of a client allows the creation of the requested topic, and many clusters
then create it.
"""

from __future__ import annotations

from functools import partial

import aiokafka.admin.client
import aiokafka.client
from aiokafka.protocol.metadata import MetadataRequest


def create_no_topics() -> None:
    """From now on, no metadata request of this process creates a topic. A second call changes nothing."""
    asked = partial(MetadataRequest, allow_auto_topic_creation=False)
    aiokafka.client.MetadataRequest = asked
    aiokafka.admin.client.MetadataRequest = asked
