"""Which own writes a read has to see: the newest of each user and topic."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from siltstone_client.answers import Accepted, AcceptedMessages, Written
from siltstone_client.calls import Call

HEADER: Final = "Siltstone-At-Least"
#: Of so many users, those who wrote last: who wrote long ago can be read without.
MOST_USERS: Final = 10_000


class OwnWrites:
    """The tokens of a client's writes, by user. Threads may share it.

    A later write of one user lies further on in the same partition of its topic, so the newest stands for all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: OrderedDict[str | None, dict[str, Accepted]] = OrderedDict()

    def note(self, call: Call[Any], answer: Written) -> None:
        """What a write of the call was answered with. A write that wrote nothing has no place."""
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
        """With what a read is to be sent; nothing for a write, and for who has not written."""
        if not call.reads:
            return {}
        with self._lock:
            places = list(self._newest.get(call.user_id, {}).values())
        tokens = [place.token for place in places if place.token]
        return {HEADER: ",".join(tokens)} if tokens else {}


def _places(answer: Written) -> Iterable[Accepted]:
    """None of a summary that was asked for: it may take a minute, and no read is to wait for that."""
    match answer:
        case AcceptedMessages():
            return answer.accepted
        case Accepted():
            return [answer]
        case _:
            return []
