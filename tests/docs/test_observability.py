"""The dashboard and the alert rules ask for metrics and labels that a worker has, and say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import orjson
import promql_parser as promql
import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streams.telemetry.metrics import Metrics
from tests.docs.pages import ROOT, anchors

FOLDER = ROOT / "docs" / "observability"
DASHBOARD: dict[str, Any] = orjson.loads((FOLDER / "siltstone.json").read_bytes())
GROUPS = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
#: What Prometheus itself puts to every series, and the series that it makes itself.
OF_PROMETHEUS = {"job", "instance"}


class Asked(NamedTuple):
    """A series that an expression asks for, and the labels that it is chosen by."""

    name: str
    labels: frozenset[str]


def parsed(expression: str) -> promql.Expr:
    """Grafana's own variable is no duration to Prometheus."""
    return promql.parse(expression.replace("$__rate_interval", "5m"))


def asked(expression: str) -> list[Asked]:
    found = list[Asked]()

    def visit(part: promql.Expr) -> None:
        if isinstance(part, promql.VectorSelector):
            assert part.name is not None
            found.append(Asked(part.name, frozenset(one.name for one in part.matchers.matchers)))

    promql.walk(parsed(expression), visit)
    return found


def grouped_by(expression: str) -> set[str]:
    lists = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression)
    return {label.strip() for one in lists for label in one.split(",") if label.strip()}


def served() -> dict[str, set[str]]:
    """The series of `/metrics` with their labels, when each metric has been counted once."""
    metrics = Metrics()
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Gauge | Histogram) and metric._labelnames:
            metric.labels(*metric._labelnames)
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    found: dict[str, set[str]] = {"up": set()}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


SERVED = served()


def faults(expression: str, shown: str = "") -> list[str]:
    """What of an expression, and of what is shown of its answer, no worker has."""
    series = asked(expression)
    told = [f"{one.name} is no metric" for one in series if one.name not in SERVED]
    for one in series:
        told += [f"{one.name} has no {label}" for label in one.labels - SERVED.get(one.name, set()) - OF_PROMETHEUS]
    has = set.union(OF_PROMETHEUS, *(SERVED.get(one.name, set()) for one in series))
    told += [f"nothing has {label}" for label in grouped_by(expression) - has]
    groups = grouped_by(expression)
    wanted = set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", shown)) - {"value"}
    told += [f"the answer has no {label}" for label in wanted - (groups or has)]
    return told


def targets() -> Iterator[tuple[str, str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("panel", "expression", "legend"), list(targets()))
def test_a_panel_asks_for_what_a_worker_has(panel: str, expression: str, legend: str) -> None:
    assert faults(expression, legend) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_a_worker_has_and_says_what_to_do(rule: dict[str, Any]) -> None:
    notes = rule["annotations"]
    assert faults(rule["expr"], f"{notes['summary']} {notes['description']}") == []
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert all(notes[name].strip() for name in ("summary", "description"))
    page, _, heading = notes["runbook"].partition("#")
    assert (ROOT / page).is_file()
    assert not heading or heading in anchors(ROOT / page)


def test_each_alert_has_a_name_of_its_own_and_each_panel_a_place() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    places = sorted((panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in DASHBOARD["panels"])
    assert all(earlier != later for earlier, later in pairwise(places))
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_dashboards_data_source_and_jobs_are_chosen_by_whoever_looks() -> None:
    variables = {one["name"]: one["type"] for one in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "job": "query"}
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {"${datasource}"}


@pytest.mark.parametrize(
    ("expression", "shown", "told"),
    [
        ("rate(siltstone_message_total[5m])", "", "siltstone_message_total is no metric"),
        ("siltstone_messages", "", "siltstone_messages is no metric"),
        ('siltstone_lag_records{partition="1"}', "", "siltstone_lag_records has no partition"),
        ("sum by (kind) (siltstone_lag_records)", "", "nothing has kind"),
        ("sum by (topic) (siltstone_lag_records)", "{{ $labels.instance }}", "the answer has no instance"),
    ],
)
def test_what_no_worker_has_is_found(expression: str, shown: str, told: str) -> None:
    """The check can fail."""
    assert faults(expression, shown) == [told]


def test_an_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed("sum by (topic (siltstone_lag_records)")
