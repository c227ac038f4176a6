"""The client for asyncio. `make client` writes the synchronous one, `memory.py`, from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

from siltstone_client import answers, calls
from siltstone_client.async_connection import AsyncConnection
from siltstone_client.calls import AtLeast, Id, State, Wait
from siltstone_client.messages import Message, Moment


class AsyncMemory(AsyncConnection):
    """A client of Siltstone's memory. `url` is the address of any worker. Tasks and threads may share a client.

    `token` is an access token (`slt_…`). If it is the token of a single user, `user_id` may be left out. `timeout` is
    the maximum seconds for each step of an attempt (connect, send, receive), plus the time that the worker was asked
    to wait. `transport` is an httpx transport, for your own proxies and certificates.

    Writes take `wait`, which is True or a number of seconds. The call then returns when the effect can be read, and
    raises `NotYetApplied` if that takes too long. Reads take `at_least`, the answer of a write, and wait for that
    write. With `read_your_writes`, each read for a user waits for this client's writes for that user, without
    `at_least`. Every failure raises a `SiltstoneError`; an error never looks like an answer.
    """

    async def add(
        self,
        messages: Message | Sequence[Message],
        *,
        user_id: str | None = None,
        session_id: str,
        wait: Wait = False,
    ) -> answers.AcceptedMessages:
        """Add one chat message, or up to a thousand, to a session of the user.

        A message is a mapping with `role` (user, assistant, system, tool), `content` (a text, or parts), and
        optionally `message_id`, `timestamp`, `name`, `emotion`, `agent_id`, `metadata`. A message without a
        `message_id` gets one (with a `timestamp`, it is derived from the content), so a retry adds nothing twice. The
        answer's `not_taken` lists the messages that were refused.
        """
        return await self._answer(calls.add(messages, user_id, session_id, wait))

    async def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        top_k: int | None = None,
        state: State | Literal["short_term"] | None = None,
        include_cold: bool = False,
        include_all: bool = False,
        include_short_term: bool = True,
        min_relevance: float = 0.0,
        filters: Sequence[str] | Mapping[str, Any] = (),
        explain: bool = False,
        touch: bool = True,
        reference_date: Moment | date | None = None,
        as_of: Moment | date | None = None,
        timezone: str | None = None,
        partial: bool = False,
        at_least: AtLeast = None,
    ) -> answers.Found:
        """Find the user's memories and recent exchanges that answer a question, most relevant first.

        A hit counts as an access, unless `touch` is false. `filters` has the form `["importance:gte:80"]` or
        `{"importance": {"gte": 80}}`. The hits are dated (`when`) from `reference_date`, by default now, in
        the user's `timezone` (`Europe/Oslo`), by default the worker's. With `as_of`, a day or a moment, the hits are
        what held then, also if it was superseded later. `partial` accepts an incomplete answer while
        the user's partition is being restored.
        """
        return await self._answer(
            calls.search(
                query,
                at_least,
                user_id=user_id,
                top_k=top_k,
                state=state,
                include_cold=include_cold,
                include_all=include_all,
                include_short_term=include_short_term,
                min_relevance=min_relevance,
                filters=dict(filters) if isinstance(filters, Mapping) else [*filters],
                explain=explain,
                touch=touch,
                reference_date=reference_date,
                as_of=as_of,
                timezone=timezone,
                partial=partial,
            )
        )

    async def context(
        self,
        *,
        user_id: str | None = None,
        session_id: str,
        query: str = "",
        limit: int | None = None,
        memories: int | None = None,
        max_tokens: int | None = None,
        touch: bool = True,
        include_short_term: bool = True,
        reference_date: Moment | date | None = None,
        as_of: Moment | date | None = None,
        timezone: str | None = None,
        profile: bool = False,
        partial: bool = False,
        at_least: AtLeast = None,
    ) -> answers.Context:
        """The session's newest exchanges and notes, matching memories, and all of them as one `prompt` for a model.

        Without a `query`, the user's last message is the query. `limit` and `memories` are maximum numbers. With
        `max_tokens` (estimated), what matches best fills the prompt, and `left_out` counts what does not fit.
        The prompt is dated from `reference_date`, by default now, in the user's `timezone`, by default the worker's.
        With `as_of`, a day or a moment, the memories are those that held then. With `profile`, the prompt begins with
        who the user is.
        """
        return await self._answer(
            calls.context(
                at_least,
                query,
                user_id=user_id,
                session_id=session_id,
                limit=limit,
                memories=memories,
                max_tokens=max_tokens,
                touch=touch,
                include_short_term=include_short_term,
                reference_date=reference_date,
                as_of=as_of,
                timezone=timezone,
                profile=profile,
                partial=partial,
            )
        )

    async def profile(
        self,
        *,
        user_id: str | None = None,
        reference_date: Moment | date | None = None,
        timezone: str | None = None,
        partial: bool = False,
        at_least: AtLeast = None,
    ) -> answers.Profile:
        """Who the user is, in at most 300 tokens, in the user's or a model's words. `reference_date` ends tasks."""
        return await self._answer(
            calls.profile(
                at_least, user_id=user_id, reference_date=reference_date, timezone=timezone, partial=partial
            )
        )

    async def exchanges(
        self, *, user_id: str | None = None, session_id: str, limit: int | None = None, at_least: AtLeast = None
    ) -> answers.Exchanges:
        """The newest exchanges of a session's short-term window, oldest first."""
        return await self._answer(calls.exchanges(session_id, at_least, user_id=user_id, limit=limit))

    async def notes(self, *, user_id: str | None = None, session_id: str, at_least: AtLeast = None) -> answers.Notes:
        """The session's short-term memories, oldest first."""
        return await self._answer(calls.notes(session_id, at_least, user_id=user_id))

    async def explain(
        self, *, user_id: str | None = None, session_id: str, limit: int | None = None, at_least: AtLeast = None
    ) -> answers.Decisions:
        """The decision on each exchange of a session, its reason, and the change that would lead to another one."""
        return await self._answer(calls.explain(session_id, at_least, user_id=user_id, limit=limit))

    async def end_session(
        self, *, user_id: str | None = None, session_id: str, timestamp: Moment | None = None, wait: Wait = False
    ) -> answers.Accepted:
        """End the session. Its exchanges that are still undecided are then promoted or dropped."""
        return await self._answer(calls.end_session(session_id, user_id, timestamp, wait))

    async def remember(
        self,
        text: str,
        *,
        user_id: str | None = None,
        kind: Literal["long_term", "short_term", "item"] = "long_term",
        session_id: str | None = None,
        ttl_seconds: int | None = None,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        supersedes: Sequence[Id] = (),
        agent_id: str | None = None,
        message_ids: Sequence[str] = (),
        memory_id: Id | None = None,
        event_id: Id | None = None,
        timestamp: Moment | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        wait: Wait = False,
    ) -> answers.Accepted:
        """Keep a text for good. With `kind="short_term"`, keep it until its session ends, at most for `ttl_seconds`.

        With `kind="item"`, the text is a value under the key `memory_id`: it replaces the previous value and does not
        decay. The memory's id is `memory_id`, or the answer's `event_id` if no `memory_id` is given. Without
        `importance` (0-100), the worker estimates it from the text. It holds from `valid_from`, by default its
        creation, until `valid_to`.
        """
        return await self._answer(
            calls.remember(
                text,
                wait,
                event_id,
                timestamp,
                user_id=user_id,
                kind=kind,
                session_id=session_id,
                ttl_seconds=ttl_seconds,
                importance=importance,
                metadata=None if metadata is None else dict(metadata),
                supersedes=supersedes,
                agent_id=agent_id,
                message_ids=[*message_ids],
                memory_id=memory_id,
                valid_from=valid_from,
                valid_to=valid_to,
            )
        )

    async def get(
        self,
        memory_id: Id,
        *,
        user_id: str | None = None,
        touch: bool = True,
        partial: bool = False,
        at_least: AtLeast = None,
    ) -> answers.OneMemory:
        """Get one memory. This is an access, unless `touch` is false. A near-copy's id returns the merged memory."""
        return await self._answer(calls.get(memory_id, at_least, user_id=user_id, touch=touch, partial=partial))

    async def update(
        self,
        memory_id: Id,
        *,
        user_id: str | None = None,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        wait: Wait = False,
    ) -> answers.Accepted:
        """Change a memory's text, metadata, or the time in which it holds.

        New metadata is merged into the old metadata; None removes a key. With `{"still_holds": True}`, it
        holds again, and only a command can supersede it.
        """
        return await self._answer(
            calls.update(
                memory_id,
                wait,
                user_id=user_id,
                text=text,
                metadata=None if metadata is None else dict(metadata),
                valid_from=valid_from,
                valid_to=valid_to,
            )
        )

    async def forget(self, memory_id: Id, *, user_id: str | None = None, wait: Wait = False) -> answers.Accepted:
        """Forget a memory for good, even if it is pinned."""
        return await self._answer(calls.forget(memory_id, user_id, wait))

    async def forget_user(self, *, user_id: str, wait: Wait = False) -> answers.Accepted:
        """Forget everything about the user up to now: memories, archive, daily summaries, windows."""
        return await self._answer(calls.forget_user(user_id, wait))

    async def forget_source(
        self, source: str, *, user_id: str | None = None, wait: Wait = False
    ) -> answers.ForgottenSource:
        """Forget all content to which a source (`tool:search`) contributed. Raises `NotFound` if there is none."""
        return await self._answer(calls.forget_source(source, user_id, wait))

    async def history(
        self, memory_id: Id, *, user_id: str | None = None, at_least: AtLeast = None
    ) -> answers.History:
        """All changes of a memory since its creation."""
        return await self._answer(calls.history(memory_id, user_id, at_least))

    async def pin(self, memory_id: Id, *, user_id: str | None = None, wait: Wait = False) -> answers.Accepted:
        """Pin a memory, so that it does not decay."""
        return await self._answer(calls.pin(memory_id, user_id, wait, pinned=True))

    async def unpin(self, memory_id: Id, *, user_id: str | None = None, wait: Wait = False) -> answers.Accepted:
        """Unpin a memory, so that it decays again."""
        return await self._answer(calls.pin(memory_id, user_id, wait, pinned=False))

    async def link(
        self,
        source_id: Id,
        target_id: Id,
        *,
        user_id: str | None = None,
        kind: str = "related",
        weight: float = 1.0,
        wait: Wait = False,
    ) -> answers.Accepted:
        """Link two memories. Repeat the call to change the `weight` (0-1)."""
        return await self._answer(calls.link(source_id, target_id, wait, user_id=user_id, kind=kind, weight=weight))

    async def unlink(
        self, source_id: Id, target_id: Id, *, user_id: str | None = None, kind: str = "related", wait: Wait = False
    ) -> answers.Accepted:
        """Remove a link."""
        return await self._answer(calls.unlink(source_id, target_id, wait, user_id=user_id, kind=kind))

    async def links(self, memory_id: Id, *, user_id: str | None = None, at_least: AtLeast = None) -> answers.Links:
        """The memory's links, in both directions."""
        return await self._answer(calls.links(memory_id, user_id, at_least))

    async def related(
        self,
        memory_id: Id,
        *,
        user_id: str | None = None,
        limit: int = 10,
        min_similarity: float | None = None,
        at_least: AtLeast = None,
    ) -> answers.Related:
        """Linked memories, and those with a cosine of at least `min_similarity` (None: the embedding model's own)."""
        return await self._answer(
            calls.related(memory_id, at_least, user_id=user_id, limit=limit, min_similarity=min_similarity)
        )

    async def supersede(
        self, memory_id: Id, *, by: Id, user_id: str | None = None, wait: Wait = False
    ) -> answers.Accepted:
        """Replace a memory by a newer one (`by`). The older memory is kept, but default results leave it out."""
        return await self._answer(calls.supersede(memory_id, by, user_id, wait))

    async def summaries(
        self,
        *,
        user_id: str | None = None,
        first: date | None = None,
        last: date | None = None,
        at_least: AtLeast = None,
    ) -> answers.Summaries:
        """The user's days that have a summary, in order."""
        return await self._answer(calls.summaries(user_id, first, last, at_least))

    async def summary(self, day: date, *, user_id: str | None = None, at_least: AtLeast = None) -> answers.DaySummary:
        """The summary of a day, as Markdown."""
        return await self._answer(calls.summary(day, user_id, at_least))

    async def summarize(
        self, *, user_id: str | None = None, day: date | None = None, run_id: Id | None = None, wait: Wait = False
    ) -> answers.RequestedSummary:
        """Request the summary of a day; by default, of the day of the user's newest message."""
        return await self._answer(calls.summarize(user_id, day, run_id, wait))

    async def stats(self, *, days: int | None = None, at: Moment | None = None) -> answers.States:
        """Count the memories of all users of the answering worker, by state. `days` adds counts of the last days."""
        return await self._answer(calls.stats(days, at))

    async def wait_for(self, at_least: AtLeast, *, seconds: float = calls.WAIT_SECONDS) -> None:
        """Wait until one user's writes can be read. Raises `Unavailable` if that takes longer than `seconds`."""
        await self._answer(calls.wait_for(at_least, seconds))

    async def list(
        self,
        *,
        user_id: str | None = None,
        filters: Sequence[str] = (),
        limit: int = 50,
        after: Id | None = None,
        state: State | None = None,
        include_cold: bool = False,
        include_all: bool = False,
        as_of: Moment | date | None = None,
        timezone: str | None = None,
        partial: bool = False,
        at_least: AtLeast = None,
    ) -> answers.Memories:
        """A page of the user's memories, oldest first. It has active memories, unless another state is requested.

        Get the next page with `after=page.next`, until `page.next` is None. A memory must match all `filters`, such
        as `["importance:gte:80"]`. With `as_of`, a day or a moment, the page has what held then, in all states.
        """
        return await self._answer(
            calls.page(
                at_least,
                filters,
                after,
                user_id=user_id,
                limit=limit,
                state=state,
                include_cold=include_cold,
                include_all=include_all,
                as_of=as_of,
                timezone=timezone,
                partial=partial,
            )
        )
