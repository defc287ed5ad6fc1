"""What a workflow is and did, as the turn says it: a graph of executors, and the runs of executors in start order.

Both are in the turn's ``workflow``. The runs can be read from spans too, where they say what belongs to a workflow: spans
with an ``executor.id``, else the agents right below a workflow (``invoke_workflow``, ``gen_ai.workflow.name``), else the
agents that the turn's only agent called. Only a declared graph counts as one; what ran is not a declaration.
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
    """What names compare by: they are the same in any case."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an executor."""

    executor: str
    failed: bool
    tools: tuple[str, ...] | None = None
    """Names of the tools it called, in order; None when the run does not say."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A declared graph. Names keep their spelling."""

    nodes: list[str]
    edges: list[tuple[str, str]]
    entries: list[str]
    exits: list[str]


def graph_of(turn: Turn) -> Graph | None:
    """The turn's declared graph, or None.

    Raises:
        MetricError: what is declared cannot be read as a graph.
    """
    given = (turn.workflow or {}).get("graph")
    if not given:
        return None
    if not isinstance(given, Mapping):
        raise MetricError("invalid_workflow", "workflow.graph must be an object with nodes and edges")
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
        raise MetricError("invalid_workflow", f"{path}.{name} must be a list")
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
        raise MetricError("invalid_workflow", f"workflow.graph.edges[{place}] must be [from, to]")
    return _name(edge[0]), _name(edge[1])


def runs_of(turn: Turn) -> list[Run] | None:
    """The runs of the workflow's executors, in start order; None when no workflow is known.

    Raises:
        MetricError: ``workflow.steps`` is not a list of objects.
    """
    workflow = turn.workflow or {}
    if workflow.get("steps") is None:
        return _runs_in_spans(turn)
    named = _named_by_errors(_list(workflow, "errors", "workflow"))
    return [_run(step, place, named) for place, step in enumerate(_list(workflow, "steps", "workflow"))]


def _named_by_errors(errors: Sequence[Any]) -> set[tuple[str, str | None]]:
    """Executors, each with the step (or None for all its runs), that an error of the workflow names."""
    named: set[tuple[str, str | None]] = set()
    for error in errors:
        if isinstance(error, Mapping) and error.get("executor") is not None:
            step = error.get("step")
            named.add((key(_name(error["executor"])), None if step is None else jsonio.text_of(step)))
    return named


def _run(step: Any, place: int, named: set[tuple[str, str | None]]) -> Run:
    if not isinstance(step, Mapping):
        raise MetricError("invalid_workflow", f"workflow.steps[{place}] must be an object with executor and status")
    executor = _name(step.get("executor"))
    own = place if step.get("id") is None else step["id"]
    failed = (
        jsonio.text_of(step.get("status")).lower() in _FAILED
        or (key(executor), None) in named
        or (key(executor), jsonio.text_of(own)) in named
    )
    tools = step.get("tool_calls")
    if not isinstance(tools, (list, tuple)):
        return Run(executor, failed)
    return Run(executor, failed, tuple(_name(tool) for tool in tools))


def _runs_in_spans(turn: Turn) -> list[Run] | None:
    agents = turn.agent_runs
    executors = [
        (span.id, name, bool(span.attributes.get("error.type")))
        for span in turn.spans
        if isinstance(name := span.attributes.get("executor.id"), str)
    ]
    if executors:
        above = {span.id: span.parent for span in turn.spans}
        broken = {above.get(run.span_id) for run in agents if run.error is not None and run.span_id is not None}
        return [Run(name, failed or span_id in broken) for span_id, name, failed in executors]
    outermost = [run for run in agents if run.parent is None]
    if len(outermost) == 1 and not any(_is_workflow(span.attributes) for span in turn.spans):
        called = _called_by(outermost[0], agents)
        outermost = [outermost[0], *called] if called else []
    return [Run(run.name or "", run.error is not None) for run in outermost] or None


def _is_workflow(attributes: Mapping[str, Any]) -> bool:
    return (
        attributes.get("gen_ai.operation.name") == "invoke_workflow"
        or "gen_ai.workflow.name" in attributes
        or "workflow.name" in attributes
    )


def _called_by(agent: AgentRun, agents: Sequence[AgentRun]) -> list[AgentRun]:
    return [run for run in agents if run is not agent and run.parent is not None and run.parent == agent.name]
