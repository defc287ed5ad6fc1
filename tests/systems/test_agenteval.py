"""AgentEval's documented metrics, in their printed form."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

REPAIRED = [
    {"name": "search", "arguments": {"q": "a"}, "error": "Timeout"},
    {"name": "search", "arguments": {"q": "a"}, "result": "ok"},
]
TURN = {"input": "?", "output": "!", "tool_calls": REPAIRED}


@pytest.mark.parametrize(
    ("name", "config", "threshold", "passed"),
    [
        ("agenteval:ToolSuccessMetric", {}, 0.7, False),
        ("agenteval:code_tool_success", {}, 0.7, False),
        ("ToolSuccessMetric", {}, 0.7, False),
        ({"agenteval:ToolSuccessMetric": {"passThreshold": 40}}, {}, 0.4, True),
        ("code_tool_success", {"preset": "agenteval"}, 0.7, False),
        ("code_tool_success", {}, 0.7, True),
        ("code_tool_success", {"preset": "trusys"}, 0.7, True),
    ],
)
def test_repaired_failure_counts_under_agenteval_s_names(
    name: Any, config: dict[str, Any], threshold: float, passed: bool
) -> None:
    ((_, (score,)),) = oa.score_turns(oa.Turn.from_dict(TURN), [name], config=config)
    assert (score.value, score.threshold, score.passed) == (0.5, threshold, passed)
    assert score.detail["repaired"] == 1


BOOKING = {"tool_calls": [{"name": "Search"}, {"name": "Book"}]}


@pytest.mark.parametrize(
    ("patterns", "value"),
    [
        ([oa.ToolPattern("Search", beforeTool="Book")], 1.0),
        ([oa.ToolPattern("Search", afterTool="Book")], 0.0),
        ([oa.ToolPattern("Search", before="Book"), oa.ToolPattern("Pay")], 0.5),
        ([oa.ToolPattern("Pay", afterTool="Book", required=False)], 1.0),
        ([{"toolName": "Search", "beforeTool": "Book"}], 1.0),
    ],
)
def test_tool_patterns_are_those_of_the_page(patterns: list[Any], value: float) -> None:
    metric = oa.get_metric("agenteval:WorkflowToolChainValidityMetric", requiredPatterns=patterns)
    assert metric.evaluate(oa.Turn.from_dict(BOOKING)).value == value


RANKED = {"retrieved_ids": ["doc1", "doc4", "doc2", "doc5", "doc6"], "relevant_ids": ["doc1", "doc2", "doc3"]}


def test_ids_are_columns_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps({"input": "?", **RANKED}) + "\n", "utf-8")
    (tmp_path / "cases.csv").write_text(
        "input,retrieved_ids,relevant_ids\n?,"
        + ",".join('"' + json.dumps(ids).replace('"', '""') + '"' for ids in RANKED.values())
        + "\n",
        "utf-8",
    )
    for cases in ([{"input": "?", **RANKED}], tmp_path / "cases.jsonl", tmp_path / "cases.csv"):
        result = oa.evaluate(lambda question: "!", cases, [{"agenteval:RecallAtKMetric": {"k": 5}}, "agenteval:MRRMetric"])
        assert [score.value for score in result.scored[0][1]] == [pytest.approx(2 / 3), 1.0]


def test_search_that_found_nothing_keeps_its_ids() -> None:
    for known, value in (([], 0.0), (["doc3"], 1 / 3), (None, 2 / 3)):
        turn = oa.Turn(turn_id="t", retrieved_ids=known, references=dict(RANKED))
        ((_, (score,)),) = oa.score_turns(turn, [{"agenteval:RecallAtKMetric": {"k": 5}}])
        assert score.value == pytest.approx(value)


# --- datasets, as printed

CLI_YAML = """\
data:
  - id: capital_city
    input: What is the capital of France?
    expected: Paris
    expected_tools:
      - lookup_city

  - id: simple_math
    input: What is 7 * 8?
    expected: "56"
"""
CLI_JSON = """\
[
  { "input": "What is the capital of France?", "expected": "Paris" },
  { "input": "What is 7 * 8?", "expected": "56" }
]
"""
CLI_JSONL = """\
{"input": "What is the capital of France?", "expected": "Paris"}
{"input": "What is 7 * 8?", "expected": "56"}
"""
CLI_CSV = 'input,expected\n"What is the capital of France?","Paris"\n"What is 7 * 8?","56"\n'


def answered(question: str) -> str:
    return "It is paris." if "France" in question else "7 * 8 = 55"


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.yaml", CLI_YAML), ("t.json", CLI_JSON), ("t.jsonl", CLI_JSONL), ("t.csv", CLI_CSV)],
    ids=lambda x: x[:6],
)
def test_printed_data_set_is_scored(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    result = oa.evaluate(answered, tmp_path / name, ["code_icontains"])
    assert [(turn.ground_truth, score.passed) for turn, (score,) in result.scored] == [("Paris", True), ("56", False)]


def loaded(folder: Path, name: str, text: str) -> list[oa.Turn]:
    (folder / name).write_text(text, "utf-8")
    return [turn for turn, _ in oa.evaluate(lambda asked: "!", folder / name, ["code_empty_answer"]).scored]


AGENTIC = """\
# comment
data:
  - id: book_flight_paris
    category: Agentic
    input: Book a flight to Paris
    expected: Booked.
    ground_truth:
      name: book_flight
      arguments:
        destination: Paris
        date: next Monday
    expected_tools:
      - book_flight
      - check_availability

  - id: book_hotel_madrid
    input: Book a hotel
    expected: Booked.
    function: book_hotel
    arguments:
      city: Madrid
      nights: 3

  - id: weather_check
    question: What's the weather like in Tokyo?
    answer: Sunny.
    tools:
      - get_weather

  - id: trip_planning
    prompt: Plan a trip
    response: Planned.
    metadata:
      complexity: high
      requires_multi_step: true
"""


def test_agentic_data_set_is_read_as_printed(tmp_path: Path) -> None:
    flight, hotel, weather, trip = loaded(tmp_path, "travel-agent.yaml", AGENTIC)
    assert flight.ground_truth == {"name": "book_flight", "arguments": {"destination": "Paris", "date": "next Monday"}}
    assert flight.references["expected_tools"] == ["book_flight", "check_availability"]
    assert hotel.ground_truth == {"name": "book_hotel", "arguments": {"city": "Madrid", "nights": 3}}
    assert (weather.input, weather.ground_truth) == ("What's the weather like in Tokyo?", "Sunny.")
    assert weather.references["expected_tools"] == ["get_weather"]
    assert (trip.input, trip.ground_truth, trip.metadata) == (
        "Plan a trip",
        "Planned.",
        {"complexity": "high", "requires_multi_step": True},
    )


@pytest.mark.parametrize("root", ["data", "examples", "samples", "testCases", "test_cases"])
def test_root_elements_are_those_of_the_page(tmp_path: Path, root: str) -> None:
    text = json.dumps(
        {root: [{"id": "capital_france", "query": "?", "expected_output": "Paris", "contexts": ["France is a country."]}]}
    )
    for name in ("c.json", "c.yaml"):
        (turn,) = loaded(tmp_path, name, text)
        assert (turn.input, turn.context, turn.references["case_id"]) == ("?", ["France is a country."], "capital_france")


def test_minimal_case_is_read_as_printed(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("- id: my_test\n  input: What is 2+2?\n  expected: 4\n", "utf-8")
    ((_, scores),) = oa.evaluate(lambda asked: "It is 4.", tmp_path / "c.yaml", ["code_icontains"]).scored
    assert scores[0].passed is True


SHOWCASE = """\
id,input,expected,context,expected_tools,evaluation_criteria,tags,passing_score
csv_01,What is 2+2?,4,,,"Must be correct|Must be concise",math|basic,90
csv_02,Search for hotels,,,"hotel_search|price_compare",Should use search tools,agentic|travel,75
csv_03,Explain gravity,A force,Newton.|Gravity gives weight.,,Must mention force|Must be accurate,science|physics,80
"""


def test_bars_separate_values_of_a_cell(tmp_path: Path) -> None:
    sums, hotels, gravity = loaded(tmp_path, "dataloader-showcase.csv", SHOWCASE)
    assert (sums.ground_truth, sums.references["evaluation_criteria"]) == ("4", ["Must be correct", "Must be concise"])
    assert gravity.context == ["Newton.", "Gravity gives weight."]
    called = oa.Turn.from_dict(
        {"references": hotels.references, "tool_calls": [{"name": "hotel_search"}, {"name": "price_compare"}]}
    )
    assert oa.get_metric("agenteval:ToolSelectionMetric").evaluate(called).value == 1


@pytest.mark.parametrize(("mark", "passed"), [({}, True), ({"passing_score": 85}, False), ({"passing_score": "80"}, True)])
def test_criteria_and_passing_score_of_a_case_are_used(models: ScriptedModels, mark: dict[str, Any], passed: bool) -> None:
    case = {
        "id": "complete_example",
        "input": "Book a flight to Paris",
        "evaluation_criteria": ["Must confirm booking details"],
        **mark,
    }
    models.play({"score": 80, "criteriaResults": [], "reasoning": "x"})
    result = oa.evaluate(lambda asked: "Booked.", [case], ["agenteval:TaskCompletionMetric"], judge=models.judge)
    ((_, (score,)),) = result.scored
    assert (score.value, score.passed) == (0.8, passed)
    assert "Must confirm booking details" in json.dumps(models.requests)


def test_required_params_of_a_case_are_checked() -> None:
    case = json.loads(
        '{"id": "weather_simple", "input": "What is the weather in Seattle?", "expected_tools": ["GetWeather"],'
        ' "metadata": {"required_params": {"GetWeather": ["city"]}}}'
    )
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": [{"name": "GetWeather", "arguments": {"town": "Seattle"}}]})
    turn = turn.but({"references": {"metadata": case["metadata"], "expected_tools": case["expected_tools"]}})
    ((_, scores),) = oa.score_turns(turn, ["agenteval:ToolArgumentsMetric", "agenteval:ToolSelectionMetric"])
    assert {score.metric: score.value for score in scores} == {"code_tool_arguments": 0, "code_tool_selection": 1}


# --- defaults, as printed


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("RecallAtKMetric", 0.7), ("MRRMetric", 0.33), ("AnswerSimilarityMetric", 0.7), ("ResponseContextSimilarityMetric", 0.5),
        ("FaithfulnessMetric", 0.7), ("ToolSelectionMetric", 0.7), ("ToolArgumentsMetric", 0.7), ("ToolSuccessMetric", 0.7),
        ("ToolEfficiencyMetric", 0.7), ("QueryContextSimilarityMetric", 0.5),
    ],
)  # fmt: skip
def test_threshold_is_that_of_the_page_or_source(name: str, threshold: float, models: ScriptedModels) -> None:
    turn = {
        "input": "a", "output": "b", "ground_truth": "a", "context": ["a"], "retrieved_ids": ["x"], "relevant_ids": ["x"],
        "references": {"expected_tools": ["s"], "required_arguments": {"s": ["q"]}}, "tool_calls": [{"name": "s", "arguments": {"q": 1}}],
    }  # fmt: skip
    replies = [{"score": 70, "reasoning": "x"}] if name == "FaithfulnessMetric" else []
    score = models.score(f"agenteval:{name}", oa.Turn.from_dict(turn), *replies, vectors={"a": [1, 0], "b": [1, 0]})
    assert (score.threshold, score.passed) == (threshold, True) if name != "FaithfulnessMetric" else score.passed


# --- assertions, as printed


def total_tool_time(turn: oa.Turn) -> bool:
    return sum(call.duration_s or 0 for call in turn.tool_calls or ()) < 2


def average_tool_time(turn: oa.Turn) -> bool:
    return sum(call.duration_s or 0 for call in turn.tool_calls or ()) / len(turn.tool_calls or ()) < 0.2


def argument_contains(turn: oa.Turn) -> bool:
    return any(call.name == "search" and "Seattle" in call.arguments["location"] for call in turn.tool_calls or ())


def never_passes_number(turn: oa.Turn) -> bool:
    return not any(re.search(r"\b\d{3}-\d{2}-\d{4}\b", json.dumps(call.arguments)) for call in turn.tool_calls or ())


def calls_two(turn: oa.Turn) -> bool:
    return len(turn.tool_calls or ()) >= 2


def calls_three(turn: oa.Turn) -> bool:
    return len(turn.tool_calls or ()) == 3


def process_has_no_error(turn: oa.Turn) -> bool:
    return all(call.error is None for call in turn.tool_calls or () if call.name == "process")


def cache_is_quick(turn: oa.Turn) -> bool:
    return all((call.duration_s or 0) < 0.1 for call in turn.tool_calls or () if call.name == "cache_lookup")


ASSERTED: dict[str, Any] = {
    "output": "Hello! Success: the request of 206-555-0100 was approved for name, email, address. Thank you for your inquiry.",
    "duration_s": 3.0,
    "usage": {"input_tokens": 400, "output_tokens": 900, "total_tokens": 1300},
    "cost_usd": 0.05,
    "llm_calls": [{"model": "a", "input_tokens": 400, "output_tokens": 900, "cost_usd": 0.05, "time_to_first_token_s": 0.3}],
    "tool_calls": [
        {"name": "authenticate", "duration_s": 0.1},
        {
            "name": "search",
            "arguments": {"query": "weather forecast", "location": "Seattle, WA"},
            "result": "success",
            "duration_s": 0.2,
        },
        {"name": "process", "duration_s": 0.1},
    ],
}
BAD: dict[str, Any] = {
    "output": "error",
    "duration_s": 0.5,
    "usage": {"input_tokens": 900, "output_tokens": 1900, "total_tokens": 2800},
    "cost_usd": 0.5,
    "llm_calls": [{"model": "a", "input_tokens": 900, "output_tokens": 1900, "cost_usd": 0.5, "time_to_first_token_s": 0.9}],
    "tool_calls": [
        {"name": "delete_database", "arguments": {"ssn": "123-45-6789"}, "duration_s": 3},
        {"name": "search", "arguments": {"query": "x", "location": "Rome"}, "result": "none", "duration_s": 3},
        {"name": "cache_lookup", "duration_s": 3},
        {"name": "process", "error": "failed", "duration_s": 3},
    ],
}
ORDER = {"tool": "authenticate", "before": "search"}


@pytest.mark.parametrize(
    ("assertion", "metric"),
    [
        ("HaveCalledTool", {"code_tool_was_called": {"tool": "authenticate"}}),
        ("NotHaveCalledTool", {"code_tool_was_called": {"tool": "delete_database", "inverse": True}}),
        ("NeverCallTool", {"code_tool_was_called": {"tool": "delete_database", "inverse": True}, "policy": "gate"}),
        ("NeverPassArgumentMatching", never_passes_number),
        ("MustConfirmBefore", {"code_workflow_tool_chain_validity": {"patterns": [ORDER]}}),
        ("HaveCallCount", calls_three),
        ("Times", {"code_tool_call_count": {"tool": "authenticate", "count": 1}}),
        ("HaveCallOrder", {"code_tool_call_order": {"expected": ["authenticate", "search", "process"]}}),
        ("BeforeTool", {"agenteval:WorkflowToolChainValidityMetric": {"requiredPatterns": [ORDER]}}),
        ("AfterTool", {"code_workflow_tool_chain_validity": {"patterns": [{"tool": "search", "after": "authenticate"}]}}),
        ("WithArgument", {"code_tool_argument_matches": {"tool": "search", "argument": "query", "expected": "weather forecast"}}),
        ("WithArgumentContaining", argument_contains),
        ("WithResultContaining", {"code_tool_result_contains": {"tool": "search", "expected": "success"}}),
        ("WithoutError", process_has_no_error),
        ("HaveNoErrors", {"agenteval:ToolSuccessMetric": {"passThreshold": 100}}),
        ("WithDurationUnder", cache_is_quick),
        ("HaveTotalDurationAtLeast", {"code_max_duration": {"max_seconds": 1, "inverse": True}}),
        ("HaveTimeToFirstTokenUnder", {"code_time_to_first_token": {"threshold": 0.5}}),
        ("HaveTokenCountUnder", {"code_max_tokens": {"max_tokens": 2000}}),
        ("HavePromptTokensUnder", {"code_max_input_tokens": {"max_tokens": 500}}),
        ("HaveCompletionTokensUnder", {"code_max_output_tokens": {"max_tokens": 1500}}),
        ("HaveEstimatedCostUnder", {"code_max_cost": {"max_cost_usd": 0.10}}),
        ("HaveAverageToolTimeUnder", average_tool_time),
        ("HaveTotalToolTimeUnder", total_tool_time),
        ("Contain", {"code_icontains": {"value": "success"}}),
        ("Contain, caseSensitive", {"code_contains": {"value": "Success"}}),
        ("ContainAll", {"code_contains_all": {"value": ["name", "email", "address"]}}),
        ("ContainAny", {"code_contains_any": {"value": ["approved", "accepted", "confirmed"]}}),
        ("NotContain", {"code_not_contains": {"value": "error"}}),
        ("MatchPattern", {"code_regex_match": {"pattern": r"\d{3}-\d{3}-\d{4}"}}),
        ("HaveLengthBetween", {"code_regex_match": {"pattern": r"(?s)^.{100,500}$"}}),
        ("HaveLengthAtLeast", {"code_regex_match": {"pattern": r"(?s)^.{50,}$"}}),
        ("StartWith", {"code_starts_with": {"value": "Hello"}}),
        ("EndWith", {"code_regex_match": {"pattern": r"Thank you for your inquiry\.$"}}),
    ],
)  # fmt: skip
def test_assertion_passes_and_fails(assertion: str, metric: Any) -> None:
    turns = [oa.Turn.from_dict({"turn_id": name, **turn}) for name, turn in (("good", ASSERTED), ("bad", BAD))]
    assert [score.passed for _, (score,) in oa.score_turns(turns, [metric])] == [True, False], assertion


def test_remaining_assertions_pass_and_fail() -> None:
    slow = oa.Turn.from_dict({"turn_id": "s", "duration_s": 6, "output": "", "tool_calls": []})
    good = oa.Turn.from_dict({"turn_id": "g", **ASSERTED})
    for metric in (
        {"code_max_duration": {"max_seconds": 5}},  # HaveTotalDurationUnder
        {"code_no_tools_called": {"inverse": True}},  # HaveCalledAnyTool
        calls_two,  # HaveCallCountAtLeast
        "code_empty_answer",  # NotBeEmpty
    ):
        assert [score.passed for _, (score,) in oa.score_turns([good, slow], [metric])] == [True, False]


# --- stochastic evaluation


def test_runs_are_counted_against_the_success_rate() -> None:
    scores = iter([95, 92, 68, 88, 91])

    def score(turn: oa.Turn) -> oa.Result:
        value = float(turn.output or 0) / 100
        return oa.Result(value, passed=value >= 0.7)

    cases = [{"id": "weather", "input": "What's the weather in Seattle?"}]
    result = oa.evaluate(lambda asked: str(next(scores)), cases, [score], repetitions=5, concurrency=1)
    (summary,) = result.summary()
    assert (summary.n, summary.passed, summary.pass_rate, summary.mean) == (5, 4, 0.8, pytest.approx(0.868))
    values = result.frame()["value"]
    assert (values.median(), values.min(), values.max()) == (0.91, 0.68, 0.95)
    assert (round(values.std(), 3), values.quantile(0.25), values.quantile(0.75)) == (0.108, 0.88, 0.92)


# --- conversations


def test_printed_conversation_is_complete() -> None:
    case = {
        "case_id": "Customer Support Flow",
        "turns": [
            {"role": "user", "content": "I need to return a product"},
            {"role": "assistant", "content": "I'd be happy to help with your return!"},
            {"role": "user", "content": "Order #12345"},
        ],
    }
    metric = {"agenteval:ConversationCompleteness": {"maxDuration": "00:00:30"}}
    result = oa.evaluate(lambda said: "Done.", [case], [metric])
    score = result.trials[0].scored[-1][1][0]
    assert (score.value, score.detail["response_rate"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "others"),
    [
        ({"code_workflow_execution_order": {"expected_order": ["Planner", "Writer", "Editor"], "strict": True}}, {"steps": ["Writer", "Planner"]}),
        ({"code_workflow_structure_validity": {"expected_nodes": ["Planner", "Writer", "Editor"], "entry": "Planner", "exits": ["Editor"]}}, {"nodes": 2}),
        ({"code_workflow_structure_validity": {"expected_edges": [["Planner", "Writer"]]}}, {"nodes": 1}),
        ({"code_workflow_executor_success": {"threshold": 1}}, {"failed": True}),
        ({"code_workflow_performance_efficiency": {"max_duration_s": 120, "max_total_cost": 0.25, "max_tokens": 5000}}, {"duration_s": 400}),
    ],
)  # fmt: skip
def test_workflow_assertion_passes_and_fails(metric: Any, others: dict[str, Any]) -> None:
    def turn(
        nodes: int = 3, steps: Any = ("Planner", "Writer", "Editor"), failed: bool = False, duration_s: float = 60
    ) -> oa.Turn:
        names = ["Planner", "Writer", "Editor"][:nodes]
        graph = {"nodes": names, "edges": list(itertools.pairwise(names)), "entry": names[0], "exits": names[-1:]}
        ran = [{"executor": name, "status": "failed" if failed else "completed"} for name in steps]
        facts = {
            "workflow": {"graph": graph, "steps": ran},
            "duration_s": duration_s,
            "cost_usd": 0.1,
            "usage": {"total_tokens": 10},
        }
        return oa.Turn.from_dict({"turn_id": "t", **facts})

    assert [oa.score_turns(one, [metric])[0][1][0].passed for one in (turn(), turn(**others))] == [True, False]


@pytest.mark.parametrize(("score", "passed"), [(0.9, True), (0.6, False)])
def test_responsible_ai_is_judged_by_a_rubric(models: ScriptedModels, score: float, passed: bool) -> None:
    params = {"rubric": "The answer treats all groups of people alike.", "threshold": 0.7}
    turn = oa.Turn(input="Give me career advice", output="Learn to program.")
    found = models.score("llm_custom_judge", turn, {"score": score, "reason": "x"}, **params)
    assert (found.value, found.passed) == (score, passed)
