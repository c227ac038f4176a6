"""The numbers of texts, in digits and in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.summaries.grounding.stated_numbers import known_numbers, stated_numbers

PARTS = (
    "1|15|１|٣|:|.|,|00|k|m|万|百|千|十|三|〇|两|点半|만|시 반|열|한|오| |half past |halb |five hundred|twenty-|pm|h"
)
PIECES = st.lists(st.sampled_from(PARTS.split("|")), max_size=12).map("".join)


def holds(said: str, line: str) -> bool:
    return not any(forms.isdisjoint(known_numbers(said)) for forms in stated_numbers(line))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("fifty", "50"),
        ("50", "fifty"),
        ("twenty-five", "25"),
        ("1,500", "1500"),
        ("2万", "20000"),
        ("20k", "20,000"),
        ("five hundred", "500"),
        ("三百二十", "320"),
        ("三千五", "3500"),
        ("15:00", "3pm"),
        ("3pm", "15:00"),
        ("下午三点", "15:00"),
        ("下午三点半", "3:30"),
        ("half past nine", "9:30"),
        ("halb zehn", "9:30"),
        ("아홉 시 반", "9:30"),
        ("오만 원", "50000"),
        ("09", "9"),
        ("cinquenta euros, tres gatos", "3"),
        ("nothing", "one of the two, 一起, 三明治, 千万别"),
    ],
)
def test_the_same_number_in_another_form_is_held(said: str, line: str) -> None:
    assert holds(said, line)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("50", "51"),
        ("fifty", "sixty"),
        ("1,500", "150"),
        ("3pm", "16:00"),
        ("三点", "四点"),
        ("v2.7", "2.8"),
        ("", "7"),
    ],
)
def test_another_number_is_not(said: str, line: str) -> None:
    assert not holds(said, line)


@given(PIECES, st.text(max_size=20))
def test_each_text_holds_its_own_numbers(pieces: str, text: str) -> None:
    """Also runs of digits that no computer counts with."""
    for said in (pieces, text, pieces + text, "三" * 5_000, "9" * 5_000 + "k"):
        assert holds(said, said)
