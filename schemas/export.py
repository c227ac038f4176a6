"""Writes the JSON Schemas of all Kafka records to `schemas/json/<name>.v1.json`.

python -m schemas.export        # a test fails if a file differs from its model
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from schemas.conversations import ChatMessage, SessionEnded, Silence
from schemas.dead_letters import DeadLetter
from schemas.events import LONG_TERM_EVENT, SummaryRequest
from schemas.memories import Transition
from schemas.tokens import TokenRecord

FOLDER = Path(__file__).parent / "json"

EXPORTED: dict[str, TypeAdapter[Any]] = {
    "chat-message": TypeAdapter(ChatMessage),
    "session-ended": TypeAdapter(SessionEnded),
    "silence": TypeAdapter(Silence),
    "long-term-event": LONG_TERM_EVENT,
    "transition": TypeAdapter(Transition),
    "summary-request": TypeAdapter(SummaryRequest),
    "dead-letter-headers": TypeAdapter(DeadLetter),
    "token": TypeAdapter(TokenRecord),
}


def documents() -> dict[Path, bytes]:
    """Return the path and the content of every schema file."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return {
        FOLDER / f"{name}.v1.json": orjson.dumps(adapter.json_schema(by_alias=True), option=options)
        for name, adapter in EXPORTED.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, document in documents().items():
        path.write_bytes(document)
