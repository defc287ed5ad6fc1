from __future__ import annotations

import math
import random
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.code import multi_agent_network
from tests.support.spans import agent, tool, turns_of

ROLES = {"a": {"authority_level": 8, "can_delegate": True}, "b": {"authority_level": 5}, "c": {"authority_level": 3}}


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def sent(*pairs: str, **facts: Any) -> list[dict[str, Any]]:
    """Return messages. ``"a>b"`` is a request from a to b, ``"a>bc"`` a request to both."""
    split = [pair.split(">") for pair in pairs]
    return [{"from": one, "to": list(to) if len(to) > 1 else to, **facts} for one, to in split]


def graph(*pairs: str, **turn: Any) -> dict[str, Any]:
    return {"interactions": sent(*pairs), **turn}


# --- values

RESOLVED = {"resolved": True, "resolution_time_s": 2.0}
SLOW = {"resolved": False, "resolution_time_s": 99}


def kinds(*words: str) -> list[dict[str, Any]]:
    """Return messages with sender and type. ``"a request"`` is a request from a."""
    return [{"from": word.split()[0], "to": "z", "type": word.split()[1]} for word in words]


def times(*values: float) -> dict[str, Any]:
    return {"interactions": [{"from": "a", "to": "b", "response_time_s": value} for value in values]}


MIXED = kinds("a request", "b response", "a notification", "c request", "b delegation")
SAME = kinds(*["a request"] * 5)
HALF_AS_MIXED = kinds("a request", "a request", "a response", "a response", "a request")


@pytest.mark.parametrize(
    ("metric", "turn", "params", "value"),
    [
        pytest.param("handoff_success_rate", {"handoffs": [{"success": True}, {"success": False}, {}]}, {}, 0.5, id="an outcome"),
        pytest.param("avg_handoff_time", {"handoffs": [{"duration_s": s} for s in (1, 4, -1)] + [{}]}, {}, 2.5, id="durations"),
        pytest.param("conflict_rate", {"conflicts": [RESOLVED, {}]}, {}, 200.0, id="conflicts without interactions"),
        pytest.param("conflict_rate", {"conflicts": [RESOLVED], **graph("a>bcd")}, {}, 100.0, id="a broadcast is one"),
        pytest.param("avg_resolution_time", {"conflicts": [RESOLVED, SLOW, {}]}, {}, 2.0, id="time of the resolved one"),
        pytest.param("load_balance", graph("a>bc"), {}, 1 - math.sqrt(2 / 9) / (4 / 3), id="a sender counts once per recipient"),
        pytest.param("load_balance", graph("a>b", agents={"c": {}}), {}, 1.0, id="idle agents do not count"),
        pytest.param("load_balance", graph("a>b", agents={"c": {}}), {"include_idle": True}, 1 - math.sqrt(0.5), id="idle too"),
        pytest.param("load_balance", graph("a>bcdefghij", *["a>b"] * 20), {}, 0.0, id="load balance of at least 0"),
        pytest.param("network_centralization", graph("h>xyz"), {"mode": "seed"}, 1.5, id="the seed's star is more than 1"),
        pytest.param("avg_path_length", graph("a>b", "b>c", "c>d", "d>a"), {}, 2.0, id="a ring ends"),
        pytest.param("clustering_coefficient", graph("a>bc", "b>a"), {}, 0.0, id="edges back to the agent do not count"),
        pytest.param("coordination_efficiency", graph("a>b", "b>a", handoffs=[{"to": "b"}]), {}, 1.0, id="no known outcome"),
        pytest.param("self_organization", {"interactions": SAME + MIXED}, {}, 0.5, id="order from the start"),
        pytest.param("self_organization", {"interactions": MIXED + MIXED}, {}, 0.5, id="nothing changed"),
        pytest.param("self_organization", {"interactions": HALF_AS_MIXED + MIXED}, {}, 0.0, id="a mix out of order, at least 0"),
        pytest.param("self_organization", {"interactions": MIXED[:2] + SAME[:3]}, {"min_interactions": 5}, 1.0, id="odd number"),
        pytest.param("specialization", {"interactions": kinds("a request", "a response")}, {}, 0.5, id="two types, as often"),
        pytest.param("adaptation_rate", times(2, 2, 4, 4, 4), {}, 0.0, id="slower, at least 0"),
        pytest.param("adaptation_rate", times(4, 0, 4, 0, 2, 2, 2), {}, 1.0, id="times of 0 are left out"),
        pytest.param("adaptation_rate", times(4, 2), {"min": 2}, 1.0, id="fewer times, as configured"),
    ],
)
def test_values(metric: str, turn: dict[str, Any], params: dict[str, Any], value: float) -> None:
    score = evaluate(f"code_{metric}", turn, **params)
    assert (score.value, score.vacuous) == (pytest.approx(value), False)


@pytest.mark.parametrize(
    ("metric", "turn", "value"),
    [
        pytest.param("conflict_rate", {"handoffs": [{"from": "a", "to": "b"}]}, 0.0, id="spans do not show conflicts"),
        pytest.param("multiagent_role_adherence", graph("x>y", agents=ROLES), 1.0, id="no sender with a role"),
        pytest.param("network_density", {"agents": {"a": {}}}, 1.0, id="density of one agent"),
        pytest.param("network_fault_tolerance", graph("a>a", agents={"a": {}}), 1.0, id="fault tolerance of one agent"),
        pytest.param("clustering_coefficient", graph("a>b", "b>a"), 0.0, id="clustering of two"),
        pytest.param("bottleneck_agents", graph("a>b", "b>a"), 0.0, id="bottlenecks of two"),
        pytest.param("bottleneck_agents", {"agents": ROLES}, 0.0, id="bottlenecks without edges"),
        pytest.param("self_organization", {"interactions": SAME + MIXED[:4]}, 0.0, id="few interactions"),
        pytest.param("communication_efficiency", {"agents": ROLES}, 1.0, id="no communication"),
    ],
)
def test_value_of_nothing_is_vacuous(metric: str, turn: dict[str, Any], value: float) -> None:
    score = evaluate(f"code_{metric}", turn)
    assert (score.value, score.vacuous) == (value, True)


def test_no_interactions_at_all_are_vacuous() -> None:
    assert evaluate("code_self_organization", {}, min_interactions=0).vacuous
    assert evaluate("code_adaptation_rate", {}, min=0).vacuous
    handoffs = evaluate("code_handoff_success_rate", {"handoffs": []})
    assert (handoffs.value, handoffs.detail) == (1.0, {"vacuous": True, "handoffs": 0, "successful": 0})


@pytest.mark.parametrize(
    ("metric", "turn", "reason"),
    [
        pytest.param("handoff_success_rate", {"handoffs": [{"from": "a", "to": "b"}]}, "missing:handoffs", id="unknown outcome"),
        pytest.param("avg_handoff_time", {"handoffs": [{"to": "b"}]}, "missing:handoffs", id="unknown duration"),
        pytest.param("avg_resolution_time", {"conflicts": [SLOW, {"resolved": True}]}, "missing:conflicts", id="no known time"),
        pytest.param("coordination_efficiency", {}, "missing:agents", id="no agents"),
        pytest.param("multi_agent_summary", {"agents": ROLES}, "missing:interactions", id="the summary of agents alone"),
        pytest.param("network_fault_tolerance", {"agents": ROLES}, "missing:interactions", id="fault tolerance of agents"),
        pytest.param("network_fault_tolerance", graph("a>b"), "missing:agents", id="fault tolerance without roles"),
        pytest.param("avg_path_length", graph("a>a", agents=ROLES), "missing:interactions", id="no agent reaches another"),
    ],
)
def test_does_not_apply(metric: str, turn: dict[str, Any], reason: str) -> None:
    score = evaluate(f"code_{metric}", turn)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


@pytest.mark.parametrize(
    ("interactions", "params", "parts"),
    [
        pytest.param(sent("a>b", success=True, response_time_s=10), {}, (1, 0.5, 1), id="twice as slow"),
        pytest.param(sent("a>b", success=True, response_time_s=10), {"slow_s": 20}, (1, 1, 1), id="slow is configured"),
        pytest.param(sent("a>b", success=False, response_time_s=0), {}, (0, 1, 1), id="a time of 0 is none"),
        pytest.param(sent("a>b", "a>b", "a>b", "b>a", success=True), {}, (1, 1, 2 / 3), id="three one way and one back"),
        pytest.param(sent("a>bc", "a>b", success=True), {}, (1, 1, 0.75), id="a broadcast is a message of each pair"),
        pytest.param([*sent("a>b", success=False), *sent("a>b")], {}, (0, 1, 1), id="unknown success does not count"),
    ],
)
def test_communication_efficiency(interactions: list[dict[str, Any]], params: dict[str, Any], parts: tuple[float, ...]) -> None:
    score = evaluate("code_communication_efficiency", {"interactions": interactions}, **params)
    assert score.detail == pytest.approx(dict(zip(("success", "response", "evenness"), parts, strict=True)))
    assert score.value == pytest.approx(0.5 * parts[0] + 0.3 * parts[1] + 0.2 * parts[2])


@pytest.mark.parametrize(("kind", "adherent"), [("Delegation", "a"), ("response", "abd"), ("negotiation", "abcd")])
def test_role_adherence_by_type(kind: str, adherent: str) -> None:
    turn = {"agents": {**ROLES, "d": {}}, "interactions": sent("a>x", "b>x", "c>x", "d>x", "unknown>x", type=kind)}
    assert evaluate("code_multiagent_role_adherence", turn).detail == {"interactions": 4, "adherent": len(adherent)}


def test_roles_can_be_configured() -> None:
    turn = graph("a>b", agents=ROLES)
    turn["interactions"][0]["type"] = "delegation"
    for metric in ("code_multiagent_role_adherence", "code_coordination_efficiency", "code_multi_agent_summary"):
        score = evaluate(metric, turn, roles={"a": {}})
        assert score.detail.get("role_adherence", score.value) == 0.0, metric


# --- network


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
    parts = {"density": 0.5, "centralization": 0.75, "clustering": pytest.approx(0.5 / 3)}
    assert score.detail == {**parts, "hub_agents": ["a"], "bottleneck_count": 1}
    assert score.value == pytest.approx(0.6 * 0.5 + 0.4 * (1 - 1 / 3))


def random_turns() -> list[Any]:
    """Return random turns: sparse or dense, with and without isolated agents."""
    dice = random.Random(7)
    turns = []
    for n, edges, idle in [(4, 3, 2), (9, 20, 1), (12, 100, 0), (30, 60, 3)]:
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


def test_a_graph_that_is_too_large_for_one_measure_still_has_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_agent_network, "MOST_STEPS", 3)
    monkeypatch.setattr(multi_agent_network, "MOST_MOVES", 3)
    turn = graph("a>bc", "b>ac", "c>ab", agents=ROLES)
    assert evaluate("code_clustering_coefficient", turn).detail["reason"] == "too_long"
    assert evaluate("code_bottleneck_agents", turn, mode="betweenness").detail["reason"] == "too_long"
    assert evaluate("code_network_fault_tolerance", turn).detail["clustering"] is None
    summary = evaluate("code_multi_agent_summary", turn).detail
    assert (summary["clustering_coefficient"], summary["avg_path_length"], summary["density"]) == (None, None, 1.0)


def test_distances_between_too_many_agents_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multi_agent_network, "MOST_AGENTS", 2)
    assert evaluate("code_avg_path_length", graph("a>b")).value == 1.0
    assert evaluate("code_avg_path_length", graph("a>b", "b>c", "c>a")).detail["reason"] == "too_long"


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


def test_the_summary_has_every_other_metric() -> None:
    done = [{"from": "a", "to": "b", "success": True, "duration_s": 1.0}]
    talk = sent("a>bc", "b>c", "c>a", success=True, response_time_s=2.0)
    turn = {"agents": ROLES, "interactions": talk, "conflicts": [RESOLVED], "handoffs": done}
    summary = evaluate("code_multi_agent_summary", turn).detail
    assert len(summary) == 21
    for name, found in summary.items():
        single = evaluate(f"agentunit:{'network_fault_tolerance' if name == 'fault_tolerance' else name}", turn)
        assert single.value == (len(found) if isinstance(found, list) else found), name


# --- what spans show


def interactions_seen(turn: oa.Turn) -> set[tuple[str, str, str]]:
    from otel_agenteval.metrics.lib.agents import interactions_of

    return {(each.sender or "", each.recipients[0], each.kind) for each in interactions_of(turn)}


RUNS, HANDOFF = [{"name": "a"}, {"name": "b", "parent": "a"}], [{"from": "a", "to": "b"}]
CALL, SEARCH = {"name": "b", "agent": "a"}, {"name": "search", "agent": "a"}


@pytest.mark.parametrize(
    ("turn", "seen"),
    [
        pytest.param({"agent_runs": RUNS}, [("a", "b", "delegation")], id="an agent that called an agent"),
        pytest.param({"agent_runs": RUNS, "tool_calls": [CALL]}, [("a", "b", "delegation")], id="the call and the run are one"),
        pytest.param({"agent_runs": [{"name": "main"}, {"name": "billing"}]}, [], id="a run whose caller is unknown"),
        pytest.param({"agent_runs": [{"name": "a", "parent": "a"}, {"name": "a"}, {"parent": "a"}]}, [], id="itself and no name"),
        pytest.param({"handoffs": HANDOFF}, [("a", "b", "handoff")], id="a hand-off"),
        pytest.param({"handoffs": [{"to": "b"}, {"from": "a"}, {"from": "a", "to": "a"}]}, [], id="hand-offs without two ends"),
        pytest.param({"agent_runs": RUNS, "handoffs": HANDOFF}, [("a", "b", "handoff")], id="a hand-off and its run are one"),
        pytest.param(
            {"agent_runs": [{"name": "Billing Agent"}], "tool_calls": [{"name": "billing_agent", "agent": "main"}]},
            [("main", "Billing Agent", "delegation")],
            id="a tool of the agent's name tells who called it",
        ),
        pytest.param({"agents": {"b": {}}, "tool_calls": [CALL, SEARCH, {"name": "b"}]}, [("a", "b", "delegation")], id="known"),
        pytest.param({**graph("x>y"), "agent_runs": [{"name": "b", "parent": "a"}]}, [("x", "y", "request")], id="given wins"),
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
