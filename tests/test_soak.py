"""Which of the tests that repeat one fault many times a commit chooses."""

from __future__ import annotations

from tests.support.soak import ONE_OF, sample

TESTS = [f"tests/test_a.py::test[{number}]" for number in range(20)]


def test_each_comes_up_within_some_commits() -> None:
    """Whatever the order in which they were found."""
    samples = [sample(TESTS[::-1], f"{commit:x}") for commit in range(ONE_OF)]
    assert sorted(name for chosen in samples for name in chosen) == sorted(TESTS)
    assert {len(chosen) for chosen in samples} == {3, 4}


def test_a_commit_always_chooses_the_same() -> None:
    assert sample(TESTS, "b0dfd47") == sample(TESTS, "b0dfd47")
