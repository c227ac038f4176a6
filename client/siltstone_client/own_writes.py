"""Notes the newest write of each user and topic, so that the client's later reads can wait for this write."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from siltstone_client.answers import Accepted, AcceptedMessages, Written
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
        self._newest: OrderedDict[str | None, dict[str, Accepted]] = OrderedDict()

    def note(self, call: Call[Any], answer: Written) -> None:
        """Note the answer to a write. If the write wrote nothing, it has no place in the log, and is not noted."""
        places = [place for place in _places(answer) if place.token]
        with self._lock:
            newest = self._newest.setdefault(call.user_id, {})
            self._newest.move_to_end(call.user_id)
            for place in places:
                before = newest.get(place.topic)
                if before is None or before.partition != place.partition or before.offset < place.offset:
                    newest[place.topic] = place
            while len(self._newest) > MOST_USERS:
                self._newest.popitem(last=False)

    def headers(self, call: Call[Any]) -> Mapping[str, str]:
        """The HTTP headers that make a read wait for this client's writes for the same user.

        There are no headers for a write, or for a user without noted writes.
        """
        if not call.reads:
            return {}
        with self._lock:
            places = list(self._newest.get(call.user_id, {}).values())
        tokens = [place.token for place in places if place.token]
        return {HEADER: ",".join(tokens)} if tokens else {}


def _places(answer: Written) -> Iterable[Accepted]:
    """The places in the log, taken from the answer to a write, for which later reads wait.

    Reads do not wait for a requested summary, because it may take a minute, which is too long for a read.
    """
    match answer:
        case AcceptedMessages():
            return answer.accepted
        case Accepted():
            return [answer]
        case _:
            return []
