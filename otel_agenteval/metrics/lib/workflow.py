"""Read a turn's workflow: its declared graph of executors, and their runs in start order.

Both are in the turn's ``workflow``. If it has no runs, they are read from the first of these spans that exist:

1. Spans with an ``executor.id``.
2. Agents directly below a workflow (``invoke_workflow``, ``gen_ai.workflow.name``).
3. Agents that the turn's only top-level agent called.

Runs never replace a declared graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import AgentRun, Turn

_FAILED = frozenset(("error", "failed", "failure"))


def key(name: str) -> str:
    """Return a name in the form that is compared. Case doesn't matter."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class ExecutorRun:
    """One run of an executor."""

    executor: str
    failed: bool
    tools: tuple[str, ...] | None = None
    """Names of the called tools in order. None if unknown."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A declared graph. Names keep their spelling."""

    nodes: list[str]
    edges: list[tuple[str, str]]
    entries: list[str]
    exits: list[str]


def graph_of(turn: Turn) -> Graph | None:
    """Return the turn's declared graph, or None.

    Raises:
        MetricError: If the declaration isn't a valid graph.
    """
    given = (turn.workflow or {}).get("graph")
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise MetricError("invalid_workflow", "workflow.graph: must be an object with nodes and edges")
    return Graph(
        nodes=[_name(node) for node in _list(given, "nodes", "workflow.graph")],
        edges=[_edge(edge, place) for place, edge in enumerate(_list(given, "edges", "workflow.graph"))],
        entries=_names(given.get("entry")),
        exits=_names(given.get("exits")),
    )


def _list(given: Mapping[str, Any], name: str, path: str) -> Sequence[Any]:
    found = given.get(name)
    if found is None:
        return ()
    if not isinstance(found, (list, tuple)):
        raise MetricError("invalid_workflow", f"{path}.{name}: must be a list")
    return found


def _name(node: Any) -> str:
    return jsonio.text_of(node.get("id", node.get("name")) if isinstance(node, Mapping) else node)


def _names(given: Any) -> list[str]:
    if not given:
        return []
    return [_name(item) for item in given] if isinstance(given, (list, tuple)) else [_name(given)]


def _edge(edge: Any, place: int) -> tuple[str, str]:
    if isinstance(edge, Mapping):
        edge = (edge.get("from", edge.get("source")), edge.get("to", edge.get("target")))
    if not isinstance(edge, (list, tuple)) or len(edge) != 2:
        raise MetricError("invalid_workflow", f"workflow.graph.edges[{place}]: must be [from, to]")
    return _name(edge[0]), _name(edge[1])


def runs_of(turn: Turn) -> list[ExecutorRun] | None:
    """Return the runs of the workflow's executors in start order, or None without a workflow.

    Raises:
        MetricError: If ``workflow.steps`` isn't a list of objects.
    """
    workflow = turn.workflow or {}
    if workflow.get("steps") is None:
        return _runs_in_spans(turn)
    named = _named_by_errors(_list(workflow, "errors", "workflow"))
    return [_run(step, place, named) for place, step in enumerate(_list(workflow, "steps", "workflow"))]


def _named_by_errors(errors: Sequence[Any]) -> set[tuple[str, str | None]]:
    """Return the executors that an error of the workflow names, each with the step.

    The step is None if the error applies to all runs of the executor.
    """
    named: set[tuple[str, str | None]] = set()
    for error in errors:
        if isinstance(error, Mapping) and error.get("executor") is not None:
            step = error.get("step")
            named.add((key(_name(error["executor"])), None if step is None else jsonio.text_of(step)))
    return named


def _run(step: Any, place: int, named: set[tuple[str, str | None]]) -> ExecutorRun:
    if not isinstance(step, Mapping):
        raise MetricError("invalid_workflow", f"workflow.steps[{place}]: must be an object with executor and status")
    executor = _name(step.get("executor"))
    own = place if step.get("id") is None else step["id"]
    failed = (
        jsonio.text_of(step.get("status")).lower() in _FAILED
        or (key(executor), None) in named
        or (key(executor), jsonio.text_of(own)) in named
    )
    tools = step.get("tool_calls")
    if not isinstance(tools, (list, tuple)):
        return ExecutorRun(executor, failed)
    return ExecutorRun(executor, failed, tuple(_name(tool) for tool in tools))


def _runs_in_spans(turn: Turn) -> list[ExecutorRun] | None:
    agents = turn.agent_runs
    executors = [
        (span.id, name, bool(span.attributes.get("error.type")))
        for span in turn.spans
        if isinstance(name := span.attributes.get("executor.id"), str)
    ]
    if executors:
        above = {span.id: span.parent for span in turn.spans}
        broken = {above.get(run.span_id) for run in agents if run.error is not None and run.span_id is not None}
        return [ExecutorRun(name, failed or span_id in broken) for span_id, name, failed in executors]
    outermost = [run for run in agents if run.parent is None]
    if len(outermost) == 1 and not any(_is_workflow(span.attributes) for span in turn.spans):
        called = _called_by(outermost[0], agents)
        outermost = [outermost[0], *called] if called else []
    return [ExecutorRun(run.name or "", run.error is not None) for run in outermost] or None


def _is_workflow(attributes: Mapping[str, Any]) -> bool:
    return (
        attributes.get("gen_ai.operation.name") == "invoke_workflow"
        or "gen_ai.workflow.name" in attributes
        or "workflow.name" in attributes
    )


def _called_by(agent: AgentRun, agents: Sequence[AgentRun]) -> list[AgentRun]:
    return [run for run in agents if run is not agent and run.parent is not None and run.parent == agent.name]
