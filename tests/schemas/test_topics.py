"""Topic names, keys, and the partition that Kafka's own clients would choose."""

from __future__ import annotations

import doctest

import pytest
from aiokafka import partitioner
from hypothesis import given
from hypothesis import strategies as st

from schemas import topics
from schemas.topics import Topics, key_of, partition_of

CHINESE = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=30)
ANY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(topics).failed == 0


def test_every_topic_has_the_prefix() -> None:
    assert Topics.with_prefix("acme.").all() == (
        "acme.conversations",
        "acme.long-term",
        "acme.transitions",
        "acme.summary-requests",
        "acme.dead-letters",
    )


def test_a_key_is_the_users_id_in_utf8() -> None:
    assert key_of("小明") == b"\xe5\xb0\x8f\xe6\x98\x8e"


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_values_of_kafkas_own_tests(key: bytes, hashed: int) -> None:
    """Apache Kafka, UtilsTest.testMurmur2; signed there, unsigned here."""
    assert topics._murmur2(key) == hashed % 2**32


@given(st.binary(max_size=70))
def test_murmur2_is_aiokafkas(key: bytes) -> None:
    assert topics._murmur2(key) & 0x7FFFFFFF == partitioner.murmur2(key) & 0x7FFFFFFF


@given(st.one_of(CHINESE, ANY), st.integers(1, 10_000))
def test_a_user_lies_where_aiokafkas_default_partitioner_puts_the_key(user_id: str, partitions: int) -> None:
    every = list(range(partitions))
    assert partition_of(user_id, partitions) == partitioner.DefaultPartitioner()(key_of(user_id), every, every)
