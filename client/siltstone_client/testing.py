"""An in-memory Siltstone, for tests of programs that use the client: no worker, no broker, no model.

>>> from siltstone_client.testing import InMemorySiltstone
>>> memory = InMemorySiltstone().memory()
>>> _ = memory.add({"role": "user", "content": "I live in Oslo"}, user_id="ann", session_id="s", wait=True)
>>> memory.search("Who lives in Oslo?", user_id="ann").results[0].memory
'I live in Oslo'

It answers each call of `Memory` and `AsyncMemory` with the types, ids and errors of a worker. It differs from a
worker: relevance is the share of common words; nothing decays; every exchange becomes a memory when its session ends;
a profile has pinned memories only; a day's summary is a list of the user's messages; `max_tokens` leaves out memories
only; there are no access tokens, sources and filters.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from siltstone_client.async_memory import AsyncMemory
from siltstone_client.in_memory import (
    IMPORTANCE,
    WINDOW,
    Held,
    Link,
    Said,
    Session,
    User,
    iso,
    relevance,
    shown_context,
    shown_decision,
    shown_exchange,
    shown_note,
    shown_profile,
    shown_relation,
    text_of,
)
from siltstone_client.in_memory_transport import Answered, InMemoryTransport, Refusal
from siltstone_client.memory import Memory

URL: Final = "http://in-memory.siltstone"
_TOP_K: Final = 10
_CONTEXT_TURNS: Final = 10
_CONTEXT_MEMORIES: Final = 3
_ROLES: Final = {"developer": "system", "function": "tool"}


class InMemorySiltstone(InMemoryTransport):
    """An httpx transport that answers like a worker and keeps all data in memory. `now` returns the current time."""

    def memory(self, **options: Any) -> Memory:
        """A client of this in-memory Siltstone, with the options of `Memory`."""
        return Memory(URL, transport=self, **options)

    def async_memory(self, **options: Any) -> AsyncMemory:
        """An asynchronous client of this in-memory Siltstone, with the options of `AsyncMemory`."""
        return AsyncMemory(URL, transport=self, **options)

    # conversations

    def _add(self, fields: Any) -> Answered:
        accepted, not_taken = [], []
        messages = fields.get("messages", [fields])
        for index, message in enumerate(messages):
            try:
                accepted.append(self._said(message))
            except Refusal as exc:
                not_taken.append({"index": index, "kind": "invalid_fields", "detail": exc.detail})
        if not accepted:
            raise Refusal(422, "; ".join(str(one["detail"]) for one in not_taken))
        token = accepted[-1]["token"]
        applied = True if "wait" in fields else None
        return 202, {"accepted": accepted, "not_taken": not_taken, "token": token, "applied": applied}

    def _said(self, message: Mapping[str, Any]) -> dict[str, Any]:
        role, content = message.get("role"), text_of(message.get("content"))
        if role not in ("user", "assistant", "system", "tool", *_ROLES):
            raise Refusal(422, "role: must be one of user, assistant, system, tool")
        if not content.strip():
            raise Refusal(422, "content: it has no words")
        user, session_id = self._user(message), message["session_id"]
        session = user.sessions.setdefault(session_id, Session(session_id))
        at = self._moment(message.get("timestamp") or message.get("created_at"))
        identity = str(message.get("message_id") or uuid.uuid5(uuid.NAMESPACE_URL, f"{session_id} {at} {content}"))
        if all(identity != one.message_id for one in session.said):
            name, emotion, metadata = message.get("name"), message.get("emotion"), message.get("metadata") or {}
            said = Said(identity, _ROLES.get(str(role), str(role)), content, at, name, emotion, metadata)
            session.said.append(said)
            session.ended = False
        return self._accepted(identity, "siltstone.conversations", message)

    def _end(self, fields: Any, session_id: str) -> Answered:
        user = self._user(fields)
        if (session := user.sessions.get(session_id)) is not None:
            user.end(session)
            for note, _ in list(user.notes.values()):
                if note.session_id == session_id:
                    del user.notes[note.id]
                    if note.importance >= IMPORTANCE:
                        user.keep(note)
        return 202, self._accepted(uuid.uuid4(), "siltstone.conversations", fields)

    def _window(self, user: User, session_id: str, limit: Any) -> list[list[Said]]:
        session, now = user.sessions.get(session_id), self._now()
        shown = [one for one in (session.exchanges() if session else ()) if one[-1].at + WINDOW > now]
        return shown[-int(limit or _CONTEXT_TURNS) :]

    def _exchanges(self, fields: Any, session_id: str) -> Answered:
        user = self._user(fields)
        session = user.sessions.get(session_id)
        window = self._window(user, session_id, fields.get("limit"))
        shown = [
            shown_exchange(one, session is not None and one is window[-1] and not session.ended) for one in window
        ]
        return 200, {"session_id": session_id, "user_id": user.id, "exchanges": shown}

    def _notes(self, fields: Any, session_id: str) -> Answered:
        user, now = self._user(fields), self._now()
        shown = [
            shown_note(note, until)
            for note, until in user.notes.values()
            if note.session_id == session_id and until > now
        ]
        return 200, {"session_id": session_id, "user_id": user.id, "memories": shown}

    def _decisions(self, fields: Any, session_id: str) -> Answered:
        user = self._user(fields)
        if (session := user.sessions.get(session_id)) is None:
            raise Refusal(404, f"this worker has no session {session_id} of user {user.id}: check both ids")
        exchanges = session.exchanges()
        return 200, {
            "session_id": session_id,
            "user_id": user.id,
            "policy": "all",
            "judge": "",
            "exchanges": len(exchanges),
            "promote_threshold": 10,
            "ended": session.ended,
            "decisions": [shown_decision(user, session, one) for one in exchanges],
        }

    # searches

    def _hits(self, user: User, fields: Mapping[str, Any], question: str, most: int) -> list[dict[str, Any]]:
        found = [
            (relevance(question, one.text), False, one)
            for one in user.memories.values()
            if one.held_at(self._as_of(fields)) and fields.get("state") in (None, "active")
        ]
        recent = fields.get("include_short_term", True) not in (False, "false")
        if recent and fields.get("state") in (None, "short_term"):
            found += [(relevance(question, one.text), True, one) for one in user.recent(self._now())]
        found.sort(key=lambda one: (-one[0], -one[2].created_at.timestamp()))
        return [
            {
                **one.hit(relevant, in_window, self._today(fields)),
                "explain": {"words": relevant} if fields.get("explain") else None,
            }
            for relevant, in_window, one in found
            if relevant >= float(fields.get("min_relevance") or 0)
        ][:most]

    def _search(self, fields: Any) -> Answered:
        if not fields.get("query"):
            raise Refusal(422, "query: string should have at least 1 character")
        hits = self._hits(self._user(fields), fields, fields["query"], int(fields.get("top_k") or _TOP_K))
        return 200, {"results": hits, "reference_date": str(self._today(fields)), "better_elsewhere": {}}

    def _today(self, fields: Any) -> date:
        return self._moment(fields.get("reference_date")).date()

    def _context(self, fields: Any) -> Answered:
        user, session_id = self._user(fields), fields["session_id"]
        _, window = self._exchanges(fields, session_id)
        _, notes = self._notes(fields, session_id)
        said = [message for one in window["exchanges"] for message in one["messages"]]
        asked = [message["content"] for message in said if message["role"] == "user"]
        question = fields.get("q") or (asked[-1] if asked else "")
        shown = {message["message_id"] for message in said}
        most = int(fields.get("memories", 1_000 if "max_tokens" in fields else _CONTEXT_MEMORIES))
        hits = self._hits(user, fields, question, most) if question else []
        hits = [one for one in hits if one["state"] == "active" or not shown.issuperset(one["message_ids"])]
        profile = shown_profile(user.memories.values()) if fields.get("profile") == "true" else None
        day, most_tokens = self._today(fields), fields.get("max_tokens")
        return 200, shown_context(window, notes["memories"], hits, day, most_tokens, profile)

    def _profile(self, fields: Any) -> Answered:
        user, day = self._user(fields), str(self._today(fields))
        return 200, {**shown_profile(user.memories.values()), "user_id": user.id, "reference_date": day}

    # memories

    def _remember(self, fields: Any) -> Answered:
        user, text = self._user(fields), fields.get("text", "")
        if not text.strip():
            raise Refusal(422, "text: it has no words")
        event_id = fields.get("event_id") or str(uuid.uuid4())
        importance = fields.get("importance")
        held = Held(
            uuid.UUID(str(fields.get("memory_id") or event_id)),
            text,
            "item" if fields.get("kind") == "item" else "remember",
            IMPORTANCE if importance is None else float(importance),
            self._moment(fields.get("timestamp")),
            fields.get("session_id"),
            fields.get("agent_id"),
            tuple(fields.get("message_ids") or ()),
            fields.get("metadata") or {},
            **self._validity(fields),
        )
        if fields.get("kind") == "short_term":
            if held.session_id is None:
                raise Refusal(422, "session_id: a short-term memory belongs to a session")
            seconds = int(fields.get("ttl_seconds") or WINDOW.total_seconds())
            user.notes[held.id] = held, held.created_at + timedelta(seconds=seconds)
        else:
            user.keep(held)
            for one in fields.get("supersedes") or ():
                user.supersede(uuid.UUID(one), held, held.created_at)
        return 202, self._accepted(event_id, "siltstone.long-term", fields)

    def _list(self, fields: Any) -> Answered:
        user, after = self._user(fields), fields.get("after")
        held = sorted(user.memories.values(), key=lambda one: (one.created_at, one.id))
        held = [one for one in held if one.held_at(self._as_of(fields)) and fields.get("state") in (None, "active")]
        ids = [str(one.id) for one in held]
        start = ids.index(after) + 1 if after in ids else 0
        page = held[start : start + int(fields.get("limit") or 50)]
        more = start + len(page) < len(held)
        return 200, {
            "memories": [one.shown() for one in page],
            "total": len(held),
            "next": str(page[-1].id) if page and more else None,
        }

    def _get(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        if fields.get("touch") != "false":
            user.memories[held.id] = replace(held, accesses=held.accesses + 1, accessed_at=self._now())
        return 200, held.shown()

    def _edit(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        merged = {**held.metadata, **(fields.get("metadata") or {})}
        kept = {name: value for name, value in merged.items() if value is not None}
        again = {"superseded_by": None, "valid_to": None} if kept.get("still_holds") is True else {}
        changed = {"text": fields.get("text") or held.text, "metadata": kept, **again, **self._validity(fields)}
        user.change(held.id, self._now(), "edited", **changed)
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _pin(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        user.change(held.id, self._now(), "pinned", pinned=True)
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _unpin(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        user.change(held.id, self._now(), "unpinned", pinned=False)
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _forget(self, fields: Any, memory_id: str) -> Answered:
        self._user(fields).forget(uuid.UUID(memory_id))
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _forget_all(self, fields: Any) -> Answered:
        user = self._user(fields)
        if fields.get("source"):
            raise Refusal(404, f"nothing of user {user.id} comes from {fields['source']}")
        user.forget_all()
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _history(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        events = [{"at": iso(at), "event": event, "details": more} for at, event, more in user.history[held.id]]
        return 200, {"id": memory_id, "user_id": user.id, "events": events}

    def _supersede(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        _, by = self._memory(fields, fields["by"])
        user.supersede(held.id, by, self._now())
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    # links

    def _link(self, fields: Any) -> Answered:
        user, source = self._memory(fields, fields["source_id"])
        _, target = self._memory(fields, fields["target_id"])
        made = Link(source.id, target.id, fields.get("kind", "related"), float(fields.get("weight", 1)), self._now())
        same = (made.source_id, made.target_id, made.kind)
        user.links = [one for one in user.links if (one.source_id, one.target_id, one.kind) != same] + [made]
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _unlink(self, fields: Any) -> Answered:
        user = self._user(fields)
        same = fields["source_id"], fields["target_id"], fields.get("kind", "related")
        user.links = [one for one in user.links if (str(one.source_id), str(one.target_id), one.kind) != same]
        return 202, self._accepted(uuid.uuid4(), "siltstone.long-term", fields)

    def _links(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        own = [one for one in user.links if held.id in (one.source_id, one.target_id)]
        return 200, {"id": memory_id, "links": [one.shown(held.id) for one in own]}

    def _related(self, fields: Any, memory_id: str) -> Answered:
        user, held = self._memory(fields, memory_id)
        found = []
        for one in user.links:
            if held.id in (one.source_id, one.target_id):
                other = user.memories[one.target_id if one.source_id == held.id else one.source_id]
                found.append(shown_relation(held, other, one))
        linked = {one["id"] for one in found}
        least = float(fields.get("min_similarity", 0.5))
        others = [one for one in user.memories.values() if one.id != held.id and str(one.id) not in linked]
        found += [shown_relation(held, one, None) for one in others if relevance(held.text, one.text) >= least]
        return 200, {"id": memory_id, "related": found[: int(fields.get("limit") or _TOP_K)]}

    # daily summaries, statistics, and waiting for writes

    def _summarize(self, fields: Any) -> Answered:
        user, run_id = self._user(fields), fields.get("run_id") or str(uuid.uuid4())
        said = [one for session in user.sessions.values() for one in session.said]
        day = fields.get("date") or (max(one.at for one in said) if said else self._now()).date().isoformat()
        of_day = [one for one in said if one.at.date().isoformat() == day]
        if not of_day:
            raise Refusal(404, f"the windows have no messages to or by {user.id} on {day}")
        lines = "\n".join(f"- {one.content}" for one in of_day if one.role == "user")
        user.summaries[day] = uuid.UUID(run_id), f"# {day} · {user.id}\n\n{lines}\n"
        place = self._accepted(run_id, "siltstone.summary-requests", fields)
        return 202, {**place, "run_id": run_id, "user_id": user.id, "date": day, "messages": len(of_day)}

    def _days(self, fields: Any) -> Answered:
        user = self._user(fields)
        first, last = fields.get("from") or "", fields.get("to") or "9999"
        days = [
            {"date": day, "runs": [str(run)]}
            for day, (run, _) in sorted(user.summaries.items())
            if first <= day <= last
        ]
        return 200, {"user_id": user.id, "days": days, "waiting": []}

    def _day(self, fields: Any, day: str) -> Answered:
        user = self._user(fields)
        if day not in user.summaries:
            raise Refusal(404, f"there is no summary of {day} for user {user.id}")
        run, text = user.summaries[day]
        return 200, {"user_id": user.id, "date": day, "markdown": text, "merged": None, "runs": [str(run)]}

    def _states(self, fields: Any) -> Answered:
        total = sum(len(user.memories) for user in self._users.values())
        counts = {"active": total, "cold": 0, "deprecated": 0}
        states = {state: {"count": n, "percent": 100.0 if n else 0.0} for state, n in counts.items()}
        return 200, {"at": iso(self._now()), "total": total, "states": states, "daily": []}

    def _applied(self, _: Any) -> Answered:
        return 200, {"applied": True}


InMemorySiltstone.routes = [
    (method, re.compile(path.replace("{}", "([^/]+)")), route)
    for method, path, route in (
        ("POST", "/v1/messages", InMemorySiltstone._add),
        ("POST", "/v1/sessions/{}/end", InMemorySiltstone._end),
        ("GET", "/v1/sessions/{}/exchanges", InMemorySiltstone._exchanges),
        ("GET", "/v1/sessions/{}/memories", InMemorySiltstone._notes),
        ("GET", "/v1/sessions/{}/decisions", InMemorySiltstone._decisions),
        ("POST", "/v1/search", InMemorySiltstone._search),
        ("GET", "/v1/context", InMemorySiltstone._context),
        ("GET", "/v1/profile", InMemorySiltstone._profile),
        ("POST", "/v1/memories", InMemorySiltstone._remember),
        ("GET", "/v1/memories", InMemorySiltstone._list),
        ("DELETE", "/v1/memories", InMemorySiltstone._forget_all),
        ("GET", "/v1/memories/{}", InMemorySiltstone._get),
        ("PATCH", "/v1/memories/{}", InMemorySiltstone._edit),
        ("DELETE", "/v1/memories/{}", InMemorySiltstone._forget),
        ("PUT", "/v1/memories/{}/pin", InMemorySiltstone._pin),
        ("DELETE", "/v1/memories/{}/pin", InMemorySiltstone._unpin),
        ("GET", "/v1/memories/{}/history", InMemorySiltstone._history),
        ("GET", "/v1/memories/{}/links", InMemorySiltstone._links),
        ("GET", "/v1/memories/{}/related", InMemorySiltstone._related),
        ("POST", "/v1/memories/{}/supersede", InMemorySiltstone._supersede),
        ("POST", "/v1/links", InMemorySiltstone._link),
        ("DELETE", "/v1/links", InMemorySiltstone._unlink),
        ("POST", "/v1/summaries", InMemorySiltstone._summarize),
        ("GET", "/v1/summaries", InMemorySiltstone._days),
        ("GET", "/v1/summaries/{}", InMemorySiltstone._day),
        ("GET", "/v1/stats/states", InMemorySiltstone._states),
        ("GET", "/v1/applied", InMemorySiltstone._applied),
    )
]
