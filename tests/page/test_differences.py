"""Differences of failed turns in the API and the web UI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core import jsonio
from otel_agenteval.evaluation.turn_facts import FactCondition
from otel_agenteval.outlets.store.views import Filter, Views
from otel_agenteval.outlets.store.writer import Rows
from otel_agenteval.page.api import Reader
from tests.support.page import ServedPage
from tests.support.postgres import Anywhere
from tests.support.stored_turns import NOW, failing_turns, filled, store_at

from .test_browser import assert_phone_scrolls_only_the_table, opened, violations

PROMPT = "<img src=x onerror=\"document.title='owned'\">"
METRIC = "code_tool_success"
CHANGE = {
    "at": NOW - 100, "metric": METRIC, "agent": "travel", "service": None, "tenant": None, "verdict": "worse", "detector": "cusum", "mean_before": 0.9, "mean_after": 0.5,
    "ci_low": -0.5, "ci_high": -0.3, "since": NOW - 3_550, "n_eff": 100.0, "version_before": None, "version": None, "turns": "[]", "instance_id": None,
}  # fmt: skip


def facts_in(found: dict[str, Any]) -> list[set[tuple[str, str]]]:
    return [{(fact["attribute"], fact["value"]) for fact in one["facts"]} for one in found["findings"]]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = filled(tmp_path_factory.mktemp("differences") / "s.db", failing_turns("model", "small", PROMPT))
    store = store_at(path)
    store.write(Rows(changes=[CHANGE, {**CHANGE, "metric": "code_refusal", "verdict": "better"}]))
    store.close()
    with ServedPage(path) as served:
        yield served.url


@pytest.fixture
def tab(browser: Any, url: str) -> Iterator[Any]:
    yield from opened(browser, url)


# --- the API


def test_findings_equal_those_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = filled(tmp_path / "s.db", failing_turns("model", "small", PROMPT))
    group = f"gen_ai.prompt.version = {PROMPT}"
    with ServedPage(path) as served:
        for route, option, value in (("differences", "metric", METRIC), ("differences/group", "group", group)):
            assert main(["differences", "--store", path, f"--{option}", value, "--format", "json"]) == 0
            assert [served.get(route, **{option: value})] == jsonio.loads(capsys.readouterr().out)
        assert facts_in(served.get("differences", metric=METRIC))[0] == {("model", "small"), ("gen_ai.prompt.version", PROMPT)}
        assert served.get("differences", metric="code_unknown")["findings"] == []
        for params in ({}, {"group": "model"}, {"group": "modle=m1"}, {"group": group, "metric": METRIC}):
            assert served.client.get("/api/v1/differences", params=params).status_code == 400


CONDITIONS = (
    "model=small", f"gen_ai.prompt.version = {PROMPT}", "duration_s>0.5", "duration_s ≤ 0.5", "tool=pay", "tool=pa", "service.version=1.4",
    "model<5", "unknown=0",
)  # fmt: skip


def test_turns_with_a_fact_are_listed(anywhere: Anywhere) -> None:
    rows = list(failing_turns("model", "small", PROMPT))
    with ServedPage(filled(anywhere(), rows)) as served:
        for text in CONDITIONS:
            condition = FactCondition.parse(text, "")
            expected = {
                turn["turn_id"]
                for turn, _ in rows
                if condition.holds(
                    {
                        **jsonio.loads(turn["attributes"]),
                        **jsonio.loads(turn["facts"]),
                        "service.version": turn["service_version"],
                    }
                )
            }
            assert {turn["turn_id"] for turn in served.all_turns(fact=text)} == expected, text
        both = list(served.all_turns(fact=["model=small", "duration_s>0.5"]))
        assert 0 < len(both) < 200
        assert served.client.get("/api/v1/turns", params={"fact": "model"}).status_code == 400


def test_metric_errors_are_no_failed_turns(anywhere: Anywhere) -> None:
    rows = list(failing_turns("language", "de", PROMPT))
    for _, scores in rows[::10]:
        scores[0].update(status="error", error_type="timeout", value=None, passed=None)
    with ServedPage(filled(anywhere(), rows)) as served:
        found = served.get("differences", metric=METRIC)
        failed = list(served.all_turns(metric=METRIC, outcome="fail"))
        assert found["failed"] == len(failed)
        assert found["failed"] + found["passed"] == 360


def test_sample_of_many_verdicts_is_random(anywhere: Anywhere) -> None:
    """Failures and passes are drawn from the whole time, so that a release in the middle isn't a difference."""
    rows = list(failing_turns("language", "de", PROMPT, count=1_500))
    counts = [sum(scores[0]["passed"] == verdict for _, scores in rows) for verdict in (0, 1)]
    middle = sorted(turn["turn_id"] for turn, _ in rows)[750]
    with Views(filled(anywhere(), rows)) as views:
        found = views.verdicts(METRIC, most=100)
        assert found == views.verdicts(METRIC, most=100)
        for bad in (True, False):
            sample = [row.turn_id < middle for row in found if row.bad is bad]
            assert 100 <= len(sample) <= 250
            assert 0.3 <= sum(sample) / len(sample) <= 0.7
        everything = views.verdicts(METRIC, most=1_500)
        assert [sum(row.bad is bad for row in everything) for bad in (True, False)] == counts
        begun = NOW - 3_600 + 1_400
        latest = views.filtered_verdicts(Filter(metric=METRIC, since=begun, agents=("travel",)))
        assert sorted(row.turn_id for row in latest) == sorted(turn["turn_id"] for turn, _ in rows if turn["start"] >= begun)


def test_filters_and_tenants_limit_the_turns(anywhere: Anywhere) -> None:
    path = filled(
        anywhere(),
        [
            *failing_turns("language", "de", PROMPT, tenant="acme"),
            *failing_turns("model", "tiny", PROMPT, tenant="globex", start=400, count=300),
        ],
    )
    with ServedPage(path) as served:
        everything = served.get("differences", metric=METRIC)
        assert everything["failed"] + everything["passed"] == 700
        for params, count in (({"version": "1.4"}, 350), ({"agent": "nobody"}, 0), ({"until": NOW - 3_500}, 100)):
            found = served.get("differences", metric=METRIC, **params)
            assert found["failed"] + found["passed"] == count
    with ServedPage(path, readers={"t": Reader("read", "globex")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        found = served.get("differences", metric=METRIC)
        assert found["failed"] + found["passed"] == 300
        assert ("model", "tiny") in facts_in(found)[0]
        assert "language" not in jsonio.dumps(found)


# --- the page


def test_red_number_leads_to_facts_and_their_turns(tab: Any) -> None:
    tab.goto("/")
    tab.get_by_role("link", name=f"differences of {METRIC}, travel").click()
    tab.wait_for_url(f"**/differences?agent=travel&metric={METRIC}")
    row = tab.locator("main tbody tr").first
    row.wait_for()
    assert {"model = small", f"gen_ai.prompt.version = {PROMPT}"} == {*row.locator("td").first.text_content().split(" and ")}
    assert row.locator("svg.interval").count() == 1
    assert tab.title() == "Differences – otel-agenteval"
    row.get_by_role("link", name="model = small").click()
    tab.wait_for_url(f"**/turns?agent=travel&metric={METRIC}&outcome=fail&model=small")
    tab.get_by_role("main").get_by_role("link", name="Differences").click()
    tab.wait_for_url(f"**/differences?agent=travel&metric={METRIC}**")


def test_fleet_shows_changes_for_the_worse_and_failures_first(tab: Any) -> None:
    tab.goto("/")
    tab.wait_for_selector("svg.interval")
    tab.get_by_role("heading", name="Over time").wait_for()
    titles = tab.locator("main h2").all_text_contents()
    assert titles[:2] == ["Changes for the worse", "Most failures"]
    assert titles[-2:] == ["Other changes", "Estimates"]
    most = tab.get_by_role("region", name="Most failures").locator("li").all_text_contents()
    assert [re.findall(r"[\d.]+|code_\w+", one) for one in most] == [
        ["67", METRIC, "16.8", "400"], ["2", "code_refusal", "0.5", "400"],
    ]  # fmt: skip
    tab.get_by_role("link", name=f"Differences of {METRIC} since its change").click()
    tab.wait_for_url(f"**/differences?metric={METRIC}&agent=travel&since={NOW - 3_550:.0f}")
    tab.locator("main tbody tr").first.wait_for()


def test_phone_scrolls_only_the_table(browser: Any, url: str) -> None:
    for tab in opened(browser, url):
        assert_phone_scrolls_only_the_table(tab, f"/differences?metric={METRIC}")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_differences(scheme: str, browser: Any, url: str) -> None:
    for tab in opened(browser, url, color_scheme=scheme, bypass_csp=True):
        assert violations(tab, ("/", "/differences", f"/differences?metric={METRIC}")) == []
