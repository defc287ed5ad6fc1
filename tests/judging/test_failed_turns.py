"""Failed turns count as tasks that weren't completed. Abandoned turns don't count."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import Status, StatusCode

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.turn import ErrorInfo
from otel_agenteval.evaluation.evaluator import CANCELLED, TURN_FAILED, decided_without_judge, gave_nothing
from tests.support.judges import ScriptedModels
from tests.support.recordings import unpack
from tests.support.rig import Rig, chat_attributes

COMPLETION, SUCCESS = "llm_task_completion", "llm_task_success"
FAILED = {
    "turn_id": "t", "input": "Run the nightly report.", "error": "RuntimeError", "messages": [{"role": "user", "content": "Run the nightly report."}],
    "llm_calls": [{"model": "m", "error": "RateLimitError"}],
}  # fmt: skip


def config(models: ScriptedModels, *metrics: Any) -> dict[str, Any]:
    return {
        "judge": {"base_url": models.url, "model": "scripted", "max_concurrency": 1}, "inline": {"metrics": ["code_word_count"]},
        "metrics": list(metrics) or [COMPLETION, SUCCESS],
    }  # fmt: skip


def fail(rig: Rig, error: BaseException, user: str | None = "What is the capital of France?") -> None:
    """Run an agent whose model call fails."""
    with rig.agent(record_exception=False, set_status_on_exception=False) as root:
        with rig.tracer.start_as_current_span("chat m-1", attributes=chat_attributes(user)) as call:
            call.set_attribute("error.type", type(error).__name__)
            call.set_status(Status(StatusCode.ERROR, str(error)))
        root.set_attribute("error.type", type(error).__name__)
        root.set_status(Status(StatusCode.ERROR, str(error)))


def judged(rig: Rig) -> dict[str, Any]:
    assert rig.engine.drain(60, judges=True)
    assert rig.engine.failures == {}
    return {score.metric: (scored.judged, score) for scored in rig.scored() if scored.judged for score in scored.scores}


def test_a_turn_that_failed_is_a_task_that_was_not_done(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models, {COMPLETION: {}, "sample": {"rate": 0, "always_if": "error"}}, SUCCESS, "llm_relevance")) as rig:
        fail(rig, RuntimeError("no database"))
        found = judged(rig)
        assert set(found) == {COMPLETION, SUCCESS}, "other metrics have nothing to look at"
        for judge, score in found.values():
            assert (score.value, score.passed, score.detail) == (0.0, False, {"decided_by": TURN_FAILED})
            assert (judge.probability, judge.called_model) == (1.0, False)
        assert models.requests == []


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_failed_turns_are_sampled_as_others_are(models: ScriptedModels, rate: float) -> None:
    models.play()
    with Rig(config(models, {COMPLETION: {}, "sample": {"rate": rate}})) as rig:
        for _ in range(20):
            fail(rig, RuntimeError("no database"))
        assert rig.engine.drain(60, judges=True)
        found = [scored.judged.probability for scored in rig.scored() if scored.judged]
        assert set(found) == ({rate} if rate else set())
        assert len(found) < 20
        outcomes = {key[2]: count for key, count in rig.count("agenteval.results").items() if key[0] == COMPLETION}
        assert sum(outcomes.values()) == 20
        assert outcomes["sampled_out"] == 20 - len(found)


def test_a_turn_that_was_given_up_is_left_out(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models)) as rig:
        fail(rig, asyncio.CancelledError())
        assert judged(rig) == {}
        why = rig.engine.why(rig.turns()[0].turn_id) or {}
        assert (why[COMPLETION], why[SUCCESS]) == (f"skipped: {CANCELLED}", f"skipped: {CANCELLED}")


def test_without_content_nothing_is_known_of_the_answer(models: ScriptedModels) -> None:
    models.play()
    with Rig(config(models)) as rig:
        fail(rig, RuntimeError("no database"), user=None)
        assert judged(rig) == {}


@pytest.mark.parametrize(
    "more",
    [
        {"error": None},
        {"input": None},
        {"complete": False},
        {"truncated": True},
        {"output": "Done."},
        {"llm_calls": [{"model": "m", "finish_reason": "stop", "output_tokens": 7}]},
    ],
    ids=["no error", "no content", "incomplete", "truncated", "an answer", "words that were not captured"],
)
def test_what_is_not_proven_is_left_to_the_judge(more: dict[str, Any]) -> None:
    turn = oa.Turn.from_dict({**FAILED, **more})
    assert decided_without_judge(oa.get_metric(COMPLETION), turn) is None


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"output": ""},
        {"llm_calls": []},
        {
            "llm_calls": [{"model": "m", "finish_reason": "tool_calls", "output_tokens": 7}],
            "messages": [{"role": "assistant", "tool_calls": [{"name": "report", "arguments": {}}]}],
        },
    ],
    ids=["its model failed", "it said nothing", "no model was asked", "its tool failed"],
)
def test_an_answer_that_is_proven_absent(more: dict[str, Any]) -> None:
    turn = oa.Turn.from_dict({**FAILED, **more})
    assert gave_nothing(turn)
    score = decided_without_judge(oa.get_metric(SUCCESS), turn)
    assert score is not None
    assert (score.value, score.label) == (0.0, "fail")
    assert decided_without_judge(oa.get_metric("llm_relevance"), turn) is None
    assert oa.get_metric(COMPLETION).evaluate(turn).status == "skipped", "evaluate() does as its definition says"


@pytest.mark.parametrize(
    ("kind", "message", "given_up"),
    [
        ("asyncio.exceptions.CancelledError", "", True), ("AbortError", "This operation was aborted", True), ("GeneratorExit", None, True),
        ("*errors.errorString", "context canceled", True), ("System.Threading.Tasks.TaskCanceledException", None, True), ("499", None, True),
        ("starlette.requests.ClientDisconnect", None, True), ("Error", "The request was cancelled by the user.", True),
        ("TimeoutError", "timed out", False), ("RuntimeError", "the user's subscription was cancelled", False), (None, None, False),
        ("OrderCancelledNotifierError", None, False), ("ConnectionAbortedError", "software caused connection abort", False),
    ],
)  # fmt: skip
def test_only_what_says_that_nobody_waits_any_more_is_a_cancellation(
    kind: str | None, message: str | None, given_up: bool
) -> None:
    assert ErrorInfo(kind, message).is_cancellation is given_up


def test_a_conversation_goes_on_after_a_turn_that_failed() -> None:
    for turn_id in ("conversation-c1", "blue:conversation-c1"):
        assert decided_without_judge(oa.get_metric(COMPLETION), oa.Turn.from_dict({**FAILED, "turn_id": turn_id})) is None


def test_eval_and_backfill_say_the_same(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    models.play()
    (tmp_path / "in").mkdir()
    unpack("anthropic_sdk-native/s12.jsonl", tmp_path / "in")  # a tool failed, and the run with it
    unpack("langchain-otel_genai/s21.jsonl", tmp_path / "in")  # it was cancelled
    (tmp_path / "c.yaml").write_text(json.dumps(config(models)), encoding="utf-8")
    files = [str(file) for file in sorted((tmp_path / "in").iterdir())]
    assert main(["eval", *files, "--config", str(tmp_path / "c.yaml"), "--metrics", f"{COMPLETION},{SUCCESS}"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((row["metric"], row["status"], row["value"], row["detail"].get("decided_by") or row["detail"]["reason"]) for row in rows) == [
        (COMPLETION, "ok", 0.0, TURN_FAILED), (COMPLETION, "skipped", None, CANCELLED),
        (SUCCESS, "ok", 0.0, TURN_FAILED), (SUCCESS, "skipped", None, CANCELLED),
    ]  # fmt: skip
    out = tmp_path / "out"
    assert main(["backfill", str(tmp_path / "in"), "--out", str(out), "--config", str(tmp_path / "c.yaml")]) == 0
    found = [row for file in out.rglob("parts/*.parquet") for row in pq.read_table(file).to_pylist() if row["kind"] == "llm"]
    assert sorted((row["metric"], row["value"], json.loads(row["detail"])["decided_by"], row["sample_probability"]) for row in found) == [
        (COMPLETION, 0.0, TURN_FAILED, 1.0), (SUCCESS, 0.0, TURN_FAILED, 1.0),
    ]  # fmt: skip
    assert {row["result_id"] for row in found} == {row["result_id"] for row in rows if row["status"] == "ok"}
    assert models.requests == []
