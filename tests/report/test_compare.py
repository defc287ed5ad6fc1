"""Comparison of two made-up runs: regressions, noise, and values that can't be compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import AgentEvalError
from otel_agenteval.report import Report, Run, compare
from otel_agenteval.report.compare import Comparison, MetricChange
from otel_agenteval.report.formatting import describe_pairing, remarks
from otel_agenteval.report.outputs import render_comparison
from tests.report.made_up import about, run_of, score

GOOD = [0.9, 0.8, 0.85, 0.95, 0.7, 0.9, 0.8, 0.75, 0.9, 0.85] * 3
BAD = [value - 0.3 - 0.01 * (i % 3) for i, value in enumerate(GOOD)]
PASSES, FAILS = [True] * 27 + [False] * 3, [True] * 12 + [False] * 18


def only(comparison: Comparison) -> MetricChange:
    (change,) = comparison.changes
    return change


# --- verdicts


@pytest.mark.parametrize("direction", ["up", "neutral"])
@pytest.mark.parametrize("values", [GOOD, PASSES, [0.5], [True]], ids=["numbers", "verdicts", "one number", "one verdict"])
def test_identical_runs_never_regress(values: list[Any], direction: str) -> None:
    runs = [run_of({"code_a": values}, direction=direction, policy="gate") for _ in range(2)]
    other = run_of({"code_a": values}, prefix="other", direction=direction, policy="gate")
    for after in (runs[1], other):
        comparison = compare(runs[0], after, "b", {"all"})
        assert comparison.regressions == []
        assert only(comparison).p == pytest.approx(1)
        assert Report(after, comparison).failures == [] or values is PASSES  # whose gates fail by themselves


@pytest.mark.parametrize("prefix", ["turn", "other"], ids=["paired", "unpaired"])
@pytest.mark.parametrize(
    ("before", "after", "direction", "verdict"),
    [
        pytest.param(GOOD, BAD, "up", "regression", id="a mean falls"),
        pytest.param(BAD, GOOD, "up", "improvement", id="a mean rises"),
        pytest.param(BAD, GOOD, "down", "regression", id="a mean rises where less is better"),
        pytest.param(GOOD, BAD, "down", "improvement", id="a mean falls where less is better"),
        pytest.param(GOOD, BAD, "neutral", "changed", id="a neutral mean"),
        pytest.param(PASSES, FAILS, "up", "regression", id="a pass rate falls"),
        pytest.param(FAILS, PASSES, "up", "improvement", id="a pass rate rises"),
        pytest.param(PASSES, FAILS, "down", "regression", id="a pass rate is better when it is higher, whatever the direction"),
        pytest.param(PASSES, FAILS, "neutral", "changed", id="a detector"),
    ],
)
def test_what_has_clearly_changed_is_said(before: list[Any], after: list[Any], direction: str, verdict: str, prefix: str) -> None:
    runs = run_of({"code_a": before}, direction=direction), run_of({"code_a": after}, prefix=prefix, direction=direction)
    comparison = compare(*runs, "b")
    change = only(comparison)
    assert (change.verdict, change.paired, change.counts) == (verdict, prefix == "turn", (30, 30))
    assert change.interval[0] <= change.difference <= change.interval[1]
    assert not change.interval[0] <= 0 <= change.interval[1]
    assert comparison.regressions == []  # nobody watches


BLANK = oa.Score("code_a", status="skipped", detail={"reason": "empty_output"})
ERROR = oa.Score("code_a", status="error", error_type="timeout")


@pytest.mark.parametrize("prefix", ["turn", "other"], ids=["paired", "unpaired"])
@pytest.mark.parametrize("without", [BLANK, ERROR], ids=["blank answers", "errors"])
def test_lost_values_are_a_regression(without: oa.Score, prefix: str) -> None:
    before = run_of({"code_a": GOOD})
    after = run_of({"code_a": GOOD[:15]}, prefix=prefix)
    for i in range(15, 30):
        after.add(about(i, prefix=prefix), without)
    comparison = compare(before, after, "b", {"code_a"})
    by_measure = {change.measure: change for change in comparison.changes}
    lost = by_measure["share with a value"]
    assert (lost.before, lost.after, lost.verdict) == (1, 0.5, "regression")
    assert comparison.regressions == [lost]
    assert by_measure["mean"].verdict == "no change shown"
    what = "turns" if prefix == "turn" else "cases"
    assert f"code_a: 15 of 30 {what} have no value (0 before)" in remarks(comparison)
    assert {change.measure: change.verdict for change in compare(after, before, "b").changes}[lost.measure] == "improvement"


def test_other_skips_are_not_a_regression() -> None:
    before, after = run_of({"code_a": GOOD}), run_of({"code_a": GOOD[:15]})
    for i in range(15, 30):
        after.add(about(i), oa.Score("code_a", status="skipped", detail={"reason": "missing:tool_calls"}))
    assert "share with a value" not in {change.measure for change in compare(before, after, "b", {"all"}).changes}


def test_equal_losses_are_not_compared() -> None:
    runs = [run_of({"code_a": [*GOOD, None, None]}, prefix=prefix) for prefix in ("turn", "turn", "other")]
    for after in runs[1:]:
        assert only(compare(runs[0], after, "b", {"all"})).measure == "mean"


def test_ids_made_of_inputs_pair_by_input() -> None:
    ids = [f"input-{number:010x}" for number in range(10)]
    runs = [run_of({"code_a": GOOD[:10]}, prefix=prefix, cases=ids) for prefix in "ab"]
    comparison = compare(*runs, "b")
    assert (comparison.paired_by, comparison.pairs, comparison.repeated) == ("input", 10, False)
    assert "10 pairs by input" in describe_pairing(comparison)
    runs = [run_of({"code_a": GOOD[:11]}, prefix=prefix, cases=[*ids, f"{ids[0]}-2"]) for prefix in "ab"]
    assert any("paired by their position" in remark for remark in remarks(compare(*runs, "b")))


def test_effect_sizes_and_counts_are_those_of_the_design() -> None:
    paired = only(compare(run_of({"code_a": [1, 2, 3, 4]}), run_of({"code_a": [2, 4, 3, 6]}), "b"))
    assert (paired.effect, paired.difference) == (pytest.approx(1.25 / np.std([1, 2, 0, 2], ddof=1)), 1.25)
    unpaired = only(compare(run_of({"code_a": [1, 2, 3, 4]}), run_of({"code_a": [2, 4, 3]}, prefix="x"), "b"))
    assert (unpaired.effect, unpaired.counts) == (pytest.approx((6 - 3) / 12), (4, 3))


@pytest.mark.parametrize(
    ("prefix", "n", "verdict"), [("turn", 5, "too few"), ("turn", 6, "regression"), ("x", 5, "too few"), ("x", 6, "regression")]
)
def test_few_values_are_said_to_be_few(prefix: str, n: int, verdict: str) -> None:
    assert only(compare(run_of({"code_a": GOOD[:n]}), run_of({"code_a": BAD[:n]}, prefix=prefix), "b")).verdict == verdict


@pytest.mark.slow
def test_noise_in_twenty_metrics_stays_quiet() -> None:
    generator, alarms = np.random.default_rng(11), 0

    def noise(kind: int) -> list[Any]:
        numbers = (
            generator.normal(0.7, 0.2, 40),
            generator.random(40) < 0.85,
            generator.exponential(3, 40),
            np.ones(40, dtype=bool),
        )
        return numbers[kind].tolist()

    for trial in range(60):
        before, after = ({f"code_{i}": noise(i % 4) for i in range(20)} for _ in range(2))
        prefix = "turn" if trial % 2 else "other"
        alarms += bool(compare(run_of(before), run_of(after, prefix=prefix), "b", {"all"}).regressions)
    assert alarms <= 4  # 2.5 % of 60 are regressions by chance, half of the two-sided 5 %


def test_metrics_that_do_not_vary_do_not_weigh_on_the_others() -> None:
    before, after = ([True] * 20, [False] * 7 + [True] * 13)
    quiet = {f"code_{i}": [True] * 20 for i in range(40)}
    comparison = compare(run_of({**quiet, "code_a": before}), run_of({**quiet, "code_a": after}), "b", {"code_a"})
    (regression,) = comparison.regressions
    assert regression.adjusted == regression.p == pytest.approx(2 / 2**7)


# --- what fails


@pytest.mark.parametrize(
    ("policy", "watch", "fails"),
    [
        ("trend", set(), False),
        ("gate", set(), True),
        ("trend", {"code_a"}, True),
        ("trend", {"all"}, True),
        ("trend", {"code_b"}, False),
    ],
)
def test_regressions_fail_where_the_metric_is_watched(policy: str, watch: set[str], fails: bool) -> None:
    comparison = compare(run_of({"code_a": GOOD}), run_of({"code_a": BAD}, policy=policy), "b", watch)
    assert bool(comparison.regressions) is fails
    assert [line.split(":")[0] for line in Report(run_of({}), comparison).failures] == ["regression of code_a"] * fails


def test_a_watched_metric_that_only_errs_now_is_a_failure() -> None:
    after = Run()
    for i in range(30):
        after.add(about(i), oa.Score("code_a", status="error", error_type="JudgeError"))
    comparison = compare(run_of({"code_a": GOOD}), after, "b", {"code_a"})
    assert Report(after, comparison).failures == ["code_a can't be compared: this run has no value"]
    assert comparison.errored == [("code_a", 0, 30)]
    assert compare(run_of({"code_a": GOOD}), after, "b").lost == []


# --- pairing


def test_turns_pair_by_case_where_the_ids_of_a_run_are_new() -> None:
    cases = [f"case-{i}" for i in range(30)]
    before = run_of({"code_a": GOOD}, cases=cases)
    comparison = compare(before, run_of({"code_a": BAD}, prefix="x", cases=[*cases[:20], *map(str, range(10))]), "b")
    assert (comparison.paired_by, comparison.pairs, only(comparison).counts) == ("case id", 20, (20, 20))
    assert describe_pairing(comparison) == "30 turns before, 30 turns now; 20 pairs by case id"


def test_too_few_common_ids_are_no_pairing() -> None:
    cases = [f"case-{i}" for i in range(30)]
    others = [*cases[:2], *map(str, range(28))]
    comparison = compare(run_of({"code_a": GOOD}, cases=cases), run_of({"code_a": GOOD}, prefix="x", cases=others), "b")
    assert (comparison.paired_by, only(comparison).paired, only(comparison).counts) == (None, False, (30, 30))
    assert "only 2 ids in both, so the turns are compared as independent samples" in describe_pairing(comparison)


def test_a_metric_that_applies_to_other_turns_of_paired_runs_is_compared_without_pairs() -> None:
    before = run_of({"code_a": [*GOOD[:16], *[None] * 14], "code_b": GOOD})
    after = run_of({"code_a": [*[None] * 14, *GOOD[:16]], "code_b": GOOD})
    comparison = compare(before, after, "b")
    assert [(change.paired, change.counts) for change in comparison.changes] == [(False, (16, 16)), (True, (30, 30))]
    assert comparison.disjoint == []


def test_metric_without_a_common_case_is_named() -> None:
    """Report: 2 values before and 58 values of other cases now were an improvement with p = 0.0011."""
    before, after = run_of({"code_a": [0, 0, *[None] * 58]}), run_of({"code_a": [None, None, *[1] * 58]})
    comparison = compare(before, after, "b")
    assert [(change.counts, change.verdict) for change in comparison.changes] == [((2, 58), "too few")]
    assert comparison.disjoint == ["code_a"]
    assert any("no turn has a value in both runs" in remark for remark in remarks(comparison))
    assert compare(run_of({"code_a": GOOD}), run_of({"code_a": GOOD}, prefix="x"), "b").disjoint == []


def test_repetitions_of_a_case_count_once() -> None:
    cases = [f"case-{i // 3}" for i in range(30)]
    before, after = run_of({"code_a": PASSES}, cases=cases), run_of({"code_a": FAILS}, prefix="x", cases=cases)
    change = only(compare(before, after, "b"))
    assert (change.counts, change.measure, change.before, change.after) == (
        (10, 10),
        "pass rate",
        0.9,
        0.4,
    )


def test_a_number_with_a_bound_is_compared_by_its_verdicts_too() -> None:
    def run(values: list[float], threshold: float) -> Run:
        found = Run()
        for i, value in enumerate(values):
            found.add(about(i), oa.Score("code_a", value, value >= threshold, threshold=threshold))
        return found

    comparison = compare(run(GOOD, 0.6), run(BAD, 0.6), "b")
    verdicts = {change.measure: change.verdict for change in comparison.changes}
    assert verdicts == {"mean": "regression", "pass rate": "regression"}
    moved = compare(run(GOOD, 0.6), run(BAD, 0.5), "b")
    assert [change.measure for change in moved.changes] == ["mean"]
    assert moved.not_compared == [("code_a", "pass rate: threshold 0.6 before, 0.5 now")]


# --- what cannot be compared


def test_new_missing_and_incomparable_metrics_are_named() -> None:
    before, after = run_of({"code_gone": GOOD, "code_empty": GOOD}), run_of({"code_new": GOOD, "code_empty": [None] * 30})
    for name, run, version, unit, parameters in (
        ("code_v", before, "1", "1", ""), ("code_v", after, "2", "1", ""), ("code_u", before, "1", "s", ""), ("code_u", after, "1", "1", ""),
        ("code_p", before, "1", "1", "aaaa"), ("code_p", after, "1", "1", "bbbb"),
    ):  # fmt: skip
        run.add(about(0), score(name, 0.5, version=version, unit=unit), parameters)
    comparison = compare(before, after, "b", {"all"})
    assert remarks(comparison) == [
        "New: code_new",
        "Missing in this run: code_gone",
        "Not compared (no values in this run): code_empty",
        "Not compared (version 1 before, 2 now): code_v",
        "Not compared (unit s before, 1 now): code_u",
        "Not compared (its parameters have changed): code_p",
    ]
    assert comparison.changes == []
    assert comparison.lost == ["code_empty", "code_gone"]


def test_two_configurations_of_a_metric_are_told_apart_by_their_parameters() -> None:
    before, after = Run(), Run()
    for i in range(30):
        before.add(about(i), score("code_a", GOOD[i]), "one")
        before.add(about(i), score("code_a", BAD[i]), "two")
        after.add(about(i), score("code_a", BAD[i]), "two")
        after.add(about(i), score("code_a", GOOD[i]), "one")
    assert [(c.label, c.verdict) for c in compare(before, after, "b").changes] == [
        ("code_a", "no change shown"), ("code_a#2", "no change shown"),
    ]  # fmt: skip


def test_vacuous_skipped_and_errored_scores_are_no_values() -> None:
    before, after = run_of({"code_a": GOOD}), run_of({"code_a": GOOD})
    for i in range(30, 60):
        after.add(about(i), oa.Score("code_a", 1.0, True, detail={"vacuous": True}))
        after.add(about(i), oa.Score("code_a", status="error", error_type="E"))
    comparison = compare(before, after, "b")
    assert only(comparison).counts == (30, 30)
    assert comparison.errored == [("code_a", 0, 30)]


# --- reading a run back


def written(path: Path, *lines: Any) -> str:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


SCORE = {"turn_id": "t", "metric": "code_a", "value": 1, "passed": None, "trace_id": "x", "case_id": "c"}


@pytest.mark.parametrize(
    "line", ["{", {"metric": "code_a"}, {**SCORE, "value": "high"}, "[1]", {**SCORE, "also": 3}, {**SCORE, "detail": 5}, "a,b,c"]
)
def test_invalid_line_of_a_baseline_is_refused(line: Any, tmp_path: Path) -> None:
    file = written(tmp_path / "b.jsonl", SCORE, "", SCORE)
    assert [about.case_id for about in Run.read(file).turns.values()] == ["c"]
    with pytest.raises(AgentEvalError, match=r"b\.jsonl:3: invalid score: "):
        Run.read(written(tmp_path / "b.jsonl", SCORE, "", line, line))


def test_a_baseline_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentEvalError, match="no scores found"):
        Run.read(written(tmp_path / "b.jsonl", ""))


# --- for a terminal


def test_difference_without_a_shown_change_has_numbers() -> None:
    comparison = compare(run_of({"code_a": GOOD}), run_of({"code_a": [0.1, *GOOD[1:]]}), "b")
    change = only(comparison)
    assert change.verdict == "no change shown"
    assert {"0.84", "0.8133", "−0.02667"} <= set(re.findall(r"[−0-9.]+", render_comparison(comparison)))
    assert len(repr(change)) < 1_000


def test_the_terminal_shows_changes_first_and_the_rest_by_name() -> None:
    before, after = run_of({"code_a": GOOD, "code_b": PASSES, "code_gone": GOOD}), run_of({"code_b": PASSES, "code_a": BAD})
    printed = render_comparison(compare(before, after, "b.jsonl", {"code_a"}))
    assert "✗ code_a  mean 0.84 → 0.53  regression (gate)" in printed
    assert "−0.31, 95 % CI −0.313 to −0.307; d = " in printed
    assert "- no change shown: code_b (pass rate)" in printed
    assert "! Missing in this run: code_gone" in printed
    assert max(map(len, printed.splitlines())) <= 100
