"""Pass rates and p values of the same data are equal in every report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core.score import Score, pass_rate
from otel_agenteval.core.turn import Turn
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from otel_agenteval.report import Report, Run, compare
from otel_agenteval.report.experiment import Experiment, Trial
from otel_agenteval.report.formatting import p_value
from otel_agenteval.report.html import render_html
from otel_agenteval.report.junit import render_junit
from otel_agenteval.report.markdown import render_markdown
from otel_agenteval.report.outputs import render_comparison
from otel_agenteval.report.releases import compare_groups, estimates_of
from otel_agenteval.report.run import About, SeriesSummary
from tests.support.page import ServedPage
from tests.support.stored_turns import filled, score_row, turn_row

CASES = 30
OUTCOMES = [
    (1.0, {}),
    (0.0, {}),
    (1.0, {}),
    (1.0, {"vacuous": True}),
    (0.0, {"vacuous": True}),
    (None, {"reason": "missing:output"}),
]
"""Two passes, a failure, and three results that don't count."""


def scores() -> list[Score]:
    return [
        Score("code_a", status="skipped", detail=detail) if value is None else Score("code_a", value, value >= 0.5, detail=detail)
        for value, detail in OUTCOMES
    ]


def test_vacuous_and_skipped_results_count_in_no_pass_rate(tmp_path: Path) -> None:
    run = Run()
    for number, score in enumerate(scores()):
        run.add(About(f"t{number}"), score)
    (series,) = run.series.values()
    assert series.summary().pass_rate == pass_rate(2, 1) == pytest.approx(2 / 3)
    assert "66.7 %" in render_markdown(Report(run))
    assert len(re.findall(r"66\.7 %", render_html(Report(run)))) >= 2  # of the metric and of the agent
    trials = [Trial(f"c{number}", 1, [(Turn(turn_id=f"t{number}"), [score])], None, 0.1) for number, score in enumerate(scores())]
    (summary,) = Experiment(trials).summary()
    assert summary.pass_rate == pytest.approx(2 / 3)
    assert len(Experiment(trials).failures) == 1
    stored = [
        (turn_row(number), [score_row(turn_row(number), "code_a", value, detail=detail)])
        for number, (value, detail) in enumerate(OUTCOMES)
        if value is not None
    ]
    with ServedPage(filled(tmp_path / "s.db", stored)) as served:
        (line,) = served.get("estimates", by="agent")["estimates"]
        assert (line["pass_rate"], line["passed"], line["failed"]) == (pytest.approx(2 / 3), 2, 1)
        assert len(list(served.all_turns(metric="code_a", outcome="fail"))) == 1


def test_page_weights_the_pass_rate_of_sampled_scores(tmp_path: Path) -> None:
    stored = [
        (turn := turn_row(number), [score_row(turn, "llm_a", value, sample_probability=probability)])
        for number, (value, probability) in enumerate([(1.0, 0.1), (0.0, 1.0), (0.0, 1.0)])
    ]
    with ServedPage(filled(tmp_path / "s.db", stored)) as served:
        (line,) = served.get("estimates", by="agent")["estimates"]
        with StoreReader(served.api.path) as reader:
            (estimated,) = estimates_of(reader, "agent", Wanted())
    assert line["pass_rate"] == pytest.approx(10 / 12) == line["mean"] == estimated.pass_rate


def test_fleet_lists_the_worst_first(tmp_path: Path) -> None:
    stored = []
    for number, (agent, bad) in enumerate([("good", 0.0), ("bad", 1.0), ("good", 0.0), ("bad", 0.0)]):
        turn = turn_row(number, agent=agent)
        rows = [score_row(turn, "code_a", 1.0 - bad), score_row(turn, "code_b", 1.0), score_row(turn, "code_n", 3.0, passed=None)]
        stored.append((turn, rows))
    with ServedPage(filled(tmp_path / "s.db", stored)) as served:
        found = served.get("estimates", by="agent")
    assert [group["group"] for group in found["groups"]] == ["bad", "good"]
    assert [(one["metric"], one["group"]) for one in found["estimates"]] == [
        ("code_a", "bad"), ("code_a", "good"), ("code_b", "bad"), ("code_b", "good"), ("code_n", "bad"), ("code_n", "good"),
    ]  # fmt: skip


# --- p values


def of_cases(tmp_path: Path, **of_after: Any) -> tuple[str, Run, Run]:
    """Return the scores of two versions on the same cases, in a store and as two runs. The second version fails every third case."""
    stored, runs = [], (Run(), Run())
    for side, version in enumerate(("1.0", "1.1")):
        for case in range(CASES):
            turn = turn_row(side * CASES + case, service_version=version, case_key=f"case-{case}")
            hard = case % 5 == 0  # fails in both
            value = 0.0 if hard or (side and case % 3 == 1) else 1.0
            more = of_after if side else {}
            stored.append((turn, [score_row(turn, "code_a", value, type="boolean", threshold=None, **more)]))
            score = Score("code_a", value, value == 1.0, type="boolean")
            runs[side].add(About(turn["turn_id"], f"case-{case}"), score)
    return filled(tmp_path / "s.db", stored), *runs


def test_compare_is_paired_by_case_like_every_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, before, after = of_cases(tmp_path)
    comparison = compare(before, after, "b")
    (change,) = comparison.changes
    assert (comparison.paired_by, change.paired, change.counts) == ("case id", True, (CASES, CASES))
    assert change.p < 0.05
    with StoreReader(store) as reader:
        (line,) = compare_groups(reader, "version", Wanted(), ("1.0", "1.1")).lines
    assert (line.difference.paired, line.difference.turns, line.verdict) == (True, (CASES, CASES), "worse")
    assert (line.difference.p, line.adjusted) == (change.p, change.adjusted)
    assert line.difference.interval == change.interval
    said = p_value(change.adjusted)
    number = said.removeprefix("p = ")
    for text in (render_comparison(comparison), render_junit(Report(after, comparison))):
        assert said in text
    for text in (render_markdown(Report(after, comparison)), render_html(Report(after, comparison))):
        assert number in text
    for format_ in ("table", "markdown", "html"):
        assert main(["compare", "--store", store, "--format", format_]) == 0
        assert said in capsys.readouterr().out
    assert main(["compare", "--store", store, "--format", "json"]) == 0
    (metric,) = json.loads(capsys.readouterr().out)["metrics"]
    assert (metric["p"], metric["paired_by"], metric["turns"]) == (change.adjusted, "case", [CASES, CASES])
    with ServedPage(store) as served:
        (shown,) = served.get("compare", by="version", before="1.0", after="1.1")["lines"]
    assert (shown["difference"]["p"], shown["difference"]["pairs"]) == (change.adjusted, CASES)


def live_turns(tmp_path: Path, *, turns_of_conversation: int) -> tuple[str, Run, Run]:
    """Return live traffic of two versions with a few repeated questions. The second version fails more and costs less."""
    stored, runs = [], (Run(), Run())
    for side, version in enumerate(("1.0", "1.1")):
        for number in range(240):
            conversation = f"{version} {number // turns_of_conversation}"
            turn = turn_row(side * 240 + number, service_version=version, conversation_id=conversation, case_key=f"#{number % 7}")
            place = number // turns_of_conversation % 10
            value, cost = float(place >= (3 if side else 1)), (1 + number % 50) ** 2 * (0.3 if side else 1)
            facts = {"code_tool_success": value, "code_cost": cost}
            rows = [
                score_row(turn, "code_tool_success", value, passed=value == 1, threshold=0.7),
                score_row(turn, "code_cost", cost, passed=None, threshold=None, unit="USD", direction="down"),
            ]
            stored.append((turn, rows))
            about = About(turn["turn_id"], conversation_id=conversation)
            runs[side].add(about, Score("code_tool_success", facts["code_tool_success"], value == 1, threshold=0.7))
            runs[side].add(about, Score("code_cost", facts["code_cost"], None, unit="USD", direction="down"))
    return filled(tmp_path / "s.db", stored), *runs


@pytest.mark.parametrize("turns_of_conversation", [1, 4])
def test_live_turns_have_one_comparison_everywhere(
    turns_of_conversation: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, before, after = live_turns(tmp_path, turns_of_conversation=turns_of_conversation)
    changes = {(change.label, change.measure): change for change in compare(before, after, "b").changes}
    assert {key: change.verdict for key, change in changes.items()} == {
        ("code_cost", "mean"): "improvement", ("code_tool_success", "mean"): "regression", ("code_tool_success", "pass rate"): "regression",
    }  # fmt: skip
    assert all(change.counts == (240, 240) and not change.paired for change in changes.values())
    assert main(["compare", "--store", store, "--format", "json"]) == 0
    for line in json.loads(capsys.readouterr().out)["metrics"]:
        change = changes[line["metric"], line["measure"]]
        assert (line["p"], line["p_unadjusted"]) == pytest.approx((change.adjusted, change.p))
        assert (line["before"]["mean"], *line["interval"]) == pytest.approx((change.before, *change.interval))
    with ServedPage(store) as served:
        lines = served.get("compare", by="version", before="1.0", after="1.1")["lines"]
    for line in lines:
        change = changes[line["metric"], "mean"]
        assert line["difference"]["p"] == pytest.approx(change.adjusted)
        assert line["difference"]["size"] == pytest.approx(change.difference)


def test_sampled_scores_are_weighted_and_not_paired(tmp_path: Path) -> None:
    store, _, _ = of_cases(tmp_path, sample_probability=0.5)
    with StoreReader(store) as reader:
        (line,) = compare_groups(reader, "version", Wanted(), ("1.0", "1.1")).lines
    assert (line.difference.paired, line.difference.turns) == (False, (CASES, CASES))


def test_groups_with_few_common_cases_are_not_paired(tmp_path: Path) -> None:
    stored = []
    for number in range(40):
        case = number % 20 if number % 20 < 9 else number
        turn = turn_row(number, service_version="1.0" if number < 20 else "1.1", case_key=f"case-{case}")
        stored.append((turn, [score_row(turn, "code_a", float(number % 3 > 0))]))
    with StoreReader(filled(tmp_path / "s.db", stored)) as reader:
        lines = compare_groups(reader, "version", Wanted(), ("1.0", "1.1")).lines
    assert [(line.measure, line.difference.paired) for line in lines] == [("mean", False), ("pass rate", False)]


def test_repetitions_of_a_case_are_one_draw() -> None:
    """With repetitions, the interval of a pass rate needs five cases, and is wider than for independent turns."""

    def summary(cases: int, repetitions: int) -> SeriesSummary:
        run = Run()
        for number in range(cases * repetitions):
            passed = number % cases > 0
            score = Score("code_contains", float(passed), passed, kind="code")
            run.add(About(f"{number:032x}-{1:016x}", case_id=f"case {number % cases}"), score)
        (series,) = run.series.values()
        return series.summary()

    assert summary(4, 3).rate_interval is None
    assert summary(4, 1).rate_interval is not None
    (low, high), alone = summary(6, 5).rate_interval or (0, 0), summary(30, 1).rate_interval or (0, 0)
    assert high - low > 0.3
    assert high - low > alone[1] - alone[0]
