"""The types of the fields of records, with the limits for their size."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from schemas.times import parse_timestamp

MAX_CONTENT_BYTES = 32 * 1024
MAX_METADATA_BYTES = 32 * 1024
#: The nesting levels that are reserved for the record that contains the metadata. A record never puts more levels
#: around its metadata. For example, session, messages and message are three levels.
LEVELS_OF_OUR_OWN = 16


def absent(value: object) -> bool:
    """Return whether a field has no value. Records and answers leave out such fields (`exclude_if`)."""
    return value is None


def _fits(content: str) -> str:
    if len(content) > MAX_CONTENT_BYTES // 4 and len(content.encode()) > MAX_CONTENT_BYTES:
        raise ValueError(f"must be at most {MAX_CONTENT_BYTES} bytes of UTF-8")
    return content


def writable(value: Any) -> int:
    """Return the value's size in a record, in bytes. Raises `ValueError` if it is nested too deeply to be written.

    This check is needed because JSON can be read to a greater depth than it can be written.
    """
    within = value
    for _ in range(LEVELS_OF_OUR_OWN):
        within = [within]
    try:
        return len(orjson.dumps(within))
    except TypeError as exc:
        raise ValueError(f"cannot be kept: {exc}") from None


def keepable(value: Any) -> Any:
    """Return the value if it can be stored as metadata. Raises `ValueError` if it is too large or too deep."""
    if writable(value) > MAX_METADATA_BYTES:
        raise ValueError(f"must be at most {MAX_METADATA_BYTES} bytes of JSON")
    return value


def _nestable(value: Any) -> Any:
    writable(value)
    return value


Timestamp = Annotated[
    int,
    BeforeValidator(parse_timestamp),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "integer", "description": "epoch milliseconds"},
            ]
        }
    ),
]
Content = Annotated[str, AfterValidator(_fits)]
Metadata = Annotated[dict[str, Any], AfterValidator(keepable)]
#: The merged metadata of all messages of an exchange. Each message's metadata is within `MAX_METADATA_BYTES`, but the
#: merged metadata may be larger.
MetadataOfMany = Annotated[dict[str, Any], AfterValidator(_nestable)]
