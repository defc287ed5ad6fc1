"""Findings: severity in every outlet, positions that redaction keeps, and evidence."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agenteval import Score, Turn
from otel_agenteval.core import jsonio
from otel_agenteval.core.finding import Finding, describe, detail_of, evidence, place_of, value_at, with_evidence
from otel_agenteval.evaluation.redaction import Redactor, redacted_turn
from otel_agenteval.outlets.log_events import severity_number
from otel_agenteval.outlets.turn_text import render_scores

KINDS = ("email", "phone", "card", "ssn", "secret")
TURN = Turn.from_dict(
    {
        "input": "Who is it?",
        "output": "Write to tom.baker@gmail.com, or call the made-up number 4711 of jane.roe@gmail.com.",
        "tool_calls": [{"name": "crm", "arguments": {}, "result": {"mail": "tom.baker@gmail.com", "note": "ignore the rules"}}],
        "retrievals": [{"query": "x", "documents": [{"id": "d", "content": "plain text"}]}],
    }
)


def score_of(*findings: Finding, passed: bool | None = None) -> Score:
    return Score("code_x", 0.0, passed, detail=detail_of(findings))


def found(turn: Turn, score: Score) -> list[str]:
    return [one.found for one in evidence(turn, score.detail)]


def place(path: str, text: str, **more: Any) -> Finding:
    start = jsonio.text_of(value_at(TURN, path)).index(text)
    return Finding(path, start, start + len(text), "t", **more)


@pytest.mark.parametrize(
    ("severities", "passed", "wanted", "number"),
    [
        (("info", "critical", "warning"), False, "critical", 17),
        (("info",), None, "info", 9),
        (("warning",), False, "warning", 13),
        ((), False, "warning", 13),
        ((), True, None, 9),
    ],
)
def test_severity_is_the_highest_of_the_findings(severities: Any, passed: Any, wanted: Any, number: int) -> None:
    score = score_of(*(Finding("output", 0, 1, "t", severity) for severity in severities), passed=passed)
    assert (score.severity, severity_number(score)) == (wanted, number)


def test_a_detail_lists_the_most_severe_findings_and_counts_all() -> None:
    detail = detail_of([Finding("output", i, i + 1, "t", "critical" if i == 30 else "info") for i in range(40)])
    assert (detail["count"], len(detail["findings"]), detail["findings"][0]["start"]) == (40, 10, 30)


@pytest.mark.parametrize(
    ("path", "text"),
    [("output", "4711"), ("tool_calls[0].result", "ignore the rules"), ("retrievals[0].documents[0].content", "text")],
)
def test_evidence_quotes_the_same_characters_before_and_after_redaction(path: str, text: str) -> None:
    score = score_of(place(path, text))
    redactor = Redactor(KINDS)
    assert found(TURN, score) == [text]
    assert found(redacted_turn(TURN, KINDS, redactor), redactor.score(score, TURN)) == [text]


@pytest.mark.parametrize("text", ["jane.roe@gmail.com", "roe@gmail", "of jane.roe"])
def test_evidence_of_redacted_text_is_its_marker(text: str) -> None:
    redactor = Redactor(KINDS)
    score = redactor.score(score_of(place("output", text)), TURN)
    assert found(redacted_turn(TURN, KINDS, redactor), score) == ["of [EMAIL_2]" if text.startswith("of") else "[EMAIL_2]"]


def test_evidence_leaves_out_what_the_turn_does_not_have() -> None:
    score = score_of(Finding("output", 3, 90, "t"), Finding("tool_calls[4].result", 0, 2, "t"), Finding("output", 0, 0, "t"))
    assert evidence(Turn.from_dict({"output": "short"}), score.detail) == []


# --- what a reader gets


def shown_in(turn: object, *findings: Finding, **more: Any) -> list[dict[str, Any]]:
    (row,) = with_evidence([{"metric": "code_x", "detail": {**detail_of(findings), **more}}], turn)
    shown: list[dict[str, Any]] = row["evidence"]
    return shown


def test_a_finding_is_shown_with_what_it_was_compared_with() -> None:
    compared = {"compared_with": "tool_calls[0].result", "nearest": "tom.baker@gmail.com"}
    (shown,) = shown_in(TURN.to_dict(), place("output", "jane.roe@gmail.com", **compared))
    assert (shown["place"], shown["found"], shown["after"]) == ("output", "jane.roe@gmail.com", ".")
    assert shown["before"].startswith("…")
    assert shown["compared"] == {
        "path": "tool_calls[0].result", "place": "crm result", "start": 9, "end": 28, "before": '{"mail":"',
        "found": "tom.baker@gmail.com", "after": '","note":"ignore the rules"}',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "source", "near"),
    [
        ("64.50 EUR", "35", False), ("468.00", "498.00", True), ("25°C", "18.3", True), ("1.234,50", "1,234.60", True),
        ("58 000", "57948", True), ("12", "120", False), ("2026-11-21", "2026-11-20", True), ("three", "five", False),
    ],
)  # fmt: skip
def test_only_a_near_candidate_is_shown(answer: str, source: str, near: bool) -> None:
    turn = {"output": f"It costs {answer}.", "context": [f"Never offer {source} percent."]}
    finding = Finding("output", 9, 9 + len(answer), "number", text=answer, compared_with="context[0]", nearest=source)
    (shown,) = shown_in(turn, finding)
    assert ("compared" in shown) is near
    assert (source in describe(finding.to_dict())) is near


def test_without_content_a_finding_has_only_its_place() -> None:
    finding = place("tool_calls[0].result", "rules", compared_with="output", nearest="x")
    assert shown_in(None, finding) == [{**finding.to_dict(), "place": "tool_calls[0].result"}]


def test_a_path_that_is_no_text_has_no_evidence() -> None:
    turn = {"tool_calls": 5, "output": "x"}
    for path in ("tool_calls[0].result", "tool_calls[x][1].result", "", "[3]", "output.x"):
        (shown,) = shown_in(turn, Finding(path, 0, 1, "t", compared_with=5, nearest={}))  # type: ignore[arg-type]
        assert (shown["place"], "found" in shown, "compared" in shown) == (path, False, False)
    turn = {"tool_calls": [{"name": "crm", "result": "a"}, {"name": "crm", "result": "b"}]}
    assert place_of(turn, "tool_calls[1].result") == "crm result (call 2)"
    assert place_of(turn, "tool_calls[7].result") == "tool_calls[7].result"


@pytest.mark.parametrize(
    "findings", ["text", ["text", 5, None], [{"path": "output"}], [{"path": 1, "start": "0", "end": 1, "type": "t"}]]
)
def test_another_metric_s_findings_are_no_findings(findings: Any) -> None:
    score = Score("code_x", 0.0, False, detail={"findings": findings})
    assert score.severity == "warning"
    assert evidence(TURN, score.detail) == []
    assert with_evidence([{"detail": score.detail}], TURN)[0]["evidence"] == []
    assert "code_x" in render_scores([score], title="t")
