"""These metrics evaluate the structure and execution of workflows. They ignore the case of executor, node, and tool names."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, MinLen

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import Turn
from ..lib.tokens import common_subsequence
from ..lib.values import fact
from ..registry import Result, metric, skip
from .performance_cost import code_cost, code_token_usage

_workflow_metric = functools.partial(metric, uses=("workflow",))

Name = Annotated[str, MinLen(1)]
Limit = Annotated[float, Ge(0)]

_SHOWN = 200
"""Maximum number of entries in each list in ``detail``. The score uses all entries."""


# --- the workflow of a turn


_FAILED = frozenset(("error", "failed", "failure"))
_WORKFLOW_NAMES = frozenset(("gen_ai.workflow.name", "workflow.name"))


@dataclass(frozen=True, slots=True)
class _ExecutorRun:
    executor: str
    failed: bool
    tools: tuple[str, ...] | None = None


def runs_of(turn: Turn) -> list[_ExecutorRun] | None:
    workflow = fact(turn, "workflow") or {}
    if "steps" not in workflow:
        return _runs_in_spans(turn)
    named = {  # executors that an error names, each with the step, or None for all runs
        (error["executor"].lower(), jsonio.text_of(error["step"]) if "step" in error else None)
        for error in workflow.get("errors", ())
        if isinstance(error, Mapping) and "executor" in error
    }
    runs = []
    for place, step in enumerate(workflow["steps"]):
        key = step["executor"].lower()
        is_named = (key, None) in named or (key, jsonio.text_of(step.get("id", place))) in named
        tools = step.get("tool_calls")
        failed = is_named or step.get("status", "").lower() in _FAILED
        runs.append(_ExecutorRun(step["executor"], failed, None if tools is None else tuple(tools)))
    return runs


def _runs_in_spans(turn: Turn) -> list[_ExecutorRun] | None:
    """Return the executor runs in spans, as :func:`code_workflow_execution_order` describes."""
    agents = turn.agent_runs
    executors = [span for span in turn.spans if isinstance(span.attributes.get("executor.id"), str)]
    if executors:
        failed_agents = {run.span_id for run in agents if run.error is not None}
        failed = {span.parent for span in turn.spans if span.id in failed_agents}
        return [
            _ExecutorRun(
                span.attributes["executor.id"], bool(span.failed or span.attributes.get("error.type") or span.id in failed)
            )
            for span in executors
        ]
    outermost = [run for run in agents if run.parent is None]
    if len(outermost) == 1 and all(  # no span describes a workflow
        _WORKFLOW_NAMES.isdisjoint(span.attributes) and span.attributes.get("gen_ai.operation.name") != "invoke_workflow"
        for span in turn.spans
    ):
        (first,) = outermost
        called = [run for run in agents if run is not first and first.name is not None and run.parent == first.name]
        outermost = [first, *called] if called else []
    return [_ExecutorRun(run.name or "", run.error is not None) for run in outermost] or None


# --- structure


def _reachable(starts: Iterable[str], edges: Iterable[tuple[str, str]]) -> set[str]:
    following: dict[str, list[str]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    seen = set(starts)
    pending = list(seen)
    while pending:
        for target in following.get(pending.pop(), ()):
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return seen


class _Structure:
    def __init__(self, given: Mapping[str, list[Any]], entry: str | None, exits: Sequence[str]) -> None:
        ids: list[str] = given.get("nodes", [])
        edges: list[list[str]] = given.get("edges", [])
        self.spelling = {node.lower(): node for node in reversed(ids)}  # reversed, to keep the first spelling
        self.nodes = set(self.spelling)
        self.edges = {(source.lower(), target.lower()) for source, target in edges}
        inner = {(source, target) for source, target in self.edges if source in self.nodes and target in self.nodes}
        entries = {name.lower() for name in ([entry] if entry else given.get("entry", ()))}
        leaves = {name.lower() for name in (exits or given.get("exits", ()))}
        # If none are declared, nodes without incoming edges are entries, and nodes without outgoing edges are exits.
        starts = entries & self.nodes if entries else self.nodes - {target for _, target in inner}
        ends = leaves & self.nodes if leaves else self.nodes - {source for source, _ in inner}
        reached = _reachable(starts, inner)  # an entry that isn't a node reaches nothing
        self.unreachable = [node for node in dict.fromkeys(map(str.lower, ids)) if node not in reached]
        self.checks = {
            "nodes_present": bool(self.nodes),
            "unique_ids": len(self.nodes) == len(ids),
            "edges_resolve": len(inner) == len(self.edges),
            "entry_exists": bool(starts) and entries <= self.nodes,
            "exit_exists": bool(ends) and leaves <= self.nodes,
            "all_reachable": bool(starts) and not self.unreachable,
            "exit_reachable": not ends.isdisjoint(reached),
        }


@_workflow_metric(
    threshold=1.0, aliases=("agenteval:code_workflow_structure_validity", "agenteval:WorkflowStructureValidityMetric")
)
def code_workflow_structure_validity(
    turn: Turn,
    *,
    expected_nodes: tuple[Name, ...] = (),
    expected_edges: tuple[tuple[Name, Name], ...] = (),
    entry: Name | None = None,
    exits: tuple[Name, ...] | None = None,
) -> Result:
    """Share of the structure checks that the workflow's graph passes.

    | check | passes if |
    |---|---|
    | ``nodes_present`` | at least one node exists |
    | ``unique_ids`` | no two nodes have the same ID |
    | ``edges_resolve`` | both ends of each edge are nodes |
    | ``entry_exists`` | the declared entry is a node or, if none is declared, at least one node doesn't have incoming edges |
    | ``exit_exists`` | the declared exits are nodes or, if none are declared, at least one node doesn't have outgoing edges |
    | ``all_reachable`` | every node can be reached from the entry |
    | ``exit_reachable`` | at least one exit can be reached from the entry |
    | ``expected_nodes``, ``expected_edges`` | the expected nodes or edges exist (only checked if you set them) |

    If no entry is declared, all nodes without incoming edges are entries. A check also fails if it can't be performed because
    another check failed. For example, ``all_reachable`` fails without an entry.

    You provide the graph in the turn's ``workflow``: ``graph: {nodes: [id], edges: [[from, to]], entry?, exits?}``. If the graph is
    missing, the metric is skipped as ``missing:workflow``.

    Parameters:
        expected_nodes: IDs of nodes that must exist.
        expected_edges: Edges that must exist, as pairs ``[from, to]``.
        entry: ID of the entry node. The default is the graph's ``entry``.
        exits: IDs of the exit nodes. The default is the graph's ``exits``.

    Detail: ``checks`` (true or false for each check), ``missing_nodes``, ``missing_edges``, and ``unreachable`` (node IDs). Each
    list has at most 200 entries.
    """
    if not (graph := (fact(turn, "workflow") or {}).get("graph")):
        return skip("missing:workflow")
    structure = _Structure(graph, entry, exits or ())
    checks = structure.checks
    missing_nodes = [name for name in expected_nodes if name.lower() not in structure.nodes]
    missing_edges = [[a, b] for a, b in expected_edges if (a.lower(), b.lower()) not in structure.edges]
    if expected_nodes:
        checks["expected_nodes"] = not missing_nodes
    if expected_edges:
        checks["expected_edges"] = not missing_edges
    failed = [name for name, passed in checks.items() if not passed]
    why = f"failed checks: {', '.join(failed)}" if failed else None
    detail = {
        "checks": checks,
        "missing_nodes": missing_nodes[:_SHOWN],
        "missing_edges": missing_edges[:_SHOWN],
        "unreachable": [structure.spelling[node] for node in structure.unreachable[:_SHOWN]],
    }
    return Result((len(checks) - len(failed)) / len(checks), explanation=why, detail=detail)


# --- execution


def _left_over(names: Iterable[str], used: Iterable[str]) -> list[str]:
    partners = Counter(map(str.lower, used))
    found = []
    for name in names:
        if partners[name.lower()]:
            partners[name.lower()] -= 1
        else:
            found.append(name)
    return found


@_workflow_metric(threshold=1.0, aliases=("agenteval:code_workflow_execution_order", "agenteval:WorkflowExecutionOrderMetric"))
def code_workflow_execution_order(
    turn: Turn, *, expected_order: Annotated[tuple[Name, ...], MinLen(1)], strict: bool = False
) -> Result:
    """Share of the expected executors that ran in the expected order.

    The value is the length of the longest common subsequence of the expected and executed executor IDs, divided by the number of
    expected IDs. Additional runs don't lower the value.

    You can provide the executed steps in the turn's ``workflow``, in start order: ``steps: [{executor, status}]``. Otherwise, the
    executors come from the first of these sources that exists:

    1. spans with the attribute ``executor.id``
    2. the outermost agents, if there are several or if a span describes a workflow
    3. the only outermost agent and the agents that it called, if it called any

    If no executor is known, the metric is skipped as ``missing:workflow``. If ``steps`` is an empty list, the value is 0.

    Parameters:
        expected_order: Executor IDs in the expected order.
        strict: If true, the divisor is the length of the longer sequence, so that only an exact match has the value 1.

    Detail: ``executed`` (IDs in order), ``lcs`` (length of the common subsequence), and the ``missing`` and ``extra`` IDs. Each
    list has at most 200 entries.
    """
    if (runs := runs_of(turn)) is None:
        return skip("missing:workflow")
    executed = [run.executor for run in runs]
    common = common_subsequence([name.lower() for name in expected_order], [name.lower() for name in executed])
    length = max(len(expected_order), len(executed)) if strict else len(expected_order)
    missing, extra = _left_over(expected_order, executed), _left_over(executed, expected_order)
    detail = {"executed": executed[:_SHOWN], "lcs": common, "missing": missing[:_SHOWN], "extra": extra[:_SHOWN]}
    return Result(common / length, detail=detail)


@_workflow_metric(
    threshold=0.7, version="2", aliases=("agenteval:code_workflow_executor_success", "agenteval:WorkflowExecutorSuccessMetric")
)
def code_workflow_executor_success(turn: Turn) -> Result:
    """Share of the workflow's executor runs that didn't fail.

    You can provide the executor runs in the turn's ``workflow``: ``steps: [{executor, status, id?}]`` and ``errors: [{executor,
    step?}]``. A run counts as failed if its status is ``error``, ``failed``, or ``failure``, or an error names its executor. If
    the error also has a ``step``, only this step counts as failed. ``step`` is an ``id`` or, without an ``id``, a position from 0.

    If ``steps`` is missing, runs come from spans (see ``code_workflow_execution_order``). A run counts as failed if its agent or
    ``executor.id`` span has an error (status ERROR or ``error.type``). Without runs, the metric is skipped as ``missing:workflow``.

    Detail: ``per_executor`` (number of ``runs`` and ``failures`` for each executor ID, at most 200 IDs).
    """
    if not (runs := runs_of(turn)):
        return skip("missing:workflow")
    counts: dict[str, dict[str, int]] = {}
    spelling: dict[str, str] = {}
    for run in runs:
        name = spelling.setdefault(run.executor.lower(), run.executor)
        count = counts.setdefault(name, {"runs": 0, "failures": 0})
        count["runs"] += 1
        count["failures"] += run.failed
    failures = sum(run.failed for run in runs)
    why = f"{failures} of {len(runs)} runs failed" if failures else None
    detail = {"per_executor": dict(list(counts.items())[:_SHOWN])}
    return Result((len(runs) - failures) / len(runs), explanation=why, detail=detail)


# --- tools


@dataclass(frozen=True, slots=True)
class ToolRequirement:
    """Pattern for ``code_workflow_tool_chain_validity``: a tool, and conditions for its calls."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    tool: Name
    before: Name | None = None
    after: Name | None = None
    executor: Name | None = None
    required: bool = True


def ToolPattern(tool: str, **conditions: Any) -> dict[str, Any]:  # noqa: N802 - AgentEval's name
    """Return a tool pattern. Example: ``ToolPattern("Search", beforeTool="Book")`` requires a search before the first booking."""
    return {"tool": tool, **{key.removesuffix("Tool"): value for key, value in conditions.items()}}


def _is_satisfied(pattern: ToolRequirement, calls: Sequence[tuple[str, str | None]]) -> bool:
    def first_call(tool: str, executor: str | None = None) -> int | None:
        by = None if executor is None else executor.lower()
        known = ((place, name.lower(), (agent or "").lower()) for place, (name, agent) in enumerate(calls))
        return next((place for place, name, agent in known if name == tool.lower() and by in (None, agent)), None)

    if (first := first_call(pattern.tool, pattern.executor)) is None:
        return not pattern.required
    before, after = (None if name is None else first_call(name) for name in (pattern.before, pattern.after))
    if pattern.required and ((pattern.before and before is None) or (pattern.after and after is None)):
        return False
    return (before is None or first < before) and (after is None or first > after)


@_workflow_metric(
    threshold=1.0, aliases=("agenteval:code_workflow_tool_chain_validity", "agenteval:WorkflowToolChainValidityMetric")
)
def code_workflow_tool_chain_validity(turn: Turn, *, patterns: Annotated[list[ToolRequirement], MinLen(1)]) -> Result:
    """Share of your tool patterns that the workflow's tool calls satisfy.

    A pattern contains the name of a ``tool`` that must be called, and optional conditions:

    - ``before``: a second tool. Both tools must be called, and the first call to ``tool`` must precede the second tool's first call.
    - ``after``: a second tool. Both tools must be called, and the second tool's first call must precede the first call to ``tool``.
    - ``executor``: only this executor's calls count as calls to ``tool``.
    - ``required: false``: the tools don't have to be called. The pattern fails only if both tools were called in the wrong order.

    The calls come from the workflow's steps (``steps: [{executor, tool_calls: [name or {name}]}]``). If no step has ``tool_calls``,
    the metric uses all of the turn's calls in start order, with the calling agent as the executor. If the calls are unknown, the
    metric is skipped as ``missing:tool_calls``.

    Parameters:
        patterns: Objects ``{tool, before?, after?, executor?, required?}``.

    Detail: ``results``, a list of ``{tool, satisfied}`` in the order of the patterns.
    """
    runs: Sequence[_ExecutorRun] = runs_of(turn) or ()
    if any(run.tools is not None for run in runs):
        calls: list[tuple[str, str | None]] = [(tool, run.executor) for run in runs for tool in run.tools or ()]
    elif turn.tool_calls is not None:
        calls = [(call.name, call.agent) for call in turn.tool_calls]
    else:
        return skip("missing:tool_calls")
    satisfied = [_is_satisfied(pattern, calls) for pattern in patterns]
    results = [{"tool": pattern.tool, "satisfied": good} for pattern, good in zip(patterns, satisfied, strict=True)]
    return Result(sum(satisfied) / len(patterns), detail={"results": results})


# --- limits


@metric(
    uses=("metadata",),
    threshold=1.0,
    aliases=("agenteval:code_workflow_performance_efficiency", "agenteval:WorkflowPerformanceEfficiencyMetric"),
)
def code_workflow_performance_efficiency(
    turn: Turn, *, max_duration_s: Limit | None = None, max_total_cost: Limit | None = None, max_tokens: Limit | None = None
) -> Result:
    """Compliance with your limits for duration, cost, and tokens.

    Set at least one limit. Otherwise, the score is an error. The value is the mean of ``min(1, limit / amount)`` for these amounts:

    - ``max_duration_s``: the duration
    - ``max_total_cost``: the cost from ``code_cost``, including tools
    - ``max_tokens``: the tokens from ``code_token_usage``

    If an amount is 0, its quotient counts as 1. If an amount is unknown, its limit is ignored. If all amounts are unknown,
    the metric is skipped. The skip reason refers to the first of these limits that you set: ``missing:duration``,
    ``missing:cost``, or ``missing:usage``.

    Parameters:
        max_duration_s: Limit in seconds.
        max_total_cost: Limit in USD.
        max_tokens: Limit in tokens.

    Detail: ``components`` (``min(1, limit / amount)`` for each known amount: ``duration``, ``cost``, or ``tokens``), and
    ``estimated`` (true if the cost is an estimate).
    """
    given = {"duration": max_duration_s, "cost": max_total_cost, "tokens": max_tokens}
    if not (limits := {good: limit for good, limit in given.items() if limit is not None}):
        problem = "code_workflow_performance_efficiency: set max_duration_s, max_total_cost, or max_tokens"
        raise MetricError("missing_parameter", problem)
    components: dict[str, float] = {}
    detail: dict[str, Any] = {"components": components}
    for good, limit in limits.items():
        used = Result(turn.duration_s) if good == "duration" else code_cost(turn) if good == "cost" else code_token_usage(turn)
        if used.value is not None:
            components[good] = min(1.0, limit / used.value) if used.value > 0 else 1.0
            if (used.detail or {}).get("estimated"):
                detail["estimated"] = True
    if not components:
        first = next(iter(limits))
        return skip(f"missing:{'usage' if first == 'tokens' else first}")
    return Result(sum(components.values()) / len(components), detail=detail)
