"""A picture of how well evidence is found: its share in the first k, for each ranking and set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from benchmarks.evidence.measures import KS

#: The means of the measures, by set, ranking and kind of question.
Results = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]


def draw(results: Results, file: Path) -> None:
    """Write the picture in the format of the file's ending. Needs matplotlib, without pyplot: no window is opened."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as exc:
        raise click.ClickException("--picture needs matplotlib: pip install 'siltstone[plot]'") from exc
    figure = Figure(figsize=(5 * len(results), 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, rankings) in zip(
        figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True
    ):
        for ranking, kinds in rankings.items():
            whole = kinds["all"]
            ours = ranking.startswith("siltstone")
            values = [whole[f"r{k}"] for k in KS]
            axes.plot(
                KS, values, label=ranking, marker="o", linestyle="-" if ours else "--", linewidth=2 if ours else 1
            )
        questions = int(next(iter(rankings.values()))["all"]["n"])
        axes.set(title=f"{name}, {questions:,} questions", xlabel="k", ylabel="share of the evidence in the first k")
        axes.set_xticks(KS)
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", fontsize=8)
    figure.savefig(file, dpi=120)
