from __future__ import annotations

import copy
import itertools
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.metrics.code import multi_agent_network
from otel_agenteval.metrics.registry import catalog
from tests.support.spans import agent, tool, turns_of

NAMES = [m.name for m in catalog() if m.family == "multi_agent"]
ROLES = {"a": {"authority_level": 8, "can_delegate": True}, "b": {"authority_level": 5}, "c": {"authority_level": 3}}


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def sent(*pairs: str, **facts: Any) -> list[dict[str, Any]]:
    """``"a>b"`` is a request from a to b, ``"a>bc"`` one to both."""
    split = [pair.split(">") for pair in pairs]
    return [{"from": one, "to": list(to) if len(to) > 1 else to, **facts} for one, to in split]


def graph(*pairs: str, **turn: Any) -> dict[str, Any]:
    return {"interactions": sent(*pairs), **turn}


# --- the family


def test_the_family_has_22_metrics_from_three_modules_and_none_in_the_default_pack() -> None:
    metrics = [m for m in catalog() if m.family == "multi_agent"]
    assert len(metrics) == 22
    assert len({m.fn.__module__ for m in metrics}) == 3
    assert not any(m.inline for m in metrics)


# --- hand-offs and conflicts


@pytest.mark.parametrize(
    ("handoffs", "value", "detail"),
    [
        pytest.param([True, True, False, True], 0.75, {"handoffs": 4, "successful": 3}, id="one of four failed"),
        pytest.param([True, None], 1.0, {"handoffs": 1, "successful": 1}, id="one that nobody spoke of does not count"),
        pytest.param([], 1.0, {"vacuous": True, "handoffs": 0, "successful": 0}, id="none at all is vacuous"),
    ],
)
def test_handoff_success_rate(handoffs: list[bool | None], value: float, detail: dict[str, Any]) -> None:
    score = evaluate("code_handoff_success_rate", {"handoffs": [{"from": "a", "to": "b", "success": s} for s in handoffs]})
    assert (score.value, score.detail, score.passed) == (value, detail, None)


def test_handoffs_of_which_nobody_knows_how_they_went_are_no_successes() -> None:
    score = evaluate("code_handoff_success_rate", {"handoffs": [{"from": "a", "to": "b"}]})
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:handoffs"})


def test_a_handoff_that_failed_is_still_known_to_have_failed_when_the_turn_went_through_json() -> None:
    turn = oa.Turn.from_dict(
        {"handoffs": [{"from": "a", "to": "b", "success": False}, {"from": "a", "to": "c", "success": True}]}
    )
    assert evaluate("code_handoff_success_rate", json.loads(json.dumps(turn.to_dict()))).value == 0.5


def test_handoff_time_is_the_mean_of_the_durations_that_are_known() -> None:
    score = evaluate("code_avg_handoff_time", {"handoffs": [{"duration_s": 1}, {"duration_s": 4}, {"duration_s": -1}, {}]})
    assert (score.value, score.unit, score.direction, score.detail) == (2.5, "s", "down", {"handoffs": 2})
    assert evaluate("code_avg_handoff_time", {"handoffs": [{"to": "b"}]}).detail == {"reason": "missing:handoffs"}


RESOLVED = {"resolved": True, "resolution_time_s": 2.0}


@pytest.mark.parametrize(
    ("turn", "value", "vacuous"),
    [
        pytest.param({"conflicts": [RESOLVED], **graph("a>b", "b>a", "a>b", "b>a")}, 25.0, False, id="one in four"),
        pytest.param({"conflicts": [RESOLVED, {}]}, 200.0, False, id="conflicts without interactions count as of one"),
        pytest.param({"conflicts": [RESOLVED], **graph("a>bcd")}, 100.0, False, id="a broadcast is one interaction"),
        pytest.param(graph("a>b"), 0.0, False, id="no conflicts in recorded interactions"),
        pytest.param({"handoffs": [{"from": "a", "to": "b"}]}, 0.0, True, id="spans do not show conflicts"),
        pytest.param({}, 0.0, True, id="nothing known"),
    ],
)
def test_conflict_rate(turn: dict[str, Any], value: float, vacuous: bool) -> None:
    score = evaluate("code_conflict_rate", turn)
    assert (score.value, score.vacuous, score.direction) == (value, vacuous, "down")


def test_conflict_resolution_rate_and_time_look_at_the_resolved_ones() -> None:
    turn = {"conflicts": [RESOLVED, {"resolved": True, "resolution_time_s": 4}, {"resolved": False, "resolution_time_s": 99}, {}]}
    assert evaluate("code_conflict_resolution_rate", turn).value == 0.5
    assert evaluate("code_avg_resolution_time", turn).value == 3.0


@pytest.mark.parametrize(
    "conflicts",
    [
        pytest.param([], id="no conflicts"),
        pytest.param([{"resolved": False, "resolution_time_s": 3}], id="none resolved"),
        pytest.param([{"resolved": True}, {"resolved": True, "resolution_time_s": "soon"}], id="no times known"),
    ],
)
def test_a_resolution_time_is_not_made_up(conflicts: list[dict[str, Any]]) -> None:
    assert evaluate("code_avg_resolution_time", {"conflicts": conflicts}).detail == {"reason": "missing:conflicts"}


# --- communication, roles, load


@pytest.mark.parametrize(
    ("interactions", "params", "parts"),
    [
        pytest.param(sent("a>b", success=True, response_time_s=5), {}, (1, 1, 1), id="as slow as may be"),
        pytest.param(sent("a>b", success=True, response_time_s=10), {}, (1, 0.5, 1), id="twice as slow"),
        pytest.param(sent("a>b", success=True, response_time_s=10), {"slow_s": 20}, (1, 1, 1), id="slow is configured"),
        pytest.param(sent("a>b", success=False, response_time_s=0), {}, (0, 1, 1), id="a time of 0 is none"),
        pytest.param(sent("a>b", "a>b", "a>b", "b>a", success=True), {}, (1, 1, 2 / 3), id="three one way and one back"),
        pytest.param(sent("a>bc", "a>b", success=True), {}, (1, 1, 0.75), id="a broadcast is a message of each pair"),
        pytest.param(sent(*["a>b"] * 50, success=True), {}, (1, 1, 1), id="one pair is even"),
        pytest.param(sent("a>b"), {}, (1, 1, 1), id="nobody said whether it succeeded"),
        pytest.param([*sent("a>b", success=False), *sent("a>b")], {}, (0, 1, 1), id="only what was said counts"),
    ],
)
def test_communication_efficiency(
    interactions: list[dict[str, Any]], params: dict[str, Any], parts: tuple[float, float, float]
) -> None:
    score = evaluate("code_communication_efficiency", {"interactions": interactions}, **params)
    assert score.detail == pytest.approx(dict(zip(("success", "response", "evenness"), parts, strict=True)))
    assert score.value == pytest.approx(0.5 * parts[0] + 0.3 * parts[1] + 0.2 * parts[2])


@pytest.mark.parametrize(
    ("kind", "sender", "value"),
    [
        pytest.param("delegation", "a", 1.0, id="who can delegate may"),
        pytest.param("Delegation", "b", 0.0, id="who cannot may not"),
        pytest.param("response", "b", 1.0, id="authority 5 may respond"),
        pytest.param("response", "c", 0.0, id="authority 3 may not"),
        pytest.param("response", "d", 1.0, id="authority is 5 where the role does not say"),
        pytest.param("delegation", "d", 0.0, id="delegation is not allowed where the role does not say"),
        pytest.param("negotiation", "c", 1.0, id="everything else is allowed"),
    ],
)
def test_role_adherence_by_type(kind: str, sender: str, value: float) -> None:
    turn = {"agents": {**ROLES, "d": {}}, "interactions": sent(f"{sender}>x", type=kind)}
    score = evaluate("code_multiagent_role_adherence", turn)
    assert (score.value, score.vacuous) == (value, False)


def test_only_senders_with_a_role_are_judged() -> None:
    turn = {"agents": ROLES, "interactions": sent("a>b", "x>a", "c>a", type="response")}
    assert evaluate("code_multiagent_role_adherence", turn).detail == {"interactions": 2, "adherent": 1}


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param({"agents": ROLES}, id="no interactions"),
        pytest.param(graph("a>b"), id="no roles"),
        pytest.param(graph("x>y", agents=ROLES), id="no sender with a role"),
    ],
)
def test_role_adherence_of_nothing_is_vacuous(turn: dict[str, Any]) -> None:
    score = evaluate("code_multiagent_role_adherence", turn)
    assert (score.value, score.vacuous) == (1.0, True)


def test_roles_can_be_configured() -> None:
    turn = graph("a>b", agents=ROLES)
    turn["interactions"][0]["type"] = "delegation"
    assert evaluate("code_multiagent_role_adherence", turn, roles={"a": {}}).value == 0.0
    assert evaluate("code_coordination_efficiency", turn, roles={"a": {}}).detail["role_adherence"] == 0.0
    assert evaluate("code_multi_agent_summary", turn, roles={"a": {}}).detail["role_adherence"] == 0.0


@pytest.mark.parametrize(
    ("turn", "params", "value"),
    [
        pytest.param(graph("a>b", "b>a"), {}, 1.0, id="both as much"),
        pytest.param(graph("a>bc"), {}, 1 - math.sqrt(2 / 9) / (4 / 3), id="a sender counts once per recipient"),
        pytest.param(graph("a>b", agents={"c": {}}), {}, 1.0, id="idle agents do not count"),
        pytest.param(
            graph("a>b", agents={"c": {}}), {"include_idle": True}, 1 - math.sqrt(2 / 9) / (2 / 3), id="unless they are to"
        ),
        pytest.param(graph("a>bcdefghij", *["a>b"] * 20), {}, 0.0, id="never below 0"),
    ],
)
def test_load_balance(turn: dict[str, Any], params: dict[str, Any], value: float) -> None:
    assert evaluate("code_load_balance", turn, **params).value == pytest.approx(value)


@pytest.mark.parametrize("include_idle", [False, True])
def test_load_balance_without_activity_is_vacuous(include_idle: bool) -> None:
    score = evaluate("code_load_balance", {"agents": ROLES}, include_idle=include_idle)
    assert (score.value, score.vacuous) == (1.0, True)


# --- network


@pytest.mark.parametrize(
    ("metric", "turn", "params", "value"),
    [
        pytest.param("code_network_density", graph("a>b", "a>b", "a>a"), {}, 0.5, id="repeats and self-loops add nothing"),
        pytest.param("code_network_density", graph("a>b", agents={"a": {}, "z": {}}), {}, 1 / 6, id="roles and participants"),
        pytest.param("code_network_centralization", graph("h>xyz"), {}, 1.0, id="a star is central"),
        pytest.param("code_network_centralization", graph("h>xyz"), {"mode": "seed"}, 1.5, id="the seed's star is more than 1"),
        pytest.param("code_network_centralization", graph("a>b", "b>c", "c>a"), {}, 0.0, id="a ring has no centre"),
        pytest.param("code_avg_path_length", graph("a>b", "b>c"), {}, 4 / 3, id="unreachable pairs do not count"),
        pytest.param("code_avg_path_length", graph("a>b", "b>c", "c>d", "d>a"), {}, 2.0, id="a ring ends"),
        pytest.param("code_clustering_coefficient", graph("a>bc", "b>c"), {}, 0.5 / 3, id="one of two edges around one of three"),
        pytest.param("code_clustering_coefficient", graph("a>bc", "b>a"), {}, 0.0, id="edges back to the agent do not count"),
    ],
)
def test_network_measures(metric: str, turn: dict[str, Any], params: dict[str, Any], value: float) -> None:
    score = evaluate(metric, turn, **params)
    assert score.value == pytest.approx(value)
    assert not score.vacuous


@pytest.mark.parametrize(
    ("metric", "turn", "value"),
    [
        pytest.param("code_network_density", {"agents": {"a": {}}}, 1.0, id="density of one agent"),
        pytest.param("code_network_fault_tolerance", graph("a>a", agents={"a": {}}), 1.0, id="fault tolerance of one agent"),
        pytest.param("code_network_centralization", graph("a>b"), 0.0, id="centralization of two"),
        pytest.param("code_clustering_coefficient", graph("a>b", "b>a"), 0.0, id="clustering of two"),
        pytest.param("code_bottleneck_agents", graph("a>b", "b>a"), 0.0, id="bottlenecks of two"),
        pytest.param("code_hub_agents", {"agents": ROLES}, 0.0, id="hubs without edges"),
        pytest.param("code_bottleneck_agents", {"agents": ROLES}, 0.0, id="bottlenecks without edges"),
    ],
)
def test_networks_that_say_nothing_are_vacuous(metric: str, turn: dict[str, Any], value: float) -> None:
    score = evaluate(metric, turn)
    assert (score.value, score.vacuous) == (value, True)


@pytest.mark.parametrize(
    ("metric", "turn", "reason"),
    [
        pytest.param("code_coordination_efficiency", {}, "missing:agents", id="coordination: the first need of the row"),
        pytest.param(
            "code_coordination_efficiency", {"agents": ROLES}, "missing:interactions", id="coordination of agents alone"
        ),
        pytest.param("code_multi_agent_summary", {"agents": ROLES}, "missing:interactions", id="the summary as coordination"),
        pytest.param("code_network_fault_tolerance", {"agents": ROLES}, "missing:interactions", id="fault tolerance of agents"),
        pytest.param("code_network_fault_tolerance", graph("a>b"), "missing:agents", id="fault tolerance without roles"),
        pytest.param("code_swarm_intelligence", {"agents": ROLES}, "missing:interactions", id="a swarm that is silent"),
        pytest.param("code_network_density", {"agents": ROLES}, "missing:interactions", id="density of several agents alone"),
        pytest.param("code_network_centralization", {"agents": ROLES}, "missing:interactions", id="centralization likewise"),
        pytest.param("code_clustering_coefficient", {"agents": ROLES}, "missing:interactions", id="clustering likewise"),
        pytest.param("code_avg_path_length", graph("a>a", agents=ROLES), "missing:interactions", id="no agent reaches another"),
        *[
            pytest.param(f"code_{name}", {}, "missing:interactions", id=f"{name} of a turn without agents")
            for name in ("network_density", "network_centralization", "clustering_coefficient", "hub_agents", "bottleneck_agents")
        ],
    ],
)
def test_does_not_apply(metric: str, turn: dict[str, Any], reason: str) -> None:
    score = evaluate(metric, turn)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


def test_hubs_are_named_in_the_order_of_the_role_table_and_their_share_is_no_bound() -> None:
    turn = graph("x>abc", "c>abx", "a>bc", "b>a", agents={"c": {}, "a": {}, "b": {}})
    score = evaluate("code_hub_agents", turn)
    assert (score.value, score.detail, score.passed) == (2, {"hub_agents": ["c", "x"]}, None)
    assert evaluate("code_hub_agents", turn, threshold=0.6).detail == {"hub_agents": ["c", "a", "x"]}
    assert evaluate("code_hub_agents", turn, share_of_highest=0).value == 4


def test_betweenness_finds_the_one_in_the_middle_and_nobody_where_everybody_writes_to_everybody() -> None:
    everybody = graph("a>bc", "b>ac", "c>ab")
    assert evaluate("code_bottleneck_agents", everybody).value == 3
    assert evaluate("code_bottleneck_agents", everybody, mode="betweenness").detail == {"bottleneck_agents": []}
    two_groups = graph("a>bm", "b>am", "m>abxy", "x>ym", "y>xm")
    assert evaluate("code_bottleneck_agents", two_groups, mode="betweenness").detail == {"bottleneck_agents": ["m"]}


def test_fault_tolerance_says_what_it_is_made_of() -> None:
    score = evaluate("code_network_fault_tolerance", graph("a>bc", "b>c", agents=ROLES))
    assert score.value == pytest.approx(0.6 * 0.5 + 0.4 * (1 - 1 / 3))
    assert score.detail == {
        "density": 0.5,
        "centralization": 0.75,
        "clustering": pytest.approx(0.5 / 3),
        "hub_agents": ["a"],
        "bottleneck_count": 1,
    }


def random_turns() -> list[Any]:
    """Sparse, dense, with and without agents that stay alone."""
    dice = random.Random(7)
    turns = []
    for n, edges, idle in [(3, 4, 0), (4, 3, 2), (6, 12, 0), (9, 20, 1), (12, 100, 0), (30, 60, 3), (40, 900, 0)]:
        names = [f"n{i}" for i in range(n)]
        interactions = [{"from": dice.choice(names), "to": dice.sample(names, dice.randint(1, 2))} for _ in range(edges)]
        turns.append(
            pytest.param(interactions, [f"idle{i}" for i in range(idle)], id=f"{n} agents, {edges} messages, {idle} idle")
        )
    return turns


@pytest.mark.parametrize(("interactions", "idle"), random_turns())
def test_graph_measures_agree_with_networkx(interactions: list[dict[str, Any]], idle: list[str]) -> None:
    import networkx

    turn = {"interactions": interactions, "agents": {name: {} for name in idle}}
    oracle = networkx.DiGraph()
    oracle.add_nodes_from(idle)
    oracle.add_nodes_from(name for each in interactions for name in (each["from"], *each["to"]))
    oracle.add_edges_from((each["from"], to) for each in interactions for to in each["to"] if each["from"] != to)

    def value(metric: str, **params: Any) -> Any:
        return evaluate(metric, turn, **params).value

    assert value("code_network_density") == pytest.approx(networkx.density(oracle))
    distances = [d for _, row in networkx.all_pairs_shortest_path_length(oracle) for d in row.values() if d]
    assert value("code_avg_path_length") == pytest.approx(sum(distances) / len(distances))
    among = [oracle.subgraph(oracle.successors(name)) for name in oracle]
    assert value("code_clustering_coefficient") == pytest.approx(
        sum(networkx.density(sub) for sub in among if len(sub) > 1) / len(oracle)
    )
    out = dict(oracle.out_degree())
    assert value("code_network_centralization") == pytest.approx(
        sum(max(out.values()) - d for d in out.values()) / (len(oracle) - 1) ** 2
    )
    assert set(evaluate("code_hub_agents", turn).detail["hub_agents"]) == {
        name for name in oracle if out[name] >= 0.7 * max(out.values())
    }
    through = networkx.betweenness_centrality(oracle, normalized=False)
    highest = max(through.values())
    assert set(evaluate("code_bottleneck_agents", turn, mode="betweenness").detail["bottleneck_agents"]) == {
        name for name in oracle if highest and through[name] >= 0.5 * highest * (1 - 1e-9)
    }


RING = [{"from": str(i), "to": str((i + 1) % 10_000)} for i in range(10_000)]
CROWD = [{"from": str(i * 7919 % 100), "to": str(i * i % 101)} for i in range(10_000)]


@pytest.mark.parametrize("metric", NAMES)
def test_ten_thousand_interactions_of_a_hundred_agents_are_measured(metric: str) -> None:
    score = evaluate(metric, {"interactions": CROWD, "agents": ROLES})
    assert score.status == ("skipped" if metric in ("code_avg_handoff_time", "code_avg_resolution_time") else "ok")


@pytest.mark.parametrize(
    ("metric", "params"), [("code_avg_path_length", {}), ("code_bottleneck_agents", {"mode": "betweenness"})]
)  # fmt: skip
def test_a_ring_of_ten_thousand_agents_is_too_long(metric: str, params: dict[str, Any]) -> None:
    score = evaluate(metric, {"interactions": RING}, **params)
    assert (score.status, score.detail) == ("skipped", {"reason": "too_long", "agents": 10_000, "edges": 10_000})


def test_a_graph_that_is_too_large_for_one_measure_still_has_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_agent_network, "MOST_STEPS", 3)
    monkeypatch.setattr(multi_agent_network, "MOST_MOVES", 3)
    turn = graph("a>bc", "b>ac", "c>ab", agents=ROLES)
    assert evaluate("code_clustering_coefficient", turn).detail["reason"] == "too_long"
    assert evaluate("code_network_fault_tolerance", turn).detail["clustering"] is None
    summary = evaluate("code_multi_agent_summary", turn).detail
    assert (summary["clustering_coefficient"], summary["avg_path_length"], summary["density"]) == (None, None, 1.0)


def test_distances_between_too_many_agents_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_agent_network, "MOST_AGENTS", 2)
    assert evaluate("code_avg_path_length", graph("a>b")).value == 1.0
    assert evaluate("code_avg_path_length", graph("a>b", "b>c", "c>a")).detail["reason"] == "too_long"


# --- emergent behaviour


def kinds(*words: str) -> list[dict[str, Any]]:
    """``"a request"``: sender and type."""
    return [{"from": word.split()[0], "to": "z", "type": word.split()[1]} for word in words]


MIXED = kinds("a request", "b response", "a notification", "c request", "b delegation")
SAME = kinds(*["a request"] * 5)
HALF_AS_MIXED = kinds("a request", "a request", "a response", "a response", "a request")


@pytest.mark.parametrize(
    ("interactions", "params", "value"),
    [
        pytest.param(MIXED + SAME, {}, 1.0, id="order out of a mix, at most 1"),
        pytest.param(MIXED + MIXED, {}, 0.5, id="nothing changed"),
        pytest.param(SAME + MIXED, {}, 0.5, id="order from the start leaves nothing to improve"),
        pytest.param(HALF_AS_MIXED + MIXED, {}, 0.0, id="a mix out of order, at least 0"),
        pytest.param(
            kinds("a request", "b request") + kinds(*["a request"] * 3), {"min_interactions": 5}, 1.0, id="an odd one is late"
        ),
    ],
)
def test_self_organization(interactions: list[dict[str, Any]], params: dict[str, Any], value: float) -> None:
    assert evaluate("code_self_organization", {"interactions": interactions}, **params).value == pytest.approx(value)


def test_self_organization_of_few_interactions_is_vacuous() -> None:
    score = evaluate("code_self_organization", {"interactions": kinds(*["a request", "b response"] * 4, "a request")})
    assert (score.value, score.detail) == (0.0, {"vacuous": True, "interactions": 9})
    assert evaluate("code_self_organization", {}, min_interactions=0).vacuous


@pytest.mark.parametrize(
    ("interactions", "value"),
    [
        pytest.param(sent("a>b", "b>a", message_type="x"), 1.0, id="one type each"),
        pytest.param([*sent("a>b", message_type="x"), *sent("a>b", message_type="y")], 0.5, id="two types, as often"),
        pytest.param(
            [*sent("a>b", "a>b", "b>a", message_type="x"), *sent("a>b", message_type="y")],
            (5 / 9 + 1) / 2,
            id="the mean of agents",
        ),
        pytest.param(kinds("a request", "a response"), 0.5, id="the type stands in for the message type"),
    ],
)
def test_specialization(interactions: list[dict[str, Any]], value: float) -> None:
    assert evaluate("code_specialization", {"interactions": interactions}).value == pytest.approx(value)


def test_collective_decisions_are_collaborations_and_negotiations() -> None:
    turn = {"interactions": kinds("a collaboration", "b negotiation", "c request", "c conflict")}
    assert evaluate("code_collective_decision", turn).value == 0.5


def times(*values: float) -> list[dict[str, Any]]:
    return [{"from": "a", "to": "b", "response_time_s": value} for value in values]


@pytest.mark.parametrize(
    ("values", "params", "value"),
    [
        pytest.param((4, 4, 2, 2, 2), {}, 1.0, id="twice as fast"),
        pytest.param((4, 4, 3, 3, 3), {}, 0.75, id="a quarter faster"),
        pytest.param((4, 4, 4, 4, 4), {}, 0.5, id="as fast as before"),
        pytest.param((2, 2, 4, 4, 4), {}, 0.0, id="slower, at least 0"),
        pytest.param((4, 0, 4, 0, 2, 2, 2), {}, 1.0, id="times of 0 are left out"),
        pytest.param((4, 2), {"min": 2}, 1.0, id="fewer are enough when that is configured"),
    ],
)
def test_adaptation_rate(values: tuple[float, ...], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_adaptation_rate", {"interactions": times(*values)}, **params)
    assert (score.value, score.vacuous) == (pytest.approx(value), False)


@pytest.mark.parametrize(("values", "minimum"), [((4, 4, 2, 2), 5), ((4, 0, 4, 2, 2), 5), ((4,), 0), ((), 0)])
def test_adaptation_of_few_times_is_vacuous(values: tuple[float, ...], minimum: int) -> None:
    score = evaluate("code_adaptation_rate", {"interactions": times(*values)}, min_interactions=minimum)
    assert (score.value, score.vacuous) == (0.5, True)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("code_communication_efficiency", 1.0),
        ("code_specialization", 0.0),
        ("code_collective_decision", 0.0),
        ("code_self_organization", 0.0),
        ("code_adaptation_rate", 0.5),
    ],
)
def test_a_turn_without_interactions_has_the_value_of_its_row_and_no_average_takes_it(metric: str, value: float) -> None:
    score = evaluate(metric, {"agents": ROLES})
    assert (score.value, score.vacuous) == (value, True)


# --- composites


def test_composites_are_the_weighted_sums_of_their_parts() -> None:
    turn = {"agents": ROLES, "interactions": MIXED + SAME, "handoffs": [{"success": True}, {"success": False}]}
    for metric, weights in (
        ("code_coordination_efficiency", (0.25, 0.20, 0.25, 0.15, 0.15)),
        ("code_swarm_intelligence", (0.30, 0.25, 0.25, 0.20)),
    ):
        score = evaluate(metric, turn)
        assert len(score.detail) == len(weights)
        assert score.value == pytest.approx(sum(w * part for w, part in zip(weights, score.detail.values(), strict=True)))


def test_weights_are_relative() -> None:
    turn = {"interactions": kinds("a collaboration", "a request")}
    assert evaluate("code_swarm_intelligence", turn, weights=[0, 0, 1, 0]).value == 0.5
    assert evaluate("code_swarm_intelligence", turn, weights=[0, 0, 0.1, 0.1]).value == 0.5


def test_handoffs_of_unknown_outcome_leave_coordination_as_it_is_without_any() -> None:
    turn = graph("a>b", "b>a")
    assert evaluate("code_coordination_efficiency", {**turn, "handoffs": [{"to": "b"}]}).value == 1.0


def test_the_summary_has_every_other_metric() -> None:
    turn = {
        "agents": ROLES, "interactions": sent("a>bc", "b>c", "c>a", success=True, response_time_s=2.0), "conflicts": [RESOLVED],
        "handoffs": [{"from": "a", "to": "b", "success": True, "duration_s": 1.0}],
    }  # fmt: skip
    summary = evaluate("code_multi_agent_summary", turn)
    assert len(summary.detail) == 21
    for name, found in summary.detail.items():
        single = evaluate(f"agentunit:{'network_fault_tolerance' if name == 'fault_tolerance' else name}", turn)
        assert single.value == (len(found) if isinstance(found, list) else found), name
    assert summary.value == summary.detail["coordination_efficiency"]
    assert summary.detail["hub_agents"] == ["a"]


# --- what spans show


def interactions_seen(turn: oa.Turn) -> set[tuple[str, str, str]]:
    from otel_agenteval.metrics.lib.agents import interactions_of

    return {(each.sender or "", each.recipients[0], each.kind) for each in interactions_of(turn)}


@pytest.mark.parametrize(
    ("turn", "seen"),
    [
        pytest.param(
            {"agent_runs": [{"name": "main"}, {"name": "billing", "parent": "main"}]},
            [("main", "billing", "delegation")],
            id="an agent that called an agent",
        ),
        pytest.param({"agent_runs": [{"name": "main"}, {"name": "billing"}]}, [], id="a run whose caller is unknown"),
        pytest.param(
            {"agent_runs": [{"name": "a", "parent": "a"}, {"name": "a"}, {"parent": "a"}]},
            [],
            id="itself, and one without a name",
        ),
        pytest.param({"handoffs": [{"from": "a", "to": "b"}]}, [("a", "b", "handoff")], id="a hand-off"),
        pytest.param({"handoffs": [{"to": "b"}, {"from": "a"}, {"from": "a", "to": "a"}]}, [], id="hand-offs without two ends"),
        pytest.param(
            {"agent_runs": [{"name": "a"}, {"name": "b", "parent": "a"}], "handoffs": [{"from": "a", "to": "b"}]},
            [("a", "b", "handoff")],
            id="a hand-off and the run that it led to are one",
        ),
        pytest.param(
            {"agent_runs": [{"name": "a"}, {"name": "b", "parent": "a"}], "handoffs": [{"from": "a", "to": "b"}] * 2},
            [("a", "b", "handoff"), ("a", "b", "handoff")],
            id="a second hand-off is another one",
        ),
        pytest.param(
            {"agent_runs": [{"name": "Billing Agent"}], "tool_calls": [{"name": "billing_agent", "agent": "main"}]},
            [("main", "Billing Agent", "delegation")],
            id="a tool of the agent's name tells who called it",
        ),
        pytest.param(
            {"agent_runs": [{"name": "b", "parent": "a"}], "tool_calls": [{"name": "b", "agent": "a"}]},
            [("a", "b", "delegation")],
            id="the tool call and the run are one",
        ),
        pytest.param(
            {"agents": {"b": {}}, "tool_calls": [{"name": "b", "agent": "a"}, {"name": "search", "agent": "a"}, {"name": "b"}]},
            [("a", "b", "delegation")],
            id="a tool of a known agent's name is enough",
        ),
        pytest.param(
            {**graph("x>y"), "agent_runs": [{"name": "b", "parent": "a"}]}, [("x", "y", "request")], id="what was given wins"
        ),
    ],
)
def test_interactions_are_what_the_turn_knows(turn: dict[str, Any], seen: list[tuple[str, str, str]]) -> None:
    read = oa.Turn.from_dict(turn)
    assert interactions_seen(read) == set(seen)
    assert evaluate("code_conflict_rate", turn).detail["interactions"] == len(seen)


def test_spans_give_success_and_response_time() -> None:
    turn = {
        "agent_runs": [
            {"name": "main", "duration_s": 30},
            {"name": "b", "parent": "main", "duration_s": 10, "error": "boom"},
            {"name": "c", "parent": "main", "duration_s": 10},
        ],
        "handoffs": [{"from": "main", "to": "c"}],
    }
    assert evaluate("code_communication_efficiency", turn).detail == {"success": 0.5, "response": 0.5, "evenness": 1.0}
    assert evaluate("code_network_density", turn).detail == {"agents": 3, "edges": 2}
    assert evaluate("code_network_fault_tolerance", turn).status == "ok"


def test_a_turn_from_spans_is_read_without_further_help() -> None:
    (turn,) = turns_of(agent(1, name="triage"), tool(2, 1, "billing"), agent(3, 2, name="billing"), agent(4, 3, name="ledger"))
    assert interactions_seen(turn) == {("triage", "billing", "delegation"), ("billing", "ledger", "delegation")}
    assert oa.get_metric("code_avg_path_length").evaluate(turn).value == pytest.approx(4 / 3)


# --- configuration


# --- whatever the turn says

ANY = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=2)
)
AGENT = st.sampled_from(["a", "b", "c", "Billing Agent", ""])
NAME = st.one_of(AGENT, ANY, st.lists(st.one_of(AGENT, ANY), max_size=3))
KIND = st.sampled_from(["request", "response", "delegation", "collaboration", "handoff"])
FLAG = st.one_of(st.none(), st.booleans())
SECONDS = st.one_of(st.none(), st.floats(0, 1e6))
INTERACTION = st.fixed_dictionaries(
    {},
    optional={
        "from": NAME,
        "to": NAME,
        "type": st.one_of(KIND, ANY),
        "message_type": ANY,
        "success": ANY,
        "response_time_s": ANY,
    },
)
TURNS = st.fixed_dictionaries(
    {},
    optional={
        "interactions": st.lists(INTERACTION, max_size=14),
        "handoffs": st.lists(
            st.fixed_dictionaries({}, optional={"from": AGENT, "to": AGENT, "success": FLAG, "duration_s": SECONDS}), max_size=4
        ),
        "conflicts": st.lists(st.fixed_dictionaries({}, optional={"resolved": ANY, "resolution_time_s": ANY}), max_size=3),
        "agents": st.dictionaries(
            AGENT, st.one_of(ANY, st.fixed_dictionaries({}, optional={"authority_level": ANY, "can_delegate": ANY}))
        ),
        "agent_runs": st.lists(
            st.fixed_dictionaries({}, optional={"name": AGENT, "parent": AGENT, "duration_s": SECONDS}), max_size=5
        ),
        "tool_calls": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["a", "billing_agent", "x"])}, optional={"agent": AGENT}), max_size=3
        ),
    },
)
SHARES = {m.name for m in catalog() if m.family == "multi_agent" and m.unit == "1"}


@settings(max_examples=150)
@given(TURNS)
def test_any_turn_gives_a_score_in_range_the_same_again_and_stays_as_it_was(data: dict[str, Any]) -> None:
    turn = oa.Turn.from_dict(data)
    before = copy.deepcopy(vars(turn))
    for name, mode in itertools.chain(((name, {}) for name in NAMES), [("code_bottleneck_agents", {"mode": "betweenness"})]):
        score = oa.get_metric(name, **mode).evaluate(turn)
        assert score.status in ("ok", "skipped"), score.explanation
        assert score == oa.get_metric(name, **mode).evaluate(oa.Turn.from_dict(copy.deepcopy(data)))
        if score.status == "ok":
            assert score.value is not None
            assert 0 <= score.value <= (1 + 1e-9 if name in SHARES else math.inf)
        json.dumps(score.to_dict(), allow_nan=False)
    assert vars(turn) == before
