"""A checkpoint of other settings is not used."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas.errors import DamagedCheckpoint
from tables.checkpoints.fitting import misfit
from tables.checkpoints.manifest import File, Manifest, checksum_of, decoded, encoded
from tables.memories.catalog.reembedding import VectorModel
from tests.tables.checkpoints.made import facts

HERE: dict[str, Any] = {
    "partition": 3,
    "partitions": 8,
    "models": [VectorModel("toy", 4)],
    "topic_ids": {"long-term": "topic-id", "another": "id"},
}


@pytest.mark.parametrize(
    ("here", "reason"),
    [
        ({}, None),
        ({"topic_ids": {}}, None),
        ({"topic_ids": {"long-term": ""}}, None),
        ({"partition": 4}, "it is of partition 3, not of 4"),
        ({"partitions": 4}, "its users are distributed over 8 partitions, but here over 4"),
        ({"models": [VectorModel("other", 4), VectorModel("toy", 4)]}, None),
        (
            {"models": [VectorModel("other", 4)]},
            "its vectors are from toy (4 dimensions), but here from other (4 dimensions)",
        ),
        (
            {"models": [VectorModel("toy", 5), VectorModel("other", 4)]},
            "its vectors are from toy (4 dimensions), but here from toy (5 dimensions)",
        ),
        (
            {"topic_ids": {"long-term": "new"}},
            "topic long-term was recreated after the checkpoint was taken (id topic-id then, new now)",
        ),
    ],
    ids=lambda value: None,
)
def test_why_it_cannot_be_used_here(here: dict[str, Any], reason: str | None) -> None:
    assert misfit(Manifest(1, facts(), (), ()), **{**HERE, **here}) == reason


def test_a_newer_version_is_said_first() -> None:
    newer = msgspec.structs.replace(facts(), format=2)
    assert misfit(Manifest(1, newer, (), ()), **HERE) == "a newer version wrote it (format 2, this one reads up to 1)"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a//b", "a/./b", "", "a/..", "nul\0"])
def test_no_file_is_written_outside_the_folder(name: str) -> None:
    file = File(name, 0, checksum_of(()), ())
    with pytest.raises(DamagedCheckpoint, match="lists impossible files or blocks"):
        decoded(encoded(Manifest(1, facts(), (), (file,))), 3, 1)
