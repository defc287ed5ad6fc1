"""``oa.evaluate`` and ``otel-agenteval experiment`` with a real framework and with simple functions."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import ConfigError, JudgeError
from otel_agenteval.statistics.repeated import Tries, consistency, mean_by_case, pass_at_k, pass_hat_k
from tests.support.process import run

CAPITALS = {"France": "Paris", "Italy": "Rome", "Peru": "Lima"}
CASES = [
    {"case_id": country, "input": f"What is the capital of {country}?", "ground_truth": city}
    for country, city in CAPITALS.items()
]
EQUAL = ["code_equals_ground_truth"]


@pytest.fixture
def provider() -> Iterator[TracerProvider]:
    """Return a separate provider, so that other tests' turns aren't included."""
    made = TracerProvider(shutdown_on_exit=False)
    Agent.instrument_all(InstrumentationSettings(tracer_provider=made))
    yield made
    Agent.instrument_all(False)
    made.shutdown()


def agent() -> Agent[None, str]:
    """Return an agent that looks up a capital with a tool, and then answers."""

    def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = next(part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart))
        country = str(asked).removesuffix("?").rpartition(" ")[2]
        if sum(isinstance(message, ModelRequest) for message in messages) == 1:
            return ModelResponse(parts=[ToolCallPart("capital_of", {"country": country})], finish_reason="tool_call")
        return ModelResponse(parts=[TextPart(CAPITALS[country])], finish_reason="stop")

    made = Agent(FunctionModel(script, model_name="scripted"), name="guide")

    @made.tool_plain
    def capital_of(country: str) -> str:
        return CAPITALS[country]

    return made


def test_the_turns_of_a_real_agent_are_captured_and_scored(provider: TracerProvider) -> None:
    guide = agent()
    found = oa.evaluate(
        lambda asked: asyncio.run(guide.run(asked)).output,
        CASES,
        [*EQUAL, "code_tool_success"],
        repetitions=2,
        tracer_provider=provider,
    )
    assert [(trial.case_id, trial.repetition) for trial in found.trials] == list(itertools.product(CAPITALS, (1, 2)))
    for trial in found.trials:
        ((turn, scores),) = trial.scored
        assert (turn.agent, turn.output) == ("guide", CAPITALS[trial.case_id])
        assert [call.name for call in turn.tool_calls or ()] == ["capital_of"]
        assert turn.references["case_id"] == trial.case_id
        assert [score.passed for score in scores] == [True, True]
    summary = {one.metric: one for one in found.summary()}["code_equals_ground_truth"]
    assert (summary.cases, summary.n, summary.mean) == (3, 6, 1.0)
    assert (summary.pass_at_k, summary.pass_hat_k, summary.consistency) == (1.0, 1.0, 1.0)


def test_turn_without_content_gets_the_case_input_and_the_answer(provider: TracerProvider) -> None:
    def task(asked: str) -> str | None:
        with provider.get_tracer("app").start_as_current_span(
            "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}
        ):
            return None if "Peru" in asked else CAPITALS["France"]

    found = oa.evaluate(task, CASES, EQUAL, tracer_provider=provider)
    contents = [(turn.input, turn.output) for turn in found.turns]
    assert contents == [(CASES[0]["input"], "Paris"), (CASES[1]["input"], "Paris"), (CASES[2]["input"], None)]
    assert [score.passed for trial in found.trials for _, (score,) in trial.scored] == [True, False, None]


def test_a_coroutine_runs_as_often_at_once_as_allowed_also_in_a_notebook(provider: TracerProvider) -> None:
    running, most = 0, 0
    guide = agent()

    async def task(asked: str) -> str:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        try:
            return (await guide.run(asked)).output
        finally:
            running -= 1

    async def notebook() -> oa.Experiment:
        return oa.evaluate(task, CASES, EQUAL, repetitions=3, concurrency=2, tracer_provider=provider)

    found = asyncio.run(notebook())
    assert most == 2
    assert len(found.turns) == 9
    assert all(turn.agent == "guide" for turn in found.turns)


def test_an_application_can_be_instrumented_afterwards_and_then_both_see_its_turns(provider: TracerProvider) -> None:
    guide = agent()

    def task(asked: str) -> str:
        return asyncio.run(guide.run(asked)).output

    oa.evaluate(task, CASES, EQUAL, tracer_provider=provider)
    handle = oa.instrument(tracer_provider=provider, config={"inline": {"metrics": EQUAL}, "outlets": {"prometheus": None}})
    assert handle.processor is not None
    assert list(handle.processor.engine.config.inline.metrics) == EQUAL, "it is not what the experiment captured with"
    live: deque[Any] = deque()
    handle.processor.engine.keep_turns(live)
    found = oa.evaluate(task, CASES, EQUAL, tracer_provider=provider)
    assert [turn.output for turn in found.turns] == list(CAPITALS.values())
    assert len(live) == 3
    task(CASES[0]["input"])
    assert handle.flush(120)
    assert len(live) == 4
    assert len(found.turns) == 3


def test_two_experiments_at_the_same_time_keep_their_turns_apart(provider: TracerProvider) -> None:
    guide, both = agent(), threading.Barrier(2, timeout=120)

    def one(_: int) -> oa.Experiment:
        both.wait()
        return oa.evaluate(lambda asked: asyncio.run(guide.run(asked)).output, CASES, EQUAL, tracer_provider=provider)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert [len(trial.scored) for trial in (*first.trials, *second.trials)] == [1] * 6
    assert not {turn.turn_id for turn in first.turns} & {turn.turn_id for turn in second.turns}


def test_plain_functions_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=120)
    found = oa.evaluate(lambda asked: both.wait() and "Paris", CASES[:2], EQUAL, concurrency=2)
    assert [trial.error for trial in found.trials] == [None, None]


def test_a_call_that_raises_is_a_turn_with_that_error_and_the_others_go_on() -> None:
    def task(asked: str) -> str:
        if "Italy" in asked:
            raise TimeoutError("no answer")
        return "Paris"

    found = oa.evaluate(task, CASES, ["code_turn_error", "code_recall_at_k"])
    assert [trial.error for trial in found.trials] == [None, "TimeoutError: no answer", None]
    assert [scores[0].passed for _, scores in found.scored] == [True, False, True]
    assert re.search(r"code_recall_at_k .*skipped on every turn", str(found))
    assert "Italy, repetition 1: TimeoutError: no answer" in str(found)


def test_repetitions_say_how_far_an_answer_can_be_relied_on() -> None:
    turn = itertools.count()

    def task(asked: str) -> str:  # France is always right, Italy every other time, Peru never
        return "Paris" if "France" in asked else "Rome" if "Italy" in asked and next(turn) % 2 else "?"

    found = oa.evaluate(task, CASES, EQUAL, repetitions=4, concurrency=1)
    (summary,) = found.summary()
    assert (summary.cases, summary.n, summary.pass_rate) == (3, 12, 0.5)
    assert summary.pass_at_k == pytest.approx(2 / 3)
    assert summary.pass_hat_k == pytest.approx(1 / 3)
    assert summary.consistency == pytest.approx(2 / 3)
    assert (summary.low, summary.high) == (None, None), "repetitions of three cases are three pieces of evidence"
    assert "needs 5 cases" in str(found)
    assert "pass^4" in str(found)


def test_interval_needs_more_than_five_cases_if_one_has_fewer_values() -> None:
    calls = itertools.count()

    def task(asked: str) -> str:
        if next(calls) == 1:
            raise ValueError("down")
        return "Paris"

    cases = [{"case_id": str(n), "input": f"Question {n}?"} for n in range(5)]
    found = oa.evaluate(task, cases, ["code_word_count"], repetitions=2, concurrency=1)
    assert "needs more cases" in str(found)


def test_one_is_compared_with_another_case_by_case(tmp_path: Path) -> None:
    cases = [{"case_id": str(number), "input": str(number), "ground_truth": "yes"} for number in range(20)]
    good, bad = (oa.evaluate(lambda asked, answer=answer: answer, cases, EQUAL) for answer in ("yes", "no"))
    good.write(tmp_path / "good.jsonl")
    for baseline in (good, tmp_path / "good.jsonl"):
        comparison = bad.compare(baseline, watch=EQUAL)
        assert (comparison.paired_by, comparison.pairs) == ("case id", 20)
        assert [change.label for change in comparison.regressions] == EQUAL
    assert "code_equals_ground_truth" in bad.compared(good)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            JudgeError("rejected with status 401 (api_key is missing or invalid)", "http_401"),
            "http_401: rejected with status 401 (api",
        ),
        (JudgeError("got 'Paris'", "invalid_reply"), "invalid_reply: got 'Paris'\n"),
    ],
)
def test_first_explanation_of_each_error_type_is_shown(error: Exception, shown: str) -> None:
    errors = itertools.chain([error], itertools.repeat(JudgeError("not called", "circuit_open")))

    class Judge:
        model = "judge"

        def ask(self, *_: Any, **__: Any) -> Any:
            raise next(errors)

    found = oa.evaluate(str, [{"input": text} for text in "abc"], ["llm_relevance"], judge=Judge(), concurrency=1)
    assert f"llm_relevance: 1 error: {shown}" in f"{found}\n"
    assert "llm_relevance: 2 errors: circuit_open: not called\n" in f"{found}\n"


@pytest.mark.parametrize("column", ["input", "user", "turns"])
def test_cases_without_ids_are_paired_by_input(column: str) -> None:
    cases = [{column: [text] if column == "turns" else text, "n": n} for n, text in enumerate(("a", "b", "c", "c"))]
    options: dict[str, Any] = {
        "metrics": ["code_empty_answer"],
        "simulate": lambda history, case: None if history else case["user"],
    }
    before, after = (oa.evaluate(str, rows, **options) for rows in (cases, cases[:0:-1]))
    ids = {trial.case_id: trial.scored[0][0].input for trial in before.trials}
    assert {trial.case_id: trial.scored[0][0].input for trial in after.trials}.items() < ids.items()
    assert [trial.place for trial in after.trials] == ["case 1", "case 2", "case 3"]


def test_data_sets_of_every_kind_are_the_same(tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame(CASES)
    frame.to_csv(tmp_path / "cases.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "cases.parquet")
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    files = [tmp_path / f"cases.{form}" for form in ("csv", "parquet", "jsonl")]
    for dataset in (CASES, frame, *files):
        asked: list[str] = []
        found = oa.evaluate(lambda text, asked=asked: asked.append(text) or "Paris", dataset, EQUAL, concurrency=1)
        assert asked == [case["input"] for case in CASES]
        assert [score.passed for _, scores in found.scored for score in scores] == [True, False, False]


SOME = CASES[:2]
DOCUMENTS = {
    "cases.json": json.dumps(SOME, indent=2),
    "one_line.jsonl": json.dumps(SOME),
    "lines.json": "\n".join(map(json.dumps, SOME)),
    "items.json": json.dumps({"items": SOME}, indent=1),
    "marked.json": "\ufeff" + json.dumps({"id": "capitals", "cases": SOME}),
    "test_cases.json": json.dumps({"name": "capitals", "test_cases": SOME}),
    "scenario.yaml": yaml.safe_dump({"name": "capitals", "dataset": {"cases": SOME}, "timeout": 30}),
    "list.yml": yaml.safe_dump(SOME),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_has_the_cases_of_a_data_set(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(DOCUMENTS[name], encoding="utf-8")
    found = oa.evaluate(lambda text: "Paris", tmp_path / name, EQUAL)
    assert [(turn.references["case_id"], score.passed) for turn, (score,) in found.scored] == [("France", True), ("Italy", False)]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_document_can_be_one_case(form: str, tmp_path: Path) -> None:
    case = {"prompt": "Which rows?", "rows": [1, 2], "assert": [{"type": "contains", "value": "Paris"}]}
    file = tmp_path / f"case.{form}"
    file.write_text(json.dumps(case, indent=2) if form == "json" else yaml.safe_dump(case))
    ((turn, scores),) = oa.evaluate(lambda text: "Paris", file, []).scored
    assert (turn.input, turn.references["rows"], scores[0].passed) == ("Which rows?", [1, 2], True)


def test_yaml_of_a_data_set_is_text_and_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text('- {input: "${env:HOME} $${x}", ground_truth: yes, date: 2026-11-28, time: 10:30}')
    ((turn, (score,)),) = oa.evaluate(lambda text: "yes", tmp_path / "cases.yaml", EQUAL).scored
    assert (turn.input, score.passed) == ("${env:HOME} $${x}", True)
    assert (turn.references["date"], turn.references["time"]) == ("2026-11-28", "10:30")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '[{"input": "a"}, 5]', r"a\.json: case 2: must be an object, got int"),
        ("a.jsonl", '{"input": "a"}\n5', r"a\.jsonl:2: must be an object, got int"),
        ("a.jsonl", '{"input": "a"}\nnull', r"a\.jsonl:2: must be an object, got NoneType"),
        ("a.json", '{\n "cases": [1,]\n}', r"a\.json: must be JSON; .*line 2"),
        ("a.jsonl", '[{"input": "a"}', r"a\.jsonl: must be JSON; "),
        ("a.yaml", "a: [1\nb: 2", r"a\.yaml:2: not YAML: "),
        ("a.yaml", "just text", r"a\.yaml: must be a list of cases"),
        ("a.yaml", "x: !!python/object:os.system {}", r"a\.yaml:1: not YAML: "),
        ("a.yaml", "input: &a {b: *a}", r"a\.yaml:1: input\.b: an alias refers to an enclosing value"),
        ("a.yaml", "input: a\ninput: b", r"a\.yaml:2: .*input"),
        ("a.json", b'[{"input": "\xff"}]', r"a\.json: isn't UTF-8 text\. .*iconv"),
        ("a.yaml", "", "at least one case"),
        ("a.json", '{"cases": []}', "at least one case"),
        ("a.json", '{"cases": [{"inptu": "a"}]}', r"a\.json: case 1: a case must have .*Did you mean input instead of 'inptu'"),
        (
            "a.yaml",
            "- {id: 1, input: a}\n- {id: 1, input: b}",
            r"a\.yaml:2: duplicate case_id '1', already used in .*a\.yaml:1",
        ),
    ],
)
def test_fault_in_a_document_names_its_place(name: str, text: str | bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=says):
        oa.evaluate(str, tmp_path / name, EQUAL)


@dataclasses.dataclass(slots=True)
class DatasetCase:
    """Like AgentUnit's class."""

    id: str
    query: str
    expected_output: str | None = None
    context: list[str] | None = None


def test_cases_can_be_dataclasses() -> None:
    cases = (DatasetCase(country, f"{country}?", city) for country, city in CAPITALS.items())
    found = oa.evaluate(lambda text: "Paris", cases, ["agentunit:answer_correctness"])
    assert [turn.input for turn, _ in found.scored] == ["France?", "Italy?", "Peru?"]
    assert found.scored[0][1][0].value == 1.0
    with pytest.raises(ConfigError, match="case 1: must be a mapping, got type"):
        oa.evaluate(str, [DatasetCase], EQUAL)


def test_columns_fill_the_input() -> None:
    case = {
        "prompt": "What is the {{what}} of {{ country }}? {{unknown}}",
        "what": "capital",
        "country": "France",
        "value": "Paris",
    }
    asked: list[str] = []
    metric = {"code_contains": {"value": "{{country}}"}}
    found = oa.evaluate(lambda text: asked.append(text) or "It's in France.", [case], [metric])
    assert asked == ["What is the capital of France? {{unknown}}"]
    messages = [{"role": "user", "content": "About {{country}}?"}]
    ((turn, _),) = oa.evaluate(
        lambda given: given["messages"][0]["content"], [{**case, "prompt": {"messages": messages}}], EQUAL
    ).scored
    assert turn.output == "About France?"
    assert found.scored[0][1][0].passed is True


def test_documents_in_a_cell_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("id,query,context,note\n1,?,France. || Its capital is Paris.,a||b\n2,?,One,c\n")
    first, second = (turn for turn, _ in oa.evaluate(str, tmp_path / "cases.csv", EQUAL).scored)
    assert (first.context, first.references["note"]) == (["France.", "Its capital is Paris."], "a||b")
    assert second.context == ["One"]


def test_expected_is_the_expected_value_unless_it_lists_tools() -> None:
    metric = "agentunit:answer_correctness"
    for expected, status in (("Paris", "ok"), (["search"], "skipped")):
        ((_, (score,)),) = oa.evaluate(lambda text: "Paris", [{"input": "?", "expected": expected}], [metric]).scored
        assert score.status == status


def test_name_of_a_metric_keeps_its_parameters_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "capitals.py").write_text("def answer(question):\n    return 'Ask Jo Doe.'\n", "utf-8")
    (tmp_path / "cases.json").write_text(json.dumps([{"query": "Whom?", "expected_output": "Ask Jo Doe."}]))
    monkeypatch.chdir(tmp_path)
    names = "agentunit:answer_correctness,agentunit:pii_leakage"
    assert main(["experiment", "capitals:answer", "cases.json", "--metrics", names, "--format", "jsonl"]) == 0
    rows = {row["metric"]: row for row in map(json.loads, capsys.readouterr().out.splitlines()) if "metric" in row}
    assert rows["llm_answer_correctness"]["value"] == 1.0
    assert rows["code_pii_leakage"]["detail"]["types"] == ["name"]


def test_its_frame_has_a_row_for_each_score_and_it_shows_itself() -> None:
    found = oa.evaluate(lambda asked: "Paris", CASES, EQUAL, repetitions=2)
    frame = found.frame()
    assert list(frame.columns[:2]) == ["case_id", "repetition"]
    assert len(frame) == 6
    assert frame.groupby("case_id").passed.mean().to_dict() == {"France": 1.0, "Italy": 0.0, "Peru": 0.0}
    assert "<td" in found._repr_html_()


@pytest.mark.parametrize(
    ("dataset", "more", "says"),
    [
        ([], {}, "at least one case"),
        ([{"case_id": "1", "ground_truth": "a"}], {}, "case 1: .*input"),
        ([{"ground_truth": "a"}], {}, "case 1: .*case_id"),
        ([{"case_id": "1", "input": "a"}, {"case_id": "1", "input": "b"}], {}, "duplicate case_id '1'"),
        (["What?"], {}, "case 1: must be a mapping, got str"),
        ("no-such-file.jsonl", {}, "no-such-file.jsonl: file not found"),
        (CASES, {"metrics": ["code_no_such"]}, "code_no_such"),
        (CASES, {"repetitions": 0}, "repetitions: .*got 0"),
        (CASES, {"concurrency": 0.5}, "concurrency: .*got 0.5"),
    ],
)
def test_wrong_use_is_said_before_anything_runs(dataset: Any, more: dict[str, Any], says: str) -> None:
    def task(asked: str) -> str:
        raise AssertionError("it ran")

    with pytest.raises(ConfigError, match=says):
        oa.evaluate(task, dataset, **more)


APP = """
from opentelemetry import trace

def answer(question):
    with trace.get_tracer("app").start_as_current_span("invoke_agent guide") as span:
        span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"})
        span.set_attribute("gen_ai.output.messages", '[{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}]}]')
        if "Peru" in question:
            raise ValueError("unknown")
        return "Paris"
"""


def test_the_command_writes_the_same_reports_as_eval_and_fails_where_the_task_raises(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    metrics = ["--metrics", "code_equals_ground_truth,code_turn_error", "--repetitions", "2"]
    command = ["experiment", "app:answer", "cases.jsonl", *metrics]
    first = [*command, "--format", "jsonl", "--out", "scores.jsonl", "--format", "html", "--out", "report.html"]
    again = [*command, "--baseline", "scores.jsonl", "--gate", "--fail-on-regression", "all"]
    code = (
        f"import os; os.chdir({str(tmp_path)!r})\nfrom otel_agenteval.cli.main import main\nprint([main({first}), main({again})])"
    )
    done = run(code, timeout=120)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[1, 1]"), "the task raised again, but nothing got worse"
    assert "Peru, repetition 1: ValueError: unknown" in done.stderr
    assert "pairs by case id" in done.stdout
    assert "regress" not in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 12
    assert {row["case_id"] for row in rows} == set(CAPITALS)
    assert "Peru" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("json", "MODULE:FUNCTION"),
        ("nowhere:answer", "No module named 'nowhere'"),
        ("json:nothing", "has no attribute 'nothing'"),
        ("json:__name__", "must be a function"),
    ],
)
def test_a_task_that_is_none_is_said(task: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    assert main(["experiment", task, str(tmp_path / "cases.jsonl")]) == 2
    assert says in capsys.readouterr().err


def test_chances_of_repetitions_are_those_of_the_papers() -> None:
    """pass@k is 1 - C(n - c, k) / C(n, k), and pass^k is C(c, k) / C(n, k)."""
    assert pass_at_k(Tries(10, 3), 1) == pytest.approx(0.3)
    assert pass_at_k(Tries(10, 3), 5) == pytest.approx(1 - 21 / 252)
    assert pass_hat_k(Tries(10, 8), 4) == pytest.approx(70 / 210)
    assert pass_hat_k(Tries(4, 3), 4) == 0.0
    with pytest.raises(ValueError, match=r"^k: .*got 5"):
        pass_at_k(Tries(4, 1), 5)
    assert consistency([Tries(1, 1)]) is None
    assert mean_by_case({}, is_share=True) is None
