from __future__ import annotations

import copy
import itertools
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from tests.support.judges import ScriptedModels
from tests.support.spans import agent, span, tool, turn_of

STRUCTURE, ORDER = "code_workflow_structure_validity", "code_workflow_execution_order"
SUCCESS, CHAIN = "code_workflow_executor_success", "code_workflow_tool_chain_validity"
EFFICIENCY = "code_workflow_performance_efficiency"


def evaluate(metric: str, turn: dict[str, Any] | oa.Turn, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(turn if isinstance(turn, oa.Turn) else oa.Turn.from_dict(turn))


def graph(nodes: Any, edges: Any = (), **more: Any) -> dict[str, Any]:
    return {"workflow": {"graph": {"nodes": list(nodes), "edges": [list(edge) for edge in edges], **more}}}


def steps(*executors: str, **more: Any) -> dict[str, Any]:
    """Return steps in order. A name with ``!`` failed."""
    made = [{"executor": name.rstrip("!"), "status": "error" if name.endswith("!") else "ok"} for name in executors]
    return {"workflow": {"steps": made, **more}}


def made(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return steps of executor A."""
    return {"workflow": {"steps": [{"executor": "A", **step} for step in found], **more}}


# --- structure


UNREACHED = "all_reachable exit_reachable"


@pytest.mark.parametrize(
    ("turn", "params", "failed"),
    [
        pytest.param(graph("ABC", ["AB", "BC"]), {}, "", id="a chain that declares nothing"),
        pytest.param(graph("A"), {}, "", id="a single node is entry and exit"),
        pytest.param(graph("ABC", ["AB", "BC", "CB"], entry="A", exits=["C"]), {}, "", id="a circle on the way"),
        pytest.param(graph("ABC", ["AC", "BC"]), {}, "", id="two entries that nobody declared"),
        pytest.param(graph("AB", ["AB", "BA"]), {}, f"entry_exists exit_exists {UNREACHED}", id="only a circle"),
        pytest.param(graph("ABa", ["AB"]), {}, "unique_ids", id="an id twice in another case"),
        pytest.param(graph("AB", ["AB", "BX"]), {}, "edges_resolve", id="an edge to nowhere"),
        pytest.param(graph("AB", ["AB"], entry="X"), {}, f"entry_exists {UNREACHED}", id="an entry that is no node"),
        pytest.param(graph("AB", ["AB"], exits=["X"]), {}, "exit_exists exit_reachable", id="an exit that is no node"),
        pytest.param(graph("AB", ["BA"], entry="A", exits=["B"]), {}, UNREACHED, id="the wrong way"),
        pytest.param(
            graph([], ["AB"]), {}, f"nodes_present edges_resolve entry_exists exit_exists {UNREACHED}", id="edges without nodes"
        ),
        pytest.param(graph("AB", ["AB"]), {"expected_nodes": ["C"]}, "expected_nodes", id="an expected node that is not"),
        pytest.param(
            graph("AB", ["AB"]), {"expected_edges": ["BA"], "expected_nodes": ["A"]}, "expected_edges", id="an edge the other way"
        ),
        pytest.param(graph("AB", ["AB"], exits=["X"]), {"exits": ["B"]}, "", id="the parameter's exits instead"),
    ],
)
def test_structure_is_the_share_of_checks_that_pass(turn: dict[str, Any], params: dict[str, Any], failed: str) -> None:
    if "expected_edges" in params:
        params = {**params, "expected_edges": [list(edge) for edge in params["expected_edges"]]}
    score = evaluate(STRUCTURE, turn, **params)
    checks, faults = 7 + len([name for name in params if name.startswith("expected_")]), len(failed.split())
    assert {name for name, passed in score.detail["checks"].items() if not passed} == set(failed.split())
    assert len(score.detail["checks"]) == checks
    assert score.value == pytest.approx((checks - faults) / checks)
    assert score.passed is (not failed)
    assert bool(score.explanation) is bool(failed)


def test_structure_names_what_is_missing_as_it_was_spelled() -> None:
    params = {"expected_nodes": ["Zed", "planner"], "expected_edges": [["Planner", "Zed"]]}
    detail = evaluate(STRUCTURE, graph(["Planner", "Writer"], [], entry="planner"), **params).detail
    assert (detail["missing_nodes"], detail["missing_edges"]) == (["Zed"], [["Planner", "Zed"]])
    assert detail["unreachable"] == ["Writer"]


def test_structure_reads_nodes_and_edges_that_are_objects() -> None:
    turn = graph([{"id": "A"}, {"name": "B"}], [])
    turn["workflow"]["graph"]["edges"] = [{"from": "A", "to": "B"}, {"source": "A", "target": "B"}]
    assert evaluate(STRUCTURE, turn, expected_edges=[["A", "B"]]).value == 1.0


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20), st.integers(0, 7))
def test_what_is_reachable_is_what_a_graph_library_says(edges: list[tuple[int, int]], entry: int) -> None:
    known = networkx.DiGraph(edges)
    known.add_nodes_from(range(8))
    reached = networkx.descendants(known, entry) | {entry}
    turn = graph([str(node) for node in range(8)], [[str(a), str(b)] for a, b in edges], entry=str(entry))
    score = evaluate(STRUCTURE, turn)
    assert score.detail["unreachable"] == [str(node) for node in range(8) if node not in reached]
    assert score.detail["checks"]["exit_exists"] is any(known.out_degree(node) == 0 for node in range(8))


def test_a_large_graph_with_a_circle_is_walked_once() -> None:
    nodes = [f"n{i}" for i in range(10_000)]
    edges = [*itertools.pairwise(nodes), (nodes[-1], nodes[0])]
    score = evaluate(STRUCTURE, graph(nodes, edges, entry="n0", exits=["n9999"]))
    assert score.value == 1.0
    assert len(evaluate(STRUCTURE, graph(nodes, [], entry="n0")).detail["unreachable"]) == 200


@pytest.mark.parametrize("metric", [STRUCTURE, ORDER, SUCCESS])
def test_a_workflow_that_is_missing_or_cannot_be_read_is_not_scored(metric: str) -> None:
    params = {"expected_order": ["A"]} if metric == ORDER else {}
    other = {"steps": []} if metric == STRUCTURE else {"graph": {"nodes": ["A"]}}
    for workflow in (None, {}, {"graph": None}, other):
        assert evaluate(metric, {"workflow": workflow}, **params).detail == {"reason": "missing:workflow"}
    graphs = ("A->B", {"nodes": "AB"}, {"nodes": ["A"], "edges": ["AB", ["A"]]}, {"nodes": ["A"], "edges": {"A": "B"}})
    unreadable = (
        [{"graph": given} for given in graphs] if metric == STRUCTURE else [{"steps": given} for given in ("A", ["A"], [None])]
    )
    for workflow in unreadable:
        assert evaluate(metric, {"workflow": workflow}, **params).error_type == "invalid_workflow"


# --- execution


@pytest.mark.parametrize(
    ("executed", "expected", "value", "strict_value"),
    [
        pytest.param("ABC", "ABC", 1.0, 1.0, id="as expected"),
        pytest.param("AXBYC", "ABC", 1.0, 0.6, id="with others between"),
        pytest.param("AC", "ABC", 2 / 3, 2 / 3, id="one left out"),
        pytest.param("ABAB", "ABAB", 1.0, 1.0, id="with repetitions"),
        pytest.param("", "ABC", 0.0, 0.0, id="nothing executed"),
    ],
)
def test_order_is_the_common_subsequence(executed: str, expected: str, value: float, strict_value: float) -> None:
    assert evaluate(ORDER, steps(*executed), expected_order=list(expected)).value == pytest.approx(value)
    score = evaluate(ORDER, steps(*executed), expected_order=list(expected), strict=True)
    assert score.value == pytest.approx(strict_value)
    assert score.passed is (strict_value == 1)


def test_order_says_what_is_missing_and_what_was_not_expected() -> None:
    score = evaluate(ORDER, steps("Plan", "write", "write", "check"), expected_order=["Plan", "Search", "Write"])
    assert score.detail == {
        "executed": ["Plan", "write", "write", "check"],
        "lcs": 2,
        "missing": ["Search"],
        "extra": ["write", "check"],
    }


@given(st.text("abc", min_size=1, max_size=15), st.text("abcd", max_size=15))
def test_the_common_subsequence_is_that_of_the_plain_table(expected: str, executed: str) -> None:
    row = [0] * (len(executed) + 1)
    for left in expected:
        above, row = row, [0]
        for column, right in enumerate(executed):
            row.append(above[column] + 1 if left == right else max(above[column + 1], row[-1]))
    assert evaluate(ORDER, steps(*executed), expected_order=list(expected)).detail["lcs"] == row[-1]


def test_ten_thousand_steps_are_compared() -> None:
    names = [f"n{i % 7}" for i in range(10_000)]
    score = evaluate(ORDER, steps(*names), expected_order=names[1:])
    assert (score.value, len(score.detail["executed"])) == (1.0, 200)


@pytest.mark.parametrize(
    ("turn", "value", "failures"),
    [
        pytest.param(steps("A", "a!", "B"), 2 / 3, "A: 1 of 2, B: 0 of 1", id="one of two runs failed"),
        pytest.param(made({"status": "ERROR"}, {"status": "Failed"}), 0.0, "A: 2 of 2", id="status in any case"),
        pytest.param(made({}), 1.0, "A: 0 of 1", id="no status is no failure"),
        pytest.param(steps("A", "B", "A", errors=[{"executor": "a"}]), 1 / 3, "A: 2 of 2, B: 0 of 1", id="an executor's error"),
        pytest.param(
            steps("A", "B", "A", errors=[{"executor": "A", "step": 2}]), 2 / 3, "A: 1 of 2, B: 0 of 1", id="and the step's place"
        ),
        pytest.param(
            steps("A", "B", errors=[{"executor": "B", "step": 0}]), 1.0, "A: 0 of 1, B: 0 of 1", id="of another executor"
        ),
        pytest.param(
            made({"id": "s1"}, {"id": 2}, errors=[{"executor": "A", "step": "2"}]), 0.5, "A: 1 of 2", id="a step by its id"
        ),
        pytest.param(steps("A!", errors=[{"executor": "A"}]), 0.0, "A: 1 of 1", id="a run fails only once"),
        pytest.param(steps("A", errors=[{}, "boom"]), 1.0, "A: 0 of 1", id="errors that name nobody"),
    ],
)
def test_success_is_the_share_of_runs_that_did_not_fail(turn: dict[str, Any], value: float, failures: str) -> None:
    score = evaluate(SUCCESS, turn)
    assert score.value == pytest.approx(value)
    assert score.passed is (value >= 0.7)
    counts = score.detail["per_executor"].items()
    assert ", ".join(f"{name}: {count['failures']} of {count['runs']}" for name, count in counts) == failures


# --- steps out of spans


def executor(span_id: int, parent_id: int, name: str, **more: Any) -> Any:
    attributes = {"executor.id": name, **({"error.type": "Boom"} if more.pop("failed", False) else {})}
    return span(span_id, parent_id, f"executor.process {name}", attributes, scope="agent_framework", **more)


WORKFLOW = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "support"}
SUPPORT = span(1, 0, "invoke_workflow support", WORKFLOW, ms=100)


@pytest.mark.parametrize(
    ("records", "executed", "failed"),
    [
        pytest.param([SUPPORT, agent(2, 1, "plan", at=1), agent(3, 1, "write", at=50)], ["plan", "write"], [], id="agents below"),
        pytest.param([SUPPORT, agent(2, 1, "plan", at=1), agent(3, 2, "search", at=2, error="x")], ["plan"], [], id="of agents"),
        pytest.param(
            [agent(1, 0, "boss"), agent(2, 1, "plan", at=1), agent(3, 1, "write", at=50, error="x")],
            ["boss", "plan", "write"],
            ["write"],
            id="agents below the turn's agent",
        ),
        pytest.param(
            [
                span(1, 0, "workflow.run", {"workflow.name": "w"}, scope="agent_framework", ms=100),
                executor(2, 1, "pre", at=1, failed=True),
                executor(3, 1, "bot", at=20),
                agent(4, 3, "support", at=21, error="x"),
                executor(5, 1, "post", at=60),
                executor(6, 1, "store", at=80, error="down"),
            ],
            ["pre", "bot", "post", "store"],
            ["pre", "bot", "store"],
            id="executors",
        ),
    ],
)
def test_steps_are_read_from_spans(records: list[Any], executed: list[str], failed: list[str]) -> None:
    turn = turn_of(*records)
    assert evaluate(ORDER, turn, expected_order=["x"]).detail["executed"] == executed
    for one in (turn, oa.Turn.from_dict(turn.to_dict())):
        counts = evaluate(SUCCESS, one).detail["per_executor"]
        assert [name for name, count in counts.items() if count["failures"]] == failed


def test_an_agent_alone_is_no_workflow_and_given_steps_win_over_agents() -> None:
    alone = turn_of(agent(1, 0, "bot"), tool(2, 1, "search"))
    assert evaluate(SUCCESS, alone).detail == {"reason": "missing:workflow"}
    turn = {**steps("A"), "agent_runs": [{"name": "boss"}, {"name": "b", "parent": "boss"}]}
    assert evaluate(ORDER, turn, expected_order=["A"]).detail["executed"] == ["A"]


# --- tools


def calls(*names: str) -> dict[str, Any]:
    """Return tool calls. ``name@agent`` is a call by that agent."""
    made = [dict(zip(("name", "agent"), name.split("@"), strict=False)) for name in names]
    return {"tool_calls": made}


CALLS_OF_STEPS = {
    "workflow": {"steps": [{"executor": "x", "tool_calls": ["A"]}, {"executor": "y", "tool_calls": [{"name": "B"}]}]},
    "tool_calls": [{"name": "B"}],
}


@pytest.mark.parametrize(
    ("turn", "pattern", "satisfied"),
    [
        pytest.param(calls("A"), {"tool": "a"}, True, id="called, names without case"),
        pytest.param(calls("A"), {"tool": "A", "before": "B"}, False, id="before one that was not called"),
        pytest.param(calls("A"), {"tool": "A", "before": "B", "required": False}, True, id="which may be left out"),
        pytest.param(calls("B", "A"), {"tool": "A", "before": "B", "required": False}, False, id="but not called too early"),
        pytest.param(calls("A", "B"), {"tool": "B", "after": "A"}, True, id="after"),
        pytest.param(calls("B"), {"tool": "B", "after": "A"}, False, id="after one that was not called"),
        pytest.param(calls("A", "A"), {"tool": "A", "before": "A"}, False, id="before itself"),
        pytest.param(calls("A@x", "A@y"), {"tool": "A", "executor": "Y"}, True, id="by its executor"),
        pytest.param(calls("A@x", "A"), {"tool": "A", "executor": "y"}, False, id="by another or nobody"),
        pytest.param(
            calls("A@x", "B", "A@y"), {"tool": "A", "executor": "y", "before": "B"}, False, id="that executor's first call"
        ),
        pytest.param(CALLS_OF_STEPS, {"tool": "B", "executor": "y", "after": "A"}, True, id="calls of the workflow's steps"),
    ],
)
def test_a_pattern_is_satisfied_or_not(turn: dict[str, Any], pattern: dict[str, Any], satisfied: bool) -> None:
    score = evaluate(CHAIN, turn, patterns=[pattern])
    assert (score.value, score.passed) == (float(satisfied), satisfied)
    assert score.detail == {"results": [{"tool": pattern["tool"], "satisfied": satisfied}]}


# --- limits

ALL_LIMITS = {"max_duration_s": 400, "max_total_cost": 0.25, "max_tokens": 100}
ACTUAL = {"duration_s": 200, "cost_usd": 0.5, "usage": {"total_tokens": 1000}}


@pytest.mark.parametrize(
    ("turn", "limits", "components"),
    [
        pytest.param(ACTUAL, ALL_LIMITS, {"duration": 1.0, "cost": 0.5, "tokens": 0.1}, id="all three"),
        pytest.param(
            {"duration_s": 0}, {"max_duration_s": 0, "max_tokens": 5}, {"duration": 1.0}, id="unknown tokens are left out"
        ),
        pytest.param({"metadata": {"cost": 2}}, {"max_total_cost": 1}, {"cost": 0.5}, id="a cost in the metadata"),
        pytest.param({"usage": {"input_tokens": 6, "output_tokens": 4}}, {"max_tokens": 5}, {"tokens": 0.5}, id="both sides"),
    ],
)
def test_efficiency_is_the_mean_over_the_limits(
    turn: dict[str, Any], limits: dict[str, float], components: dict[str, float]
) -> None:
    score = evaluate(EFFICIENCY, turn, **limits)
    assert score.detail == {"components": components}
    assert score.value == pytest.approx(sum(components.values()) / len(components))
    assert score.passed is all(component == 1 for component in components.values())


def test_an_estimated_cost_says_so_and_unknown_calls_are_not_scored() -> None:
    turn = {"cost_usd": 1, "cost_estimated": True}
    assert evaluate(EFFICIENCY, turn, max_total_cost=1).detail == {"components": {"cost": 1.0}, "estimated": True}
    assert evaluate(CHAIN, steps("x"), patterns=[{"tool": "A"}]).detail == {"reason": "missing:tool_calls"}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_tokens": 1, "max_duration_s": 1}, "missing:duration"),
        ({"max_total_cost": 1, "max_tokens": 1}, "missing:cost"),
        ({"max_tokens": 1}, "missing:usage"),
    ],
    ids=str,
)
def test_efficiency_of_what_nobody_knows_does_not_apply(limits: dict[str, float], reason: str) -> None:
    score = evaluate(EFFICIENCY, {}, **limits)
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


# --- all of them


@pytest.mark.parametrize("metric", [ORDER, CHAIN, EFFICIENCY])
def test_what_to_compare_with_is_required(metric: str) -> None:
    score = evaluate(metric, {**steps("A"), "tool_calls": []})
    assert (score.status, score.error_type) == ("error", "missing_parameter")


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ABab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "name", "executor", "from", "to"]), inner, max_size=2)
    ),
    max_leaves=5,
)
EDGES = st.lists(st.lists(st.sampled_from("ABX"), min_size=2, max_size=2))
GRAPHS = some(nodes=ANYTHING | st.lists(st.sampled_from("ABab")), edges=ANYTHING | EDGES, entry=ANYTHING, exits=ANYTHING)
CALLED = ANYTHING | st.lists(st.sampled_from("AB"))
STEPS = st.lists(some(executor=ANYTHING, status=ANYTHING, id=ANYTHING, tool_calls=CALLED))
WORKFLOWS = some(graph=ANYTHING | GRAPHS, steps=ANYTHING | STEPS, errors=ANYTHING | st.lists(ANYTHING))
RUNS = st.lists(some(name=st.sampled_from("AB"), parent=st.sampled_from("ABC")))


@given(WORKFLOWS, RUNS)
def test_any_turn_gives_one_answer_in_range_and_is_not_changed(workflow: dict[str, Any], runs: list[dict[str, str]]) -> None:
    data = {"workflow": workflow, "agent_runs": runs, "tool_calls": [{"name": "A"}], "duration_s": 1}
    turn, untouched = oa.Turn.from_dict(data), oa.Turn.from_dict(copy.deepcopy(data)).to_dict()
    for name, params in (
        (STRUCTURE, {"expected_nodes": ["A"], "expected_edges": [["A", "B"]]}),
        (ORDER, {"expected_order": ["A", "B"], "strict": True}),
        (SUCCESS, {}),
        (CHAIN, {"patterns": [{"tool": "A", "before": "B", "executor": "A"}]}),
        (EFFICIENCY, {"max_duration_s": 0.5}),
    ):
        metric = oa.get_metric(name, **params)
        score = metric.evaluate(turn)
        assert score == metric.evaluate(turn)
        assert score.error_type in (None, "invalid_workflow"), score.explanation
        assert score.value is None or 0 <= score.value <= 1
    assert turn.to_dict() == untouched


# --- output

QUALITY = "llm_workflow_output_quality"


@pytest.mark.parametrize(("given", "value", "passed"), [("70", 0.7, True), (69, 0.69, False)])
def test_output_quality_is_a_hundredth_of_the_judge_s_score(
    models: ScriptedModels, given: Any, value: float, passed: bool
) -> None:
    score = models.score(QUALITY, oa.Turn(input="q", output="a"), {"score": given, "reasoning": "r"})
    assert (score.value, score.passed, score.explanation) == (value, passed, "r")
    assert score.detail == {"reasoning": "r"}


@pytest.mark.parametrize("output", ["", " \n"])
def test_an_empty_output_has_no_quality_and_nobody_is_asked(models: ScriptedModels, output: str) -> None:
    score = models.score(QUALITY, oa.Turn(input="q", output=output))
    assert (score.value, score.passed) == (0.0, False)


@pytest.mark.parametrize(("criteria", "said"), [(None, "ready for use"), ("terse", "terse"), (["terse", "polite"], "2. polite")])
def test_output_quality_names_the_criteria(models: ScriptedModels, criteria: Any, said: str) -> None:
    models.score(QUALITY, oa.Turn(input="the request", output="the result"), {"score": 50}, criteria=criteria)
    assert all(text in models.asked[0] for text in (said, "the request", "the result"))


@pytest.mark.parametrize(
    ("turn", "reason"),
    [({"output": "a"}, "missing:input"), ({"input": "q"}, "missing:output"), ({"input": "q", "output": "a"}, "no_judge")],
)
def test_output_quality_needs_request_output_and_judge(turn: dict[str, Any], reason: str) -> None:
    assert evaluate("agenteval:WorkflowOutputQualityMetric", turn).detail == {"reason": reason}
