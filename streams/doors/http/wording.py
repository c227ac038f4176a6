"""Texts of validation errors. They repeat nothing of the request, not even the name of an unknown field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Our texts for errors whose pydantic text quotes the input. All other pydantic texts only name the allowed values.
_IN_OTHER_WORDS: Final = {
    "uuid_parsing": "must be a UUID",
    "extra_forbidden": "has an unknown field",
    "union_tag_invalid": "is none of the accepted kinds",
    "json_invalid": "is not JSON",
}
#: Types of errors whose location ends with a name from the request. The text omits this name.
_NAMED_BY_THE_REQUEST: Final = frozenset({"extra_forbidden"})
#: Types of errors that are only a consequence of another error. They are not reported.
_FOLLOWING: Final = frozenset({"default_factory_not_called"})
#: The maximum number of errors in one text. People would not read a longer text.
_MOST: Final = 8


def complaints(errors: Iterable[Mapping[str, Any]]) -> str:
    """Return pydantic's errors as one text, such as `query: field required; top_k: should be less than …`.

    >>> complaints([{"loc": ("body", "text"), "type": "missing", "msg": "Field required"}])
    'text: field required'
    """
    return at_most(dict.fromkeys(_complaint(error) for error in errors if error["type"] not in _FOLLOWING))


def at_most(said: Iterable[str]) -> str:
    """Join the first `_MOST` texts into one text, and add the number of further texts."""
    first = list(said)
    more = [f"and {len(first) - _MOST} more"] if len(first) > _MOST else []
    return "; ".join(first[:_MOST] + more)


def _complaint(error: Mapping[str, Any]) -> str:
    kind, (source, *where) = error["type"], error["loc"]
    if kind in _NAMED_BY_THE_REQUEST:
        where = where[:-1]
    message = _IN_OTHER_WORDS.get(kind) or error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{'.'.join(map(str, where)) or source}: {message[0].lower()}{message[1:]}"
