"""Draws the picture of `siltstone stats --plot`: scores, states over time, and changes of state.

It needs matplotlib (`pip install 'siltstone[plot]'`). Only matplotlib's object-oriented interface is used, because
pyplot keeps figures in global state.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from streams.doors.cli import show

#: Colours from the palette of Okabe and Ito, which colour-blind people can distinguish: orange, blue and grey.
COLOURS = {"active": "#E69F00", "cold": "#56B4E9", "deprecated": "#7A7A7A"}
ELSEWHERE, OUTLIER, CLUSTER, BAR, INK = "#CC79A7", "#D55E00", "#F0E442", "#4C5B6B", "#333333"
#: The ranks of the states. A change to a state of lower rank is drawn below the line. States that are not listed,
#: such as archived, count as lower than all others.
RANKS = {"active": 3, "cold": 2, "deprecated": 1}
#: The share (0-1) of the height of the panel of scores that is below the strip with the names of the states.
BELOW_STRIP = 0.96
LEGEND: dict[str, Any] = {
    "frameon": False,
    "fontsize": 9,
    "alignment": "left",
    "handlelength": 1.5,
    "columnspacing": 1,
}

Answer = dict[str, Any]


def figure_of(states: Answer, scores: Answer, transitions: Answer) -> Figure:
    """Draw the answers of `/v1/stats/states?days=`, `/v1/stats/scores` and `/v1/stats/transitions` as a figure."""
    figure = Figure(figsize=(14, 8), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.4))
    draw_scores(figure.add_subplot(grid[:, 0]), scores)
    over_time = figure.add_subplot(grid[0, 1])
    draw_states(over_time, states["daily"])
    draw_transitions(figure.add_subplot(grid[1, 1], sharex=over_time), transitions)
    over_time.tick_params(labelbottom=False)
    moment = states["at"][:16].replace("T", " ")
    figure.suptitle(f"Siltstone: {_counted(states['total'], 'memory', 'memories')} at {moment} UTC", weight="bold")
    return figure


def draw_scores(axes: Axes, scores: Answer) -> None:
    """Draw a histogram of the scores, with the clusters of scores as areas behind the bars.

    The scores at which states change, and the scores at which outliers begin (fences), are drawn as lines.
    """
    _panel(axes, "Scores", xlabel="score (points)", ylabel="memories", xlim=(0, 100), xticks=range(0, 101, 10))
    _draw_borders(axes, **scores["borders"])
    if not scores["total"]:
        _nothing(axes, "no memories yet")
        return
    bins = scores["histogram"]
    bars = axes.bar(
        [part["from_score"] for part in bins],
        [part["memories"] for part in bins],
        [part["to_score"] - part["from_score"] for part in bins],
        align="edge",
        color=BAR,
        edgecolor="white",
        zorder=2,
    )
    shares = [f"{part['percent']:.1f} %" if part["memories"] else "" for part in bins]
    axes.bar_label(
        bars, shares, padding=3, size=9, zorder=4, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1}
    )
    axes.set_ylim(0, max(part["memories"] for part in bins) * 1.08 / BELOW_STRIP)
    keys: list[Any] = []
    for cluster in scores["clusters"]:
        low, high = cluster["from_score"], cluster["to_score"]
        label = f"cluster {low}–{high}: {cluster['percent']:.1f} % of the memories"
        keys.append(axes.axvspan(low, high, 0, BELOW_STRIP, color=CLUSTER, alpha=0.35, zorder=0, label=label))
    keys += _draw_fences(axes, scores)
    axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(-0.02, -0.08), **LEGEND)


def _draw_borders(axes: Axes, active: float, cold: float) -> None:
    for name, low, high in (("deprecated", 0, cold), ("cold", cold, active), ("active", active, 100)):
        axes.axvspan(low, high, BELOW_STRIP, 1, color=COLOURS[name], label=name)
        if high - low >= 12:  # otherwise there is no room for the name
            centre = (low + high) / 2, (1 + BELOW_STRIP) / 2
            axes.text(*centre, name, transform=axes.get_xaxis_transform(), ha="center", va="center", size=9)
    for border in (cold, active):
        axes.axvline(border, 0, BELOW_STRIP, color=INK, linestyle="--", linewidth=1)


def _draw_fences(axes: Axes, scores: Answer) -> list[Line2D]:
    """Draw the fences (the scores at which outliers begin) and the outliers. Return the entries for the legend."""
    fences = show.fences(scores)
    for at in fences.values():
        axes.axvline(at, 0, BELOW_STRIP, color=OUTLIER, linestyle=":", linewidth=2)
    if not fences:
        return []
    places = [min(outlier["point"] + 0.5, 100) for outlier in scores["outliers"]]
    look: dict[str, Any] = {"color": OUTLIER, "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.5}
    axes.plot(places, [0] * len(places), "^", **look, clip_on=False, zorder=3)
    number = _counted(sum(outlier["memories"] for outlier in scores["outliers"]), "outlier", "outliers")
    return [Line2D([], [], linestyle=":", linewidth=2, marker="^", **look, label=f"{number}: {' or '.join(fences)}")]


def draw_states(axes: Axes, daily: list[Answer]) -> None:
    """Draw a stacked bar for each day, with active memories at the bottom and deprecated ones at the top."""
    _panel(axes, "States as recorded", ylabel="memories at the end of the day")
    total = sum(daily[-1][name] for name in COLOURS) if daily else 0
    if not any(day[name] for day in daily for name in COLOURS):
        _nothing(axes, "no memories on these days")
        return
    first = _number(daily[0]["day"])
    edges = [first + place - 0.5 for place in range(len(daily) + 1)]
    below = [0] * len(daily)
    for name, colour in COLOURS.items():
        upto = [low + day[name] for low, day in zip(below, daily, strict=True)]
        share = f" ({100 * daily[-1][name] / total:.1f} %)" if total else ""
        axes.stairs(upto, edges, baseline=below, fill=True, color=colour, label=f"{name} {daily[-1][name]:,}{share}")
        below = upto
    axes.set_ylim(0, 1.05 * max(below))
    axes.legend(loc="lower right", bbox_to_anchor=(1.01, 0.98), ncols=3, **LEGEND)


def draw_transitions(axes: Axes, transitions: Answer) -> None:
    """Draw a bar for each day and each pair of old and new state, in the colour of the new state.

    Changes to a state of higher rank are drawn above the line, all others below it.
    """
    title = f"Changes of state: {transitions['total']:,} in {_counted(transitions['days'], 'day', 'days')}"
    _panel(axes, title, xlabel="day (UTC)", ylabel="memories a day")
    first, last = _number(transitions["since"]), _number(transitions["at"][:10])
    axes.set(xlim=(first - 0.5, last + 0.5), xticks=range(last, first - 1, -(1 + (last - first) // 7)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: date.fromordinal(round(number)).isoformat()))
    axes.axhline(0, color=INK, linewidth=1)
    if not transitions["total"]:
        _nothing(axes, "no changes of state on these days")
        return
    reached: Counter[tuple[str, int]] = Counter()
    keys = []
    for rate in transitions["rates"]:
        pair = rate["from_state"], rate["to_state"]
        look: dict[str, Any] = {
            "facecolor": COLOURS.get(pair[1], ELSEWHERE),
            "edgecolor": "white",
            "linewidth": 0,
            "hatch": hatch(*pair),
        }
        sign = direction(*pair)
        of_pair = [change for change in transitions["daily"] if (change["from_state"], change["to_state"]) == pair]
        heights = [sign * change["transitions"] for change in of_pair]
        days = [change["day"] for change in of_pair]
        axes.bar([_number(day) for day in days], heights, 0.85, [reached[day, sign] for day in days], **look)
        reached.update({(day, sign): height for day, height in zip(days, heights, strict=True)})
        often = f"{rate['transitions']:,}, {rate['per_day']:,.2f} a day ({rate['daily_percent']:.2f} %)"
        keys.append(Patch(**look, label=f"{' → '.join(pair)}: {often}"))
    low, high = axes.get_ylim()
    room = 0.12 * (high - low)
    axes.set_ylim(min(low, 0) - room, max(high, 0) + room)
    for y, words, side in ((0.99, "↑ warmed up, or came back", "top"), (0.01, "↓ cooled, or left", "bottom")):
        axes.text(0.005, y, words, transform=axes.transAxes, va=side, size=9, color=INK)
    head = "changes, and their number per day (in percent of all memories)"
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.2), "ncols": 2}
    axes.legend(handles=keys, title=head, title_fontsize=9, **place, **LEGEND)


def direction(from_state: str, to_state: str) -> int:
    """Return 1 if the new state has a higher rank than the old state, otherwise -1."""
    return 1 if RANKS.get(to_state, 0) > RANKS.get(from_state, 0) else -1


def hatch(from_state: str, to_state: str) -> str:
    """Return the hatch (pattern) of the bars of a pair of states.

    It distinguishes pairs whose bars have the same colour on the same side of the line.
    """
    if from_state == "archived" and to_state in RANKS:
        return "\\\\\\\\"
    leap = "////" if {from_state, to_state} == {"active", "deprecated"} else ""
    return {"removed": "xxxx", "forgotten": "...."}.get(to_state, leap)


def _panel(axes: Axes, title: str, **labels: Any) -> None:
    axes.set_title(title, loc="left")
    axes.set(**labels)
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))


def _number(day: str) -> int:
    """Return the ordinal number of an ISO date, which is the position of the day on the time axis."""
    return date.fromisoformat(day).toordinal()


def _nothing(axes: Axes, why: str) -> None:
    axes.set_yticks([])
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=INK, style="italic")


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
