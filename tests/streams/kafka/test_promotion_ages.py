"""How old promotions are when they are committed."""

from __future__ import annotations

import pytest
from prometheus_client import Histogram

from schemas.topics import CLOSED_AT_HEADER
from streams.kafka.promotion_ages import PromotionAges, closed_at
from streams.telemetry.metrics import Metrics
from tests.support.making import START, promotion

FIRST, SECOND = promotion("a", "1"), promotion("b", "2")


@pytest.fixture
def seconds() -> Histogram:
    return Metrics().promotion_age


@pytest.fixture
def ages(seconds: Histogram) -> PromotionAges:
    return PromotionAges(seconds, now=lambda: START + 1_500)


def header(moment: int) -> list[tuple[str, bytes]]:
    return [("other", b"1"), (CLOSED_AT_HEADER, str(moment).encode())]


def observed(seconds: Histogram) -> tuple[float, float]:
    """How many ages, and their sum in seconds."""
    told = {sample.name.rsplit("_", 1)[1]: sample.value for family in seconds.collect() for sample in family.samples}
    return told["count"], told["sum"]


def test_an_age_is_counted_when_the_promotion_is_committed(ages: PromotionAges, seconds: Histogram) -> None:
    ages.note(FIRST, header(START))
    assert observed(seconds) == (0, 0)
    ages.committed([FIRST], [FIRST])
    assert observed(seconds) == (1, 1.5)


def test_a_record_without_the_header_has_no_age(ages: PromotionAges, seconds: Histogram) -> None:
    ages.note(FIRST, ())
    ages.committed([FIRST], [FIRST])
    assert observed(seconds) == (0, 0)


def test_what_was_in_before_has_no_age(ages: PromotionAges, seconds: Histogram) -> None:
    """A redelivery: it was committed the first time."""
    ages.note(FIRST, header(START))
    ages.note(SECOND, header(START + 500))
    ages.committed([FIRST, SECOND], [SECOND])
    ages.committed([FIRST], [FIRST])
    assert observed(seconds) == (1, 1)


def test_an_age_is_never_below_zero(ages: PromotionAges, seconds: Histogram) -> None:
    """A producer's clock is ahead of the worker's."""
    ages.note(FIRST, header(START + 60_000))
    ages.committed([FIRST], [FIRST])
    assert observed(seconds) == (1, 0)


def test_nothing_is_on_its_way_after_a_rebalance(ages: PromotionAges, seconds: Histogram) -> None:
    ages.note(FIRST, header(START))
    ages.clear()
    ages.committed([FIRST], [FIRST])
    assert observed(seconds) == (0, 0)


@pytest.mark.parametrize("value", [None, b"", b"soon", b"\xff", b"1.5", b"0", b"-1", b"9" * 40, b"9" * 5_000])
def test_a_header_that_names_no_moment_is_none(value: bytes | None) -> None:
    """Anybody may produce to the topic."""
    assert closed_at([(CLOSED_AT_HEADER, value)]) is None  # type: ignore[list-item]  # as Kafka allows
