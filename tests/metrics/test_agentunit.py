"""AgentUnit's calculators return AgentUnit's values, for objects and mappings (``tests/data/systems/agentunit_calculator.json``)."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.agentunit import (
    DEFAULT_METRICS,
    EmergentBehaviorDetector,
    InteractionAnalyzer,
    MultiAgentMetricsCalculator,
    NetworkAnalyzer,
    resolve_metrics,
)

GIVEN = json.loads((Path(__file__).parents[1] / "data" / "systems" / "agentunit_calculator.json").read_text(encoding="utf-8"))
EXPECTED = GIVEN["expected"]
ARGUMENTS = {name: GIVEN[name] for name in ("interactions", "handoffs", "conflicts", "agent_roles")}


def as_objects(value: Any) -> Any:
    """Return the mappings as AgentUnit's objects, with attributes and an enumeration for the type."""
    if isinstance(value, dict) and "interaction_type" in value:
        kind = enum.Enum("InteractionType", {"X": value["interaction_type"]})
        return SimpleNamespace(**{**value, "interaction_type": kind.X})
    return SimpleNamespace(**value)


OBJECTS = {
    "interactions": [as_objects(one) for one in ARGUMENTS["interactions"]],
    "handoffs": [as_objects(one) for one in ARGUMENTS["handoffs"]],
    "conflicts": [as_objects(one) for one in ARGUMENTS["conflicts"]],
    "agent_roles": {name: as_objects(role) for name, role in ARGUMENTS["agent_roles"].items()},
}


@pytest.mark.parametrize("arguments", [ARGUMENTS, OBJECTS], ids=["mappings", "objects"])
def test_calculator_returns_agentunit_s_values(arguments: dict[str, Any]) -> None:
    found = MultiAgentMetricsCalculator(**arguments).calculate_all()
    assert found.keys() == EXPECTED.keys()
    for category in ("coordination", "emergent_behaviors"):
        assert found[category] == pytest.approx(EXPECTED[category])
    agents = len(ARGUMENTS["agent_roles"])
    normalized = EXPECTED["network"]["centralization"] * (agents - 2) / (agents - 1)
    assert found["network"].pop("avg_path_length") == 1.25  # AgentUnit has 0
    assert found["network"] == {**EXPECTED["network"], "centralization": pytest.approx(normalized)}
    assert found["fault_tolerance"] == pytest.approx(EXPECTED["fault_tolerance"])


def test_analyzers_return_the_calculator_s_values() -> None:
    interactions, handoffs, conflicts, roles = ARGUMENTS.values()
    analyzer = InteractionAnalyzer(interactions, handoffs, conflicts)
    assert analyzer.calculate_handoff_metrics() == {"success_rate": 0.5, "avg_time": 0.5, "total_handoffs": 2}
    assert analyzer.calculate_conflict_metrics()["total_conflicts"] == 2
    assert analyzer.calculate_load_balance() == pytest.approx(EXPECTED["coordination"]["load_balance_score"])
    assert analyzer.message_counts["planner", "coder"] == 2
    network = NetworkAnalyzer(analyzer.adjacency, list(roles))
    assert network.calculate_density() == EXPECTED["network"]["density"]
    assert network.find_hub_agents(threshold=0.1) == ["planner", "coder", "tester", "writer"]
    detector = EmergentBehaviorDetector(interactions, roles)
    assert detector.calculate_swarm_intelligence() == pytest.approx(EXPECTED["emergent_behaviors"]["swarm_intelligence_score"])


def test_fault_tolerance_is_of_the_roles_without_interactions() -> None:
    found = MultiAgentMetricsCalculator([], agent_roles={"a": {}, "b": {}, "c": {}}).calculate_all()
    assert found["fault_tolerance"] == 0.4
    assert found["coordination"]["avg_handoff_time"] is None
    assert found["emergent_behaviors"]["swarm_intelligence_score"] is None


def test_entry_of_another_type_is_refused() -> None:
    for problem, build in (
        ("a>b", lambda: MultiAgentMetricsCalculator(["a>b"])),
        ("success .*'yes'", lambda: MultiAgentMetricsCalculator([], [{"success": "yes"}])),
        ("agent_roles", lambda: MultiAgentMetricsCalculator([], agent_roles=["a"])),  # type: ignore[arg-type]
        ("adjacency", lambda: NetworkAnalyzer([[0, 1], [1, 0]], ["a", "b"])),  # type: ignore[arg-type]
        ("names", lambda: resolve_metrics("cost")),
    ):
        with pytest.raises(oa.ConfigError, match=problem):
            build()


def test_metrics_resolve_by_agentunit_s_names() -> None:
    found = [metric.name for metric in resolve_metrics(["faithfulness", "tool_success", "cost"])]
    assert found == ["llm_faithfulness", "code_tool_success", "code_cost"]
    assert resolve_metrics() == list(DEFAULT_METRICS.values())
    assert {"faithfulness", "answer_correctness", "tool_success", "cost", "token_usage"} <= DEFAULT_METRICS.keys()
    assert resolve_metrics(["swarm_intelligence"])[0].name == "code_swarm_intelligence"
    with pytest.raises(oa.ConfigError, match="faithfulness"):
        resolve_metrics(["faithfulnes"])


def test_fault_tolerance_takes_roles_as_parameter() -> None:
    turn = oa.Turn.from_dict({"interactions": [{"from": "a", "to": "b"}], "agents": {"a": {}, "b": {}}})
    roles: dict[str, Any] = {name: {} for name in "abcd"}
    assert oa.get_metric("agentunit:network_fault_tolerance", agent_roles=roles).evaluate(turn).detail["density"] == 1 / 12
    summary = oa.get_metric("agentunit:MultiAgentMetricsCalculator", agent_roles=roles).evaluate(turn)
    assert summary.detail["fault_tolerance"] == pytest.approx(0.6 / 12 + 0.4)


def test_exact_answer_is_correct_without_an_input() -> None:
    metric = oa.get_metric("agentunit:answer_correctness")
    assert metric.evaluate(oa.Turn(output=" Paris", ground_truth="Paris")).value == 1.0
    other = metric.evaluate(oa.Turn(output="Lyon", ground_truth="Paris"))
    assert other.detail["reason"] == "no_judge"
