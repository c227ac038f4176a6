"""A file of frames: whatever a crash leaves at its end, what was whole before it is read."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.embedded.journal.frames import HEAD_BYTES, framed, read_frames
from tests.support.examples import examples

BODIES = st.lists(st.binary(min_size=1, max_size=50), max_size=8)


def bodies(data: bytes) -> list[bytes]:
    return [body for _, body in read_frames(io.BytesIO(data))]


@given(BODIES)
@examples(100)
def test_what_was_framed_is_read(written: list[bytes]) -> None:
    assert bodies(b"".join(framed(body) for body in written)) == written


@given(BODIES)
@examples(50)
def test_each_body_is_where_it_is_said_to_be(written: list[bytes]) -> None:
    data = b"".join(framed(body) for body in written)
    assert all(data[place : place + len(body)] == body for place, body in read_frames(io.BytesIO(data)))


@given(BODIES, st.data())
@examples(200)
def test_a_file_that_ends_anywhere_has_the_frames_that_are_whole(written: list[bytes], data: st.DataObject) -> None:
    frames = [framed(body) for body in written]
    whole = b"".join(frames)
    end = data.draw(st.integers(0, len(whole)))
    expected = [body for i, body in enumerate(written) if sum(map(len, frames[: i + 1])) <= end]
    assert bodies(whole[:end]) == expected


@given(BODIES.filter(bool), st.data())
@examples(200)
def test_a_changed_byte_ends_it_before_the_frame_that_has_it(written: list[bytes], data: st.DataObject) -> None:
    frames = [framed(body) for body in written]
    whole = bytearray(b"".join(frames))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    before = next(i for i in range(len(frames)) if sum(map(len, frames[: i + 1])) > place)
    assert bodies(bytes(whole)) == written[:before]


@given(BODIES, st.binary(max_size=40))
@examples(100)
def test_zeros_and_other_bytes_behind_it_are_no_frames(written: list[bytes], noise: bytes) -> None:
    """A power cut may leave the length of a file without its bytes."""
    data = b"".join(framed(body) for body in written)
    assert bodies(data + bytes(100)) == written
    assert bodies(data + noise)[: len(written)] == written


def test_nothing_is_no_frame() -> None:
    """It would look like zeros at the end of a file."""
    with pytest.raises(ValueError, match="1 to"):
        framed(b"")
    assert len(framed(b"a", b"", b"b")) == HEAD_BYTES + 2
