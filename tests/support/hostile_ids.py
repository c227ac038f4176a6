"""Ids that mean something else to whoever reads them as an address, a pattern, a path or a line."""

from __future__ import annotations

HOSTILE = (
    "ann@example.com", "ann%40example.com", "a%2Fb", "a%252Fb", "a/b", "x/../../y", "..", ".", "./a", "a//b", "/",
    "%", "%25", "%zz", "?", "a?b=c", "#", "a#b", "a&b=c", "a+b", "a b", " ", "a;b", "\\",
    "\"", "<>", "{}", "\x00", "\n", "é", "用户", "😀", "\u202eann", "مريم", "x" * 256, "%" * 256,
)  # fmt: skip
