"""Every outlet shows the same: pass or fail if the metric has a verdict, and neither if it has none."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.backfill.batch import _row
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.instrumentation.pytest_plugin import _fault
from otel_agenteval.outlets.log_events import event_attributes
from otel_agenteval.outlets.store.export import write_text
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.outlets.turn_text import render_turn
from otel_agenteval.report import About, Report, Run
from otel_agenteval.report.html import render_html
from otel_agenteval.report.junit import render_junit
from otel_agenteval.report.markdown import render_markdown
from otel_agenteval.report.run import line_of
from tests.support.rig import Rig

REFUSAL, AUTONOMY, CONTAINS = "code_refusal", "code_turn_autonomy", "code_contains"
CASES: list[tuple[str, dict[str, Any], str, bool | None]] = [
    (REFUSAL, {}, "trend", None),
    (REFUSAL, {"inverse": True}, "trend", True),
    (REFUSAL, {"inverse": True}, "gate", True),
    (REFUSAL, {}, "gate", False),
    (AUTONOMY, {}, "trend", None),
    (AUTONOMY, {"threshold": 0.0}, "trend", True),
    (AUTONOMY, {"threshold": 99}, "trend", False),
    ("code_latency", {}, "trend", None),
    ("code_latency", {"threshold": 60}, "trend", True),
    (CONTAINS, {"value": "Paris"}, "trend", True),
    (CONTAINS, {"value": "Lima"}, "trend", False),
]
"""Metric, parameters, policy, and the expected result in every outlet for the turn of :meth:`Rig.run`."""
WORDS = {None: "ok", True: "pass", False: "fail"}


def case_id(case: Any) -> str:
    return f"{case[0]} {case[1]} {case[2]}"


def live(case: Any, folder: Path) -> tuple[dict[str, bool | None], Score, oa.Turn]:
    """Return the results in the outlets of a pipeline, by outlet."""
    name, params, policy, _ = case
    outlets = {"jsonl": str(folder / "scores.jsonl"), "store": {"path": str(folder / "scores.db")}, "log_events": True}
    with Rig({"inline": {"metrics": []}, "metrics": [{name: params, "policy": policy}], "outlets": outlets}) as rig:
        rig.run()
        [scored] = rig.scored()
        [score] = scored.scores
        assert score.status == "ok"
        [event] = rig.log_events()
        [line] = [json.loads(text) for text in (folder / "scores.jsonl").read_text().splitlines()]
        with StoreReader(str(folder / "scores.db")) as reader:
            [row] = list(reader.rows())
        exported = io.StringIO()
        write_text([row], "jsonl", exported)
        [counted] = [key[2] for key in rig.count("agenteval.results")]
        said = {
            "span event": rig.score_events("invoke_agent bot")[name].get(semconv.PASSED),
            "log event": dict(event.attributes).get(semconv.PASSED),
            "OTLP log record": event_attributes(score, {}).get(semconv.PASSED),
            "counter": {word: verdict for verdict, word in WORDS.items()}[counted],
            "JSON lines": line.get("passed"),
            "store": row["passed"],
            "export": json.loads(exported.getvalue()).get("passed"),
        }
        assert ("passed" in line) == (line.get("passed") is not None), "it is left out, not null"
        assert (rig.engine.why(scored.turn.turn_id) or {})[name] == "scored"
        return said, score, scored.turn


def reported(case: Any, score: Score, turn: oa.Turn) -> dict[str, bool | None]:
    """Return the results in reports, by report."""
    metric = oa.get_metric(case[0], **case[1])
    run, about = Run(), About.of(turn)
    run.add(about, score)
    [row] = run.rows
    report = Report(run, None)
    page, markdown, html = render_junit(report), render_markdown(report), render_html(report)
    shown = render_turn(turn, [score])
    summary = row.series.summary()
    says = {word: verdict for verdict, word in WORDS.items()}
    found = {
        "row of a report": row.passed,
        "outcome of a report": says[row.outcome],
        "line of eval": line_of(turn, about, score, "").get("passed"),
        "row of a backfill": _row(turn, metric, score, None, (), None)["passed"],
        "summary of a report": None if summary.pass_rate is None else summary.pass_rate == 1,
        "table": None if "measured" in shown else "✗" not in shown,
    }
    assert row.fails_gate == (case[2] == "gate" and case[3] is False)
    assert ("<failure" in page) == (case[2] == "gate" and case[3] is False)
    assert ("did not pass; a trend" in page) == (case[2] == "trend" and case[3] is False)
    for text in (markdown, html):
        rates = set(re.findall(r"\b(100|0) %(?: \(| <span)", text))
        assert rates == {None: set(), True: {"100"}, False: {"0"}}[case[3]], text
    assert (_fault(score, {}, {}, False) is not None) == (case[3] is False), "the pytest plugin"
    return found


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_every_outlet_says_the_same(case: Any, tmp_path: Path) -> None:
    said, score, turn = live(case, tmp_path)
    said |= reported(case, score, turn)
    assert said == dict.fromkeys(said, case[3])


def test_evaluate_keeps_what_the_catalogue_fixes() -> None:
    score = oa.get_metric(REFUSAL).evaluate(oa.Turn(input="And?", output="I cannot help with that."))
    assert (score.passed, score.verdict, score.to_dict()["passed"]) == (True, None, True)
    assert "passed" not in score.as_sent()


def test_companions_follow_the_same_rule() -> None:
    inner = Score("code_refusal", 0.0, passed=False, direction="neutral", type="boolean")
    score = Score(
        "llm_x", 2.0, passed=True, also={"code_refusal": inner, "llm_x_passed": Score("llm_x_passed", 1.0, passed=True)}
    )
    sent = score.as_sent()
    assert sent["passed"] is True
    assert ["passed" in one for one in sent["also"].values()] == [False, True]
