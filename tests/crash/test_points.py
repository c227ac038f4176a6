"""Points at which workers are killed: each names a function that is there, which the slow tests find out late."""

from __future__ import annotations

import pytest

from tests.crash.points import POINTS, Point, found


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_a_point_names_a_function(point: Point) -> None:
    owner, name, function = found(point)
    assert callable(function)
    assert name in vars(owner), f"{point.where} is inherited: killing there would kill elsewhere, too"
