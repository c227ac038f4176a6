"""Asking about a topic makes none: aiokafka's clients allow it with every question, and many clusters do it then."""

from __future__ import annotations

from functools import partial

import aiokafka.admin.client
import aiokafka.client
from aiokafka.protocol.metadata import MetadataRequest


def ask_without_making() -> None:
    """From now on, no client of this process has a topic made that it asks for. Asked again, it changes nothing."""
    asked = partial(MetadataRequest, allow_auto_topic_creation=False)
    aiokafka.client.MetadataRequest = asked
    aiokafka.admin.client.MetadataRequest = asked
