"""What people say, in Chinese and English: the texts of the bundled samples."""

from __future__ import annotations

from pathlib import Path

import orjson

from streams.models.embedding import calibration

_CHATS = Path(calibration.__file__).parents[2] / "samples" / "chats.jsonl"
_RECORDS = [orjson.loads(line) for line in _CHATS.read_bytes().splitlines()]

SAID: list[str] = [
    *(record["content"] for record in _RECORDS if "content" in record),
    *calibration.questions(),
    *calibration.documents(),
]
