"""Reads the text of a chat message from each supported form of its content. All entry points use this decoder.

    "a text"                                       the text itself
    ["a text", {"type": "text", "text": "…"}]      the texts of the parts, one line for each
    [{"type": "text", "text": {"value": "…"}}]     the texts of the parts, in the form of OpenAI's assistant threads
    null                                           no text, for instance in a message that has only tool calls

An assistant's thoughts before its answer, citation marks, and lone surrogates are removed from the text. Pictures,
sounds, files and tool calls have no text. A message without any text is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from schemas.halves import without_halves

ROLES: Final = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""The role that Siltstone uses for each role name of a chat API."""

CALLS: Final = frozenset({"tool_calls", "function_call"})
"""The fields for tool calls. A message that has one of them may lack the field `content`."""

NOTHING_SAID: Final = "content: has no words (null, white space, only thoughts, or parts without text)"

_UNKNOWN_SHAPE: Final = "must be a text, a list of parts with text, or null"
_THOUGHT_PARTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})
_THOUGHTS: Final = ("think", "thinking", "thought", "reasoning", "analysis")
#: Marks of OpenAI's harmony format. Some servers return an answer in this format without decoding it.
_CHANNEL, _MESSAGE, _FINAL = "<|channel|>", "<|message|>", "<|channel|>final<|message|>"
_ENDS: Final = ("<|return|>", "<|end|>", "<|call|>", "<|start|>")
#: ChatGPT's citation marks: private-use characters that enclose the kind of the mark and its content.
_CITED: Final = re.compile("\ue200([^\ue200-\ue206]*)\ue202([^\ue200\ue201]*)\ue201")
_LEFT_OF_MARKS: Final = re.compile("[\ue200-\ue206]")
#: Citation marks of assistants that search files: 【4:0†source】.
_SOURCE: Final = re.compile(r"【[\d:]{1,20}†[^【】\n]{0,200}】")


def words_of(content: object, role: str) -> str:
    """Return the text of a message's content, or an empty text if the content has none.

    Raises `ValueError` if the form of the content is unknown.
    """
    if isinstance(content, str):
        return said(content, role)
    if content is None:
        return ""
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list):
        raise ValueError(_UNKNOWN_SHAPE)  # noqa: TRY004 - reported like any other fault of a field
    texts = [_text_of(part) for part in parts]
    words = [text for text in (said(text, role).strip() for text in texts if text) if text]
    if not words and None in texts:
        raise ValueError(_UNKNOWN_SHAPE)
    return "\n".join(words)


def _text_of(part: object) -> str | None:
    """Return the text of one part of a content. It is empty if the part has no text, or has a model's thoughts.

    Return None if `part` does not have the form of a part.
    """
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    kind, text = part.get("type"), part.get("text")
    if (isinstance(kind, str) and kind in _THOUGHT_PARTS) or part.get("thought") is True:
        return ""
    if isinstance(text, Mapping):
        text = text.get("value")
        return text if isinstance(text, str) else None
    if text is None:
        return "" if "text" in part or isinstance(kind, str) else None
    return text if isinstance(text, str) else None


def said(text: str, role: str) -> str:
    """Return the text without citation marks and lone surrogates, and without thoughts if `role` is `assistant`."""
    if not text.isascii():
        text = without_halves(text)
        if "\ue200" in text:
            text = _LEFT_OF_MARKS.sub("", _CITED.sub(_name_of, text))
        if "†" in text:
            text = _SOURCE.sub("", text)
    return _after_thoughts(text) if role == "assistant" else text


def _name_of(mark: re.Match[str]) -> str:
    """Return the text that replaces a citation mark: `Paris` for the mark of an entity, `["city", "Paris", …]`.

    ChatGPT writes this mark in place of the name, so without the replacement the sentence would lack the name. All
    other marks are replaced by an empty text.
    """
    if mark[1] != "entity":
        return ""
    try:
        fields: Any = orjson.loads(mark[2])
    except orjson.JSONDecodeError:
        return ""
    return fields[1] if isinstance(fields, list) and len(fields) > 1 and isinstance(fields[1], str) else ""


def _after_thoughts(text: str) -> str:
    """Return a model's answer without the blocks of thoughts before it.

    Return an empty text if a block of thoughts has no end tag.
    """
    begun = text.lstrip()
    while begun.startswith("<"):
        if begun.startswith((_CHANNEL, "<|start|>")):
            text = begun = _final_channel(begun)
            continue
        tag = next((tag for tag in _THOUGHTS if begun[: len(tag) + 2].lower() == f"<{tag}>"), None)
        if tag is None:
            break
        end = re.search(f"</{tag}>", begun, re.IGNORECASE)
        text = begun = begun[end.end() :].lstrip() if end else ""
    return text


def _final_channel(text: str) -> str:
    """Return the text in the final channel of an answer in OpenAI's harmony format.

    If the answer names no channel, return the text after its header. Return an empty text if it has neither.
    """
    _, found, answer = text.rpartition(_FINAL)
    if not found and _CHANNEL not in text:
        _, found, answer = text.partition(_MESSAGE)
    if not found:
        return ""
    for end in _ENDS:
        answer = answer.partition(end)[0]
    return answer.strip()
