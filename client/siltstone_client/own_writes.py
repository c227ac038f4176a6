"""Notes the newest write of each user and topic, so that the client's later reads can wait for this write."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from siltstone_client.answers import Accepted, AcceptedMessages, ForgottenSource, Written
from siltstone_client.calls import Call

HEADER: Final = "Siltstone-At-Least"
#: The maximum number of users whose writes are noted. If there are more, the users with the oldest writes are
#: dropped. Those writes are so old that a read finds them without a token.
MOST_USERS: Final = 10_000


class OwnWrites:
    """The newest writes of one client, by user. Several threads may share the object.

    A user's later write to a topic has a higher offset in the same partition. So a read that waits for the newest
    write sees all older writes as well.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: OrderedDict[str | None, dict[str, Written]] = OrderedDict()

    def note(self, call: Call[Any], answer: Written) -> None:
        """Note the answer to a write. If the write wrote nothing, it has no place in the log, and is not noted."""
        writes = [(kind, write) for kind, write in _writes(answer) if write.token]
        with self._lock:
            newest = self._newest.setdefault(call.user_id, {})
            self._newest.move_to_end(call.user_id)
            for kind, write in writes:
                if not _is_older(write, newest.get(kind)):
                    newest[kind] = write
            while len(self._newest) > MOST_USERS:
                self._newest.popitem(last=False)

    def headers(self, call: Call[Any]) -> Mapping[str, str]:
        """The HTTP headers that make a read wait for this client's writes for the same user.

        There are no headers for a write, or for a user without noted writes.
        """
        if not call.reads:
            return {}
        with self._lock:
            tokens = [write.token for write in self._newest.get(call.user_id, {}).values() if write.token]
        return {HEADER: ",".join(tokens)} if tokens else {}


def _writes(answer: Written) -> Iterable[tuple[str, Written]]:
    """The writes for which later reads wait, each with its topic, taken from the answer to a write.

    The answer of `forget_source` has a token, but no topic, so it is noted under a name of its own. Reads do not wait
    for a requested summary, because it may take a minute, which is too long for a read.
    """
    match answer:
        case AcceptedMessages():
            return [(one.topic, one) for one in answer.accepted]
        case Accepted():
            return [(answer.topic, answer)]
        case ForgottenSource():
            return [("forget_source", answer)]
        case _:
            return []


def _is_older(write: Written, noted: Written | None) -> bool:
    """Whether the log has the write before the noted one. False if this is unknown."""
    match write, noted:
        case Accepted(), Accepted():
            return write.partition == noted.partition and write.offset < noted.offset
        case _:
            return False
