from __future__ import annotations

import copy
import itertools
from typing import Any

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
    """Steps in order; a name with ``!`` failed."""
    made = [{"executor": name.rstrip("!"), "status": "error" if name.endswith("!") else "ok"} for name in executors]
    return {"workflow": {"steps": made, **more}}


# --- structure


@pytest.mark.parametrize(
    ("turn", "params", "failed", "of"),
    [
        pytest.param(graph("ABC", ["AB", "BC"]), {}, set(), 7, id="a chain that declares nothing"),
        pytest.param(graph("ABC", ["AB", "BC"], entry="a", exits=["c"]), {}, set(), 7, id="names without case"),
        pytest.param(graph("A"), {}, set(), 7, id="a single node is entry and exit"),
        pytest.param(graph("ABC", ["AB", "BC", "CB"], entry="A", exits=["C"]), {}, set(), 7, id="a circle on the way"),
        pytest.param(graph("AB", ["AA", "AB"], entry="A"), {}, set(), 7, id="a loop on a node"),
        pytest.param(graph("ABC", ["AC", "BC"]), {}, set(), 7, id="two entries that nobody declared"),
        pytest.param(
            graph("AB", ["AB", "BA"]),
            {},
            {"entry_exists", "exit_exists", "all_reachable", "exit_reachable"},
            7,
            id="only a circle",
        ),
        pytest.param(graph("ABA", ["AB"]), {}, {"unique_ids"}, 7, id="an id twice"),
        pytest.param(graph("ABa", ["AB"]), {}, {"unique_ids"}, 7, id="an id twice in another case"),
        pytest.param(graph("AB", ["AB", "BX"]), {}, {"edges_resolve"}, 7, id="an edge to nowhere"),
        pytest.param(
            graph("AB", ["AB"], entry="X"),
            {},
            {"entry_exists", "all_reachable", "exit_reachable"},
            7,
            id="an entry that is no node",
        ),
        pytest.param(graph("AB", ["AB"], exits=["X"]), {}, {"exit_exists", "exit_reachable"}, 7, id="an exit that is no node"),
        pytest.param(graph("AB", ["AB"], exits=["B", "X"]), {}, {"exit_exists"}, 7, id="one of two exits that is no node"),
        pytest.param(graph("AB", ["BA"], entry="A", exits=["B"]), {}, {"all_reachable", "exit_reachable"}, 7, id="the wrong way"),
        pytest.param(
            graph([], ["AB"]),
            {},
            {"nodes_present", "edges_resolve", "entry_exists", "exit_exists", "all_reachable", "exit_reachable"},
            7,
            id="edges without nodes",
        ),
        pytest.param(graph("AB", ["AB"]), {"expected_nodes": ["a", "B"]}, set(), 8, id="expected nodes that are there"),
        pytest.param(graph("AB", ["AB"]), {"expected_nodes": ["C"]}, {"expected_nodes"}, 8, id="an expected node that is not"),
        pytest.param(graph("AB", ["AB"]), {"expected_edges": [["a", "b"]]}, set(), 8, id="an expected edge that is there"),
        pytest.param(
            graph("AB", ["AB"]),
            {"expected_edges": [["B", "A"]], "expected_nodes": ["A"]},
            {"expected_edges"},
            9,
            id="an expected edge the other way",
        ),
        pytest.param(graph("AB", ["AB"], entry="X"), {"entry": "A"}, set(), 7, id="the parameter's entry instead"),
        pytest.param(graph("AB", ["AB"], exits=["X"]), {"exits": ["B"]}, set(), 7, id="the parameter's exits instead"),
    ],
)
def test_structure_is_the_share_of_checks_that_pass(
    turn: dict[str, Any], params: dict[str, Any], failed: set[str], of: int
) -> None:
    score = evaluate(STRUCTURE, turn, **params)
    assert {name for name, passed in score.detail["checks"].items() if not passed} == failed
    assert len(score.detail["checks"]) == of
    assert score.value == pytest.approx((of - len(failed)) / of)
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
    networkx = pytest.importorskip("networkx")
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


@pytest.mark.parametrize("workflow", [None, {}, {"graph": None}, {"graph": {}}, {"steps": []}], ids=str)
def test_structure_without_a_graph_does_not_apply(workflow: Any) -> None:
    score = evaluate(STRUCTURE, {"workflow": workflow})
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:workflow"})


@pytest.mark.parametrize(
    "given_graph",
    ["A->B", {"nodes": "AB"}, {"nodes": ["A"], "edges": ["AB", ["A"]]}, {"nodes": ["A"], "edges": {"A": "B"}}],
    ids=str,
)
def test_a_graph_that_cannot_be_read_is_an_error(given_graph: Any) -> None:
    assert evaluate(STRUCTURE, {"workflow": {"graph": given_graph}}).error_type == "invalid_workflow"


# --- execution


@pytest.mark.parametrize(
    ("executed", "expected", "value", "strict_value"),
    [
        pytest.param("ABC", "ABC", 1.0, 1.0, id="as expected"),
        pytest.param("abc", "ABC", 1.0, 1.0, id="names without case"),
        pytest.param("AXBYC", "ABC", 1.0, 0.6, id="with others between"),
        pytest.param("AC", "ABC", 2 / 3, 2 / 3, id="one left out"),
        pytest.param("CBA", "ABC", 1 / 3, 1 / 3, id="the other way round"),
        pytest.param("ABAB", "ABAB", 1.0, 1.0, id="with repetitions"),
        pytest.param("AB", "ABAB", 0.5, 0.5, id="with repetitions left out"),
        pytest.param("", "ABC", 0.0, 0.0, id="nothing executed"),
        pytest.param("X", "A", 0.0, 0.0, id="another one"),
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


@pytest.mark.parametrize("workflow", [None, {}, {"graph": {"nodes": ["A"]}}], ids=str)
def test_order_without_steps_does_not_apply(workflow: Any) -> None:
    score = evaluate(ORDER, {"workflow": workflow}, expected_order=["A"])
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:workflow"})


@pytest.mark.parametrize(
    ("turn", "value", "per_executor"),
    [
        pytest.param(steps("A", "B"), 1.0, {"A": (1, 0), "B": (1, 0)}, id="all well"),
        pytest.param(steps("A", "a!", "B"), 2 / 3, {"A": (2, 1), "B": (1, 0)}, id="one of two runs failed"),
        pytest.param(
            {"workflow": {"steps": [{"executor": "A", "status": "ERROR"}, {"executor": "B", "status": "Failed"}]}},
            0.0,
            {"A": (1, 1), "B": (1, 1)},
            id="status in any case",
        ),
        pytest.param({"workflow": {"steps": [{"executor": "A"}]}}, 1.0, {"A": (1, 0)}, id="no status is no failure"),
        pytest.param(
            steps("A", "B", "A", errors=[{"executor": "a"}]),
            1 / 3,
            {"A": (2, 2), "B": (1, 0)},
            id="an error that names an executor",
        ),
        pytest.param(
            steps("A", "B", "A", errors=[{"executor": "A", "step": 2}]),
            2 / 3,
            {"A": (2, 1), "B": (1, 0)},
            id="and the step's place",
        ),
        pytest.param(
            steps("A", "B", errors=[{"executor": "B", "step": 0}]), 1.0, {"A": (1, 0), "B": (1, 0)}, id="of another executor"
        ),
        pytest.param(
            {
                "workflow": {
                    "steps": [{"executor": "A", "id": "s1"}, {"executor": "A", "id": 2}],
                    "errors": [{"executor": "A", "step": "2"}],
                }
            },
            0.5,
            {"A": (2, 1)},
            id="a step by its id",
        ),
        pytest.param(steps("A!", errors=[{"executor": "A"}]), 0.0, {"A": (1, 1)}, id="a run fails only once"),
        pytest.param(steps("A", errors=[{}, "boom"]), 1.0, {"A": (1, 0)}, id="errors that name nobody"),
    ],
)
def test_success_is_the_share_of_runs_that_did_not_fail(
    turn: dict[str, Any], value: float, per_executor: dict[str, tuple[int, int]]
) -> None:
    score = evaluate(SUCCESS, turn)
    assert score.value == pytest.approx(value)
    assert score.passed is (value >= 0.7)
    assert {name: (c["runs"], c["failures"]) for name, c in score.detail["per_executor"].items()} == per_executor


@pytest.mark.parametrize("workflow", [None, {"steps": []}, {"graph": {"nodes": ["A"]}}], ids=str)
def test_success_without_runs_does_not_apply(workflow: Any) -> None:
    score = evaluate(SUCCESS, {"workflow": workflow})
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:workflow"})


@pytest.mark.parametrize("given_steps", ["A", ["A"], [None]], ids=str)
def test_steps_that_cannot_be_read_are_an_error(given_steps: Any) -> None:
    assert evaluate(SUCCESS, {"workflow": {"steps": given_steps}}).error_type == "invalid_workflow"


# --- steps out of spans


def executor(span_id: int, parent_id: int, name: str, **more: Any) -> Any:
    attributes = {"executor.id": name, **({"error.type": "Boom"} if more.pop("failed", False) else {})}
    return span(span_id, parent_id, f"executor.process {name}", attributes, scope="agent_framework", **more)


WORKFLOW = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "support"}


@pytest.mark.parametrize(
    ("records", "executed", "failed"),
    [
        pytest.param(
            [span(1, 0, "invoke_workflow support", WORKFLOW, ms=100), agent(2, 1, "plan", at=1), agent(3, 1, "write", at=50)],
            ["plan", "write"],
            [],
            id="agents below a workflow",
        ),
        pytest.param(
            [
                span(1, 0, "invoke_workflow support", WORKFLOW, ms=100),
                agent(2, 1, "plan", at=1),
                agent(3, 2, "search", at=2, error="x"),
            ],
            ["plan"],
            [],
            id="but not the agents that these call",
        ),
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
            ],
            ["pre", "bot", "post"],
            ["pre", "bot"],
            id="executors",
        ),
    ],
)
def test_steps_are_read_from_spans(records: list[Any], executed: list[str], failed: list[str]) -> None:
    turn = turn_of(*records)
    assert evaluate(ORDER, turn, expected_order=["x"]).detail["executed"] == executed
    counts = evaluate(SUCCESS, turn).detail["per_executor"]
    assert [name for name, count in counts.items() if count["failures"]] == failed


def test_an_agent_alone_is_no_workflow() -> None:
    turn = turn_of(agent(1, 0, "bot"), tool(2, 1, "search"))
    assert evaluate(SUCCESS, turn).detail == {"reason": "missing:workflow"}


def test_steps_that_were_given_win_over_spans() -> None:
    turn = {**steps("A"), "agent_runs": [{"name": "boss"}, {"name": "b", "parent": "boss"}]}
    assert evaluate(ORDER, turn, expected_order=["A"]).detail["executed"] == ["A"]


# --- tools


def calls(*names: str) -> dict[str, Any]:
    """Tool calls; ``name@agent`` was made by that agent."""
    made = [dict(zip(("name", "agent"), name.split("@"), strict=False)) for name in names]
    return {"tool_calls": made}


@pytest.mark.parametrize(
    ("turn", "pattern", "satisfied"),
    [
        pytest.param(calls("A"), {"tool": "a"}, True, id="called, names without case"),
        pytest.param(calls("B"), {"tool": "A"}, False, id="not called"),
        pytest.param(calls(), {"tool": "A"}, False, id="nothing called"),
        pytest.param(calls("B"), {"tool": "A", "required": False}, True, id="not called and not required"),
        pytest.param(calls("A", "B"), {"tool": "A", "before": "b"}, True, id="before"),
        pytest.param(calls("B", "A", "B"), {"tool": "A", "before": "B"}, False, id="the first calls count"),
        pytest.param(calls("A"), {"tool": "A", "before": "B"}, False, id="before one that was not called"),
        pytest.param(calls("A"), {"tool": "A", "before": "B", "required": False}, True, id="which may be left out"),
        pytest.param(calls("B", "A"), {"tool": "A", "before": "B", "required": False}, False, id="but not called too early"),
        pytest.param(calls("A", "B"), {"tool": "B", "after": "A"}, True, id="after"),
        pytest.param(calls("B", "A"), {"tool": "B", "after": "A"}, False, id="not after"),
        pytest.param(calls("B"), {"tool": "B", "after": "A"}, False, id="after one that was not called"),
        pytest.param(calls("B"), {"tool": "B", "after": "A", "required": False}, True, id="which may be left out, too"),
        pytest.param(calls("A", "B", "C"), {"tool": "B", "after": "A", "before": "C"}, True, id="between two others"),
        pytest.param(calls("A", "C", "B"), {"tool": "B", "after": "A", "before": "C"}, False, id="not between two others"),
        pytest.param(calls("A", "A"), {"tool": "A", "before": "A"}, False, id="before itself"),
        pytest.param(calls("A@x", "A@y"), {"tool": "A", "executor": "Y"}, True, id="by its executor"),
        pytest.param(calls("A@x", "A"), {"tool": "A", "executor": "y"}, False, id="by another or nobody"),
        pytest.param(
            calls("A@x", "B", "A@y"), {"tool": "A", "executor": "y", "before": "B"}, False, id="that executor's first call"
        ),
        pytest.param(
            {
                "workflow": {"steps": [{"executor": "x", "tool_calls": ["A"]}, {"executor": "y", "tool_calls": [{"name": "B"}]}]},
                "tool_calls": [{"name": "B"}],
            },
            {"tool": "B", "executor": "y", "after": "A"},
            True,
            id="calls of the workflow's steps",
        ),
    ],
)
def test_a_pattern_is_satisfied_or_not(turn: dict[str, Any], pattern: dict[str, Any], satisfied: bool) -> None:
    score = evaluate(CHAIN, turn, patterns=[pattern])
    assert (score.value, score.passed) == (float(satisfied), satisfied)
    assert score.detail == {"results": [{"tool": pattern["tool"], "satisfied": satisfied}]}


def test_the_tool_chain_is_the_share_of_patterns() -> None:
    patterns = [{"tool": "A"}, {"tool": "B"}, {"tool": "C"}]
    assert evaluate(CHAIN, calls("A", "C"), patterns=patterns).value == pytest.approx(2 / 3)


def test_unknown_tool_calls_satisfy_nobody_and_fail_nobody() -> None:
    score = evaluate(CHAIN, steps("x"), patterns=[{"tool": "A"}])
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:tool_calls"})


# --- limits

ACTUAL = {"duration_s": 200, "cost_usd": 0.5, "usage": {"total_tokens": 1000}}


@pytest.mark.parametrize(
    ("turn", "limits", "components"),
    [
        pytest.param(ACTUAL, {"max_duration_s": 200}, {"duration": 1.0}, id="at the limit"),
        pytest.param(ACTUAL, {"max_duration_s": 100}, {"duration": 0.5}, id="twice the limit"),
        pytest.param(
            ACTUAL,
            {"max_duration_s": 400, "max_total_cost": 0.25, "max_tokens": 100},
            {"duration": 1.0, "cost": 0.5, "tokens": 0.1},
            id="all three",
        ),
        pytest.param(
            {"duration_s": 0}, {"max_duration_s": 0, "max_tokens": 5}, {"duration": 1.0}, id="what is unknown is left out"
        ),
        pytest.param(ACTUAL, {"max_tokens": 0}, {"tokens": 0.0}, id="a limit of nothing"),
        pytest.param({"metadata": {"cost": 2}}, {"max_total_cost": 1}, {"cost": 0.5}, id="a cost in the metadata"),
        pytest.param({"tool_calls": [{"name": "a", "cost_usd": 4}]}, {"max_total_cost": 1}, {"cost": 0.25}, id="a tool's cost"),
        pytest.param(
            {"usage": {"input_tokens": 6, "output_tokens": 4}}, {"max_tokens": 5}, {"tokens": 0.5}, id="tokens of both sides"
        ),
    ],
)
def test_efficiency_is_the_mean_over_the_limits(
    turn: dict[str, Any], limits: dict[str, float], components: dict[str, float]
) -> None:
    score = evaluate(EFFICIENCY, turn, **limits)
    assert score.detail == {"components": components}
    assert score.value == pytest.approx(sum(components.values()) / len(components))
    assert score.passed is all(component == 1 for component in components.values())


def test_an_estimated_cost_says_so() -> None:
    turn = {"cost_usd": 1, "cost_estimated": True}
    assert evaluate(EFFICIENCY, turn, max_total_cost=1).detail == {"components": {"cost": 1.0}, "estimated": True}


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


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ABab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "name", "executor", "from", "to"]), inner, max_size=2)
    ),
    max_leaves=5,
)
GRAPHS = st.fixed_dictionaries(
    {
        "nodes": ANYTHING | st.lists(st.sampled_from("ABab")),
        "edges": ANYTHING | st.lists(st.lists(st.sampled_from("ABX"), min_size=2, max_size=2)),
    },
    optional={"entry": ANYTHING, "exits": ANYTHING},
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "executor": ANYTHING,
            "status": ANYTHING,
            "id": ANYTHING,
            "tool_calls": ANYTHING | st.lists(st.sampled_from("AB")),
        },
    )
)
WORKFLOWS = st.fixed_dictionaries(
    {}, optional={"graph": ANYTHING | GRAPHS, "steps": ANYTHING | STEPS, "errors": ANYTHING | st.lists(ANYTHING)}
)
RUNS = st.lists(st.fixed_dictionaries({}, optional={"name": st.sampled_from("AB"), "parent": st.sampled_from("ABC")}))


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


@pytest.mark.parametrize(("given", "value", "passed"), [(85, 0.85, True), ("70", 0.7, True), (69, 0.69, False)])
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


@pytest.mark.parametrize("reply", [{}, {"score": None}, {"score": "good"}], ids=repr)
def test_output_quality_without_a_score_is_an_error(models: ScriptedModels, reply: Any) -> None:
    assert models.score(QUALITY, oa.Turn(input="q", output="a"), reply).error_type == "invalid_reply"
