"""Rules for Prometheus: well-formed, unit-tested by promtool, and each alert fires in a unit test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_agenteval.core.semconv import KNOWN_LABELS, SERVE_REQUESTS
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.server.receiver import FULL
from tests.support.servers import program

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yaml"))
TESTS = PROMETHEUS / "tests" / "agenteval.test.yaml"


def rules(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=600, check=False)


def unit_tests(folder: Path, without: str = "") -> subprocess.CompletedProcess[str]:
    """The unit tests on a copy of the rules, without those of one file."""
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
