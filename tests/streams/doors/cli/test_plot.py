"""The picture of the statistics, looked at from within: what stands where, and how high."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from streams.doors.cli.plot import COLOURS, ELSEWHERE, OUTLIER, RANKS, direction, figure_of, hatch
from tables.analysts.statistics import StateChange, distribution, rates


@pytest.fixture(autouse=True)
def _fonts_are_closed() -> Iterator[None]:
    """matplotlib holds those that it has drawn with open."""
    yield
    font_manager._get_font.cache_clear()  # type: ignore[attr-defined]


FIRST = date(2026, 2, 1)
AT = "2026-02-03T12:30:00.000Z"
#: Sixty active ones in a heap, thirty cold ones, and a few far below.
POINTS = {3: 4, 50: 30, 85: 60}
CHANGES = {
    StateChange(FIRST, "active", "cold"): 5,
    StateChange(FIRST, "cold", "deprecated"): 2,
    StateChange(FIRST + timedelta(days=2), "active", "deprecated"): 1,
    StateChange(FIRST + timedelta(days=2), "cold", "active"): 3,
    StateChange(FIRST + timedelta(days=2), "deprecated", "archived"): 4,
}


def drawn(
    points: dict[int, int] | None = None,
    changes: dict[StateChange, int] | None = None,
    daily: list[tuple[int, int, int]] | None = None,
    active: float = 70.0,
) -> Figure:
    """The figure of answers with these numbers."""
    points, changes, daily = points or {}, changes or {}, daily or [(0, 0, 0)]
    total = sum(points.values())
    states = [
        {"day": str(FIRST + timedelta(days=n)), **dict(zip(COLOURS, counts, strict=True))}
        for n, counts in enumerate(daily)
    ]
    return figure_of(
        {"at": AT, "total": total, "daily": states},
        {"total": total, "borders": {"active": active, "cold": 30.0}, **asdict(distribution(points))},
        {
            "at": AT,
            "since": str(FIRST),
            "days": 3,
            "total": sum(changes.values()),
            "rates": [asdict(rate) for rate in rates(changes, 3, total)],
            "daily": [
                {**change._asdict(), "day": str(change.day), "transitions": n}
                for change, n in sorted(changes.items())
            ],
        },
    )


@pytest.fixture
def panels() -> list[Axes]:
    return drawn(POINTS, CHANGES, [(10, 0, 0), (50, 20, 0), (60, 30, 4)]).axes


def bars(axes: Axes) -> list[Rectangle]:
    groups = [group for group in axes.containers if isinstance(group, BarContainer)]
    return [bar for group in groups for bar in group.patches if isinstance(bar, Rectangle)]


def steps(axes: Axes) -> list[StepPatch]:
    return [patch for patch in axes.patches if isinstance(patch, StepPatch)]


def keys(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_the_title_says_how_many_and_when() -> None:
    assert drawn(POINTS).get_suptitle() == "Siltstone: 94 memories at 2026-02-03 12:30 UTC"
    assert drawn({50: 1}).get_suptitle().startswith("Siltstone: 1 memory at")


def test_every_axis_says_what_it_counts(panels: list[Axes]) -> None:
    assert [(panel.get_title("left"), panel.get_xlabel(), panel.get_ylabel()) for panel in panels] == [
        ("Scores", "score (points)", "memories"),
        ("States as recorded", "", "memories at the end of the day"),
        ("Changes of state: 15 in 3 days", "day (UTC)", "memories a day"),
    ]


def test_a_bar_is_as_high_as_its_ten_points_have_memories(panels: list[Axes]) -> None:
    """With its share written above; no share above nothing."""
    found = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in bars(panels[0])]
    assert found == [(low, 10, {0: 4, 50: 30, 80: 60}.get(low, 0)) for low in range(0, 100, 10)]
    assert [word for word in words(panels[0]) if "%" in word] == ["4.3 %", "31.9 %", "63.8 %"]


def test_clusters_are_shaded_and_outliers_marked(panels: list[Axes]) -> None:
    """A fence off the scale is not drawn; what is beyond one is marked at its score."""
    assert keys(panels[0]) == ["cluster 50–60: 31.9 % of the memories", "cluster 80–90: 63.8 % of the memories"]
    scores = drawn({3: 4, 80: 60, 85: 30}).axes[0]
    assert keys(scores) == ["cluster 80–90: 95.7 % of the memories", "4 outliers: below 65"]
    dotted = [line for line in scores.lines if line.get_linestyle() == ":"]
    assert [(np.asarray(line.get_xdata()).tolist(), line.get_color()) for line in dotted] == [([65, 65], OUTLIER)]
    (marks,) = [line for line in scores.lines if line.get_marker() == "^"]
    assert np.asarray(marks.get_xdata()).tolist() == [3.5]


def test_the_states_borders_are_the_thresholds() -> None:
    """In a strip of their colours above the bars; a narrow one has no room for its name."""
    scores = drawn(POINTS, active=65.5).axes[0]
    assert [np.asarray(line.get_xdata()).tolist() for line in scores.lines if line.get_linestyle() == "--"] == [
        [30, 30],
        [65.5, 65.5],
    ]
    strip = {str(patch.get_label()): patch for patch in scores.patches if str(patch.get_label()) in COLOURS}
    assert {name: to_hex(patch.get_facecolor()).upper() for name, patch in strip.items()} == COLOURS
    assert {"active", "cold", "deprecated"} <= set(words(scores))
    assert "active" not in words(drawn(POINTS, active=95).axes[0])


def test_states_are_stacked_day_by_day(panels: list[Axes]) -> None:
    """Active below, deprecated above; the key gives the last day's numbers."""
    layers = [[np.asarray(part).tolist() for part in patch.get_data()] for patch in steps(panels[1])]
    edges = [FIRST.toordinal() + n - 0.5 for n in range(4)]
    assert layers == [
        [[10, 50, 60], edges, [0, 0, 0]],
        [[10, 70, 90], edges, [10, 50, 60]],
        [[10, 70, 94], edges, [10, 70, 90]],
    ]
    assert keys(panels[1]) == ["active 60 (63.8 %)", "cold 30 (31.9 %)", "deprecated 4 (4.3 %)"]


def test_changes_stand_on_their_day_in_the_colour_of_where_they_go(panels: list[Axes]) -> None:
    """What warmed up is above the line, what cooled or left below; several of a day are stacked."""
    found = [
        (
            date.fromordinal(round(bar.get_x() + bar.get_width() / 2)).day,
            bar.get_y(),
            bar.get_height(),
            to_hex(bar.get_facecolor()),
        )
        for bar in bars(panels[2])
    ]
    warm, cool, ash = (colour.lower() for colour in COLOURS.values())
    assert sorted(found) == sorted(
        [
            (1, 0, -5, cool),
            (1, -5, -2, ash),
            (3, 0, 3, warm),
            (3, 0, -4, ELSEWHERE.lower()),
            (3, -4, -1, ash),
        ]
    )
    assert [bool(bar.get_hatch()) for bar in bars(panels[2]) if bar.get_height() == -1] == [True]


def test_each_pair_has_its_rate(panels: list[Axes]) -> None:
    """The most frequent first: how many, how many a day, and in percent of the memories."""
    assert keys(panels[2])[:2] == [
        "active → cold: 5, 1.67 a day (1.77 %)",
        "deprecated → archived: 4, 1.33 a day (1.42 %)",
    ]
    assert len(keys(panels[2])) == 5


def test_the_days_of_states_and_of_changes_are_above_each_other(panels: list[Axes]) -> None:
    """The last day has a mark, as it is today."""
    assert panels[1].get_xlim() == panels[2].get_xlim() == (FIRST.toordinal() - 0.5, FIRST.toordinal() + 2.5)
    panels[2].figure.canvas.draw()
    assert [tick.get_text() for tick in panels[2].get_xticklabels()] == ["2026-02-03", "2026-02-02", "2026-02-01"]


@pytest.mark.parametrize(
    ("pair", "up"),
    [
        (("cold", "active"), 1),
        (("active", "deprecated"), -1),
        (("deprecated", "archived"), -1),
        (("archived", "removed"), -1),
        (("archived", "cold"), 1),
    ],
)
def test_up_is_where_it_is_warmer(pair: tuple[str, str], up: int) -> None:
    assert direction(*pair) == up


def test_no_two_common_pairs_look_alike() -> None:
    """By colour, side of the line and stripes."""
    pairs = [(one, other) for one in RANKS for other in RANKS if one != other]
    pairs += [("archived", state) for state in RANKS]
    pairs += [("deprecated", "archived"), ("archived", "removed"), ("active", "forgotten")]
    looks = {(COLOURS.get(pair[1]), direction(*pair), hatch(*pair)) for pair in pairs}
    assert len(looks) == len(pairs)


def test_colours_differ_in_lightness_or_in_blue() -> None:
    """What a red-green-blind eye is left with tells each pair of them apart."""
    seen = [
        np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) @ [[0.3, 0], [0.59, 0], [0.11, 1]]
        for colour in (*COLOURS.values(), ELSEWHERE)
    ]
    gaps = [np.linalg.norm(one - other) for n, one in enumerate(seen) for other in seen[:n]]
    assert min(gaps) > 40


def test_nothing_to_draw_is_said_in_each_panel(tmp_path: Path) -> None:
    figure = drawn()
    assert [words(panel)[-1] for panel in figure.axes] == [
        "no memories yet",
        "no memories on these days",
        "no changes of state on these days",
    ]
    assert png_size(figure, tmp_path / "empty.png") == (1540, 880)


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 3650])
def test_a_day_and_ten_years_can_be_drawn(tmp_path: Path, days: int) -> None:
    """With few enough dates below to be read."""
    changes = {StateChange(FIRST + timedelta(days=n), "active", "cold"): 1 for n in range(0, 3, 2)}
    figure = drawn(POINTS, changes, [(n, 1, 0) for n in range(days)])
    assert 1 <= len(figure.axes[2].get_xticks()) <= 8
    assert png_size(figure, tmp_path / "days.png") == (1540, 880)


def png_size(figure: Figure, file: Path) -> tuple[int, int]:
    """Width and height that stand in the file's header."""
    figure.savefig(file)
    header = file.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    size: tuple[Any, ...] = struct.unpack(">II", header[16:24])
    return int(size[0]), int(size[1])
