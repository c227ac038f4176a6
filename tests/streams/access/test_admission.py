"""Who asks, by what a request brings."""

from __future__ import annotations

import pytest

from schemas.errors import TokenRefused
from streams.access.admission import LONGEST_SECRET, Admission, bearer
from tests.streams.access.test_authorize import ANN, known


@pytest.mark.parametrize("kind", [b"Bearer", b"bearer", b"BEARER", b"Token"])
async def test_a_request_brings_its_secret_as_a_bearer_token(kind: bytes) -> None:
    tokens, secret = known()
    assert await Admission(tokens).asking([(b"authorization", kind + b" " + secret.encode())]) == ANN


@pytest.mark.parametrize("given", [[], [b"Basic abc"], [b"Bearer"], [b"Bearer  "], [b"Bearer a", b"Bearer a"]])
def test_no_secret_or_more_than_one_is_refused(given: list[bytes]) -> None:
    with pytest.raises(TokenRefused):
        bearer([(b"authorization", value) for value in given])


async def test_what_is_too_long_is_refused_as_any_other() -> None:
    tokens, secret = known()
    with pytest.raises(TokenRefused) as long:
        await Admission(tokens).principal("slt_" + "a" * LONGEST_SECRET)
    with pytest.raises(TokenRefused) as wrong:
        await Admission(tokens).principal(secret + "a")
    assert str(long.value) == str(wrong.value)
