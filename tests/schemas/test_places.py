"""A consistency token is a place in the log, and tells when it was damaged."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from schemas.errors import ConsistencyTokenError
from schemas.places import Place, newest

PLACE = Place("siltstone.long-term", 3, 17)


@pytest.mark.parametrize("place", [PLACE, Place("t", 0, 0), Place("a" * 249, 2**31 - 1, 2**63 - 1)])
def test_a_token_is_its_place_in_one_word(place: Place) -> None:
    assert Place.of_token(place.token) == place
    assert set(place.token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_every_other_letter_anywhere_is_noticed() -> None:
    token = PLACE.token
    for i in range(len(token)):
        for letter in "Aq_":
            damaged = token[:i] + letter + token[i + 1 :]
            if damaged != token:
                with pytest.raises(ConsistencyTokenError, match="damaged"):
                    Place.of_token(damaged)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "x",
        "é",
        "a b",
        "=",
        PLACE.token[:-1],
        PLACE.token + "=",
        "A" * 5_000,
        urlsafe_b64encode(b"1:2:t").decode(),
    ],
)
def test_what_is_none_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(ConsistencyTokenError) as refused:
        Place.of_token(given)
    assert "\n" not in str(refused.value)


def test_of_each_partition_the_last_place_stands_for_all() -> None:
    places = [PLACE, PLACE._replace(offset=19), PLACE._replace(offset=18), PLACE._replace(partition=1)]
    assert newest(places) == [PLACE._replace(offset=19), PLACE._replace(partition=1)]
