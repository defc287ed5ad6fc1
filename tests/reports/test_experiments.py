"""Situations of public reports on experiments, CI and live evaluation. Each docstring names the reports."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.feedback import feedback_of
from otel_agenteval.core.score import Facts, Score
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.outlets.turn_text import reason_of
from otel_agenteval.report.formatting import change_numbers, percent, rate_and_interval
from tests.support.rig import Rig

CASES = [{"case_id": f"c{number}", "input": f"q{number}", "ground_truth": "Lima"} for number in range(4)]
EQUALS = ["code_equals_ground_truth"]
GUIDE = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}
TENANT = ContextVar("tenant", default="unset")


def as_coroutine_function(task: Callable[..., Any]) -> Callable[..., Any]:
    async def asynchronous(text: Any) -> Any:
        return task(text)

    return asynchronous


def both(task: Callable[..., Any], kind: str) -> Callable[..., Any]:
    return as_coroutine_function(task) if kind == "async" else task


@pytest.fixture
def tenant() -> Iterator[None]:
    token = TENANT.set("acme")
    yield
    TENANT.reset(token)


# --- what a call inherits, and what it can change


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.usefixtures("tenant")
def test_task_reads_the_context_variables_of_the_caller(kind: str) -> None:
    """langsmith-sdk 877: context variables are unset in the task, or have the value of an earlier case."""
    found = []

    def task(text: str) -> str:
        found.append(TENANT.get())
        TENANT.set(text)
        return "Lima"

    oa.evaluate(both(task, kind), CASES, EQUALS, concurrency=1)
    assert (found, TENANT.get()) == (["acme"] * 4, "acme")


@pytest.mark.usefixtures("tenant")
def test_conversation_metric_and_simulated_user_read_context_variables() -> None:
    """langsmith-sdk 877, mlflow 22060: context variables are unset in evaluators that run in threads."""
    found = []

    def note(*given: Any) -> str:
        found.append(TENANT.get())
        return "Lima"

    def code_noted(turn: oa.Turn) -> bool:
        return note() == "Lima"

    oa.evaluate(lambda text, history: note(), [{"user": "Asks once.", "max_turns": 1}], [code_noted], simulate=note)
    assert found == ["acme"] * 3  # the user, the task and the metric


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_turn_is_captured_within_a_span_of_the_caller(kind: str) -> None:
    """langsmith-sdk 877: the caller's context has an open span, but the task's spans aren't part of it."""
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer("app")

    def task(text: str) -> str:
        with tracer.start_as_current_span("invoke_agent guide", attributes=GUIDE):
            return "Lima"

    with tracer.start_as_current_span("nightly evaluation"):
        found = oa.evaluate(both(task, kind), CASES, EQUALS, tracer_provider=provider)
    assert [turn.agent for turn in found.turns] == ["guide"] * 4
    provider.shutdown()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_repetition_receives_the_input_of_the_data_set(kind: str) -> None:
    """opencompass 1845: repetitions share one case, which the first one changes."""
    cases = [{"case_id": "a", "input": {"items": [1], "user": "x"}}]
    found = []

    def task(given: dict[str, Any]) -> str:
        found.append(len(given["items"]))
        given["items"].append(2)
        return "done"

    result = oa.evaluate(both(task, kind), cases, ["code_empty_answer"], repetitions=3)
    assert found == [1, 1, 1]
    assert cases[0]["input"]["items"] == [1]  # type: ignore[index]
    assert {turn.input for turn in result.turns} == {'{"items":[1],"user":"x"}'}


def test_input_that_cannot_be_copied_reaches_the_task() -> None:
    """opencompass 1845, for an input that can't be copied, such as a lock."""
    lock = threading.Lock()
    found = []
    oa.evaluate(lambda given: found.append(given) or "done", [{"input": lock}], ["code_empty_answer"])  # type: ignore[func-returns-value]
    assert found == [lock]


async def stream(text: str) -> AsyncIterator[str]:
    for part in ("Li", "ma"):
        yield part


@pytest.mark.parametrize("task", [stream, lambda text: (part for part in ("Li", "ma"))])
def test_answer_of_a_generator_is_its_texts(task: Any) -> None:
    """opik 1596: a task that isn't a simple function isn't awaited, and its answer is the ``repr`` of an object."""
    assert oa.evaluate(task, CASES, EQUALS).summary()[0].pass_rate == 1.0


@pytest.mark.parametrize(("most", "is_full"), [(3, True), (4, False)])
def test_conversation_that_reached_its_maximum_is_named(most: int, is_full: bool) -> None:
    """gooddata-python-sdk 1789: a simulation that reached its maximum number of turns looks like a finished one."""
    case = {"case_id": "refund", "user": "Asks three times.", "max_turns": most}
    found = oa.evaluate(
        lambda text, history: "Lima", [case], ["code_empty_answer"],
        simulate=lambda history, case: "Which city?" if len(history) < 6 else None,
    )  # fmt: skip
    assert [trial.reached_max_turns for trial in found.trials] == [is_full]
    assert ("conversations that reached max_turns: 1 (refund)" in str(found)) is is_full


def test_experiment_runs_within_a_task_of_another_one() -> None:
    """deepeval 2952: an evaluation waits forever for the event loop in which it was called."""

    async def answer(text: str) -> str:
        return "Lima"

    async def nested(text: str) -> str:
        return str(oa.evaluate(answer, CASES, EQUALS).summary()[0].pass_rate)

    found = asyncio.run(oa.evaluate_async(nested, CASES[:1], ["code_empty_answer"]))
    assert found.turns[0].output == "1.0"


# --- calls that end otherwise than by an answer


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("error", [SystemExit(0), asyncio.CancelledError(), KeyboardInterrupt()], ids=repr)
def test_case_that_ends_the_process_fails_alone(kind: str, error: BaseException) -> None:
    """cuga-agent 625, phoenix 14312: exit() or a cancellation in one case ends the experiment."""

    def task(text: str) -> str:
        if text == "q1":
            raise error
        return "Lima"

    found = oa.evaluate(both(task, kind), CASES, EQUALS)
    assert (len(found.trials), found.summary()[0].pass_rate) == (4, 0.75)
    assert type(error).__name__ in (found.trials[1].error or "")


def test_exit_of_the_task_is_not_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuga-agent 625: if one case, or the task's import, calls exit(0), the command exits with 0."""
    monkeypatch.chdir(tmp_path)
    Path("exiting_app.py").write_text("def task(text):\n    if text == 'q1': raise SystemExit(0)\n    return 'Lima'\n")
    Path("exiting_script.py").write_text("raise SystemExit(0)\n")
    Path("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    more = ["cases.jsonl", "--metrics", *EQUALS, "--format", "jsonl", "--out", "scores.jsonl"]
    assert main(["experiment", "exiting_app:task", *more]) == 1
    assert len(Path("scores.jsonl").read_text().splitlines()) == 4
    assert main(["experiment", "exiting_script:task", *more]) == 2


@pytest.fixture
def never() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_task_that_never_returns_fails_alone(never: threading.Event) -> None:
    """openai/evals 1292: one call blocks the run, and its results are lost."""

    def task(text: str) -> str:
        return str(never.wait()) if text == "q1" else "Lima"

    async def asynchronous(text: str) -> str:
        if text == "q1":
            await asyncio.Event().wait()
        return "Lima"

    for one in (task, asynchronous):
        found = oa.evaluate(one, CASES, EQUALS, timeout=0.2, concurrency=2)
        assert found.summary()[0].pass_rate == 0.75
        assert found.trials[1].error == "TimeoutError: the task did not return within 0.2 s"


@pytest.mark.parametrize("stuck", ["task", "user"])
def test_conversation_that_never_continues_keeps_its_turns(stuck: str, never: threading.Event) -> None:
    """openai/evals 1292, for a conversation whose second turn never ends."""

    def task(text: str, history: list[Any]) -> str:
        return str(never.wait()) if history and stuck == "task" else "Lima"

    def user(history: list[Any], case: Any) -> str:
        return str(never.wait()) if history and stuck == "user" else "Which city?"

    (trial,) = oa.evaluate(task, [{"user": "Asks twice."}], ["code_empty_answer"], simulate=user, timeout=0.2).trials
    assert f"the {'simulated user' if stuck == 'user' else 'task'} did not return within 0.2 s" in (trial.error or "")
    assert trial.scored[0][0].output == "Lima"


def test_metric_that_never_returns_is_an_error_of_its_case(never: threading.Event) -> None:
    """mlflow 25720: an evaluator blocks the run."""

    def code_stuck(turn: oa.Turn) -> bool:
        return never.wait() if turn.input == "q1" else True

    found = oa.evaluate(lambda text: "Lima", CASES, [code_stuck, *EQUALS], timeout=0.2)
    assert [(summary.n, summary.errors) for summary in found.summary()] == [(3, 1), (3, 1)]
    (explanation,) = {score.explanation for score in found.trials[1].scored[0][1]}
    assert explanation == "the metrics of this case did not return within 0.2 s"


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_time_limit_must_be_positive(timeout: float) -> None:
    """pydantic-ai 6228: a concurrency of 0 waits forever instead of being refused."""
    with pytest.raises(oa.ConfigError, match="timeout: must be a positive number"):
        oa.evaluate(lambda text: "Lima", CASES, EQUALS, timeout=timeout)


def interrupt(name: str = "SIGINT") -> None:
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.Signals[name])


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="requires signals of threads")
@pytest.mark.parametrize("stuck", ["task", "metric"])
def test_interrupt_keeps_the_trials_that_are_finished(stuck: str, never: threading.Event) -> None:
    """inspect_ai 4859: after Ctrl-C, the finished part is lost."""

    def reach(place: str, text: str | None) -> str:
        if place == stuck and text == "q2":
            interrupt()
            never.wait()
        return "Lima"

    def code_reached(turn: oa.Turn) -> bool:
        return reach("metric", turn.input) == "Lima"

    with pytest.raises(KeyboardInterrupt) as stopped:
        oa.evaluate(lambda text: reach("task", text), CASES, [code_reached], concurrency=1)
    trials = stopped.value.experiment.trials  # type: ignore[attr-defined]
    assert [trial.case_id for trial in trials] == ["c0", "c1"]
    assert all(trial.scored[0][1][0].verdict for trial in trials)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="requires signals of threads")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupted_command_writes_its_reports(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """inspect_ai 4859, opik 6941: exit code 0 after Ctrl-C, and no report."""
    monkeypatch.chdir(tmp_path)
    Path(f"stuck_by_{name}.py").write_text(
        "import asyncio\nfrom tests.reports.test_experiments import interrupt\n"
        "async def task(text):\n    if text == 'q2':\n        interrupt(__name__[9:])\n        await asyncio.Event().wait()\n    return 'Lima'\n"
    )
    Path("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    files = ["--format", "jsonl", "--out", "scores.jsonl"]
    assert main(["experiment", f"stuck_by_{name}:task", "cases.jsonl", "--metrics", *EQUALS, "--concurrency", "1", *files]) == 130
    assert len(Path("scores.jsonl").read_text().splitlines()) == 2
    assert "the reports contain 2 of 4 trials" in capsys.readouterr().err


# --- summaries


def test_metric_with_two_settings_has_two_rows() -> None:
    """strands evals 249: two evaluators of the same type with different settings overwrite each other."""
    lima, paris = ({"code_contains": {"value": city}} for city in ("Lima", "Paris"))
    bound = [oa.get_metric("code_contains", value=city) for city in ("Lima", "Paris")]
    choices: list[list[Any]] = [[lima, paris], bound, bound, [lima, *bound, paris]]
    for metrics in choices:
        found = oa.evaluate(lambda text: "Lima", CASES, metrics).summary()
        assert [summary.pass_rate for summary in found] == [1.0, 0.0]
        assert len({summary.metric for summary in found}) == 2
    assert [metric.name for metric in bound] == ["code_contains"] * 2
    (summary,) = oa.evaluate(lambda text: "Lima", CASES, [lima, lima, {**lima, "policy": "gate"}]).summary()
    assert summary.n == 4


def test_two_functions_of_one_name_are_refused() -> None:
    """strands evals 249: the second of two evaluators with one name is dropped."""

    def named_same(value: float) -> Callable[[oa.Turn], float]:
        def same(turn: oa.Turn) -> float:
            return value

        return same

    with pytest.raises(oa.ConfigError, match="two functions have the name code_same"):
        oa.evaluate(lambda text: "Lima", CASES, [named_same(1.0), named_same(0.0)])


@pytest.mark.parametrize("later", [None, ValueError("no judge")], ids=["skipped", "error"])
@pytest.mark.parametrize(("first", "at_k", "hat_k"), [(False, 0.5, 0.5), (True, 1.0, 1.0)])
def test_case_with_fewer_verdicts_counts_with_those_it_has(
    first: bool, at_k: float, hat_k: float, later: ValueError | None
) -> None:
    """MultiPL-E 40: pass@k is 1 through cases with fewer than k trials."""
    seen: list[str | None] = []

    def code_verdict(turn: oa.Turn) -> bool | None:
        seen.append(turn.input)
        if turn.input != "q0":
            return True
        if seen.count("q0") > 2 and later is not None:
            raise later
        return first if seen.count("q0") <= 2 else None

    (summary,) = oa.evaluate(lambda text: "Lima", CASES[:2], [code_verdict], repetitions=5).summary()
    assert (summary.pass_at_k, summary.pass_hat_k, summary.judged) == (at_k, hat_k, 7)


@pytest.mark.parametrize(
    ("value", "mean", "rate"),
    [
        (np.bool_(False), 0.0, 0.0), (np.bool_(True), 1.0, 1.0), (np.float32(0), 0.0, None), (np.int64(3), 3.0, None),
        (Decimal("0.5"), 0.5, None), (float("nan"), None, None), (np.float32("nan"), None, None),
    ],
    ids=repr,
)  # fmt: skip
def test_score_can_be_a_number_of_a_library(value: Any, mean: float | None, rate: float | None) -> None:
    """langfuse 9290, adk-python 1281: scores of 0 and False, here as numpy's, are dropped; NaN counts."""

    def code_value(turn: oa.Turn) -> Any:
        return value

    (summary,) = oa.evaluate(lambda text: "Lima", CASES, [code_value]).summary()
    assert (summary.mean, summary.pass_rate, summary.errors) == (mean, rate, 4 if mean is None else 0)


@pytest.mark.parametrize(("watch", "lost"), [(["all"], ["code_equals_ground_truth"]), ([], [])])
def test_metric_that_is_gone_fails_if_all_are_watched(watch: list[str], lost: list[str]) -> None:
    """MCPJam inspector 4343: a metric that is only in the baseline isn't compared."""
    before, now = (oa.evaluate(lambda text: "Lima", CASES, metrics) for metrics in (EQUALS, ["code_empty_answer"]))
    comparison = now.compare(before, watch)
    assert (comparison.lost, comparison.missing) == (lost, EQUALS)


@pytest.mark.parametrize(("watch", "lost"), [(["all"], EQUALS), (EQUALS, EQUALS), (["code_empty_answer"], []), ([], [])])
def test_watched_metric_without_values_fails(watch: list[str], lost: list[str]) -> None:
    """assay 2082, remnic 584: a metric without values, here because of missing references, isn't compared."""
    unlabeled = [{"case_id": case["case_id"], "input": case["input"]} for case in CASES]
    before, now = (oa.evaluate(lambda text: "Lima", cases, [*EQUALS, "code_empty_answer"]) for cases in (CASES, unlabeled))
    assert now.compare(before, watch).lost == lost
    assert before.compare(now, watch).lost == []


# --- live evaluation


@pytest.mark.parametrize(
    ("labels", "value", "outcomes"),
    [
        (["down", "down"], 0.0, {("joined",): 1, ("repeated",): 1}),
        (["down", "up", "up"], 1.0, {("joined",): 2, ("repeated",): 1}),
    ],
)
def test_feedback_that_is_sent_again_counts_once(
    labels: list[str], value: float, outcomes: dict[tuple[str], int], tmp_path: Path
) -> None:
    """morphic 925: one click gives two feedback scores; a changed rating keeps its first value."""
    with Rig({"inline": {"metrics": []}, "outlets": {"store": str(tmp_path / "scores.db")}}) as rig:
        rig.run()
        turn, handle = rig.turn(), oa.Handle(rig.processor)
        for label in labels:
            assert handle.feedback(turn.turn_id, label=label, id="click")
            assert handle.flush(120)
        with StoreReader(tmp_path / "scores.db") as reader:
            assert [(row["value"], row["passed"]) for row in reader.scores(turn.turn_id)] == [(value, bool(value))]
        assert rig.count("agenteval.feedback") == outcomes


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ("👍🏽", 1.0), ("👎🏿", 0.0), ("👍\ufe0f", 1.0), ("+1", 1.0), (":-1:", 0.0), ("+1_medium_light_skin_tone", 1.0),
        ("+1::skin-tone-3", 1.0), ("thumbsdown::skin-tone-6", 0.0), (":thumbsup:", 1.0), ("1", None), ("😀", None), ("skin_tone", None),
    ],
)  # fmt: skip
def test_thumb_of_any_skin_tone_is_feedback(label: str, score: float | None) -> None:
    """zaq 655, cody 576, element-web 9785: reactions in chats with a skin tone weren't recorded."""
    if score is None:
        with pytest.raises(oa.ConfigError, match="no rating found"):
            feedback_of(label=label)
    else:
        assert feedback_of(label=label).score == score


# --- recorded answers


def scores_of(file: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[Any], str]:
    """Return the values of code_empty_answer for a file of recorded answers, and standard error."""
    file.write_text(text)
    main(["experiment", "recorded", str(file), "--metrics", "code_empty_answer", "--format", "jsonl", *options])
    out, err = capsys.readouterr()
    return [json.loads(line).get("value") for line in out.splitlines()], err


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "input,output,ground_truth\nq,,x\nr,NA,x\n", ()),
        ("a.csv", 'input,output\nq,""\nr,null\n', ()),
        ("a.tsv", "input\toutput\tground_truth\nq\t\tx\nr\tA\tx\n", ()),
        ("a.csv", "input,answer\nq,\nr,A\n", ("--columns", "output=answer")),
        ("a.jsonl", '{"input": "q", "output": ""}\n{"input": "r", "output": "A"}', ()),
        ("a.jsonl", '{"input": "q", "output": null}\n{"input": "r", "output": "A"}', ()),
        ("a.jsonl", '{"input": "q", "output": null}\n{"input": "r", "output": null}', ()),
    ],
)
def test_empty_cell_is_an_empty_answer(
    name: str, text: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VLMEvalKit 1704: an empty cell caused the error that the dataset lacks the column."""
    values, err = scores_of(tmp_path / name, text, capsys, *options)
    assert (values[0], len(values)) == (0.0, 2)
    assert "error:" not in err.lower()


@pytest.mark.parametrize("form", ["frame", "parquet"])
def test_null_in_a_table_is_an_empty_answer(form: str, tmp_path: Path) -> None:
    """VLMEvalKit 1704, in Parquet and pandas."""
    frame: Any = pandas.DataFrame({"input": ["q", "r"], "output": [None, "A"], "ground_truth": ["A", None]})
    if form == "parquet":
        frame.to_parquet(tmp_path / "a.parquet")
        frame = tmp_path / "a.parquet"
    found = oa.evaluate(None, frame, ["code_empty_answer"])
    assert [(turn.output, turn.ground_truth, scores[0].value) for turn, scores in found.scored] == [("", "A", 0), ("A", None, 1)]


def test_empty_cell_of_another_column_is_no_reference(tmp_path: Path) -> None:
    """VLMEvalKit 1704, the opposite."""
    (tmp_path / "a.csv").write_text("input,output,ground_truth\nq,A,\n")
    ((turn, (score,)),) = oa.evaluate(None, tmp_path / "a.csv", EQUALS).scored
    assert (turn.ground_truth, score.status) == (None, "skipped")


# --- numbers in reports


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(True, True), (1, True), (0.0, False), (np.bool_(True), True), (1.7, None), (0.5, None), (-1, None), (2, None)],
)
def test_boolean_metric_accepts_only_zero_and_one(value: Any, verdict: bool | None) -> None:
    """inspect_ai 4286: values outside the range are averaged. Here, a score of 0.5 counted as a pass."""

    @oa.metric(boolean=True)
    def code_given(turn: oa.Turn) -> Any:
        """Return the value."""
        return value

    score = oa.get_metric("code_given").evaluate(oa.Turn(output="Lima"))
    assert (score.passed, score.error_type) == (verdict, None if verdict is not None else "invalid_value")


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (1999 / 2000, 0, "99.95 %"), (1999 / 2000, 1, "99.95 %"), (0.99999999, 1, "99.999 %"), (0.996, 0, "99.6 %"),
        (1 / 4000, 1, "0.03 %"), (1e-7, 0, "0.001 %"), (0.994, 0, "99 %"), (0.5, 1, "50 %"), (2 / 3, 1, "66.7 %"),
        (1.0, 1, "100 %"), (1 - 1e-16, 1, "100 %"), (0.0, 0, "0 %"), (None, 1, "–"),
    ],
)  # fmt: skip
def test_share_is_not_rounded_to_all_or_none(share: float | None, digits: int, text: str) -> None:
    """apple/pkl 1110, coven-cave 2333: one failure in thousands of cases is shown as 100 %."""
    assert percent(share, digits) == text


def test_reports_show_the_only_failure() -> None:
    """apple/pkl 1110, in the table and in the intervals of a report."""
    cases = [{"input": f"q{number}", "ground_truth": "Lima"} for number in range(2001)]
    found = oa.evaluate(lambda text: "Quito" if text == "q7" else "Lima", cases, EQUALS)
    (series,) = found.run().series.values()
    assert "  99.95 %" in str(found)
    assert rate_and_interval(series.summary()) == ("99.95 %", "(99.7–99.99)")


@pytest.mark.parametrize(
    ("value", "threshold", "direction", "unit", "text"),
    [
        (0.7996, 0.8, "up", "1", "0.7996, at least 0.8 passes"), (0.79985, 0.7999, "up", "1", "0.79985, at least 0.7999 passes"),
        (20_000.4, 20_000, "down", "{token}", "20000.4 tokens, at most 20000 passes"),
        (0.050004, 0.05, "down", "USD", "$0.050004, at most 0.05 passes"), (0.61234, 0.8, "up", "1", "0.612, at least 0.8 passes"),
        (12.3456, 5, "down", "s", "12.3 s, at most 5 passes"), (3.0, 5, "up", "1", "3, at least 5 passes"),
    ],
)  # fmt: skip
def test_failed_value_differs_from_its_threshold(value: float, threshold: float, direction: Any, unit: str, text: str) -> None:
    """camunda 50019: "score: 0.80 (threshold: 0.80)" of a failure."""
    facts = Facts("code_own", unit=unit, direction=direction, threshold=threshold)
    assert reason_of(Score.of(facts, value, False, "ok", "fail", None, {}, {}, None)) == text


def compared(change: Callable[[int], float], **options: Any) -> Any:
    """Compare the mean of a metric in two runs of 12 cases."""
    cases = [{"case_id": f"c{number}", "input": number} for number in range(12)]

    def run(shift: Callable[[int], float]) -> Any:
        def code_value(turn: oa.Turn) -> float:
            return 0.3 + 0.02 * int(turn.input or 0) + shift(int(turn.input or 0))

        return oa.evaluate(lambda number: "Lima", cases, [code_value], **options)

    return run(change).compare(run(lambda number: 0.0), watch=["all"])


@pytest.mark.parametrize(
    ("change", "verdict", "interval"),
    [
        (lambda number: -1e-12, "no change shown", "0 to 0"), (lambda number: (-1) ** number * 1e-13, "no change shown", "0 to 0"),
        (lambda number: 1e-11, "no change shown", "0 to 0"), (lambda number: -1e-6, "regression", "unknown"),
        (lambda number: -0.02, "regression", "unknown"), (lambda number: -0.02 - 0.001 * number, "regression", "−0.02742 to −0.0235"),
    ],
)  # fmt: skip
def test_rounding_is_no_change_and_equal_differences_have_no_interval(
    change: Callable[[int], float], verdict: str, interval: str
) -> None:
    """i-have-adhd 164: a difference of floats in the last digit. lm-evaluation-harness 3966: an error of exactly 0."""
    (found,) = compared(change).changes
    assert (found.verdict, change_numbers(found)[3]) == (verdict, interval)


def test_values_without_spread_have_no_interval() -> None:
    """lm-evaluation-harness 3966: an error of exactly 0, here of amounts."""
    cases = [{"input": number} for number in range(6)]

    def code_amount(turn: oa.Turn) -> float:
        return 7.0

    def code_share(turn: oa.Turn) -> float:
        return 0.5

    assert "  7     unknown" in str(oa.evaluate(lambda number: "Lima", cases, [code_amount]))
    assert "  0.5   0.4739 … 0.5261" in str(oa.evaluate(lambda number: "Lima", cases, [code_share]))


@pytest.mark.parametrize(("reply", "turns"), [(None, 1), ("", 1), (" \n", 1), ("\u3000", 1), ("0", 3), ({"text": ""}, 3)])
def test_blank_message_of_the_user_ends_the_conversation(reply: Any, turns: int) -> None:
    """langwatch 7663, tolokaforge 1088: a blank message of the simulated user reaches the agent."""
    (trial,) = oa.evaluate(
        lambda text, history: "Lima", [{"user": "Asks.", "max_turns": 3}], ["code_empty_answer"],
        simulate=lambda history, case: reply if history else "Hi",
    ).trials  # fmt: skip
    assert (len(trial.scored), trial.error) == (turns, None)


@pytest.mark.parametrize(
    ("changed", "notice"),
    [
        ({}, ""),
        ({"case_id": "c99"}, "labels: 1 label without a score, such as c99"),
        ({"case_id": "C0"}, "labels: 1 label without a score, such as C0"),
        ({"case_id": "", "input": "q99"}, "labels: 1 label without a score, such as input-"),
        ({"metric": "code_equals_truth"}, "labels: 1 label without a score, such as c0 of code_equals_truth"),
        ({"metric": "code_equals_ground_truth"}, ""),
        ({"case_id": "scores.jsonl:c0"}, ""),
    ],
)
def test_labels_without_a_score_are_counted(
    changed: dict[str, str], notice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ailly 200: a label with a typing error in its id isn't noticed."""
    oa.evaluate(lambda text: "Lima", CASES, EQUALS).write(tmp_path / "scores.jsonl")
    labels = [{"case_id": case["case_id"], "label": "pass"} for case in CASES]
    labels[0] |= changed
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    assert main(["calibrate", str(tmp_path / "labels.jsonl"), "--scores", str(tmp_path / "scores.jsonl")]) == 0
    assert capsys.readouterr().err.partition("input-")[0].strip() == notice.removesuffix(" input-")
