"""The dashboards are what their code says, and every panel shows something of the real application."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml

from otel_agenteval.core import semconv
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
"""Alerts that a fleet raises whose agents fail half of their turns, and whose desk is short of everything."""


class Query(NamedTuple):
    """One query of one panel."""

    place: str
    expr: str
    exemplar: bool


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """deploy/grafana/build.py as a module."""
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
    """A query as Grafana sends it, for all services and agents."""
    values = {"$__rate_interval": "15s", "$__range": "1m", "$agent": ".*", "$service": ".*", "$metric": metric}
    for variable, value in values.items():
        expr = expr.replace(variable, value)
    assert "$" not in expr, expr
    return expr


def test_the_files_are_what_the_code_makes(build: ModuleType) -> None:
    rendered = build.render()
    assert {file.name for file in rendered} == FILES == set(dashboards())
    assert [file.name for file, text in rendered.items() if file.read_text(encoding="utf-8") != text] == []


def test_a_file_that_was_edited_by_hand_is_named(build: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "grafana" / "build.py"
    (script.parent / "dashboards").mkdir(parents=True)
    script.write_text((GRAFANA / "build.py").read_text(encoding="utf-8"), encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False)

    assert run().returncode == 0
    assert (run("--check").returncode, run("--check").stdout) == (0, "")
    edited = script.parent / "dashboards" / "fleet.json"
    edited.write_text(edited.read_text(encoding="utf-8").replace("Turns per minute", "Turns"), encoding="utf-8")
    done = run("--check")
    assert done.returncode == 1
    assert "fleet.json is out of step" in done.stdout


def test_every_panel_says_what_it_shows_and_no_two_overlap() -> None:
    for dashboard in dashboards().values():
        taken: dict[tuple[int, int], str] = {}
        for panel in dashboard["panels"]:
            assert panel["title"]
            assert panel["type"] == "row" or panel["description"]
            at = panel["gridPos"]
            for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
                assert cell[0] < 24
                assert taken.setdefault(cell, panel["title"]) == panel["title"]
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(ids)) == len(ids)


def test_the_overview_has_quality_cost_latency_errors_and_coverage_and_one_metric_leads_to_traces() -> None:
    found = dashboards()
    rows = {panel["title"] for panel in found["fleet.json"]["panels"] if panel["type"] == "row"}
    assert rows >= {"Quality", "Cost and latency", "Errors", "Coverage of judging"}
    assert [query.place for query in queries() if query.exemplar and query.place.startswith("metric.json")]
    sources = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "agenteval.yaml").read_text(encoding="utf-8"))
    by_uid = {source["uid"]: source for source in sources["datasources"]}
    [destination] = by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert destination["name"] == "trace_id"
    assert destination["datasourceUid"] in by_uid


def test_every_series_that_is_asked_for_is_one_of_ours() -> None:
    exprs = [query.expr for query in queries()]
    for file in RULES:
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            exprs += [rule["expr"] for rule in group["rules"]]
    known = {semconv.prometheus_name(instrument) for instrument in semconv.INSTRUMENTS}
    asked = set(re.findall(r"\bagenteval_[a-z_]+[a-z](?=[{\[ )]|$)", "\n".join(exprs), re.MULTILINE))
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in asked} - known == set()
    assert len(asked) > 20


# --- against the real application --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, Prometheus]]:
    """A fleet that plays until every query, and every rule that records, has had its chance; Prometheus scrapes it."""
    folder = tmp_path_factory.mktemp("prometheus")
    rules = [hurried(file, folder) for file in RULES]
    with Fleet() as fleet:
        fleet.failing = 0.5
        fleet.play(1)  # counters that begin at their first value show no increase of it
        with Prometheus(folder, fleet.targets, rules, every=1000) as prometheus:
            wanted = {*(filled_in(query.expr) for query in queries()), *(rule["name"] for rule in records(prometheus))}
            until = time.monotonic() + 90
            fleet.raised = raised(prometheus)  # at any time: what was dropped once is soon a small share
            while (wanted or not fleet.raised >= RAISED) and time.monotonic() < until:
                fleet.play(3)
                fleet.raised |= raised(prometheus)
                wanted = {expr for expr in wanted if not shows(prometheus, expr)}
            yield fleet, prometheus


def hurried(rule: Path, folder: Path) -> Path:
    """A copy of a file of rules whose groups are evaluated as often as Prometheus scrapes."""
    text = yaml.safe_load(rule.read_text(encoding="utf-8"))
    for group in text["groups"]:
        group.pop("interval", None)
    file = folder / rule.name
    file.write_text(yaml.safe_dump(text), encoding="utf-8")
    return file


def shows(prometheus: Prometheus, expr: str) -> bool:
    """Whether there is a number, now or some time in these minutes."""
    return bool(prometheus.over_time(expr, 180))


def records(prometheus: Prometheus) -> list[dict[str, Any]]:
    return [rule for rule in prometheus.rules() if rule["type"] == "recording"]


@pytest.mark.slow
def test_every_panel_shows_the_real_application(watched: tuple[Fleet, Prometheus]) -> None:
    _, prometheus = watched
    assert len(queries()) > 40
    assert [query for query in queries() if not shows(prometheus, filled_in(query.expr))] == []


@pytest.mark.parametrize("metric", ["code_latency", "code_token_usage", "code_tool_success"])
def test_the_page_of_one_metric_shows_metrics_of_every_unit(watched: tuple[Fleet, Prometheus], metric: str) -> None:
    _, prometheus = watched
    values = [query for query in queries() if query.place.startswith("metric.json") and "__name__" in query.expr]
    assert len(values) >= 4
    assert [query for query in values if not shows(prometheus, filled_in(query.expr, metric))] == []


def test_the_choices_of_a_dashboard_are_there(watched: tuple[Fleet, Prometheus]) -> None:
    _, prometheus = watched
    choices = {}
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
                choices[variable["name"]] = prometheus.label_values(label, filled_in(selector))
    assert choices["service"] == set(AGENTS)
    assert choices["agent"] == {agent for agents in AGENTS.values() for agent in agents}
    assert choices["metric"] >= {"llm_relevance", "code_latency"}


def test_exemplars_lead_to_the_traces_of_turns(watched: tuple[Fleet, Prometheus]) -> None:
    fleet, prometheus = watched
    asked = [query for query in queries() if query.exemplar]
    assert {query.place.split(":")[0] for query in asked} >= {"fleet.json", "agent.json", "metric.json"}
    for query in asked:
        found = {exemplar["labels"]["trace_id"] for exemplar in prometheus.exemplars(filled_in(query.expr))}
        assert found, query
        assert found <= fleet.trace_ids


def test_every_rule_is_evaluated_and_those_that_record_have_series(watched: tuple[Fleet, Prometheus]) -> None:
    _, prometheus = watched
    rules = prometheus.rules()
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in records(prometheus) if not shows(prometheus, rule["name"])] == []
    assert len(records(prometheus)) >= 20


def test_what_alerts_look_at_is_there(watched: tuple[Fleet, Prometheus]) -> None:
    """An alert that asks for a series or a label that nobody writes stays silent for ever."""
    _, prometheus = watched
    alerts = [rule for rule in prometheus.rules() if rule["type"] == "alerting"]
    selector = re.compile(r"\b(?:agenteval[a-z0-9_:]+|up)(?:\{[^}]*\})?")
    asked = {found for rule in alerts for found in selector.findall(rule["query"])}
    assert len(asked) > 10
    missing = {found for found in asked if not shows(prometheus, f"count({found})")}
    assert missing == {
        "agenteval_serve_certificate_expiry_timestamp_seconds"
    }  # the fleet here has no certificate; tests/server/test_tls.py has


def raised(prometheus: Prometheus) -> set[str]:
    """Alerts whose condition holds; most of them wait for some minutes before they fire."""
    return {rule["name"] for rule in prometheus.rules() if rule["type"] == "alerting" and rule["state"] != "inactive"}


def test_alerts_are_raised_by_what_the_application_shows(watched: tuple[Fleet, Prometheus]) -> None:
    fleet, _ = watched
    assert RAISED - fleet.raised == set()


@pytest.mark.slow
def test_the_panels_can_be_drawn_for_the_documentation(watched: tuple[Fleet, Prometheus], tmp_path: Path) -> None:
    _, prometheus = watched
    pictures = module_of(ROOT / "scripts" / "panel_pictures.py")
    assert {f"{name}.json" for name in pictures.CHOICES} == FILES
    now = time.time()
    for name, choice in pictures.CHOICES.items():
        file = tmp_path / f"{name}.png"
        pictures.draw(name, choice, prometheus, now - 60, now, file)
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 30_000  # more than frames and titles


def test_the_documentation_shows_every_dashboard_and_says_what_the_pictures_are() -> None:
    text = (ROOT / "docs" / "operate" / "dashboards-and-alerts.md").read_text(encoding="utf-8")
    for name in FILES:
        picture = f"images/dashboard-{name.removesuffix('.json')}.png"
        assert f"(../{picture})" in text
        assert 20_000 < (ROOT / "docs" / picture).stat().st_size < 400_000
    assert "rendered by matplotlib from a real run, not a Grafana screenshot" in text
