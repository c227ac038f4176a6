"""Parses a model's answer as a summary, however it is wrapped, and defines the requested response format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from schemas.summaries import MOST_TOPICS, TITLE_CHARS, Summary, Topic
from streams.summaries.quoted_day import QuotedDay

if TYPE_CHECKING:
    from openai.types.shared_params import ResponseFormatJSONSchema

#: A longer text is not a sentence any more; it is cut here.
ITEM_CHARS = 500
#: Limit for the braces in an answer at which an object is tried.
MOST_BRACES = 100
#: Limit for the mistakes reported to the model.
_TOLD = 3

_SECTIONS = tuple(Summary.model_fields)
_THINKING = re.compile(r"\A.*</think>", re.DOTALL)
_SHORT_ID = re.compile(r"\W*[mM]?(\d{1,6})\W*", re.ASCII)

ItemT = TypeVar("ItemT", bound=BaseModel)


def response_format() -> ResponseFormatJSONSchema:
    """The summary's JSON Schema, as strict as services require: every key is required, and no other is allowed."""
    schema = _strict(Summary.model_json_schema())
    return {"type": "json_schema", "json_schema": {"name": "summary", "strict": True, "schema": schema}}


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = {key: value for key, value in schema.items() if key not in ("title", "default")}
    for key in ("$defs", "properties"):
        if key in strict:
            strict[key] = {name: _strict(one) for name, one in strict[key].items()}
    if "items" in strict:
        strict["items"] = _strict(strict["items"])
    if "properties" in strict:
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict


def summary_in(answer: str, day: QuotedDay) -> Summary:
    """Return the summary in an answer, with the messages' own ids.

    Items that name no shown message are left out, and topics beyond `MOST_TOPICS`. Raises ValueError for an answer of
    another form. Its text describes the error for the model, without quoting the answer.
    """
    try:
        read = Summary.model_validate(_object_in(answer))
    except ValidationError as exc:
        mistakes = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in exc.errors()[:_TOLD]]
        raise ValueError("; ".join(mistakes)) from None
    summary = Summary(
        topics=_sourced(read.topics, day)[:MOST_TOPICS],
        preferences=_sourced(read.preferences, day),
        decisions=_sourced(read.decisions, day),
        todos=_sourced(read.todos, day),
        problems=_sourced(read.problems, day),
        insights=_sourced(read.insights, day),
    )
    if not any(getattr(summary, name) for name in _SECTIONS) and any(getattr(read, name) for name in _SECTIONS):
        raise ValueError("no item lists the id of a message")
    return summary


def _object_in(answer: str) -> dict[str, Any]:
    """The first JSON object with a section in it: after thoughts and prefaces, in fences or in other objects."""
    text = _THINKING.sub("", answer, count=1)
    decoder = json.JSONDecoder(object_pairs_hook=_tidied)
    for start in _braces(text):
        try:
            found, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(found, dict) and any(isinstance(found.get(name), list) for name in _SECTIONS):
            return found
    raise ValueError(f"there is no JSON object with {', '.join(_SECTIONS)}")


def _tidied(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Drop nulls, and make `sources` a list of texts; pydantic checks the rest."""
    found = {key: value for key, value in dict(pairs).items() if value is not None}
    if "sources" in found:
        listed = found["sources"]
        found["sources"] = [str(one) for one in (listed if isinstance(listed, list) else [listed])]
    return found


def _braces(text: str) -> Iterator[int]:
    start = -1
    for _ in range(MOST_BRACES):
        start = text.find("{", start + 1)
        if start < 0:
            return
        yield start


def _sourced(items: Iterable[ItemT], day: QuotedDay) -> tuple[ItemT, ...]:
    """Keep the items that name shown messages and have a text, each text on one line."""
    kept = []
    for item in items:
        fields = {name: _line(value) if isinstance(value, str) else value for name, value in item}
        shown = list(dict.fromkeys(_shown(fields["sources"], day)))
        if isinstance(item, Topic):
            turns = {day.turns[short] for short in shown}
            fields["turns"] = tuple(sorted(set(item.turns) & set(day.turns.values()) or turns))
            fields["title"] = _cut(fields["title"], TITLE_CHARS)
        if shown and (fields.get("title") or fields.get("text")):
            fields["sources"] = tuple(day.ids[short] for short in shown)
            kept.append(item.model_copy(update=fields))
    return tuple(kept)


def _shown(sources: Iterable[str], day: QuotedDay) -> Iterator[str]:
    """The short ids of shown messages: `m3`, `[m3]` and `3` are the same."""
    for source in sources:
        found = _SHORT_ID.fullmatch(source)
        if found and (short := f"m{int(found[1])}") in day.ids:
            yield short


def _line(text: str) -> str:
    """Return the text as one line, without line breaks and invisible characters that reverse it."""
    return _cut(" ".join("".join(char if char.isprintable() else " " for char in text).split()), ITEM_CHARS)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1].rstrip()}…"
