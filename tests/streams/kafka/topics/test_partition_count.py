"""One right number of partitions, said once, whatever disagrees."""

from __future__ import annotations

import pytest

from schemas.settings import KafkaSettings
from schemas.topics import partition_of
from streams.kafka.topics.partition_count import disagreement

KAFKA = KafkaSettings(partitions=8)
CONVERSATIONS, LONG_TERM, SESSIONS = "siltstone.conversations", "siltstone.long-term", "siltstone-sessions-changelog"
USERS = [f"user-{i}" for i in range(40)]


def stored(partitions: int) -> list[tuple[str, int]]:
    return [(user, partition_of(user, partitions)) for user in USERS]


def test_where_all_agree_nothing_is_said() -> None:
    assert disagreement(KAFKA, {CONVERSATIONS: 8, LONG_TERM: 8}, stored(8)) is None
    assert disagreement(KAFKA, {}, ()) is None


def test_a_topic_with_too_few_is_given_the_others_whichever_it_is() -> None:
    """It is not the setting that is made to fit the smallest topic, and then the next one."""
    for users in ((), stored(8)):
        told = disagreement(KAFKA, {CONVERSATIONS: 3, LONG_TERM: 8}, users)
        assert told is not None
        assert "siltstone.conversations has 3: 8 is the right number, " in told
        assert told.endswith(
            "; kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --alter "
            "--topic siltstone.conversations --partitions 8"
        )


def test_a_setting_that_differs_from_what_is_stored_is_what_is_corrected() -> None:
    told = disagreement(KAFKA, {CONVERSATIONS: 4, LONG_TERM: 4, SESSIONS: 4}, stored(4))
    assert told is not None
    assert "4 is the right number" in told
    assert told.endswith("; set kafka.partitions to 4")


@pytest.mark.parametrize("setting", [8, 12])
def test_partitions_that_were_added_by_accident_are_not_made_the_rule(setting: int) -> None:
    """Users would be looked for in other shards than those that hold their memories, also with the setting raised."""
    kafka = KAFKA.model_copy(update={"partitions": setting})
    told = disagreement(kafka, {CONVERSATIONS: 8, LONG_TERM: 12, SESSIONS: 8}, stored(8))
    assert told is not None
    assert "8 is the right number, because the shards of the data directory were made with it" in told
    assert f"partitions cannot be removed from {LONG_TERM}" in told
    assert ("set kafka.partitions to 8" in told) == (setting == 12)


@pytest.mark.parametrize("counts", [{}, {CONVERSATIONS: 8}, {CONVERSATIONS: 8, LONG_TERM: 8}])
def test_users_that_lie_in_other_shards_are_told_though_all_topics_agree(counts: dict[str, int]) -> None:
    """The log is another one, or gone, and the setting was changed since users were stored."""
    told = disagreement(KAFKA, counts, stored(6))
    assert told is not None
    assert told.startswith(
        "kafka.partitions is 8, and the shards were made with another number: 6 is the right number, "
    )
    assert "; set kafka.partitions to 6" in told


def test_users_that_lie_by_no_number_refuse_no_start() -> None:
    assert disagreement(KAFKA, {LONG_TERM: 8}, [("user-1", 0), ("user-1", 1)]) is None


def test_the_number_that_it_names_is_the_one_with_which_all_agree() -> None:
    """Whoever does what is said is told nothing more."""
    assert disagreement(KAFKA, {CONVERSATIONS: 3, LONG_TERM: 8}, ()) is not None
    assert disagreement(KAFKA, {CONVERSATIONS: 8, LONG_TERM: 8}, ()) is None


def test_where_nothing_is_stored_the_setting_is_right() -> None:
    told = disagreement(KAFKA, {CONVERSATIONS: 3}, ())
    assert told is not None
    assert "8 is the right number, because nothing is stored yet" in told
