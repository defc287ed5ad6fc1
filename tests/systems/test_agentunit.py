"""AgentUnit's documented cases, metrics and custom metrics, in their printed form."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics import agentunit
from otel_agenteval.metrics.names import conversions
from tests.support.judges import ScriptedModels
from tests.support.media import image, scenery

# --- media of a case


class PixelEmbedder:
    """An embedder that gives images and texts the same direction, and records its inputs."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.given = [*texts]
        return [[1.0, 0.0] for _ in texts]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat picture.png"
    path.write_bytes(image(scenery()))
    return path


def grounding(case: dict[str, Any], **media: Any) -> tuple[oa.Score, list[str]]:
    embedder = PixelEmbedder()
    result = oa.evaluate(
        lambda question: "A cat.", [case], ["agentunit:CrossModalGroundingMetric"], config={"media": media}, embedder=embedder
    )
    return result.scored[0][1][0], embedder.given


def test_image_path_of_a_case_is_its_image(picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(picture.parent)
    for path in (str(picture), picture.name, picture.as_uri(), [picture.name]):
        score, given = grounding({"query": "What is this?", "metadata": {"image_path": path}}, folders=[str(picture.parent)])
        assert (score.value, score.detail["is_grounded"]) == (1.0, True)
        assert given[1].startswith("data:image/png;base64,")


def test_image_path_outside_of_the_folders_is_an_error(picture: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for folders, error in (([], "media_not_allowed"), ([str(tmp_path / "other")], "media_not_found")):
        score, given = grounding({"query": "?", "metadata": {"image_path": str(picture)}}, folders=folders)
        assert (score.status, score.error_type, given) == ("error", error, [])


def test_address_of_an_image_goes_to_the_model() -> None:
    score, given = grounding({"query": "?", "metadata": {"image_path": "https://a.example/cat.png"}})
    assert (score.value, given[1]) == (1.0, "https://a.example/cat.png")


@pytest.mark.parametrize(("key", "modality"), [("image_path", "image"), ("video_path", "video"), ("audio_path", "audio")])
def test_paths_in_metadata_are_modalities(key: str, modality: str) -> None:
    case = {"query": "?", "metadata": {key: "a.bin", "note": "x"}}
    result = oa.evaluate(lambda question: "It shows and says it.", [case], ["agentunit:MultimodalCoherenceMetric"])
    (score,) = result.scored[0][1]
    assert score.detail["present_modalities"] == sorted(["text", modality], key=["image", "audio", "video", "text"].index)


# --- datasets

CASE = {
    "id": "faq-001",
    "query": "What is the capital of France?",
    "expected_output": "Paris",
    "context": ["France is a country in Europe. Paris is its capital."],
    "tools": ["knowledge_base"],
}
SCENARIO = """
name: "Customer Support Q&A"
adapter: {type: openai, config: {model: gpt-4}}
dataset:
  cases:
    - input: "What is the capital of France?"
      expected: "Paris"
      metadata: {category: general}
metrics: [exact_match, latency]
timeout: 30
"""
FILES = {
    "items.json": json.dumps({"items": [CASE]}, indent=2),
    "list.json": json.dumps([CASE]),
    "test_cases.json": json.dumps({"test_cases": [{"id": "1", "input": CASE["query"], "expected_output": "Paris"}]}),
    "dataset.json": json.dumps(
        {"name": "rag", "description": "", "cases": [{"input": {"query": "?"}, "expected": "Paris"}]}, indent=1
    ),
    "scenario.yaml": SCENARIO,
    "cases.csv": "id,query,expected_output,tools,context\nfaq-001,?,Paris,knowledge_base;search,France.||Paris is its capital.\n",
}


@pytest.mark.parametrize("name", FILES)
def test_printed_data_set_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name], "utf-8")
    metrics = ["agentunit:answer_correctness", "agentunit:AnswerCorrectnessMetric"]
    for metric in metrics:
        ((turn, (score,)),) = oa.evaluate(lambda asked: "Paris", tmp_path / name, [metric]).scored
        assert (score.value, score.passed, score.detail["expected"]) == (1.0, True, "Paris")
    if name == "cases.csv":
        assert turn.context == ["France.", "Paris is its capital."]
    if name == "scenario.yaml":
        assert turn.metadata["category"] == "general"


def test_cases_of_a_source_are_a_data_set() -> None:
    def load_cases() -> Iterator[agentunit.DatasetCase]:
        yield agentunit.DatasetCase(**CASE)

    cases = [vars(case) for case in load_cases()]
    ((turn, (score,)),) = oa.evaluate(lambda query: "Paris", cases, ["agentunit:answer_correctness"]).scored
    assert (turn.references["case_id"], score.value) == ("faq-001", 1.0)


def test_tools_of_a_case_are_expected_only_by_metrics_that_compare_tools() -> None:
    """AgentUnit's adapters pass them to the agent, and none of its metrics reads them."""
    ((turn, (success,)),) = oa.evaluate(lambda query: "Paris", [CASE], ["agentunit:tool_success"]).scored
    assert (turn.references["expected_tools"], success.status) == (CASE["tools"], "skipped")


# --- custom metrics


class LatencyMetric(agentunit.Metric):
    name = "latency"

    def __init__(self, threshold_ms: float = 5000.0) -> None:
        self.threshold_ms = threshold_ms

    def evaluate(self, case: agentunit.DatasetCase, trace: agentunit.TraceLog, outcome: Any) -> agentunit.MetricResult:
        start = trace.events[0].timestamp if trace.events else 0
        end = trace.events[-1].timestamp if trace.events else 0
        latency_ms = (end - start) * 1000
        score = min(1.0, self.threshold_ms / latency_ms) if latency_ms > 0 else 1.0
        return agentunit.MetricResult(
            name=self.name,
            value=score,
            detail={
                "latency_ms": latency_ms,
                "threshold_ms": self.threshold_ms,
                "under_threshold": latency_ms <= self.threshold_ms,
            },
        )


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentunit, "_DEFAULTS", dict(agentunit.DEFAULT_METRICS))


def test_registered_metric_runs_as_printed(registered: None) -> None:
    agentunit.register_metric("latency", LatencyMetric)
    turn = oa.Turn(input="?", output="!", duration_s=10.0, start=datetime.datetime.now(datetime.timezone.utc))
    for name in ("latency", "agentunit:latency"):
        score = oa.get_metric(name).evaluate(turn)
        assert (score.metric, score.value) == ("code_custom_latency", pytest.approx(0.5, abs=1e-4))
        assert (score.detail["threshold_ms"], score.detail["under_threshold"]) == (5000.0, False)
    result = oa.evaluate(lambda question: "!", [{"query": "?"}], ["latency"], config={"preset": "agentunit"})
    assert [score.value for score in result.scored[0][1]] == [1.0]
    assert [metric.name for metric in agentunit.resolve_metrics(["latency"])] == ["code_custom_latency"]


def test_registered_metric_receives_case_trace_and_outcome(registered: None) -> None:
    seen: list[Any] = []

    class Recorder:
        def evaluate(self, *given: Any) -> dict[str, Any]:
            seen.extend(given)
            return {"score": 0.25, "violations": ["a"]}

    agentunit.register_metric("recorder", Recorder())
    columns = {
        "id": "7",
        "query": "?",
        "expected_output": "Paris",
        "tools": ["search"],
        "context": ["France."],
        "metadata": {"tier": "gold"},
    }
    result = oa.evaluate(lambda question: "Lyon", [columns], ["recorder"])
    (score,) = result.scored[0][1]
    assert (score.metric, score.value, score.detail["violations"]) == ("code_recorder", 0.25, ["a"])
    case, trace, outcome = seen
    assert (case.id, case.query, case.expected_output, case.tools, case.context) == ("7", "?", "Paris", ["search"], ["France."])
    assert case.metadata["tier"] == "gold"
    assert [event.type for event in trace.events] == ["agent_prompt", "agent_response"]
    assert (outcome.success, outcome.output, outcome.error) == (True, "Lyon", None)
    calls = [{"name": "a", "cost_usd": 0.5}, {"name": "b", "error": "late"}]
    usage = {"input_tokens": 150, "output_tokens": 75, "total_tokens": 225}
    seen.clear()
    oa.get_metric("recorder").evaluate(
        oa.Turn.from_dict({"tool_calls": calls, "error": "broken", "cost_usd": 0.0032, "usage": usage})
    )
    _, trace, outcome = seen
    assert [event.payload.get("status") for event in trace.events if event.type == "tool_call"] == ["success", "error"]
    assert (outcome.success, outcome.error, trace.events[-1].type) == (False, "broken", "error")
    assert trace.metadata == {"cost": 0.0032, "usage": {"prompt_tokens": 150, "completion_tokens": 75, "total_tokens": 225}}


class Slotted:
    __slots__ = ("detail", "value")

    def __init__(self, value: float | None) -> None:
        self.value, self.detail = value, {"why": "slots"}


@pytest.mark.parametrize(
    ("given", "status", "value"),
    [
        (Slotted(0.5), "ok", 0.5),
        (Slotted(None), "skipped", None),
        (agentunit.MetricResult("a", None, {}), "skipped", None),
        ({"value": 1, "detail": {"a": 1}}, "ok", 1.0),
        (0.75, "ok", 0.75),
        (None, "skipped", None),
        ("good", "error", None),
    ],
)
def test_result_of_a_custom_metric_is_read(registered: None, given: Any, status: str, value: float | None) -> None:
    agentunit.register_metric("given-result", SimpleNamespace(evaluate=lambda case, trace, outcome: given))
    score = oa.get_metric("agentunit:given-result").evaluate(oa.Turn())
    assert (score.metric, score.status, score.value) == ("code_given_result", status, value)


class Needs:
    def __init__(self, limit: int) -> None:
        self.limit = limit


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("faithfulness", LatencyMetric, "faithfulness is already registered"),
        ("empty", object, r"must have a method evaluate\(case, trace, outcome\)"),
        ("needs", Needs, "Register an instance"),
    ],
)
def test_what_is_no_custom_metric_is_refused(registered: None, name: str, given: Any, problem: str) -> None:
    with pytest.raises(oa.ConfigError, match=problem):
        agentunit.register_metric(name, given)


def test_class_given_to_the_decorator_is_refused_clearly() -> None:
    for decorate in (oa.metric, oa.metric()):
        with pytest.raises(oa.ConfigError, match=r"got the class LatencyMetric.*register_metric"):
            decorate(LatencyMetric)
    with pytest.raises(oa.ConfigError, match=r"got the class LatencyMetric"):
        oa.evaluate(lambda question: "!", [{"query": "?"}], [LatencyMetric])
    with pytest.raises(oa.ConfigError, match=r"@oa\.metric\(\)"):
        oa.metric(lambda turn: 1)


def test_metric_classes_are_functions_of_their_parameters() -> None:
    composite = agentunit.CompositeMetric([agentunit.FaithfulnessMetric(), agentunit.ToolSuccessMetric()])
    assert [one.name for one in composite.inner] == ["llm_faithfulness", "code_tool_success"]
    assert agentunit.CarbonMetric(threshold_kg=0.05, grid_intensity=0.475).params["grid_intensity"] == 0.475
    with pytest.raises(AttributeError, match="NoSuchMetric"):
        _ = agentunit.NoSuchMetric


# --- values and verdicts


@pytest.mark.parametrize(
    ("name", "passed"),
    [
        ("agentunit:tool_success", False),
        ("agentunit:ToolSuccessMetric", False),
        ("tool_success", False),
        ("code_tool_success", True),
    ],
)
def test_repaired_failure_counts_under_agentunit_s_names(name: str, passed: bool) -> None:
    calls = [{"name": "a", "arguments": {"q": "x"}, "error": "late"}, {"name": "a", "arguments": {"q": "x"}}]
    score = oa.get_metric(name).evaluate(oa.Turn.from_dict({"tool_calls": calls}))
    assert (score.value, score.passed) == (0.5, passed)


def test_resolved_metric_has_the_rule_of_the_preset() -> None:
    (metric,) = agentunit.resolve_metrics(["tool_success"])
    nine = [{"name": f"t{i}"} for i in range(9)]
    for calls, value, passed in (
        ([*nine, {"name": "x", "error": "late"}], 0.9, True),
        ([*nine[:2], {"name": "x", "error": "late"}], 0.6667, False),
    ):
        score = metric.evaluate(oa.Turn.from_dict({"tool_calls": calls}))
        assert (score.value, score.passed) == (pytest.approx(value, abs=1e-4), passed)


def test_personal_data_is_found_by_agentunit_s_rules(caplog: pytest.LogCaptureFixture) -> None:
    conversions._warn_once.cache_clear()
    weights = {"email": 0.5, "phone": 0.6, "ssn": 1.0, "credit_card": 1.0, "name": 0.3, "address": 0.7}
    metric = agentunit.PIILeakageMetric(check_input=False, check_output=True, severity_weights=weights)
    assert [record.getMessage() for record in caplog.records] == [
        "weights: address has no effect, because only email, phone, ssn, credit_card, name are detected"
    ]
    for text, weight, confidence in (
        ("a@b.de", 0.5, 0.95), ("555-123-4567", 0.6, 0.9), ("123-45-6789", 1.0, 0.98), ("1234-5678-9012-3456", 1.0, 0.85), ("Jo Doe", 0.3, 0.6),
    ):  # fmt: skip
        score = metric.evaluate(oa.Turn(output=text))
        assert (score.value, score.passed) == (pytest.approx(1 - weight * confidence), False), text
    assert metric.evaluate(oa.Turn(output="12 Main Street")).detail["num_detections"] == 1, "two capitalized words"


@pytest.mark.parametrize("name", ["agentunit:PIILeakageMetric", "agentunit:pii_leakage", "PIILeakageMetric", "pii_leakage"])
def test_rules_for_personal_data_need_no_preset(name: str, caplog: pytest.LogCaptureFixture) -> None:
    conversions._warn_once.cache_clear()
    result = oa.evaluate(
        lambda question: "Jo Doe, 1234-5678-9012-3456", [{"query": "?"}], [{name: {"severityWeights": {"nmae": 0.1}}}]
    )
    (score,) = result.scored[0][1]
    assert score.detail["types"] == ["credit_card", "name"]
    assert "nmae has no effect" in caplog.text
    ours = oa.get_metric("code_pii_leakage").evaluate(oa.Turn(output="Jo Doe, 1234-5678-9012-3456"))
    assert ours.passed is True


# --- needs and details

STATEMENTS = [
    {"statements": ["Paris is the capital."]},
    {"verdicts": [{"statement": "1", "reason": "it says so", "verdict": "yes"}]},
]
RELEVANT = {"reason": "it serves the answer", "verdict": "RELEVANT"}
RATED = {"reasoning": "all there", "factsCorrect": [], "factsIncorrect": [], "factsMissing": [], "score": 92}
WITHOUT_INPUT = {"output": "Paris is the capital.", "ground_truth": "Paris.", "context": ["Paris is the capital of France."]}


@pytest.mark.parametrize(
    ("name", "ours", "replies", "value", "detail"),
    [
        ("FaithfulnessMetric", "llm_faithfulness", STATEMENTS, 1.0, {"answer": "output", "references": "context"}),
        ("faithfulness", "llm_faithfulness", STATEMENTS, 1.0, {"answer": "output", "references": "context"}),
        ("AnswerCorrectnessMetric", "llm_answer_correctness", [RATED], 0.92, {"answer": "output", "expected": "ground_truth"}),
        ("RetrievalQualityMetric", "llm_context_precision", [RELEVANT], 1.0, {"answer": "output", "references": "context"}),
        ("retrieval_quality", "llm_context_precision", [RELEVANT], 1.0, {"answer": "output", "references": "context"}),
    ],
)
def test_judged_metric_needs_no_input(
    name: str, ours: str, replies: list[Any], value: float, detail: dict[str, str], models: ScriptedModels
) -> None:
    turn = oa.Turn.from_dict(WITHOUT_INPUT)
    score = models.score(f"agentunit:{name}", turn, *replies)
    assert score.value == pytest.approx(value)
    assert {key: score.detail[key] for key in detail} == {key: WITHOUT_INPUT[field] for key, field in detail.items()}
    assert "(not given)" in models.asked[0]
    own = models.score(ours, turn)
    assert (own.status, own.detail) == ("skipped", {"reason": "missing:input"})
    models.play(*replies)
    case = {"id": "1", **{key: value for key, value in WITHOUT_INPUT.items() if key != "output"}}
    result = oa.evaluate(
        lambda question: WITHOUT_INPUT["output"], [{**case, "query": " "}], [f"agentunit:{name}"], judge=models.judge
    )
    assert result.scored[0][1][0].value == pytest.approx(value)


def test_input_is_judged_if_it_is_known(models: ScriptedModels) -> None:
    models.score("agentunit:retrieval_quality", oa.Turn.from_dict({**WITHOUT_INPUT, "input": "Which capital?"}), RELEVANT)
    assert "Which capital?" in models.asked[0]
    assert "(not given)" not in models.asked[0]


def test_context_is_still_required(models: ScriptedModels) -> None:
    turn = oa.Turn(output="Paris.")
    for name in ("faithfulness", "retrieval_quality", "answer_correctness"):
        assert models.score(f"agentunit:{name}", turn).status == "skipped"


def test_details_have_the_printed_keys() -> None:
    calls = [{"name": "a", "arguments": {"q": 1}}, {"name": "b", "error": "late"}]
    turn = oa.Turn.from_dict({"output": "Paris", "ground_truth": "Paris", "tool_calls": calls, "cost_usd": 0.0032})
    composite = agentunit.CompositeMetric(
        [agentunit.AnswerCorrectnessMetric(), agentunit.ToolSuccessMetric(), agentunit.CostMetric()]
    )
    score = composite.evaluate(turn)
    assert score.value == pytest.approx((1 + 0.5 + 0.0032) / 3)
    assert score.detail.keys() == {"answer_correctness", "tool_success", "cost"}
    assert score.detail["answer_correctness"].items() >= {"expected": "Paris", "answer": "Paris"}.items()
    assert score.detail["tool_success"]["tool_calls"] == [
        {"name": "a", "status": "success"},
        {"name": "b", "status": "error"},
    ]
    ours = oa.get_metric("code_composite_mean", metrics=["code_tool_success", "code_cost"]).evaluate(turn)
    assert ours.detail.keys() == {"code_tool_success", "code_cost"}
    assert "tool_calls" not in ours.detail["code_tool_success"]
    given = oa.score_turns(turn, [{"agentunit:CompositeMetric": {"metrics": ["tool_success", "agentunit:cost"]}}])
    assert [score.detail.keys() for _, scores in given for score in scores] == [{"tool_success", "cost"}]


def test_long_texts_in_details_are_cut() -> None:
    turn = oa.Turn(output="a" * 5_000, ground_truth="a" * 5_000)
    score = oa.get_metric("agentunit:AnswerCorrectnessMetric").evaluate(turn)
    assert {len(score.detail[key]) for key in ("answer", "expected")} == {2_000}


def test_name_is_part_of_the_identity_of_a_score() -> None:
    theirs, ours = oa.get_metric("agentunit:FaithfulnessMetric"), oa.get_metric("llm_faithfulness")
    assert theirs.key != ours.key
    assert theirs.key == oa.get_metric("agentunit:FaithfulnessMetric").key
    assert theirs.but({"threshold": 0.5}).view == theirs.view


# --- the privacy budget of an experiment

SPENDING = [{"query": f"{number}?", "privacy": {"epsilon": 4}} for number in range(3)]


def budgets(metric: Any) -> list[tuple[float, bool]]:
    result = oa.evaluate(lambda question: "!", SPENDING, [metric])
    return [(score.detail["total_spent"], score.passed) for _, scores in result.scored for score in scores]


@pytest.mark.parametrize(
    "metric",
    [
        "agentunit:PrivacyBudgetMetric",
        {"agentunit:privacy_budget": {"total_budget": 10.0, "warn_threshold": 0.8}},
        {"code_privacy_budget": {"scope": "all"}},
    ],
)
def test_budget_adds_up_over_an_experiment(metric: Any) -> None:
    for _ in range(2):  # the second experiment has a budget of its own
        assert budgets(metric) == [(4.0, True), (8.0, True), (12.0, False)]


@pytest.mark.parametrize("metric", ["code_privacy_budget", {"agentunit:privacy_budget": {"scope": "conversation"}}])
def test_budget_of_other_scopes_is_per_case(metric: Any) -> None:
    assert budgets(metric) == [(4.0, True)] * 3


def test_budget_is_that_of_the_metric_object() -> None:
    metric = agentunit.PrivacyBudgetMetric(total_budget=10.0)
    turns = [oa.Turn(turn_id=str(number), user_id=str(number), privacy={"epsilon": 4}) for number in range(3)]
    for _ in range(2):  # a turn is charged once
        assert [metric.evaluate(turn).passed for turn in turns] == [True, True, False]
    assert metric.but({**metric.params, "total_budget": 12.0}).evaluate(turns[2]).passed is True
    assert agentunit.PrivacyBudgetMetric(total_budget=10.0).evaluate(turns[2]).passed is True
    assert metric.key == agentunit.PrivacyBudgetMetric(total_budget=10.0).key


# --- printed configurations


@pytest.mark.parametrize(
    ("name", "params", "ignored", "kept"),
    [
        ("EnergyMetric", {"threshold_kwh": 0.1, "sample_interval": 1.0}, "sample_interval", {"threshold_kwh": 0.1}),
        (
            "ImageCaptionAccuracyMetric",
            {"use_semantic": True, "model_name": "all-MiniLM-L6-v2"},
            "model_name",
            {"use_semantic": True},
        ),
        ("VideoResponseRelevanceMetric", {"num_frames": 8, "clip_model_name": "ViT-B/32"}, "clip_model_name", {"num_frames": 8}),
        ("CrossModalGroundingMetric", {"clip_model_name": "ViT-B/32", "threshold": 0.25}, "clip_model_name", {"threshold": 0.25}),
        ("CarbonMetric", {"threshold_kg": 0.05, "grid_intensity": 0.475}, None, {"threshold_kg": 0.05, "grid_intensity": 0.475}),
        (
            "PrivacyBudgetMetric",
            {"total_budget": 10.0, "warn_threshold": 0.8},
            None,
            {"total_budget": 10.0, "warn_threshold": 0.8},
        ),
        (
            "ResourceUtilizationMetric",
            {"target_cpu_percent": 80.0, "target_memory_gb": 4.0, "target_gpu_percent": 80.0},
            None,
            {"target_cpu_percent": 80.0, "target_memory_gb": 4.0, "target_gpu_percent": 80.0},
        ),
    ],
)
def test_printed_configuration_is_accepted(
    name: str, params: dict[str, Any], ignored: str | None, kept: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    conversions._warn_once.cache_clear()
    for metric in (getattr(agentunit, name)(**params), oa.get_metric(f"agentunit:{name}", **params)):
        assert metric.params.items() >= kept.items()
    entry = {"inline": {"metrics": []}, "metrics": [{f"agentunit:{name}": params}]}
    assert select_metrics(oa.load_config(entry))[-1].params.items() >= kept.items()
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition(",")[0] for text in told] == ([] if ignored is None else [f"{ignored} has no effect"])
    assert all(", because " in text for text in told)


# --- printed values


def test_printed_share_of_grounded_statements(models: ScriptedModels) -> None:
    votes = [{"statement": str(i + 1), "reason": "", "verdict": "yes" if i < 17 else "no"} for i in range(20)]
    replies = {"statements": [f"Statement {number}." for number in range(20)]}, {"verdicts": votes}
    score = models.score("agentunit:FaithfulnessMetric", oa.Turn(output="Twenty statements.", context=["Some."]), *replies)
    assert (score.value, score.passed) == (0.85, True)


def test_printed_share_of_hallucinated_claims(models: ScriptedModels) -> None:
    votes = [{"claim": str(i + 1), "reason": "", "verdict": "CONTRADICTED" if i < 3 else "SUPPORTED"} for i in range(20)]
    replies = {"claims": [f"Claim {number}." for number in range(20)]}, {"verdicts": votes}
    turn = oa.Turn(input="?", output="Twenty claims.", context=["Some."])
    assert models.score("agentunit:HallucinationRateMetric", turn, *replies).value == pytest.approx(0.15)


@pytest.mark.parametrize(("cosine", "value"), [(0.3, 1.0), (0.25, 1.0), (0.125, 0.5), (-0.2, 0.0)])
def test_scale_of_grounding_ends_at_its_threshold(cosine: float, value: float) -> None:
    vectors = [[1.0, 0.0], [cosine, (1 - cosine**2) ** 0.5]]
    embedder = SimpleNamespace(embed=lambda texts: vectors)
    case = {"query": "?", "metadata": {"image_path": "https://a.example/cat.png"}}
    metric = {"agentunit:CrossModalGroundingMetric": {"clip_model_name": "ViT-B/32", "threshold": 0.25}}
    ((_, (score,)),) = oa.evaluate(lambda query: "A cat.", [case], [metric], embedder=embedder).scored
    assert score.value == pytest.approx(value)
    assert score.detail["is_grounded"] is (cosine >= 0.25)


def test_hubs_have_the_printed_threshold() -> None:
    analyzer = agentunit.NetworkAnalyzer({"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}, ["a", "b", "c"])
    assert analyzer.find_hub_agents(threshold=0.7) == ["a"]
    assert analyzer.calculate_density() == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("exact_match", "ragas:exact_match"), ("correctness", "answer_correctness"), ("pii_detection", "pii_leakage")],
)
def test_name_of_documents_alone_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(oa.ConfigError, match=rf"unknown metric 'agentunit:{name}'\. Did you mean .*{nearest}"):
        agentunit.resolve_metrics([name])


# --- what is different on purpose


def test_default_metrics_are_eight() -> None:
    assert [*agentunit.DEFAULT_METRICS] == [
        "faithfulness", "tool_success", "answer_correctness", "hallucination_rate", "retrieval_quality", "cost", "token_usage", "pii_leakage",
    ]  # fmt: skip


def test_judge_decides_and_not_a_verbatim_search(models: ScriptedModels) -> None:
    """Without ragas, AgentUnit scores this answer as 0 in each metric."""
    facts = {"input": "Which capital?", "output": "It's Paris.", "context": ["Paris is the capital."], "ground_truth": "Paris"}
    turn = oa.Turn.from_dict(facts)
    assert models.score("agentunit:faithfulness", turn, *STATEMENTS).value == 1.0
    assert models.score("agentunit:answer_correctness", turn, RATED).value == pytest.approx(0.92)
    assert models.score("agentunit:retrieval_quality", turn, RELEVANT).value == 1.0
