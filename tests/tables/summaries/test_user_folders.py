"""Each user has a folder of their own, on every file system, and none leads out of the root."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.ids import MAX_ID_CHARS
from tables.summaries.user_folders import folder_of

IDS = st.text(min_size=1, max_size=MAX_ID_CHARS) | st.from_regex(r"[A-Za-z0-9._+~ -]{1,12}", fullmatch=True)
#: Ids that a careless name would make one of.
CHANGES: tuple[Callable[[str], str], ...] = (
    str.upper,
    str.title,
    str.casefold,
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFKC", text),
    lambda text: text + ".",
    lambda text: text + " ",
    lambda text: text.replace("/", "-"),
    lambda text: text + "\0",
    folder_of,
    lambda text: text[:64],
)


def as_a_file_system_sees_it(name: str) -> str:
    """One without case, which normalises, and strips as Windows does."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", name.casefold()).casefold()).rstrip(". ")


@given(IDS, st.sampled_from(CHANGES) | IDS.map(lambda other: lambda _: other))
@example("ann", str.upper)
@example("é", lambda text: unicodedata.normalize("NFD", text))
@example("ſ", lambda _: "s")
@example("K", lambda _: "k")
@example("a/b", lambda _: "a-b")
def test_no_two_ids_share_a_folder(user_id: str, change: Callable[[str], str]) -> None:
    """Not those either that differ by case, by normalisation, or by what is stripped."""
    other = change(user_id)
    names = [as_a_file_system_sees_it(folder_of(one)) for one in (user_id, other)]
    assert (names[0] == names[1]) == (user_id == other)


@given(IDS)
@example("..")
@example("../../etc/passwd")
@example("/etc/passwd")
@example("C:\\Windows")
@example("\ud800")
@example("字" * MAX_ID_CHARS)
@example("a" * MAX_ID_CHARS)
def test_a_folder_lies_right_below_the_root(user_id: str) -> None:
    """Whatever the id; its name fits every file system, and no program hides it or takes it for something else."""
    name = folder_of(user_id)
    assert (Path("/root") / name).resolve().parent == Path("/root")
    assert len(name.encode()) <= 255
    assert not set(name) & set('/\\:*?"<>|\0~')
    assert name.isprintable()
    assert name[0] not in ".-+ "
    assert name[-1] not in ". "


@pytest.mark.parametrize(
    "user_id", ["ann", "user-42", "7", "a.b_c-d", "a", "7d1f0f0e-5cbb-5b0e-a3c5-7a4f9f1b3b52", "com", "con-1"]
)
def test_a_plain_id_is_its_folder(user_id: str) -> None:
    assert folder_of(user_id) == user_id


@pytest.mark.parametrize(
    ("user_id", "slug"),
    [
        ("Ann", "ann"),
        ("ann@example.com", "ann-example-com"),
        ("小明", "小明"),
        ("José", "jose"),
        ("..", "user"),
        ("👩", "user"),
        ("con", "con"),
        ("NUL", "nul"),
        ("com1.txt", "com1-txt"),
        ("lpt0", "lpt0"),
        (".hidden", "hidden"),
        ("ann.", "ann"),
        ("a" * 65, "a" * 24),
    ],
)
def test_any_other_id_is_readable_as_far_as_it_can_be(user_id: str, slug: str) -> None:
    name, plus, digest = folder_of(user_id).partition("+")
    assert (name, plus, len(digest)) == (slug, "+", 32)


def test_names_are_what_they_were() -> None:
    """A changed rule would lose the summaries that are there."""
    assert folder_of("Ann") == "ann+17239b6e250110330eda64a29c610bf1"
