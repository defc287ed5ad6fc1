"""The step at which a turn went wrong first: on recorded turns with faults put in, and on some by hand."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import ErrorInfo, LlmCall, SpanInfo, ToolCall, Turn
from otel_agenteval.evaluation.first_fault import Fault, first_fault
from tests.support.faults import KINDS, Faulty, faulty_turns
from tests.support.recordings import unpack_all
from tests.support.stored_turns import failed_row, filled, score_row

RECORDINGS = Path(__file__).parent / "data" / "recordings"


@cache
def recorded(folder: Path, few: bool) -> list[Turn]:
    """Turns of the recordings without a failed score: of the half on which no rule was tuned, or of a part of it."""
    archives = sorted(RECORDINGS.glob("*.tar.xz"))
    half = random.Random("untuned").sample(archives, len(archives) // 2)
    for archive in half[:8] if few else half:
        unpack_all(archive, folder)
    scored = oa.score_turns(oa.load_turns(sorted(folder.rglob("*.jsonl"))))
    return [turn for turn, scores in scored if turn.output and not any(score.verdict is False for score in scores)]


def hits(cases: list[Faulty]) -> tuple[Counter[str], Counter[str]]:
    """How many cases of each kind are found, with their step, and how many there are."""
    found, of = Counter[str](), Counter[str]()
    for case, (turn, scores) in zip(cases, oa.score_turns([case.turn for case in cases]), strict=True):
        fault = first_fault(turn, scores)
        of[case.kind] += 1
        found[case.kind] += fault is not None and (fault.kind, fault.path) == (case.kind, case.path)
    return found, of


def test_faults_in_some_recordings_are_found(tmp_path: Path) -> None:
    found, of = hits(list(faulty_turns(recorded(tmp_path, True), 5)))
    assert sum(of.values()) >= 50
    assert sum(found.values()) >= 0.85 * sum(of.values()), {kind: (found[kind], of[kind]) for kind in of}


@pytest.mark.slow
def test_faults_in_recordings_are_found(tmp_path: Path) -> None:
    """Step and kind of 85 % of the faults, each kind at least in two of three cases; passed turns rarely have one."""
    turns = recorded(tmp_path, False)
    found, of = hits(list(faulty_turns(turns, 40)))
    assert sum(of.values()) >= 200
    assert of.keys() == {kind for kind, _ in KINDS.values()}
    assert sum(found.values()) >= 0.85 * sum(of.values())
    assert all(3 * found[kind] >= 2 * of[kind] for kind in of)
    alarms = sum(first_fault(turn, scores) is not None for turn, scores in oa.score_turns(turns))
    assert alarms <= 0.02 * len(turns)


def failed(metric: str = "code_task_success") -> list[Score]:
    return [Score(metric, 0.0, False, threshold=0.5)]


def test_repaired_error_is_no_fault() -> None:
    calls = [ToolCall("search", {"q": "oslo"}, error=ErrorInfo("timeout")), ToolCall("search", {"q": "oslo"}, "[]")]
    assert first_fault(Turn(turn_id="t", tool_calls=calls), failed()) is None


def test_step_that_began_first_is_named() -> None:
    turn = Turn(
        turn_id="t", tool_calls=[ToolCall("late", error=ErrorInfo("500"), span_id="b"), ToolCall("early", error=ErrorInfo("500"), span_id="a")],
        llm_calls=[LlmCall(span_id="c", error=ErrorInfo("429"))],
        spans=[SpanInfo("a", start_s=1.0), SpanInfo("b", start_s=2.0), SpanInfo("c", start_s=3.0)],
    )  # fmt: skip
    fault = first_fault(turn, failed())
    assert fault is not None
    assert (fault.kind, fault.path) == ("tool_error", "tool_calls[1]")


def test_turns_without_content_have_no_fault() -> None:
    assert first_fault(Turn(turn_id="t"), failed()) is None


def test_why_prints_the_first_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = Fault("tool_error", "tool_calls[0]", "search failed and wasn't repaired", "search", "timeout")
    bad, good = failed_row(1, fault), failed_row(2, fault, None)
    store = filled(tmp_path / "scores.db", [(bad, [score_row(bad, value=0.0)]), (good, [score_row(good)])])
    assert main(["why", bad["turn_id"], "--store", store]) == 0
    assert "tool_calls[0]: search failed" in capsys.readouterr().out
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
