"""Cases from a mode's failed turns, and a gate that fails until the agent is fixed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.case_metrics import CaseMetrics
from otel_agenteval.evaluation.datasets import cases_in
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.report.mode_cases import case_of, distinct, gates_of, references_in
from tests.report.test_failure_modes import turns_of
from tests.support.faults import faulty_turns
from tests.support.postgres import Anywhere
from tests.support.process import environment
from tests.support.stored_turns import failed_row, filled, score_row, turn_row

APP = '''
import json, os
from opentelemetry import trace
from opentelemetry.trace import StatusCode

REPAIRED = bool(os.environ.get("REPAIRED"))
tracer = trace.get_tracer("shop")


def said(role, text):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def answer(text, history=()):
    """Pay an order with a tool. Until it is repaired, the tool times out, and an answer has personal data."""
    start = tracer.start_as_current_span
    about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop", "gen_ai.input.messages": said("user", text)}
    about |= {"gen_ai.conversation.id": f"about {text}"} if not history and "talk" in text else {}
    with start("invoke_agent shop", attributes=about) as turn:
        if "order" in text:
            with start("execute_tool pay", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}) as tool:
                tool.set_attribute("gen_ai.tool.call.arguments", json.dumps({"text": text}))
                if REPAIRED:
                    tool.set_attribute("gen_ai.tool.call.result", "paid")
                else:
                    tool.set_attribute("error.type", "timeout")
                    tool.set_status(StatusCode.ERROR)
        reply = "Ask John at +1 415 555 2671, john.miller@initech.io." if "Track" in text and not REPAIRED else "Done."
        turn.set_attribute("gen_ai.output.messages", said("assistant", reply))
    return reply
'''
ASKED = ["Pay order 7, mail me at ann@example.com", "Pay order 8", "Pay  order 8", "Track my parcel", "Hello"]
RUN = f"""
import os
import otel_agenteval as oa
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from app import answer

trace.set_tracer_provider(TracerProvider())
if "KEPT" in os.environ:
    oa.instrument(config={{"outlets": {{"store": {{"path": "scores.db", "content": os.environ["KEPT"] == "all"}}}}}})
for text in {ASKED!r}:
    answer(text)
trace.get_tracer_provider().shutdown()
"""


def command(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, *arguments] if arguments[0].endswith(".py") else [sys.executable, "-m", "otel_agenteval", *arguments]
    return subprocess.run(run, cwd=folder, env=environment(env), capture_output=True, text=True, timeout=120, check=False)


def modes_in(folder: Path, *source: str) -> dict[tuple[str, str | None], str]:
    """Return the id of each mode, by kind and step."""
    done = command(folder, "failure-modes", *source, "--format", "json")
    assert done.returncode == 0, done.stderr
    return {(mode["kind"], mode["step"]): mode["id"] for mode in json.loads(done.stdout)}


def rows_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return a folder with the broken agent and a program that calls it."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("source", ["store", "recorded traces"])
def test_cases_fail_until_the_agent_is_repaired(source: str, app: Path) -> None:
    if source == "store":
        given = ["--store", "scores.db"]
        assert command(app, "run.py", KEPT="all").returncode == 0
    else:
        given = ["spans.jsonl"]
        assert command(app, "record", "-o", "spans.jsonl", "--", sys.executable, "run.py").returncode == 0
    modes = modes_in(app, *given)
    assert set(modes) == {("tool_error", "pay"), ("leak", None)}
    for mode, inputs in (
        (("tool_error", "pay"), ["Pay  order 8", "Pay order 7, mail me at [EMAIL_1]"]),
        (("leak", None), ["Track my parcel"]),
    ):
        made = command(app, "failure-modes", *given, "--mode", modes[mode], "--cases", "cases.jsonl")
        assert made.returncode == 0, made.stderr
        assert "otel-agenteval experiment app:answer cases.jsonl --gate" in made.stderr
        assert [row["input"] for row in rows_in(app / "cases.jsonl")] == inputs
        experiment = ("experiment", "app:answer", "cases.jsonl", "--gate")
        broken = command(app, *experiment)
        assert broken.returncode == 1, broken.stderr
        repaired = command(app, *experiment, REPAIRED="1")
        assert repaired.returncode == 0, repaired.stderr


def failed(metric: str, threshold: float | None = None, **more: Any) -> oa.Score:
    return oa.Score(metric, 0.0, False, threshold=threshold, **more)


def test_gates_have_the_thresholds_under_which_the_turn_failed() -> None:
    scores = [
        failed("code_tool_success", 0.9),
        failed("code_text_f1", oa.get_metric("code_text_f1").threshold),
        failed("code_contains.refund"),
        failed("code_latency", 2.0, unit="s", direction="down"),
        oa.Score("code_refusal", 1.0, True),
        failed("user_feedback"),
        failed("code_not_contains"),
    ]
    parameters = {"code_contains.refund": {"value": "refund"}}
    assert gates_of(scores, "tool_error", lambda name: parameters.get(name, {})) == [
        {"code_tool_success": {"threshold": 0.9, "repair_all": True}, "policy": "gate"},
        {"code_text_f1": {}, "policy": "gate"},
        {"code_contains": {"value": "refund"}, "name": "refund", "policy": "gate"},
        {"code_latency": {"threshold": 2.0}, "policy": "gate"},
    ]


@pytest.mark.slow
def test_gates_tell_a_planted_fault_from_the_turn_without_it(tmp_path: Path) -> None:
    """Gates without a judge fail on faulty turns, but not on the same turns without the fault. Judges could pass by chance."""
    before = {turn.turn_id: turn for turn in turns_of(60, tmp_path)}
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for fault in faulty_turns(before.values(), 20):
        ((turn, scores),) = oa.score_turns([fault.turn])
        case = case_of(turn.to_dict(), [*scores, failed("llm_relevance", 0.5)], fault.kind, lambda _: {}, {})
        if case is None:
            assert not turn.input
            continue
        metrics = CaseMetrics(load_config({}), [], cases_in([case.row])).all

        def fails(one: Turn, metrics: Sequence[BoundMetric] = metrics) -> bool:
            return any(metric.evaluate(one).verdict is False for metric in metrics)

        (found if fails(turn) else missed)[fault.kind] += 1
        if fault.kind != "wrong_tool":  # planted in the turn's references
            assert not fails(before[turn.turn_id])
    assert set(missed) <= {"empty_retrieval", "missing_document", "obeyed_injection", "loop", "changed_number"}
    assert found.total() >= 240


def content(**more: Any) -> dict[str, Any]:
    return {"turn_id": "t", "input": "Order 7.", "output": "No.", **more}


def written(given: Mapping[str, Any], earlier: list[str] | None = None, labels: Any = None) -> dict[str, Any]:
    case = case_of(given, [failed("code_turn_error")], "refusal", lambda _: {}, labels or {})
    assert case is not None
    return case.as_row(earlier or [])


def test_case_has_references_of_the_turn_and_of_labels(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    rows = [
        {"turn_id": "t", "label": "fail", "comment": '{"ground_truth": "Refunded."}', "by": "ann", "at": 1.0},
        {"turn_id": "t", "label": "fail", "metric": "llm_relevance", "value": 0.2, "comment": "rude"},
        {"case_id": "order", "label": "fail", "value": "Refunded"},
    ]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = content(
        references={"case_id": "order", "expected_tools": ["pay"], "case_turn": 2}, ground_truth="Yes.", relevant_ids=["a"]
    )
    assert written(given, labels=references_in(str(labels))) == {
        "case_id": "t", "input": "Order 7.", "expected_tools": ["pay"], "relevant_ids": ["a"], "ground_truth": "Refunded.",
        "value": "Refunded", "metrics": [{"code_turn_error": {}, "policy": "gate"}],
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"--labels: .*file not found"):
        references_in(str(tmp_path / "none.jsonl"))


def test_later_turn_is_replayed_with_its_conversation() -> None:
    said = [{"role": role, "content": text} for role, text in (("user", "Hello"), ("assistant", "Hi!"), ("user", "Order 7."))]
    for given, earlier in ((content(messages=said), []), (content(), ["Hello"]), (content(messages=said[:1]), ["Hello"])):
        row = written({**given, "ground_truth": "Refunded."}, earlier)
        assert [turn["input"] for turn in row["turns"]] == ["Hello", "Order 7."]
        assert "metrics" not in row["turns"][0]
        heard: list[Any] = []

        def support(text: str, history: list[dict[str, str]], heard: list[Any] = heard) -> str:
            heard.append((text, len(history)))
            return "Hi!"

        found = oa.evaluate(support, [row], [])
        assert heard == [("Hello", 0), ("Order 7.", 2)]
        assert [len(scores) for _, scores in found.trials[0].scored[:2]] == [0, 1]
    assert "turns" not in written(content(messages=said[-1:]))


def test_turn_without_input_or_a_metric_makes_no_case() -> None:
    assert case_of({"turn_id": "t"}, [failed("code_turn_error")], "refusal", lambda _: {}, {}) is None
    assert case_of(content(), [failed("user_feedback")], "user_feedback", lambda _: {}, {}) is None


def test_each_input_makes_one_case_up_to_the_limit() -> None:
    rows = [{"case_id": str(at), "input": text} for at, text in enumerate(("a  b", "a b", "c", "d"))]
    assert [row["case_id"] for row in distinct(rows, 2)] == ["0", "2"]
    turns = [{"case_id": name, "turns": [{"input": name}, {"input": "c"}]} for name in "xyx"]
    assert [row["case_id"] for row in distinct([*turns, *rows], 99)] == ["x", "y", "0", "2", "3"]


PAY = Fault("tool_error", "tool_calls[0]", "", "pay", "timeout")


def stored_turn(number: int, text: str | None, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said = None if text is None else {"input": text, "output": "Done."}
    turn = failed_row(number, PAY, content=said, **more)
    return turn, [score_row(turn, "code_tool_success", 0.2, threshold=0.7)]


def test_stored_turns_make_cases_of_one_tenant_and_mode(
    anywhere: Anywhere, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = turn_row(1, conversation_id="c", tenant="acme", content={"input": "Hello"})
    store = filled(
        anywhere(),
        [
            (first, []),
            stored_turn(2, "Hidden", conversation_id="c", tenant="other"),
            stored_turn(3, "Pay order 7", conversation_id="c", tenant="acme"),
            stored_turn(4, None),
            *(stored_turn(number, f"Pay order {number % 2}") for number in range(5, 250)),
        ],
    )
    ids = [turn_row(number)["turn_id"] for number in (249, 248)]
    label = {"turn_id": ids[0], "label": "fail", "ground_truth": "Paid."}
    (tmp_path / "labels.jsonl").write_text(json.dumps(label), encoding="utf-8")
    cases = tmp_path / "cases.jsonl"
    command = ["failure-modes", "--store", store, "--mode", PAY.mode, "--cases", str(cases)]
    assert main([*command, "--labels", str(tmp_path / "labels.jsonl")]) == 0
    assert f"otel-agenteval experiment app:answer {cases} --gate" in capfd.readouterr().err
    newest, before, later, alone = rows_in(cases)
    assert (newest["case_id"], newest["input"], newest["ground_truth"]) == (ids[0], "Pay order 1", "Paid.")
    assert (before["case_id"], before.get("ground_truth")) == (ids[1], None)
    assert [turn["input"] for turn in later["turns"]] == ["Hello", "Pay order 7"]
    assert alone["input"] == "Hidden"
    assert main([*command, "--limit", "1"]) == 0
    assert [row["case_id"] for row in rows_in(cases)] == ids[:1]


def test_wrong_use_names_the_option(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = filled(tmp_path / "scores.db", [stored_turn(1, None)])
    cases = str(tmp_path / "cases.jsonl")
    for more, says in (
        (["--cases", cases], "--cases: requires --mode"),
        (["--mode", PAY.mode, "--labels", "x"], "--labels: requires --cases"),
        (["--mode", PAY.mode, "--cases", cases, "--limit", "0"], "--limit: "),
        (["--mode", "nope"], f"--mode: must be the id of a failure mode: {PAY.mode}, got 'nope'"),
        (["--mode", PAY.mode, "--cases", cases], "outlets.store.content"),
    ):
        assert main(["failure-modes", "--store", store, *more]) == 2
        assert says in capfd.readouterr().err
    assert not Path(cases).exists()
