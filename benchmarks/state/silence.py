"""Sessions that have gone silent: small talk that produces no memories, in windows of a day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from benchmarks.intake import SMALL_TALK
from benchmarks.load.open_loop import Record
from schemas.topics import key_of, partition_of

EXCHANGES_A_SESSION: Final = 20
MESSAGES_A_SESSION: Final = 2 * EXCHANGES_A_SESSION
#: An exchange has a row, and so has the session.
ROWS_A_SESSION: Final = EXCHANGES_A_SESSION + 1
#: Sessions that are interleaved; then the next ones begin.
SPOKEN_IN: Final = 500
MESSAGE_GAP_MS: Final = 6_000
#: All messages are from the hour before now.
WITHIN_MS: Final = 3_600_000


def sessions_of(rows: int) -> int:
    """The number of sessions that have this many rows in their windows."""
    return max(2, rows // ROWS_A_SESSION)


def messages_of(sessions: range, of_all: int, partitions: int, now: int) -> Iterator[Record]:
    """The messages of these of all sessions, in the order of the log; `now` is in epoch ms."""
    for first in range(sessions.start, sessions.stop, SPOKEN_IN):
        together = range(first, min(first + SPOKEN_IN, sessions.stop))
        users = [(number, f"quiet-{number}") for number in together]
        begun = now - WITHIN_MS + (WITHIN_MS - MESSAGES_A_SESSION * MESSAGE_GAP_MS) * first // of_all
        for turn in range(MESSAGES_A_SESSION):
            exchange, answers = divmod(turn, 2)
            for number, user in users:
                value = orjson.dumps(
                    {
                        "user_id": user,
                        "session_id": "main",
                        "message_id": f"m-{turn}",
                        "role": ("user", "assistant")[answers],
                        "content": SMALL_TALK[(exchange + number) % len(SMALL_TALK)][answers],
                        "timestamp": begun + turn * MESSAGE_GAP_MS,
                    }
                )
                yield Record(partition_of(user, partitions), key_of(user), value)
