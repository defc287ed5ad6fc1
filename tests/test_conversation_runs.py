"""Conversations in experiments: cases with several turns, and with a simulated user."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import ConfigError
from tests.support.judges import ScriptedModels

REFUND = {
    "case_id": "refund",
    "turns": [
        {"input": "I want my money back.", "ground_truth": "Which order?"},
        {"input": "Order 7.", "ground_truth": "Done.", "expected_tools": ["refund"]},
    ],
}
EQUAL, COMPLETE = "code_equals_ground_truth", "code_conversation_completeness"
ANSWERS = {"I want my money back.": "Which order?", "Order 7.": "Done."}


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    Agent.instrument_all(InstrumentationSettings(tracer_provider=made))
    yield made
    Agent.instrument_all(False)
    made.shutdown()


def agent() -> Agent[None, str]:
    """Return an agent that asks for the order, and then refunds it with a tool."""

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        asked = [str(part.content) for part in last.parts if isinstance(part, UserPromptPart)]
        if asked == ["Order 7."]:
            return ModelResponse(parts=[ToolCallPart("refund", {"order": 7})])
        done = any(isinstance(part, ToolReturnPart) for part in last.parts)
        return ModelResponse(parts=[TextPart("Done." if done else "Which order?")])

    made = Agent(FunctionModel(script, model_name="scripted"), name="support")

    @made.tool_plain
    def refund(order: int) -> str:
        return f"refunded {order}"

    return made


def scores_of(trial: Any) -> list[dict[str, Any]]:
    return [{score.metric: score for score in scores} for _, scores in trial.scored]


def test_turns_of_a_real_agent_are_one_conversation(provider: TracerProvider) -> None:
    support, seen = agent(), []

    async def task(text: str, *, history: list[dict[str, Any]]) -> str:
        seen.append(history)
        return (await support.run(text)).output

    found = oa.evaluate(task, [REFUND], [EQUAL, COMPLETE], repetitions=2, concurrency=1, tracer_provider=provider)
    for trial in found.trials:
        first, second, whole = (turn for turn, _ in trial.scored)
        assert [turn.output for turn in (first, second)] == ["Which order?", "Done."]
        assert first.conversation_id == second.conversation_id == whole.conversation_id
        assert [turn.references.get("case_turn") for turn in (first, second, whole)] == [1, 2, None]
        assert [message.content for message in whole.messages] == [text for pair in ANSWERS.items() for text in pair]
        one, two, both = scores_of(trial)
        assert (one[EQUAL].passed, two[EQUAL].passed, EQUAL in both, COMPLETE in one) == (True, True, False, False)
        assert both[COMPLETE].value == 1.0
        assert whole.references["expected_tools"] == ["refund"]
    assert len({trial.scored[-1][0].conversation_id for trial in found.trials}) == 2
    history = [{"role": "user", "content": "I want my money back."}, {"role": "assistant", "content": "Which order?"}]
    assert seen[:2] == [[], history]
    assert list(found.frame()["turn"].dropna()) == [1, 2, 1, 2]  # the conversation's row has none


def test_task_receives_history_under_its_parameters_name() -> None:
    seen: list[Any] = []

    def plain(text: str) -> str:
        seen.append(text)
        return text

    def with_messages(text: str, extra: int = 1, messages: Any = None, conversation_id: str = "") -> str:
        seen.append((extra, len(messages), conversation_id))
        return text

    oa.evaluate(plain, [{"turns": ["a", "b"]}], [COMPLETE])
    assert seen == ["a", "b"]
    seen.clear()
    (trial,) = oa.evaluate(with_messages, [{"turns": ["a", "b"]}], [COMPLETE]).trials
    assert seen == [(1, 0, trial.scored[0][0].conversation_id), (1, 2, trial.scored[0][0].conversation_id)]
    seen.clear()
    oa.evaluate(with_messages, [{"input": "a"}], [EQUAL])
    assert [each[:2] for each in seen] == [(1, 0)]


def test_case_columns_are_the_turns_references_unless_the_turn_has_them() -> None:
    case = {**REFUND, "ground_truth": "from the case", "turns": [{"input": "a"}, {"input": "b", "ground_truth": "of b"}]}
    (trial,) = oa.evaluate(str, [case], [EQUAL, COMPLETE]).trials
    assert [turn.ground_truth for turn, _ in trial.scored] == ["from the case", "of b", "from the case"]


def test_conversations_of_each_kind_of_data_set_are_the_same(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame([REFUND, {"case_id": "single", "input": "Hi", "ground_truth": "Hi"}])
    texts = frame.assign(turns=[json.dumps(REFUND["turns"]), None])
    frame.to_parquet(tmp_path / "cases.parquet")
    texts.to_csv(tmp_path / "cases.csv", index=False)
    files = tmp_path / "cases.parquet", tmp_path / "cases.csv"
    for dataset in (frame, *files, pd.read_parquet(files[0])):
        first, second = oa.evaluate(lambda text: ANSWERS.get(text, text), dataset, [EQUAL]).trials
        assert [score.passed for _, scores in (*first.scored, *second.scored) for score in scores] == [True] * 3


def test_call_that_raises_ends_the_conversation() -> None:
    def task(text: str) -> str:
        if text == "b":
            raise TimeoutError("no answer")
        return text

    found = oa.evaluate(task, [{"case_id": "x", "turns": ["a", "b", "c"]}, {"case_id": "y", "input": "a"}], [COMPLETE])
    first, second = found.trials
    assert first.error == "turn 2: TimeoutError: no answer"
    assert second.error is None
    assert len(first.scored) == 3
    score = scores_of(first)[-1][COMPLETE]
    assert (score.detail["response_rate"], score.detail["error_free"], score.passed) == (0.5, 0.0, False)
    assert "x, repetition 1: turn 2: TimeoutError" in str(found)


def test_trial_passes_a_metric_if_all_of_its_turns_do() -> None:
    case = {"case_id": "x", "turns": [{"input": "a", "ground_truth": "A"}, {"input": "b", "ground_truth": "?"}]}
    (summary,) = oa.evaluate(str.upper, [case], [EQUAL], repetitions=2).summary()
    assert (summary.n, summary.mean, summary.pass_rate, summary.pass_at_k) == (4, 0.5, 0.0, 0.0)


def test_callable_plays_the_user_until_it_returns_none() -> None:
    seen: list[Any] = []

    def simulate(history: list[dict[str, Any]], case: Any) -> str | None:
        seen.append((case["user"], case["case_id"], case["max_turns"], case["ground_truth"], len(history)))
        return None if len(history) == 4 else f"message {len(history)}"

    cases = [{"case_id": "x", "user": "impatient", "ground_truth": "g"}]
    (trial,) = oa.evaluate(str.upper, cases, [COMPLETE], simulate=simulate).trials
    assert [turn.input for turn, _ in trial.scored[:-1]] == ["message 0", "message 2"]
    assert seen == [("impatient", "x", 10, "g", length) for length in (0, 2, 4)]
    cases[0]["max_turns"] = "3"  # type: ignore[assignment]  # as in a CSV file

    async def task(text: str) -> str:
        return text

    (trial,) = oa.evaluate(task, cases, [COMPLETE], simulate=lambda history, case: "more").trials
    assert len(trial.scored) == 3 + 1

    async def silent(history: list[dict[str, Any]], case: Any) -> str | None:
        return None

    (trial,) = oa.evaluate(task, cases, [COMPLETE], simulate=silent).trials
    assert trial.error is not None
    assert all(score.verdict is not True for _, scores in trial.scored for score in scores)


def configuration(models: ScriptedModels, folder: Path, **more: Any) -> str:
    file = folder / "agenteval.yaml"
    judge = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, **more.pop("judge", {})}
    file.write_text(json.dumps({"judge": judge, "inline": {"metrics": []}, **more}), encoding="utf-8")
    return str(file)


USER = [{"case_id": "x", "user": "Wants a refund of order 7. Write to me@example.com.", "max_turns": 4}]


def said(message: Any) -> dict[str, Any]:
    return {"reason": "not yet", "message": message}


def test_judge_plays_the_user_and_reads_redacted_messages(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(said("Refund, please."), said("Order 7."), said(""), {"verdicts": []})
    config = configuration(models, tmp_path, conversation={"metrics": [{"llm_role_adherence": {"role": "support"}}]})
    (trial,) = oa.evaluate(lambda text: "Which order? Or write to a@b.example", USER, [], config=config).trials
    assert trial.error is None
    assert [turn.input for turn, _ in trial.scored] == ["Refund, please.", "Order 7."]
    first, second, third = models.asked
    assert "Wants a refund of order 7." in first
    assert "[EMAIL_1]" in second
    assert "a@b.example" not in second
    assert "Order 7." in third
    models.play(said("Hi"), said(""), {"verdicts": []})
    (trial,) = oa.evaluate(str.upper, USER, ["llm_role_adherence"], config=config).trials
    assert scores_of(trial)[-1]["llm_role_adherence"].value == 1.0


def test_simulated_user_keeps_to_the_judges_budget(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(*[said("Go on.")] * 5)
    config = configuration(models, tmp_path, judge={"budget": {"calls_per_day": 2}})
    (trial,) = oa.evaluate(str.upper, USER, [COMPLETE], config=config).trials
    assert len(models.requests) == 2
    assert len(trial.scored) == 2 + 1 + 1  # the turn that the user didn't begin
    assert trial.error is not None
    assert "judge.budget: simulated_user reached a limit" in trial.error


@pytest.mark.parametrize("budget", [{}, {"calls_per_day": 10}])
def test_simulated_user_can_have_its_own_model(models: ScriptedModels, tmp_path: Path, budget: dict[str, int]) -> None:
    models.play(said("Hi"), said(""))
    config = configuration(models, tmp_path, judge={"choose": [{"metric": "simulated_user", "model": "small"}], "budget": budget})
    oa.evaluate(str.upper, USER, [COMPLETE], config=config)
    assert [body["model"] for body in models.requests] == ["small", "small"]


def test_scores_of_turns_are_signals_of_the_conversation(models: ScriptedModels, tmp_path: Path) -> None:
    """PandaProbe's sessions: the worst of two turns with confidence 0.9 and 0.3."""
    models.play({"confidence": 0.9, "score": 0.9}, {"confidence": 0.3, "score": 0.3})
    config = configuration(models, tmp_path)
    weights = {"signal_weights": {"tool_correctness": 0, "loop_detection": 0, "coherence": 0}}
    metrics = [{"code_agent_reliability": weights}, {"code_agent_consistency": weights}]
    (trial,) = oa.evaluate(ANSWERS.get, [REFUND], metrics, config=config).trials
    *_, whole = scores_of(trial)
    assert whole["code_agent_reliability"].value == pytest.approx(0.3)
    assert [each["confidence"] for each in whole["code_agent_reliability"].detail["per_trace_signals"].values()] == [0.9, 0.3]
    assert whole["code_agent_consistency"].status == "ok"


def test_judges_of_conversations_read_all_turns(models: ScriptedModels) -> None:
    """Trusys' role adherence and knowledge retention."""
    models.play(
        {"verdicts": [{"index": 3, "reason": "curt", "statement": "Done."}]},
        {"data": {"wish": "money back"}}, {"verdict": "no", "reason": "r"}, {"data": {"order": "7"}}, {"verdict": "yes", "reason": "r"},
    )  # fmt: skip
    metrics = [{"llm_role_adherence": {"role": "a kind clerk"}}, "llm_knowledge_retention"]
    (trial,) = oa.evaluate(ANSWERS.get, [REFUND], metrics, judge=models.judge).trials
    *turns, whole = scores_of(trial)
    assert [*map(len, turns)] == [0, 0]
    assert [score.value for score in whole.values()] == [0.5, 0.5]
    assert all(text in models.asked[0] for pair in ANSWERS.items() for text in pair)


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ({"case_id": "x", "input": "a", "turns": ["b"]}, "case x: .*input and turns"),
        ({"turns": "b"}, "case 1: turns: .*'b'"),
        ({"turns": []}, "case 1: turns: "),
        ({"turns": ["a", {"ground_truth": "b"}]}, r"case 1: turns\[1\]"),
        ({"turns": [7]}, r"case 1: turns\[0\]: .* got 7"),
        ({"user": ["a"]}, "case 1: user: must be text"),
        ({"user": "a", "max_turns": 0}, "case 1: max_turns: .*got 0"),
        ({"user": "a", "max_turns": "many"}, "case 1: max_turns: .*got 'many'"),
        ({"user": "a"}, "case 1: user: a judge is required"),
    ],
)
def test_invalid_conversations_are_refused_before_a_call(case: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        oa.evaluate(pytest.fail, [case], [COMPLETE])


APP = """
def answer(text, history):
    return "Which order?" if not history else "Refunded."
"""


def experiment(folder: Path, monkeypatch: pytest.MonkeyPatch, cases: list[dict[str, Any]], *arguments: str) -> int:
    (folder / "conversation_app.py").write_text(APP, encoding="utf-8")
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    monkeypatch.chdir(folder)
    return main(["experiment", "conversation_app:answer", "cases.jsonl", *arguments])


def test_command_names_the_turn_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    gates = {"metrics": [{EQUAL: {}, "policy": "gate"}], "conversation": {"metrics": [{COMPLETE: {}, "policy": "gate"}]}}
    (tmp_path / "agenteval.yaml").write_text(json.dumps({"inline": {"metrics": []}, **gates}))
    case = {
        "case_id": "refund",
        "turns": [{"input": "a", "ground_truth": "Which order?"}, {"input": "7", "ground_truth": "Done."}],
    }
    shared = ("--config", "agenteval.yaml", "--gate")
    formats = [argument for form in ("junit", "jsonl", "table") for argument in ("--format", form, "--out", f"out.{form}")]
    assert experiment(tmp_path, monkeypatch, [case], *shared, *formats) == 1
    junit, lines, table = ((tmp_path / f"out.{form}").read_text(encoding="utf-8") for form in ("junit", "jsonl", "table"))
    assert re.search(r'name="code_equals_ground_truth\[refund, turn 2\]"><failure', junit)
    assert f'name="{COMPLETE}[refund]"' in junit
    assert [json.loads(line).get("case_turn") for line in lines.splitlines()] == [1, 2, None]
    assert "case refund, turn 2" in table
    assert "no metric reads" not in capsys.readouterr().err
    case["turns"][1] = {"input": "7", "ground_truth": "Refunded.", "ground_thruth": "typo"}  # type: ignore[index]
    assert experiment(tmp_path, monkeypatch, [case], *shared, "--baseline", "out.jsonl") == 0
    out, err = capsys.readouterr()
    assert "'ground_thruth'" in err
    assert "1 pair by case id" in out
