"""A LangGraph store that keeps its values in Siltstone, with exact key–value semantics and semantic search.

    store = SiltstoneStore(Memory("http://127.0.0.1:8000"), user_id="my-app")
    graph = builder.compile(store=store)

The store's values are memories of kind `item`. `user_id` is the Siltstone user who owns all values, or a function
that returns the user of a namespace:

    SiltstoneStore(memory, user_id=lambda namespace: namespace[1])  # ("memories", "ann", …) belongs to "ann"
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
)

from siltstone_client.answers import Hit, StoredMemory, Written
from siltstone_client.calls import LONGEST_WAIT
from siltstone_client.errors import NotFound
from siltstone_client.memory import Memory
from siltstone_client.said import MOST_BYTES, MOST_QUERY_CHARS

Namespace: TypeAlias = tuple[str, ...]

_KEYS: Final = uuid.UUID("6a0ef2e4-6d0c-5a4e-8d36-0d1f7b1f5a52")
#: The API's limits: the maximum number of results of a search, and of memories on a page.
MOST_FOUND: Final = 1000


class SiltstoneStore(BaseStore):
    """A LangGraph store in Siltstone. When `put` has replaced a value and returns, all readers see the new value.

    `index` has the paths to the texts of a value that a search uses, if `put` names no paths. By default, a search
    uses the whole value. If a value was put with `index=False`, a search uses its key. A value is JSON of at most 30
    KiB. Times are by the worker's clock. `created_at` is the time of the newest put, as in LangGraph's
    `InMemoryStore`. A failed call raises `SiltstoneError`.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str | Callable[[Namespace], str],
        index: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self._memory, self._index, self.ttl_config = memory, index, ttl
        self._user_of: Callable[[Namespace], str] = user_id if callable(user_id) else lambda _: user_id

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations. Reads see the values from before the batch.

        If the batch puts several values under one key, the last value wins.
        """
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            match op:
                case GetOp():
                    results.append(self._get(op))
                case SearchOp():
                    results.append(self._search(op))
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    puts[op.namespace, op.key] = op
                    results.append(None)
                case _:
                    raise ValueError(f"Unknown operation type: {type(op)}")
        self._write(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations as `batch` does, on a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        user, key = self._user_of(op.namespace), _id(op.namespace, op.key)
        try:
            found = self._memory.get(key, user_id=user, touch=False)
            if op.refresh_ttl and _expires(found):
                found = self._memory.get(key, user_id=user)
        except NotFound:
            return None
        return Item(**_fields(found))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        user = self._user_of(op.namespace_prefix)
        filters = [*_under(op.namespace_prefix)]
        if op.filter:
            filters.append(f"metadata.value:matches:{json.dumps(op.filter)}")
        last = op.offset + op.limit
        found: Sequence[StoredMemory | Hit]
        if op.query and op.query.strip():
            if last > MOST_FOUND:
                raise ValueError(f"offset and limit: must be at most {MOST_FOUND} together in a search with a query")
            found = self._ranked(op.query, user, filters, last)[op.offset :]
        else:
            found = [one for one, _ in zip(self._listed(user, filters), range(last), strict=False)][op.offset :]
        if op.refresh_ttl:
            for one in filter(_expires, found):
                self._refresh(one.id, user)
        return [SearchItem(**_fields(one), score=one.relevance if isinstance(one, Hit) else None) for one in found]

    def _ranked(self, query: str, user: str, filters: list[str], last: int) -> list[Hit]:
        if last < 1:
            return []
        asked = query[:MOST_QUERY_CHARS]
        answer = self._memory.search(
            asked, user_id=user, top_k=last, filters=filters, touch=False, include_short_term=False
        )
        return answer.results

    def _refresh(self, key: uuid.UUID, user: str) -> None:
        try:
            self._memory.get(key, user_id=user)
        except NotFound:  # the item was removed after the search
            return

    def _listed(self, user: str, filters: Sequence[str]) -> Iterator[StoredMemory]:
        """The memories that match the filters, oldest first, fetched page by page."""
        after: uuid.UUID | None = None
        while True:
            page = self._memory.list(user_id=user, filters=filters, limit=MOST_FOUND, after=after)
            yield from page.memories
            if (after := page.next) is None:
                return

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        prefix = _fixed(next((one.path for one in conditions if one.match_type == "prefix"), ()))
        all_there = {
            _namespace(one.metadata["namespace"]) for one in self._listed(self._user_of(prefix), _under(prefix))
        }
        there = (one for one in all_there if all(_matches(condition, one) for condition in conditions))
        cut = sorted({one if op.max_depth is None else one[: op.max_depth] for one in there})
        return cut[op.offset : op.offset + op.limit]

    def _write(self, puts: Sequence[PutOp]) -> None:
        """Write or remove the values, and wait until all these changes can be read.

        It is enough to wait for the last write of each user, because a user's writes become readable in order.
        """
        last: dict[str, Written] = {}
        for op in puts:
            user, key = self._user_of(op.namespace), _id(op.namespace, op.key)
            if op.value is None:
                last[user] = self._memory.forget(key, user_id=user)
                continue
            last[user] = self._memory.remember(
                self._text(op),
                user_id=user,
                kind="item",
                memory_id=key,
                ttl_seconds=None if op.ttl is None else max(1, math.ceil(op.ttl * 60)),
                metadata={"namespace": _escaped(op.namespace), "key": op.key, "value": dict(op.value)},
            )
        for written in last.values():
            self._memory.wait_for(written, seconds=LONGEST_WAIT)

    def _text(self, op: PutOp) -> str:
        """The text that a search uses for a value: the texts under its paths, or the key if there is no text."""
        paths = self._index if op.index is None else op.index or ()
        texts = [text for path in paths for text in get_text_at_path(op.value, path)]
        text = "\n".join(texts).strip() or op.key or "-"
        return text.encode()[:MOST_BYTES].decode(errors="ignore")


def _id(namespace: Namespace, key: str) -> uuid.UUID:
    return uuid.uuid5(_KEYS, json.dumps([namespace, key]))


def _escaped(namespace: Namespace) -> str:
    """A namespace as one text: its labels, each escaped and followed by a slash.

    The text of a namespace is thus a prefix of the texts of all namespaces below it.
    """
    return "".join(f"{quote(label, safe='')}/" for label in namespace)


def _namespace(escaped: str) -> Namespace:
    return tuple(unquote(label) for label in escaped.split("/")[:-1])


def _under(prefix: Namespace) -> list[str]:
    return ["kind:eq:item", f"metadata.namespace:startswith:{json.dumps(_escaped(prefix))}"]


def _fixed(path: Namespace) -> Namespace:
    """The labels of a path before the first wildcard `*`."""
    return path[: path.index("*")] if "*" in path else path


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _fields(found: StoredMemory | Hit) -> dict[str, Any]:
    kept = found.metadata
    return {
        "namespace": _namespace(kept["namespace"]),
        "key": kept["key"],
        "value": kept["value"],
        "created_at": found.created_at,
        "updated_at": found.created_at,
    }


def _expires(found: StoredMemory | Hit) -> bool:
    return "stored" in found.metadata
