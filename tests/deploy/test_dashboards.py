"""The dashboards match their code, and every panel shows data of a real application."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.fleet import AGENTS, Fleet
from tests.support.modules import module_of
from tests.support.prometheus import Prometheus

ROOT = Path(__file__).parent.parent.parent
GRAFANA = ROOT / "deploy" / "grafana"
RULES = sorted((ROOT / "deploy" / "prometheus" / "rules").glob("*.yaml"))
FILES = {"fleet.json", "agent.json", "metric.json", "self.json"}
RAISED = {
    "AgentEvalQualityFallsFast",
    "AgentEvalJudgeBudgetSpent",
    "AgentEvalOutletFails",
    "AgentEvalResultsDropped",
    "AgentEvalSpansDropped",
}
"""Alerts of a fleet whose agents fail half of their turns, and whose service desk lacks all resources."""


class Query(NamedTuple):
    place: str
    expr: str
    exemplar: bool


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """Import deploy/grafana/build.py."""
    pytest.importorskip("grafana_foundation_sdk", reason="needs Python 3.11")
    return module_of(GRAFANA / "build.py")


def dashboards() -> dict[str, dict[str, Any]]:
    return {file.name: json.loads(file.read_text(encoding="utf-8")) for file in (GRAFANA / "dashboards").glob("*.json")}


def queries() -> list[Query]:
    return [
        Query(f"{file}: {panel['title']}", target["expr"], bool(target.get("exemplar")))
        for file, dashboard in dashboards().items()
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


def filled_in(expr: str, metric: str = "llm_relevance") -> str:
    """Return a query as Grafana sends it, for all services and agents."""
    values = {"$__rate_interval": "15s", "$__range": "1m", "$agent": ".*", "$service": ".*", "$metric": metric}
    for variable, value in values.items():
        expr = expr.replace(variable, value)
    assert "$" not in expr, expr
    return expr


def test_the_files_are_what_the_code_makes(build: ModuleType) -> None:
    rendered = build.render()
    assert {file.name for file in rendered} == FILES == set(dashboards())
    assert [file.name for file, text in rendered.items() if file.read_text(encoding="utf-8") != text] == []


def test_the_exemplars_of_one_metric_lead_to_traces() -> None:
    assert [query.place for query in queries() if query.exemplar and query.place.startswith("metric.json")]
    sources = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "agenteval.yaml").read_text(encoding="utf-8"))
    by_uid = {source["uid"]: source for source in sources["datasources"]}
    [destination] = by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert destination["name"] == "trace_id"
    assert destination["datasourceUid"] in by_uid


@pytest.mark.parametrize(
    ("title", "says"),
    [("Journal: age of the oldest request", "serve.journal"), ("Judge calls, by outcome", "No judge"), ("Spans", "scrape")],
)
def test_a_panel_without_data_says_what_is_missing(title: str, says: str) -> None:
    texts = {
        panel["title"]: panel["fieldConfig"]["defaults"].get("noValue", "")
        for dashboard in dashboards().values()
        for panel in dashboard["panels"]
        if panel.get("targets")
    }
    assert all(texts.values()), [title for title, text in texts.items() if not text]
    assert says in texts[title]


# --- against the real application --------------------------------------------------------------------------------------


class Watched(NamedTuple):
    """A fleet scraped by Prometheus, with the expressions that never returned data."""

    fleet: Fleet
    prometheus: Prometheus
    missing: set[str]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Run the fleet until every query of a panel, every recording rule and all inputs of alerts have returned data."""
    folder = tmp_path_factory.mktemp("prometheus")
    rules = [hurried(file, folder) for file in RULES]
    with Fleet() as fleet:
        fleet.failing = 0.5
        fleet.play(1)  # counters that begin at their first value show no increase of it
        with Prometheus(folder, fleet.targets, rules, every=1000) as prometheus:
            missing = looked_at(prometheus)
            end = time.monotonic() + 600
            while missing - NOT_HERE and time.monotonic() < end:
                fleet.play(3)
                raised = {
                    rule["name"] for rule in prometheus.rules() if rule["type"] == "alerting" and rule["state"] != "inactive"
                }
                missing -= {f"alert {name}" for name in raised}  # at any time: what was dropped once is soon a small share
                missing = {expr for expr in missing if expr.startswith("alert ") or not prometheus.over_time(expr, 1800, 2)}
            yield Watched(fleet, prometheus, missing)


def looked_at(prometheus: Prometheus) -> set[str]:
    """Return every expression that a panel, a recording rule or an alert uses, and the alerts that this fleet raises."""
    panels = {filled_in(query.expr) for query in queries()}
    of_any_metric = [query for query in queries() if query.place.startswith("metric.json") and "__name__" in query.expr]
    for metric in ("code_latency", "code_token_usage", "code_tool_success"):
        panels |= {filled_in(query.expr, metric) for query in of_any_metric}
    recorded = {rule["name"] for rule in prometheus.rules() if rule["type"] == "recording"}
    selector = re.compile(r"\b(?:agenteval[a-z0-9_:]+|up)(?:\{[^}]*\})?")
    alerts = [rule["query"] for rule in prometheus.rules() if rule["type"] == "alerting"]
    selected = {f"count({found})" for query in alerts for found in selector.findall(query)}
    assert min(len(panels) - 40, len(of_any_metric) - 3, len(recorded) - 19, len(selected) - 10) > 0
    return panels | recorded | selected | {f"alert {name}" for name in RAISED}


NOT_HERE = {"count(agenteval_serve_certificate_expiry_timestamp_seconds)"}
"""Expressions without data, because the fleet has no certificate. tests/server/test_tls.py covers them."""


def hurried(rule: Path, folder: Path) -> Path:
    """Copy a rules file, with its groups evaluated as often as Prometheus scrapes."""
    text = yaml.safe_load(rule.read_text(encoding="utf-8"))
    for group in text["groups"]:
        group.pop("interval", None)
    file = folder / rule.name
    file.write_text(yaml.safe_dump(text), encoding="utf-8")
    return file


def test_all_that_panels_and_rules_look_at_is_there(watched: Watched) -> None:
    """A query for a series or label that nothing writes would stay empty forever."""
    assert watched.missing == NOT_HERE
    assert [rule["name"] for rule in watched.prometheus.rules() if rule["health"] != "ok"] == []


def test_the_choices_of_a_dashboard_are_there(watched: Watched) -> None:
    choices = {}
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
                choices[variable["name"]] = watched.prometheus.label_values(label, filled_in(selector))
    assert choices["service"] == set(AGENTS)
    assert choices["agent"] == {agent for agents in AGENTS.values() for agent in agents}
    assert choices["metric"] >= {"llm_relevance", "code_latency"}


def test_exemplars_lead_to_the_traces_of_turns(watched: Watched) -> None:
    asked = [query for query in queries() if query.exemplar]
    assert {query.place.split(":")[0] for query in asked} >= {"fleet.json", "agent.json", "metric.json"}
    for query in asked:
        found = {exemplar["labels"]["trace_id"] for exemplar in watched.prometheus.exemplars(filled_in(query.expr))}
        assert found, query
        assert found <= watched.fleet.trace_ids
