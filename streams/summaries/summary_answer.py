"""Reads the summary in a model's answer, even inside other text, and defines the response format to request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from schemas.summaries import Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.quoted_day import QuotedDay

if TYPE_CHECKING:
    from openai.types.shared_params import ResponseFormatJSONSchema

#: The maximum number of `{` in an answer at which we try to read a JSON object.
MOST_BRACES = 100
#: The maximum number of mistakes in an answer that are reported to the model.
_TOLD = 3

_SECTIONS = tuple(Summary.model_fields)
_THINKING = re.compile(r"\A.*</think>", re.DOTALL)
_SHORT_ID = re.compile(r"\W*[mM]?(\d{1,6})\W*", re.ASCII)

Item = TypeVar("Item", Topic, Preference, Decision, Todo, Problem, Insight)


def response_format() -> ResponseFormatJSONSchema:
    """Return the response format for a summary: a JSON Schema in which every key is required.

    Services demand this, and that no other key is allowed.
    """
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
    """Return the summary in an answer, with the messages' own ids instead of the short ids.

    An id that is not in the prompt is left out. Raises ValueError if the answer has another form. The error's text
    tells the model what is wrong, without quoting the answer.
    """
    try:
        read = Summary.model_validate(_object_in(answer))
    except ValidationError as exc:
        mistakes = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in exc.errors()[:_TOLD]]
        raise ValueError("; ".join(mistakes)) from None
    return Summary(
        topics=_sourced(read.topics, day),
        preferences=_sourced(read.preferences, day),
        decisions=_sourced(read.decisions, day),
        todos=_sourced(read.todos, day),
        problems=_sourced(read.problems, day),
        insights=_sourced(read.insights, day),
    )


def _object_in(answer: str) -> dict[str, Any]:
    """Return the first JSON object that has a section of a summary.

    Thoughts and other text may precede the object. It may be in a code block, or in another JSON object.
    """
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
    """Return a JSON object without nulls, and with `sources` as a list of texts. pydantic checks the rest."""
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


def _sourced(items: Iterable[Item], day: QuotedDay) -> tuple[Item, ...]:
    return tuple(item.model_copy(update={"sources": tuple(_own(item.sources, day))}) for item in items)


def _own(sources: Iterable[str], day: QuotedDay) -> Iterator[str]:
    """Yield the own ids of the messages that an answer cites. `m3`, `[m3]` and `3` are read as the same short id."""
    for source in sources:
        found = _SHORT_ID.fullmatch(source)
        if found and (short := f"m{int(found[1])}") in day.ids:
            yield day.ids[short]
