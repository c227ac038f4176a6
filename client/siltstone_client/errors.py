"""The errors that a call of the client raises if it gets no usable answer.

SiltstoneError
├── Unreachable            no worker answered: none listens, or it took too long
├── UnreadableAnswer       the server that answered is not Siltstone, or is much newer
├── NotYetApplied          the write is in the log, but its effect could not be read within `wait`
└── Refused                the worker answered with an error: `status`, `detail`
    ├── InvalidRequest     400, 409, 413, 422: send something else
    ├── TokenRefused       401: give a token that is valid
    ├── ScopeMissing       403: give a token that may do this
    ├── NotFound           404: there is no such memory, session or day of this user
    ├── Unavailable        429, 502, 503, 504: ask again later, `retry_after` says when
    └── ServerError        everything else: an operator must repair the worker; its log says more

A bad argument that is detected before sending raises `ValueError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from siltstone_client.answers import Written


class SiltstoneError(Exception):
    """The base class of all errors that this client raises, except `ValueError` for a bad argument."""


class Unreachable(SiltstoneError):
    """No worker answered the last attempt. Start a worker, or check the address and the network.

    `sent` is true if this attempt, or a part of it, may have arrived. If `sent` is false, the last attempt wrote
    nothing, but an earlier attempt of the same call may have arrived.
    """

    def __init__(self, why: str, sent: bool) -> None:
        self.sent = sent
        super().__init__(why)


class UnreadableAnswer(SiltstoneError):
    """The server's response is not one of Siltstone. Check that the address is that of a worker's API."""


class NotYetApplied(SiltstoneError):
    """The write is in the log, but its effect could not be read within `wait`.

    Do not write it again. `accepted` is the answer to the write. Pass it as `at_least` to a read, which waits again.
    """

    def __init__(self, accepted: Written) -> None:
        self.accepted = accepted
        super().__init__(
            "the write is in the log, but cannot be read yet: do not write again; read with at_least=error.accepted"
        )


class Refused(SiltstoneError):
    """The worker answered with an error: `status` is the HTTP status, `detail` the worker's message in one line."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(f"{detail} (HTTP {status})")


class InvalidRequest(Refused):
    """The worker cannot accept the request. `detail` has the reason, with the name of a wrong field."""


class TokenRefused(Refused):
    """The request has no token, or an unknown, expired or revoked one. `siltstone token list` shows all tokens."""


class ScopeMissing(Refused):
    """The token is valid, but lacks the scope for this request."""


class NotFound(Refused):
    """This user has no such memory, session or day. The data of other users is never found."""


class Unavailable(Refused):
    """The worker is busy, or is still restoring the user's partition.

    `retry_after` is the number of seconds to wait before the next attempt, or None if the worker gave no time.
    """

    def __init__(self, status: int, detail: str, retry_after: float | None) -> None:
        self.retry_after = retry_after
        super().__init__(status, detail)


class ServerError(Refused):
    """The worker has a fault. A repeated request fails too, until an operator repairs the worker."""
