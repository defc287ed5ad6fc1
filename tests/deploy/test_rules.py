"""Tests of the Prometheus rules: they are valid, promtool's unit tests pass, and each alert fires in a unit test."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from otel_agenteval.core.semconv import KNOWN_LABELS, SERVE_REQUESTS
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.server.receiver import FULL
from tests.support.judges import ScriptedModels
from tests.support.rig import chat_attributes
from tests.support.servers import program, until
from tests.support.service import request
from tests.support.sidecar import Sidecar

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yaml"))
TESTS = PROMETHEUS / "tests" / "agenteval.test.yaml"


def rules(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=600, check=False)


def unit_tests(folder: Path, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run the unit tests on a copy of the rules without one file."""
    for file in RULES:
        text = "groups: []" if file.name == without else file.read_text(encoding="utf-8")
        (folder / file.name).write_text(text, encoding="utf-8")
    (folder / "tests.yaml").write_text(TESTS.read_text(encoding="utf-8").replace("../rules/", ""), encoding="utf-8")
    return promtool("test", "rules", folder / "tests.yaml")


def test_the_rules_are_well_formed() -> None:
    done = promtool("check", "rules", *RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_unit_tests_pass_as_they_are_run_by_hand() -> None:
    done = promtool("test", "rules", TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_alert_is_seen_to_fire_by_a_unit_test(tmp_path: Path) -> None:
    alerts = {rule["alert"] for rule in rules(PROMETHEUS / "rules" / "agenteval-alerts.yaml")}
    done = unit_tests(tmp_path, without="agenteval-alerts.yaml")
    assert set(re.findall(r"alertname: ?(\w+)", done.stdout + done.stderr)) == alerts


def test_floors_are_of_metrics_that_there_are_and_below_one() -> None:
    known = {metric.name for metric in catalog()}
    for rule in rules(PROMETHEUS / "rules" / "agenteval-floors.yaml"):
        assert rule["labels"]["metric"] in known
        assert 0 < float(rule["expr"].removeprefix("vector(").removesuffix(")")) < 1


def test_every_alert_says_who_is_to_act_and_leads_to_its_place_in_the_runbook() -> None:
    for rule in rules(PROMETHEUS / "rules" / "agenteval-alerts.yaml"):
        assert rule["labels"].keys() == {"severity", "team"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        sections = re.split(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        said = {title.lower(): text.strip() for title, text in zip(sections[::2], sections[1::2], strict=True)}
        assert {"Meaning", "Impact", "Check"} <= set(re.findall(r"- \*\*(\w+)", said[anchor])), f"{rule['alert']} in {page}"
        assert anchor == rule["alert"].lower()


def test_the_alert_on_the_worker_s_queue_comes_before_senders_are_refused() -> None:
    [rule] = [rule for file in RULES for rule in rules(file) if rule.get("alert") == "AgentEvalQueueNearlyFull"]
    [threshold] = re.findall(r'queue="worker"\} > 0\) > ([\d.]+)', rule["expr"])
    assert 0 < float(threshold) < FULL


def test_every_outcome_of_a_request_that_is_refused_is_watched() -> None:
    by_name = {rule["alert"]: rule["expr"] for file in RULES for rule in rules(file) if "alert" in rule}
    [left_out] = re.findall(r'outcome!~"([^"]+)"', by_name["AgentEvalRequestsRefused"])
    [not_allowed] = re.findall(r'outcome=~"([^"]+)"', by_name["AgentEvalUnauthenticated"])
    outcomes = {outcome for group in KNOWN_LABELS[SERVE_REQUESTS] for outcome in group["outcome"]}
    harmless = {"ok", "partial", "not_found", "bad_method", "cancelled"}
    assert set(left_out.split("|")) == harmless | set(not_allowed.split("|"))
    assert set(left_out.split("|")) <= outcomes


Scrape = dict[str, float]
ABSENT: Scrape = {}


def test_no_alert_fires_for_a_healthy_sidecar(tmp_path: Path) -> None:
    """Report: AgentEvalJudgeBudgetSpent fired on each sidecar with a judge right after the start, with 99 % of the budget left."""
    models = ScriptedModels()
    models.play(*[{"score": 90, "reason": "Good."}] * 15)
    judge = {"base_url": models.url, "model": "scripted", "api_key": "test", "budget": {"calls_per_day": 1_000}}
    config = {
        "serve": {"token": "open-sesame"}, "judge": judge, "metrics": ["llm_relevance"],
        "outlets": {"store": str(tmp_path / "scores.db"), "jsonl": str(tmp_path / "scores.jsonl")},
    }  # fmt: skip
    with Sidecar(tmp_path, config, journal=True) as sidecar:
        started = scrape(sidecar)
        worked = [after_turns(sidecar, traces) for traces in (range(1, 6), range(6, 11))]
        sidecar.stop()
        sidecar.start()
        again = [scrape(sidecar), after_turns(sidecar, range(11, 16))]
    models.close()
    gated = [
        value for name, value in worked[-1].items() if name.startswith("agenteval_judge_requests_total{") and '"gated"' in name
    ]
    assert gated == [0.0]
    hours = [(ABSENT, 10), (started, 80), (worked[0], 5), (worked[1], 380), (ABSENT, 3), (again[0], 70), (again[1], 80)]
    assert firing(tmp_path, [scraped for scraped, minutes in hours for _ in range(minutes)]) == ""


def test_a_scrape_of_a_faulty_sidecar_makes_alerts_fire(tmp_path: Path) -> None:
    """Shows that the test above would detect alerts."""
    assert "AgentEvalReloadFailed" in firing(tmp_path, [{sample("agenteval_config_last_reload_successful", {}): 0.0}] * 60)


def scrape(sidecar: Sidecar) -> Scrape:
    with urllib.request.urlopen(f"http://{sidecar.metrics}/metrics", timeout=60) as page:
        families = list(text_string_to_metric_families(page.read().decode()))
    return {
        sample("up", {}): 1.0,
        **{sample(one.name, one.labels): one.value for family in families for one in family.samples},
    }


def sample(name: str, labels: Mapping[str, str]) -> str:
    """Return a sample's name and labels as Prometheus stores them."""
    given = {**labels, "job": "agenteval", "instance": "a"}
    return f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in sorted(given.items()))}}}"


def after_turns(sidecar: Sidecar, traces: Sequence[int]) -> Scrape:
    """Send turns, and scrape after all scores are judged and stored."""
    before = sidecar.metric("agenteval_judge_requests_total", outcome="ok")
    for trace in traces:
        body = request({"trace": trace, "id": 1, "attributes": chat_attributes(f"Where is {trace}?", "There.")})
        headers = {"Content-Type": "application/x-protobuf", "Authorization": "Bearer open-sesame"}
        urllib.request.urlopen(urllib.request.Request(f"{sidecar.http}/v1/traces", body, headers), timeout=60).close()
    until(
        lambda: (
            sidecar.metric("agenteval_judge_requests_total", outcome="ok") == before + len(traces)
            and not sidecar.metric("agenteval_journal_size_bytes")
            and not sidecar.metric("agenteval_queue_size")
        ),
        "all is judged and delivered",
    )
    return scrape(sidecar)


def firing(folder: Path, minutes: Sequence[Scrape]) -> str:
    """Return the alerts that fire while Prometheus scrapes this page every minute, as promtool reports them."""
    series = [
        {"series": name, "values": " ".join(f"{scraped[name]:.9f}" if name in scraped else "_" for scraped in minutes)}
        for name in sorted({name for scraped in minutes for name in scraped})
    ]
    alerts = [rule["alert"] for rule in rules(PROMETHEUS / "rules" / "agenteval-alerts.yaml")]
    expected = [
        {"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": []}
        for alert in alerts
        for minute in range(1, len(minutes), 7)
    ]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    content = {"rule_files": [str(file) for file in RULES], "evaluation_interval": "1m", "tests": [test]}
    (folder / "healthy.yaml").write_text(json.dumps(content), encoding="utf-8")
    done = promtool("test", "rules", folder / "healthy.yaml")
    return "" if done.returncode == 0 else done.stdout + done.stderr
