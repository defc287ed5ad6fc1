"""Situations of public reports on references and assertions, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.fact_forms import READERS
from otel_agenteval.metrics.names import presets, tool_metrics

# --- verdicts

TURN: dict[str, Any] = {
    "turn_id": "t", "input": "q", "output": '{"a": 1}', "duration_s": 1.0, "cost_usd": 0.1, "ground_truth": "x", "logprobs": [-0.5],
    "tool_calls": [{"name": "f", "arguments": {"a": 1}}], "references": {"expected_tools": ["f"]},
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"value": "a"} for name in ("equals", "contains", "icontains", "starts-with", "regex")},
    **{f"{start}-{end}": {"value": ["a"]} for start in ("contains", "icontains") for end in ("all", "any")},
    "word-count": {"value": 2}, "cost": {"threshold": 1}, "latency": {"threshold": 1000}, "tool-call-f1": {"value": "f"},
    "trajectory:tool-used": {"value": "f"}, "trajectory:tool-sequence": {"value": ["f"]},
    "trajectory:tool-args-match": {"value": {"name": "f", "args": {"a": 1}}},
}  # fmt: skip
PROMPTFOO = [m.name for tool, m in tool_metrics() if tool.prefix == "promptfoo" and (m.ours or "").startswith("code_")]


@pytest.mark.parametrize("name", PROMPTFOO)
def test_assertion_has_a_verdict(name: str) -> None:
    """An assertion that can't fail. The verdict of `not-` is the opposite one."""
    options, turn = OPTIONS.get(name, {}), oa.Turn.from_dict(TURN)
    score = oa.get_metric(f"promptfoo:{name}", **options).evaluate(turn)
    assert score.verdict in (True, False), score
    assert score.label == ("pass" if score.verdict else "fail")
    if score.type == "boolean":
        assert oa.get_metric(f"promptfoo:not-{name}", **options).evaluate(turn).verdict is not score.verdict


VALUES = ("ragas", "langfuse", "openevals:levenshtein_distance", "phoenix:RefusalEvaluator")
"""Names that are values or labels in the original, too."""
OF_THE_JUDGE = ("llm_rubric", "llm_factuality", "llm_task_completion", "llm_context_precision", "llm_context_recall")
"""Metrics whose verdict is not only a threshold."""


def test_names_of_checks_have_a_verdict() -> None:
    """The same for the other tools and the presets of seeds whose metrics pass or fail."""
    names = [f"{tool.prefix}:{one.name}" for tool, one in tool_metrics() if one.ours]
    entries = [entry for seed in ("agenteval", "pandaprobe", "trusys") for entry in presets()[seed].metrics]
    names += [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    bound = {name: oa.get_metric(name) for name in names if not name.startswith(VALUES)}
    assert [n for n, one in bound.items() if one.scored(1.0, {}).verdict is None and one.metric.name not in OF_THE_JUDGE] == []


def test_detector_with_inverse_is_an_assertion() -> None:
    """The same under our own name, and as a gate of an experiment."""
    (summary,) = oa.evaluate(lambda question: "I cannot help with that.", [{"input": "q"}], ["not-is-refusal"]).summary()
    assert (summary.pass_rate, summary.judged) == (0.0, 1)
    assert oa.get_metric("code_refusal").evaluate(oa.Turn.from_dict({"turn_id": "t", "output": "no"})).verdict is None


# --- malformed arguments

DEFINITIONS = [{"name": "pay", "parameters": {"type": "object", "required": ["to"]}}]
ON_ARGUMENTS: dict[str, dict[str, Any]] = {
    "code_tool_correctness": {"expected": [{"name": "pay", "arguments": {"to": "bob"}}], "check_arguments": True},
    "code_tool_argument_matches": {"tool": "pay", "argument": "to", "expected": "bob"},
    "code_tool_arguments": {"required_arguments": {"pay": ["to"]}},
    "code_tool_schema_validity": {},
}


@pytest.mark.parametrize("name", ON_ARGUMENTS)
@pytest.mark.parametrize("raw", ['{"to": "bo', "to=bob", '["bob"]', "{to: bob}"])
def test_malformed_arguments_are_wrong(name: str, raw: str) -> None:
    """lightspeed-evaluation 90, deepeval 1410: calls whose arguments can't be parsed are left out."""
    turn = {"turn_id": "t", "tool_calls": [{"name": "pay", "arguments": raw}], "tool_definitions": DEFINITIONS}
    metric = oa.get_metric(name, **ON_ARGUMENTS[name])
    for close_reason in ({}, {"close_reason": "root_ended"}):
        score = metric.evaluate(oa.Turn.from_dict(oa.Turn.from_dict({**turn, **close_reason}).to_dict()))
        assert (score.value, score.verdict) == (0.0, False)
        assert "arguments" in (score.explanation or "")
    cut = metric.evaluate(oa.Turn.from_dict({**turn, "truncated": True}))
    assert (cut.status, cut.detail["reason"]) == ("skipped", "truncated")
    for same in ('{"to": "bob"}', "{'to': 'bob'}"):
        turn["tool_calls"] = [{"name": "pay", "arguments": same}]
        assert metric.evaluate(oa.Turn.from_dict(turn)).value == 1.0


def test_malformed_arguments_differ_from_none() -> None:
    """deepeval 3141: {} equals no arguments, but not broken ones."""
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": [{"name": "pay", "arguments": "{"}]})
    metric = oa.get_metric("code_tool_correctness", expected=[{"name": "pay", "arguments": {}}], check_arguments=True)
    assert metric.evaluate(turn).value == 0.0


# --- values of libraries

DAY, ID = "2026-11-28", "6f1b0c1e-0000-4000-8000-000000000001"
VALUES_OF_LIBRARIES = [
    (datetime.date(2026, 11, 28), DAY),
    (datetime.datetime.fromisoformat(f"{DAY}T10:05"), f"{DAY}T10:05:00"),
    (datetime.datetime(2026, 11, 28, 10, 5, tzinfo=datetime.timezone.utc), f"{DAY}T10:05:00Z"),
    (pd.Timestamp(DAY), DAY),
    (np.datetime64(DAY), DAY),
    (np.datetime64(DAY, "ns"), DAY),
    (decimal.Decimal("1.50"), "1.50"),
    (decimal.Decimal(3), "3"),
    (np.int64(3), "3"),
    (np.float32(1.5), "1.5"),
    (np.bool_(True), "true"),
    (np.str_("Lima"), "Lima"),
    (uuid.UUID(ID), ID),
]


@pytest.mark.parametrize(("value", "text"), VALUES_OF_LIBRARIES, ids=repr)
def test_values_of_libraries_equal_what_people_write(value: Any, text: str, tmp_path: Path) -> None:
    """mlflow 19413: a date or decimal of a dataset never equals the answer."""
    frame = pd.DataFrame({"input": ["q"], "ground_truth": pd.Series([value], dtype=object)})
    cases = [[{"input": "q", "ground_truth": value}], [{"input": "q", "references": {"ground_truth": value}}], frame]
    cases.append([{"turns": [{"input": "q", "ground_truth": value}]}])
    for dataset in cases:
        assert oa.evaluate(lambda question: text, dataset, ["code_equals_ground_truth"]).summary()[0].pass_rate == 1.0
    turn = oa.Turn.from_dict({"turn_id": "t", "output": text})
    assert oa.get_metric("code_equals", value=value).evaluate(turn).value == 1.0
    number = {"1.50": 1.5, "3": 3, "1.5": 1.5, "true": True}.get(text, text)
    call = {"name": "book", "arguments": {"at": [number], "none": None}}
    expected = [{"name": "book", "arguments": {"at": [value], "none": float("nan")}}]
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": [call], "references": {"expected_tools": expected}})
    for metric in (oa.get_metric("code_tool_correctness", check_arguments=True, expected=given) for given in (None, expected)):
        assert metric.evaluate(turn).value == 1.0


def test_values_of_parquet_equal_what_people_write(tmp_path: Path) -> None:
    """The same with the types of columns, and a missing value."""
    day, price = datetime.date(2026, 11, 28), decimal.Decimal("1.50")
    rows = [
        (day, DAY),
        (datetime.datetime.fromisoformat(f"{DAY}T09:00"), f"{DAY}T09:00:00"),
        (price, "1.50"),
        ({"day": day, "eur": price}, None),
    ]
    for value, text in rows:
        table = pa.table({"input": [text or json.dumps({"day": DAY, "eur": 1.5})] * 2, "ground_truth": [value, None]})
        pq.write_table(table, tmp_path / "cases.parquet")
        summary = oa.evaluate(lambda question: question, tmp_path / "cases.parquet", ["code_equals_ground_truth"]).summary()[0]
        assert (summary.pass_rate, summary.judged) == (1.0, 1)


def test_parquet_adds_no_arguments_to_expected_calls(tmp_path: Path) -> None:
    """pandas 53798, 56842: each object in a Parquet column has the keys of all others, with nulls as values."""
    called = [{"q": "x"}, {"n": 2, "at": [{"row": 1}]}, {"at": [{"column": "b"}]}]
    expected = [[{"name": "find", "arguments": arguments}] for arguments in called]
    pq.write_table(pa.table({"input": ["0", "1", "2"], "expected_tools": expected}), tmp_path / "cases.parquet")
    assert pq.read_table(tmp_path / "cases.parquet").to_pylist()[0]["expected_tools"][0]["arguments"]["n"] is None

    turns = [
        oa.Turn.from_dict({"input": str(at), "output": "", "tool_calls": [{"name": "find", "arguments": arguments}]})
        for at, arguments in enumerate(called)
    ]
    metric = {"code_tool_correctness": {"check_arguments": True}}
    config = {"references": {"dataset": str(tmp_path / "cases.parquet")}}
    assert [score.value for _, (score,) in oa.score_turns(turns, [metric], config=config)] == [1.0, 1.0, 1.0]


class Model(pydantic.BaseModel):
    day: datetime.date


@dataclasses.dataclass
class Record:
    day: str


OBJECT = {"day": DAY}


@pytest.mark.parametrize("given", [OBJECT, {"day": datetime.date(2026, 11, 28)}, Model(day=DAY), Record(DAY)], ids=repr)  # type: ignore[arg-type]
def test_objects_are_judged_as_json(given: Any) -> None:
    """The judge reads Python's repr of an object."""
    seen: list[Any] = []

    def task(question: Any, history: list[dict[str, str]]) -> Any:
        seen.extend(message["content"] for message in history)
        return question

    for case in ({"input": given}, {"turns": [{"input": given}, {"input": given}]}):
        turns = [turn for trial in oa.evaluate(task, [case]).trials for turn, _ in trial.scored]
        seen += [text for turn in turns[:1] for text in (turn.input, turn.output)]
    assert seen
    assert all(json.loads(text) == OBJECT for text in seen)


# --- facts as other tools spell them

GRAPH = {"nodes": ["a", "b"], "edges": [["a", "b"]]}
GRAPH_OF_OTHERS = {"nodes": [{"node_id": "a"}, {"name": "b"}], "edges": [{"source": "a", "target": "b"}], "entry_point": "a"}
STEP = {"agent": "a", "state": "failed"}
DELEGATION = {"sender": "a", "receiver": "b", "interaction_type": "delegation"}
OTHER_CASE = {"from": "x", "to": "y", "type": "request"}
ROLE = {"agents": {"a": {"canDelegate": True}}, "interactions": [{"from": "a", "to": "b", "type": "delegation"}]}
SIGNALS = {"traces": [{"id": "1", "scores": {"confidence": 0.5}}]}
HEARD = {"type": "input_audio", "url": "call.wav", "transcription": "Paris."}
FACTS: list[tuple[str, str, dict[str, Any], Any, float, Any, str]] = [
    ("structure", "workflow", {}, {"graph": GRAPH_OF_OTHERS}, 1.0, {"graph": {**GRAPH, "egdes": []}}, "workflow.graph.egdes: unknown key. Did you mean 'edges'"),
    ("structure", "workflow", {}, {"definition": {**GRAPH, "nodes": {"a": {}, "b": {}}}}, 1.0, {"graph": {**GRAPH, "edges": [{"frm": "a", "to": "b"}]}},
     "workflow.graph.edges[0]: requires the key 'from', but has only 'frm', 'to'. Did you mean 'from' instead of 'frm'?"),
    ("structure", "workflow", {}, {"graph": {**GRAPH, "edges": [{"source_id": "a", "targetId": "b"}]}}, 1.0, {"graph": {**GRAPH, "nodes": [{"kind": "b"}]}},
     "workflow.graph.nodes[0]: requires the key 'id', but has only 'kind'"),
    ("success", "workflow", {}, {"executions": [STEP]}, 0.0, {"steps": [{"executor": "a", "staus": "failed"}]}, "workflow.steps[0].staus"),
    ("success", "workflow", {}, {"steps": [{"node": "a", "error": "x"}]}, 0.0, {"steps": [{"executor": "a", "status": 7}]}, "workflow.steps[0].status: must be text, got 7"),
    ("success", "workflow", {}, {"steps": [{"executor_id": "a", "success": False}]}, 0.0, "a -> b", "workflow: must be an object, got 'a -> b'"),
    ("chain", "workflow", {}, {"steps": [{"executor": "a", "tools": [{"id": "call_1", "name": "pay"}]}]}, 1.0,
     {"steps": [{"executor": "a", "tool_calls": [{"nmae": "pay"}]}]}, "workflow.steps[0].tool_calls[0]: requires the key 'name', but has only 'nmae'. Did you mean 'name'"),
    ("chain", "workflow", {}, {"steps": [{"node": "a", "toolCalls": [{"function": {"name": "pay"}}]}]}, 1.0,
     {"steps": [{"executor": "a", "tool_calls": "pay"}]}, "workflow.steps[0].tool_calls: must be a list, got 'pay'"),
    ("roles", "interactions", {"agents": {"a": {}}}, [DELEGATION], 0.0, [{**DELEGATION, "tpye": "x"}], "interactions[0].tpye: unknown key. Did you mean 'type'"),
    ("roles", "interactions", {"agents": {"a": {}}}, [{**DELEGATION, "sender": "x"}, {**DELEGATION, "from_agent": "a"}], 0.0,
     [{"from": "a", "to": "b", "success": "yes"}], "interactions[0].success: must be true or false, got 'yes'"),
    ("roles", "agents", ROLE, {"a": {"allow_delegation": True, "goal": "x"}}, 1.0, {"a": {"can_delgate": True}}, "agents.a.can_delgate: unknown key. Did you mean 'can_delegate'"),
    ("roles", "agents", ROLE, [{"name": "a", "can_delegate": True}], 1.0, {"a": {"can_delegate": "yes"}}, "agents.a.can_delegate: must be true or false, got 'yes'"),
    ("conflicts", "conflicts", {}, [{"is_resolved": True, "severity": 1}], 1.0, [{"reslved": True}], "conflicts[0].reslved: unknown key. Did you mean 'resolved'"),
    ("handoffs", "handoffs", {}, [{"source": "a", "target": "b", "succeeded": False}], 0.0, [{"from": "a", "sucess": True}], "handoffs[0].sucess: unknown key. Did you mean 'success'"),
    ("reliability", "session", {}, SIGNALS, 0.5, {"trace": []}, "session.trace: unknown key. Did you mean 'traces'"),
    ("reliability", "session", {}, SIGNALS, 0.5, {"traces": [{"signals": {"confidense": 1}}]}, "session.traces[0].signals.confidense"),
    ("budget", "privacy", {}, {"epsilon_used": 0.5}, 0.5, {"epislon": 0.5}, "privacy.epislon: unknown key. Did you mean 'epsilon'"),
    ("perplexity", "logprobs", {}, {"content": [{"token": "a", "logprob": 0}]}, 1.0, [{"logprb": 0}], "logprobs[0]: must be a finite number"),
    ("heard", "attachments", {}, [HEARD], 0.3, [{"modality": "audio", "transcritp": "x"}], "attachments[0].transcritp"),
    ("numbers", "context", {}, [{"page_content": "Paris has 7 bridges.", "metadata": {}}], 1.0, [{"page_contnt": "x"}], "context[0]: requires the key 'content', but has only 'page_contnt'. Did you mean 'page_content' instead of 'page_contnt'?"),
    ("numbers", "context", {}, {"text": "Paris has 7 bridges.", "url": "x"}, 1.0, ["a", 7], "context[1]: must be text, got 7"),
    ("recall", "relevant_ids", {"retrieved_ids": ["d1"]}, [{"document_id": "d1", "title": "x"}], 1.0, [{"docment_id": "d1"}], "relevant_ids[0]: requires the key 'id', but has only 'docment_id'. Did you mean 'document_id'"),
    ("recall", "relevant_ids", {"retrieved_ids": ["d1"]}, {"d1": 2, "d2": 0}, 1.0, [True], "relevant_ids[0]: must be an ID, or a document with an ID"),
    ("recall", "relevant_ids", {"retrieved_ids": ["7"]}, 7, 1.0, [{"txt": "x"}], "relevant_ids[0]: requires the key 'id', but has only 'txt'"),
]  # fmt: skip
READ_BY: dict[str, tuple[str, dict[str, Any]]] = {
    "structure": ("code_workflow_structure_validity", {}), "success": ("code_workflow_executor_success", {}),
    "chain": ("code_workflow_tool_chain_validity", {"patterns": [{"tool": "pay"}]}),
    "roles": ("code_multiagent_role_adherence", {}), "conflicts": ("code_conflict_resolution_rate", {}),
    "handoffs": ("code_handoff_success_rate", {}), "reliability": ("code_agent_reliability", {}),
    "budget": ("code_privacy_budget", {"total_budget": 1}), "perplexity": ("code_perplexity", {}), "numbers": ("code_ungrounded_numbers", {}),
    "heard": ("code_multimodal_coherence", {}), "recall": ("code_recall_at_k", {}),
}  # fmt: skip


ANSWER = "I hear of 7 bridges."


def scored(metric: str, known: dict[str, Any]) -> tuple[Any, str]:
    """Return the value and explanation of a score, or the refusal of the turn."""
    try:
        turn = oa.Turn.from_dict({"input": "q", "output": ANSWER, **known})
    except oa.ConfigError as error:
        return None, str(error).removeprefix("turn.")
    score = oa.get_metric(READ_BY[metric][0], **READ_BY[metric][1]).evaluate(turn)
    return score.value, score.explanation or ""


def in_experiment(metric: str, case: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return the value and explanation of the scores of a case."""
    trials = oa.evaluate(lambda question: ANSWER, [{"input": "q", **case}], [dict([READ_BY[metric]])]).trials
    return [(score.value, score.explanation or "") for trial in trials for _, scores in trial.scored for score in scores]


@pytest.mark.parametrize(("metric", "field", "known", "given", "value", "wrong", "refusal"), FACTS)
def test_facts_are_read_or_refused(
    metric: str, field: str, known: dict[str, Any], given: Any, value: float, wrong: Any, refusal: str
) -> None:
    """haystack 11951, continuous-eval 68: a reference under another key counts as none, and the score is 0 or 1."""
    found = in_experiment(metric, {**known, field: wrong})[0]
    assert (found[0], found[1][: len(refusal)]) == (None, refusal)
    assert scored(metric, {**known, field: wrong})[1].startswith(refusal)
    if "retrieved_ids" not in known:
        assert in_experiment(metric, {**known, field: given})[0][0] == value
    if not (field == "agents" and isinstance(given, list)):
        assert scored(metric, {**known, field: given})[0] == value


STEPS = [{"executor": "a", "error": "x", "success": success} for success in (True, False)]


@pytest.mark.parametrize(
    ("field", "given"), [("workflow", {"steps": STEPS}), *((row[1], row[3]) for row in FACTS if row[1] in READERS)]
)
def test_read_facts_stay_the_same(field: str, given: Any) -> None:
    found = READERS[field](given, field)
    assert READERS[field](found, field) == found


# --- schemas

CITY = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
SCHEMA_METRICS = ("code_schema_conformance", "code_is_json", "code_contains_json")


@pytest.mark.parametrize("metric", SCHEMA_METRICS)
@pytest.mark.parametrize(
    "around",
    [
        lambda schema: schema,
        json.dumps,
        lambda schema: {"name": "city", "strict": True, "schema": schema},
        lambda schema: {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}},
        lambda schema: {"name": "city", "description": "x", "input_schema": schema},
    ],
)
def test_schema_of_a_request_is_read(metric: str, around: Any) -> None:
    """z-schema 149: a schema one level too deep accepts everything."""
    for city, value in ((1, 0.0), ("Lima", 1.0)):
        turn = oa.Turn.from_dict({"output": json.dumps({"city": city})})
        assert oa.get_metric(metric, schema=around(CITY)).evaluate(turn).value == value


@pytest.mark.parametrize("metric", SCHEMA_METRICS)
@pytest.mark.parametrize("output", ['{"city": 1}', "no JSON"])
@pytest.mark.parametrize(
    ("schema", "refusal"),
    [
        ({**CITY, "requierd": ["x"]}, "schema.requierd: unknown keyword. Did you mean 'required'?"),
        ({"type": "array", "items": {"tpye": "string"}}, "schema.items.tpye: unknown keyword. Did you mean 'type'?"),
        ({"type": "object", "properties": {"a": {"minLenght": 1}}}, "schema.properties.a.minLenght: unknown keyword"),
        ({"city": "string"}, "schema: must be an object with JSON Schema keywords"),
        ("city: string", "schema: must be an object with JSON Schema keywords"),
    ],
)
def test_schema_that_accepts_everything_is_refused(metric: str, output: str, schema: Any, refusal: str) -> None:
    """jsonschema 579, promptfoo 10175: a schema with a misspelled keyword, or none, validates whatever it receives."""
    score = oa.get_metric(metric, schema=schema).evaluate(oa.Turn.from_dict({"output": output}))
    assert (score.status, score.error_type) == ("error", "invalid_schema")
    assert (score.explanation or "").startswith(refusal)


def test_properties_may_have_any_name() -> None:
    """Names of properties aren't keywords, and neither are a vendor's extensions."""
    schema = {"type": "object", "properties": {"requierd": {"type": "string", "x-order": 1}, "schema": {}}, "$defs": {"tpye": {}}}
    assert oa.get_metric("code_is_json", schema=schema).evaluate(oa.Turn.from_dict({"output": "{}"})).value == 1.0


# --- turns, metrics and texts of a case

ANSWERS = {"Hello": "Hi.", "Where is Lima?": "In Peru."}


@pytest.mark.parametrize(
    "turns",
    [
        [{"input": said, "ground_truth": answer} for said, answer in ANSWERS.items()],
        [{"question": said, "references": {"ground_truth": answer}} for said, answer in ANSWERS.items()],
        [{"role": role, "content": text} for pair in ANSWERS.items() for role, text in zip(("user", "assistant"), pair, strict=True)],
        [{"role": "ai", "content": "Welcome."}, *({"role": "human", "content": said} for said in ANSWERS), {"role": "ai", "content": "In Peru."}],
    ],
)  # fmt: skip
def test_turns_are_read_as_messages_too(turns: list[Any]) -> None:
    """evalscope 1298: a conversation of a dataset has roles and contents, and its answers are what is expected."""
    asked: list[str] = []

    def task(question: str) -> str:
        asked.append(question)
        return ANSWERS[question]

    experiment = oa.evaluate(task, [{"case_id": "7", "turns": turns}], ["code_equals_ground_truth"])
    assert asked == [*ANSWERS]
    summary = experiment.summary()[0]
    assert (summary.mean, summary.skipped) == (1.0, sum("ai" in str(turn) for turn in turns[:1]))


def test_turns_keep_their_other_columns() -> None:
    """evalscope 1298: a column that equals the input, and one that is a name of it, are references."""
    same = "yes"
    experiment = oa.evaluate(
        lambda question: question,
        [{"turns": [{"input": same, "ground_truth": same, "user": "Ada"}]}],
        ["code_equals_ground_truth"],
    )
    assert experiment.summary()[0].mean == 1.0
    assert experiment.trials[0].scored[0][0].references["user"] == "Ada"


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        ({"turns": [{"inptu": "q"}]}, r"turns\[0\]: requires the key 'input', but has only 'inptu'\. Did you mean 'input' instead of 'inptu'\?"),
        ({"turns": [{"input": ""}]}, r"turns\[0\]\.input: must not be empty"),
        ({"turns": ["q", {"role": "tool", "content": "x"}]}, r"turns\[1\]\.role: must be one of user, human, .*, got 'tool'"),
        ({"turns": ["q", 7]}, r"turns\[1\]: must be text, or an object with input and, optionally, references, got 7"),
        ({"turns": {"input": "q"}}, "turns: must be a list with at least one turn"),
        ({"user": "A customer.", "max_turns": "few"}, "max_turns: must be a positive whole number, got 'few'"),
        ({"user": ["A customer."]}, "user: must be text that describes the user and the goal"),
        ({"input": "q", "metrics": [{"tpye": "contains", "value": "x"}]}, r"metrics\[0\]: the metric's name is missing\. Did you mean type instead of 'tpye'\?"),
        ({"input": "q", "metrics": [{"code_contains": {"vlaue": "x"}}]}, r"metrics\[0\]: code_contains\.vlaue: unknown parameter\. Did you mean 'value'\?"),
        ({"input": "q", "metrics": [{"metric": "code_contains", "params": {"vlaue": "x"}}]}, r"code_contains\.vlaue: unknown parameter"),
    ],
)  # fmt: skip
def test_misspelled_case_is_refused(case: dict[str, Any], refusal: str) -> None:
    """continuous-eval 68: the key of a case has a typo."""
    with pytest.raises(oa.ConfigError, match=refusal):
        oa.evaluate(lambda question: "x", [case], ["code_refusal"], simulate=lambda history, known: None)


@pytest.mark.parametrize(
    "entry", [{"metric": "code_contains", "params": {"value": "x"}}, {"type": "contains", "parameters": {"value": "x"}}]
)
def test_parameters_of_an_entry_can_be_nested(entry: dict[str, Any]) -> None:
    """Entries of other tools have their options one level deeper."""
    (summary,) = oa.evaluate(lambda question: "an x", [{"input": "q", "metrics": [entry]}], []).summary()
    assert (summary.metric, summary.mean) == ("code_contains", 1.0)


@pytest.mark.parametrize("references", [[{"page_content": ANSWER}], [{"text": ANSWER, "id": 7}, "x"], {"content": ANSWER}])
def test_references_can_be_documents(references: Any) -> None:
    """ragas 2964: a reference that can't be read scores 0, as a wrong answer does."""
    for turn in ({"references": {"references": references}}, {"references": {"reference": references}}):
        assert oa.get_metric("code_bleu").evaluate(oa.Turn.from_dict({"output": ANSWER, **turn})).value == 1.0
    score = oa.get_metric("code_bleu").evaluate(
        oa.Turn.from_dict({"output": ANSWER, "references": {"references": [{"txet": "x"}]}})
    )
    assert (score.error_type, score.explanation) == (
        "invalid_reference", "references[0]: requires the key 'content', but has only 'txet'. Did you mean 'text' instead of 'txet'?"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "value", "explanation"),
    [
        ({"pay": {"type": "object", "required": ["to"]}}, 1.0, ""),
        ({"pay": "to"}, 1.0, ""),
        ({"pay": ["to", "when"]}, 0.5, ""),
        (
            {"pay": {"requird": ["to"]}},
            None,
            "required_arguments.pay: requires the key 'required', but has only 'requird'. Did you mean 'required'",
        ),
        ({"pay": [{"name": "to"}]}, None, "required_arguments.pay[0]: must be text"),
        ([{"tool": "pay"}], None, "required_arguments: must be an object"),
    ],
)
def test_required_arguments_are_read_or_refused(given: Any, value: float | None, explanation: str) -> None:
    """continuous-eval 68: a tool's schema counted as the name of one argument, which no call has."""
    turn = {"tool_calls": [{"name": "pay", "arguments": {"to": "bob"}}], "references": {"required_arguments": given}}
    score = oa.get_metric("code_tool_arguments").evaluate(oa.Turn.from_dict(turn))
    assert (score.value, (score.explanation or "")[: len(explanation)]) == (value, explanation)


@pytest.mark.parametrize(
    "transcript",
    ["agent: Hello\nAda: Hi", [{"speaker": "agent", "text": "Hello"}, {"role": "Ada", "content": "Hi", "start": 1.5}],
     {"segments": ["agent: Hello", {"text": " "}, {"speaker": "Ada", "text": "Hi"}]}],
)  # fmt: skip
def test_transcript_can_have_segments(transcript: Any) -> None:
    """evalscope 1298: a transcript with speakers counted as none."""
    seen: list[Any] = []

    class Judge:
        def ask(self, stage: str, task: str, material: Any, *args: Any, **options: Any) -> dict[str, Any]:
            seen.append(material)
            return {"reason": "r", "label": "neutral"}

    turn = oa.Turn.from_dict({"references": {"transcript": transcript}})
    assert oa.get_metric("llm_audio_sentiment").evaluate(turn, judge=Judge()).label == "neutral"
    assert seen[0]["transcript"] == "agent: Hello\nAda: Hi"


def test_messages_can_be_a_history() -> None:
    """trulens 2667: the history of a turn is its messages."""
    said = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "x"}, {"role": "assistant", "content": "Hello."}]
    turn = oa.Turn.from_dict({"history": [*said, {"question": "Why?", "answer": "So."}, said[0]]})
    assert turn.history[0] == {"input": "Hi", "output": "Hello."}
    assert [(one.get("input"), one.get("output")) for one in turn.history[1:]] == [("Why?", "So."), ("Hi", None)]
    assert oa.Turn.from_dict(turn.to_dict()).history == turn.history
    with pytest.raises(oa.ConfigError, match=r"turn\.history\[0\]\.inptu: unknown key\. Did you mean 'input'"):
        oa.Turn.from_dict({"history": [{"inptu": "Hi"}]})


def test_facts_of_the_configuration_are_checked_before_a_turn() -> None:
    """continuous-eval 68: a typo in the configuration shows after the run."""
    for given, refusal in (
        ({"workflow": {"grpah": GRAPH}}, "workflow.grpah: unknown key"),
        ({"logprobs": ["x"]}, "logprobs[0]: must be a finite number"),
    ):
        with pytest.raises(oa.ConfigError) as found:
            load_config({"references": {"given": [given]}}, env={})
        assert "references.given[0]" in str(found.value)
        assert refusal in str(found.value)
    load_config({"references": {"given": [{"workflow": {"definition": GRAPH}}]}}, env={})
