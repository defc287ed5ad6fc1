"""The first step that went wrong: in recorded turns with inserted faults, and in hand-written turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import ErrorInfo, LlmCall, SpanInfo, ToolCall, Turn
from otel_agenteval.evaluation.first_fault import Fault, first_fault
from scripts import first_faults
from tests.support.faults import KINDS
from tests.support.found_faults import Found, clean, found_in_spans, found_in_turns, unpacked, unpacked_corpora
from tests.support.recorded_faults import KINDS as IN_SPANS
from tests.support.stored_turns import failed_row, filled, score_row


def right(found: Found) -> float:
    return sum(found.found.values()) / sum(found.of.values())


def test_faults_in_some_turns_are_found(tmp_path: Path) -> None:
    found = found_in_turns([turn for turn, _ in clean(oa.load_turns(unpacked(tmp_path, 4)))], 5)
    assert sum(found.of.values()) >= 50
    assert right(found) >= 0.85, found


def test_faults_in_some_spans_are_found(tmp_path: Path) -> None:
    found = found_in_spans(unpacked(tmp_path, 4), 3, tmp_path)
    assert len(found.of) >= 7
    assert right(found) >= 0.85, found


@pytest.mark.slow
def test_faults_in_recordings_are_found(tmp_path: Path) -> None:
    """Step and kind of 85 % of all faults, and of two thirds of each kind, are found. The guide has the figures."""
    paths = unpacked(tmp_path)
    turns = clean(oa.load_turns(paths))
    found = {
        "turns": found_in_turns([turn for turn, _ in turns], 40),
        "spans": found_in_spans([*paths, *unpacked_corpora(tmp_path)], 40, tmp_path),
    }
    assert found["turns"].of.keys() == {kind for kind, _ in KINDS.values()}
    assert found["spans"].of.keys() == {kind for kind, _ in IN_SPANS.values()}
    for one in found.values():
        assert sum(one.of.values()) >= 200
        assert right(one) >= 0.85
        assert all(3 * one.found[kind] >= 2 * one.of[kind] for kind in one.of)
    assert sum(first_fault(turn, scores) is not None for turn, scores in turns) <= 0.02 * len(turns)
    assert all(turn.instructions_lost_at is None for turn, _ in turns)
    text = first_faults.GUIDE.read_text(encoding="utf-8")
    assert first_faults.with_figures(text, found["turns"], found["spans"]) == text


def test_prompt_without_instructions_is_the_fault() -> None:
    turn = Turn(turn_id="t", output="Sorry.", llm_calls=[LlmCall(model="m"), LlmCall(model="m")], instructions_lost_at=1)
    fault = first_fault(turn, failed())
    assert fault is not None
    assert (fault.kind, fault.path, fault.step) == ("lost_instructions", "llm_calls[1]", "m")


def failed(metric: str = "code_task_success") -> list[Score]:
    return [Score(metric, 0.0, False, threshold=0.5)]


def test_neither_a_repaired_error_nor_missing_content_is_a_fault() -> None:
    calls = [ToolCall("search", {"q": "oslo"}, error=ErrorInfo("timeout")), ToolCall("search", {"q": "oslo"}, "[]")]
    assert first_fault(Turn(turn_id="t", tool_calls=calls), failed()) is None
    assert first_fault(Turn(turn_id="t"), failed()) is None


def test_step_that_began_first_is_named() -> None:
    turn = Turn(
        turn_id="t", tool_calls=[ToolCall("late", error=ErrorInfo("500"), span_id="b"), ToolCall("early", error=ErrorInfo("500"), span_id="a")],
        llm_calls=[LlmCall(span_id="c", error=ErrorInfo("429"))],
        spans=[SpanInfo("a", start_s=1.0), SpanInfo("b", start_s=2.0), SpanInfo("c", start_s=3.0)],
    )  # fmt: skip
    fault = first_fault(turn, failed())
    assert fault is not None
    assert (fault.kind, fault.path) == ("tool_error", "tool_calls[1]")


@pytest.mark.parametrize(
    ("options", "faulty"),
    [({"expected_tools": ["search"]}, True), ({"expected_tools": []}, True), ({"expected_tools": ["Book"]}, False)],
)
def test_tools_unexpected_by_a_metric_option_are_wrong(options: dict[str, list[str]], faulty: bool) -> None:
    turn = Turn(turn_id="t", tool_calls=[ToolCall("book", {"hotel": "x"}, "ok")])
    score = oa.get_metric("code_tool_selection", threshold=1.0, **options).evaluate(turn)
    fault = first_fault(turn, [score, *failed()])
    assert (fault is not None and (fault.kind, fault.path) == ("wrong_tool", "tool_calls[0]")) == faulty


def test_why_prints_the_first_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault("tool_error", "tool_calls[0]", "search failed and wasn't repaired", "search", "timeout")
    bad, good = failed_row(1, fault, facts={"language": "de", "tool": ["search"]}), failed_row(2, fault, None)
    store = filled(tmp_path / "scores.db", [(bad, [score_row(bad, value=0.0)]), (good, [score_row(good)])])
    assert main(["why", bad["turn_id"], "--store", store]) == 0
    printed = capsys.readouterr().out
    assert "tool_calls[0]: search failed" in printed
    assert "language=de" in printed
    assert main(["why", bad["turn_id"], "--store", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_fault"]["kind"] == "tool_error"
    assert main(["why", good["turn_id"], "--store", store]) == 0
    assert "first fault" not in capsys.readouterr().out


def test_frame_lists_failed_turns() -> None:
    turns = [
        Turn(turn_id="good", output="Done.", tool_calls=[ToolCall("search", {}, "x")]),
        Turn(turn_id="bad", output="Sorry.", tool_calls=[ToolCall("search", {}, error=ErrorInfo("timeout"))]),
    ]
    frame = oa.score_turns(turns, ["code_tool_success"]).first_faults()
    assert frame[["turn_id", "kind", "path"]].to_numpy().tolist() == [["bad", "tool_error", "tool_calls[0]"]]
