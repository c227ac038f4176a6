"""Builds the HTTP request of each client method, as a value. The synchronous and the asynchronous client share it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from siltstone_client import answers
from siltstone_client.answers import Answer, Written
from siltstone_client.messages import Message, Moment, moment, record_of
from siltstone_client.retrying import Again

T = TypeVar("T", bound=Answer)

Id: TypeAlias = uuid.UUID | str
State: TypeAlias = Literal["active", "cold", "deprecated"]
#: Seconds that a write waits for its effect, at most 60. True means 5 seconds. False means that the write does not
#: wait.
Wait: TypeAlias = bool | float
#: The writes that a read waits for: answers to writes, or their tokens.
AtLeast: TypeAlias = Written | str | Sequence[Written | str] | None

#: Seconds that a write with `wait=True` waits for its effect, and that a read with `at_least` waits for the writes.
WAIT_SECONDS = 5.0
#: The maximum of `wait`, and of the `seconds` of `wait_for`.
LONGEST_WAIT = 60.0


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One HTTP request. `waits` is the number of seconds that the worker may wait for writes before it answers.

    If `must_apply` is true, the call fails if the write's effect cannot be read by then. `user_id` is None if the
    token identifies the user. If `reads` is true, the request can wait for earlier writes of that user.
    """

    method: str
    path: str
    answer: type[T]
    params: Mapping[str, Any]
    body: Any = None
    again: Again = Again.WHENEVER
    waits: float = 0.0
    must_apply: bool = False
    user_id: str | None = None
    reads: bool = False


def _read(path: str, answer: type[T], params: Mapping[str, Any], at_least: AtLeast = None) -> Call[T]:
    tokens = _tokens(at_least)
    given = {**params, "at_least": ",".join(tokens) or None}
    return Call(
        "GET",
        path,
        answer,
        _given(given),
        waits=WAIT_SECONDS if tokens else 0.0,
        user_id=params.get("user_id"),
        reads="user_id" in params,
    )


def _write(
    method: str,
    path: str,
    answer: type[T],
    wait: Wait,
    *,
    params: Mapping[str, Any] | None = None,
    body: Any = None,
    again: Again = Again.WHENEVER,
) -> Call[T]:
    user_id = _user_of(params, body)
    if wait is False:
        return Call(method, path, answer, _given(params or {}), body, again, user_id=user_id)
    seconds = WAIT_SECONDS if wait is True else float(wait)
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError(f"wait: {wait}: must be between 0 and {LONGEST_WAIT:g} seconds, True or False")
    waited = {**(params or {}), "wait": "applied", "timeout": seconds}
    return Call(method, path, answer, _given(waited), body, again, waits=seconds, must_apply=True, user_id=user_id)


def _user_of(params: Mapping[str, Any] | None, body: Any) -> str | None:
    """The user id in a request. A list of messages belongs to one user, so the first message names the user."""
    fields = body[0] if isinstance(body, list) else body or {}
    user_id: str | None = {**fields, **(params or {})}.get("user_id")
    return user_id


def add(
    messages: Message | Sequence[Message], user_id: str | None, session_id: str, wait: Wait
) -> Call[answers.AcceptedMessages]:
    given = [messages] if isinstance(messages, Mapping) else list(messages)
    if not given:
        raise ValueError("messages: must not be empty")
    records = [record_of(message, user_id, session_id) for message in given]
    return _write("POST", "/v1/messages", answers.AcceptedMessages, wait, body=records)


def search(query: str, at_least: AtLeast, **fields: Any) -> Call[answers.Found]:
    tokens = _tokens(at_least)
    return Call(
        "POST",
        "/v1/search",
        answers.Found,
        _given({"at_least": ",".join(tokens) or None}),
        _given({"query": query, **_spelt(fields)}),
        waits=WAIT_SECONDS if tokens else 0.0,
        user_id=fields["user_id"],
        reads=True,
    )


def context(at_least: AtLeast, query: str, **fields: Any) -> Call[answers.Context]:
    return _read("/v1/context", answers.Context, {"q": query, **_spelt(fields)}, at_least)


def profile(at_least: AtLeast, **fields: Any) -> Call[answers.Profile]:
    return _read("/v1/profile", answers.Profile, _spelt(fields), at_least)


def exchanges(session_id: str, at_least: AtLeast, **fields: Any) -> Call[answers.Exchanges]:
    return _read(f"{_session(session_id)}/exchanges", answers.Exchanges, fields, at_least)


def notes(session_id: str, at_least: AtLeast, **fields: Any) -> Call[answers.Notes]:
    return _read(f"{_session(session_id)}/memories", answers.Notes, fields, at_least)


def explain(session_id: str, at_least: AtLeast, **fields: Any) -> Call[answers.Decisions]:
    return _read(f"{_session(session_id)}/decisions", answers.Decisions, fields, at_least)


def end_session(session_id: str, user_id: str | None, timestamp: Moment | None, wait: Wait) -> Call[answers.Accepted]:
    """The request to end a session.

    It is sent again only if the first attempt reached no worker. Otherwise the second attempt could end a session
    that has continued.
    """
    body = {} if timestamp is None else {"timestamp": moment(timestamp)}
    path = f"{_session(session_id)}/end"
    return _write("POST", path, answers.Accepted, wait, params={"user_id": user_id}, body=body, again=Again.UNSENT)


def remember(
    text: str, wait: Wait, event_id: Id | None, timestamp: Moment | None, **fields: Any
) -> Call[answers.Accepted]:
    body = {"text": text, "event_id": _id(event_id or uuid.uuid4(), "event_id"), **fields}
    if timestamp is not None:
        body["timestamp"] = moment(timestamp)
    body |= _validity(fields)
    if body["memory_id"] is not None:
        body["memory_id"] = _id(body["memory_id"], "memory_id")
    body["supersedes"] = [_id(one, "supersedes") for one in body["supersedes"]]
    return _write("POST", "/v1/memories", answers.Accepted, wait, body=_given(body))


def get(memory_id: Id, at_least: AtLeast, **fields: Any) -> Call[answers.OneMemory]:
    return _read(_memory(memory_id), answers.OneMemory, _spelt(fields), at_least)


def page(at_least: AtLeast, filters: Sequence[str], after: Id | None, **fields: Any) -> Call[answers.Memories]:
    behind = None if after is None else _id(after, "after")
    params = {**_spelt(fields), "filter": list(filters), "after": behind}
    return _read("/v1/memories", answers.Memories, params, at_least)


def update(memory_id: Id, wait: Wait, **fields: Any) -> Call[answers.Accepted]:
    """The request to change a memory.

    It is sent again only if the first attempt reached no worker. Otherwise the second attempt could undo a later
    edit.
    """
    if all(fields[name] is None for name in ("text", "metadata", "valid_from", "valid_to")):
        raise ValueError("give text, metadata, valid_from or valid_to")
    body = _given({**fields, **_validity(fields)})
    return _write("PATCH", _memory(memory_id), answers.Accepted, wait, body=body, again=Again.UNSENT)


def forget(memory_id: Id, user_id: str | None, wait: Wait) -> Call[answers.Accepted]:
    """The request to forget a memory.

    It has its own event id, so it can be sent again without removing an item that was written between the attempts.
    """
    params = {"user_id": user_id, "event_id": str(uuid.uuid4())}
    return _write("DELETE", _memory(memory_id), answers.Accepted, wait, params=params)


def forget_user(user_id: str, wait: Wait) -> Call[answers.Accepted]:
    """The request to forget everything about a user.

    It is sent again only if the first attempt reached no worker. Otherwise the second attempt could forget later
    messages.
    """
    params = {"user_id": user_id}
    return _write("DELETE", "/v1/memories", answers.Accepted, wait, params=params, again=Again.UNSENT)


def forget_source(source: str, user_id: str | None, wait: Wait) -> Call[answers.ForgottenSource]:
    """The request to forget a source's content. An empty source is refused, because it would forget the whole user.

    The request is sent again only if the first attempt reached no worker. Otherwise the answer could be `NotFound`,
    although the first attempt has succeeded.
    """
    if not source:
        raise ValueError("source: must not be empty")
    params = {"user_id": user_id, "source": source}
    return _write("DELETE", "/v1/memories", answers.ForgottenSource, wait, params=params, again=Again.UNSENT)


def history(memory_id: Id, user_id: str | None, at_least: AtLeast) -> Call[answers.History]:
    return _read(f"{_memory(memory_id)}/history", answers.History, {"user_id": user_id}, at_least)


def pin(memory_id: Id, user_id: str | None, wait: Wait, pinned: bool) -> Call[answers.Accepted]:
    method, params = "PUT" if pinned else "DELETE", {"user_id": user_id}
    return _write(method, f"{_memory(memory_id)}/pin", answers.Accepted, wait, params=params)


def link(source_id: Id, target_id: Id, wait: Wait, **fields: Any) -> Call[answers.Accepted]:
    body = {"source_id": _id(source_id, "source_id"), "target_id": _id(target_id, "target_id"), **fields}
    return _write("POST", "/v1/links", answers.Accepted, wait, body=_given(body))


def unlink(source_id: Id, target_id: Id, wait: Wait, **fields: Any) -> Call[answers.Accepted]:
    params = {"source_id": _id(source_id, "source_id"), "target_id": _id(target_id, "target_id"), **fields}
    return _write("DELETE", "/v1/links", answers.Accepted, wait, params=params)


def links(memory_id: Id, user_id: str | None, at_least: AtLeast) -> Call[answers.Links]:
    return _read(f"{_memory(memory_id)}/links", answers.Links, {"user_id": user_id}, at_least)


def related(memory_id: Id, at_least: AtLeast, **fields: Any) -> Call[answers.Related]:
    return _read(f"{_memory(memory_id)}/related", answers.Related, fields, at_least)


def supersede(memory_id: Id, by: Id, user_id: str | None, wait: Wait) -> Call[answers.Accepted]:
    body = _given({"user_id": user_id, "by": _id(by, "by")})
    return _write("POST", f"{_memory(memory_id)}/supersede", answers.Accepted, wait, body=body)


def summaries(
    user_id: str | None, first: date | None, last: date | None, at_least: AtLeast
) -> Call[answers.Summaries]:
    params = {"user_id": user_id, "from": first and first.isoformat(), "to": last and last.isoformat()}
    return _read("/v1/summaries", answers.Summaries, params, at_least)


def summary(day: date, user_id: str | None, at_least: AtLeast) -> Call[answers.DaySummary]:
    return _read(f"/v1/summaries/{day.isoformat()}", answers.DaySummary, {"user_id": user_id}, at_least)


def summarize(user_id: str | None, day: date | None, run_id: Id | None, wait: Wait) -> Call[answers.RequestedSummary]:
    """The request for a day's summary. With a day, it may be sent again, because it has its own `run_id`.

    Without a day, it is sent again only if the first attempt reached no worker, because a different day may be the
    newest one by then.
    """
    body = {"user_id": user_id, "date": day and day.isoformat(), "run_id": _id(run_id or uuid.uuid4(), "run_id")}
    again = Again.UNSENT if day is None else Again.WHENEVER
    return _write("POST", "/v1/summaries", answers.RequestedSummary, wait, body=_given(body), again=again)


def stats(days: int | None, at: Moment | None) -> Call[answers.States]:
    return _read("/v1/stats/states", answers.States, {"days": days, "at": None if at is None else moment(at)})


def wait_for(at_least: AtLeast, seconds: float) -> Call[answers.Reached]:
    tokens = _tokens(at_least)
    if not tokens:
        raise ValueError("at_least: give a token, or the answer to a write")
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError(f"seconds: {seconds}: must be between 0 and {LONGEST_WAIT:g}")
    params = {"at_least": ",".join(tokens), "timeout": seconds}
    return Call("GET", "/v1/applied", answers.Reached, params, waits=seconds)


def _tokens(at_least: AtLeast) -> list[str]:
    """The consistency tokens of the given writes. A write that wrote nothing has no token."""
    given = [at_least] if isinstance(at_least, Written | str) else at_least or ()
    return [token for one in given if (token := one.token if isinstance(one, Written) else one)]


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not None. For a missing field, the worker uses its own default."""
    return {name: value for name, value in fields.items() if value is not None}


def _spelt(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request, with `partial` and days as the API expects them."""
    days = {name: fields.get(name) for name in ("reference_date", "as_of")}
    shown = {name: day.isoformat() if isinstance(day, date) else day for name, day in days.items()}
    return {**fields, **shown, "partial": "allow" if fields["partial"] else None}


def _validity(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The time in which a memory holds, as the API expects it."""
    given = {name: fields[name] for name in ("valid_from", "valid_to")}
    return {name: None if at is None else moment(at) for name, at in given.items()}


def _id(given: Id, name: str) -> str:
    """The id as text. Raises `ValueError` if it is not a UUID, because other text could lead to another URL path."""
    try:
        return str(given if isinstance(given, uuid.UUID) else uuid.UUID(given))
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"{name}: must be a UUID") from None


def _memory(memory_id: Id) -> str:
    return f"/v1/memories/{_id(memory_id, 'memory_id')}"


def _session(session_id: str) -> str:
    """The URL path of a session, whose id may be any text. Dots are escaped: a segment `..` would change the path."""
    if not session_id:
        raise ValueError("session_id: must not be empty")
    return f"/v1/sessions/{quote(session_id, safe='').replace('.', '%2E')}"
