"""Why the API refuses, in one line."""

from __future__ import annotations

import pytest

from streams.doors.http.error_detail import SHOWN_CHARS, detail_of


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"detail": "there is no such memory"}', "there is no such memory"),
        (b'{"error": 1}', '{"error": 1}'),
        (b'{"detail": [{}]}', '{"detail": [{}]}'),
        (b"Invalid Host header", "Invalid Host header"),
        (b"[1]", "[1]"),
        (b"\xff" * 1000, "\ufffd" * SHOWN_CHARS),
        (b"", ""),
    ],
)
def test_it_is_the_apis_own_text_or_the_beginning_of_what_came(content: bytes, line: str) -> None:
    assert detail_of(content) == line
