"""Faust's consumer with all overrides."""

from __future__ import annotations

from streams.kafka.faust.committing import Committing
from streams.kafka.faust.delivery import Delivery
from streams.kafka.faust.fetching import Fetching
from streams.kafka.faust.seeking import Seeking
from streams.kafka.faust.shared import Transport


class Consumer(Fetching, Delivery, Committing, Seeking):
    """Faust's consumer with all overrides. `ConsumingTransport` creates it."""


class ConsumingTransport(Transport):
    """The transport that creates a `Consumer`. `HotPath` installs it in an app."""

    Consumer = Consumer
