"""Find a turn's agents: agent spans, steps of agent loops, and tools that called a model."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from ...core.turn import AgentRun
from ...dialects.attributes import as_text
from ...dialects.generic.kinds import is_agent
from ...dialects.payloads import arguments_of
from ...dialects.step import AGENT, INNER, LLM, TOOL, Step
from .llm_calls import TurnCalls
from .steps import END, computed_once
from .templates import last_user_text
from .tool_calls import ToolCalls
from .tool_spans import TOOL_OR_CALLER

_AGENTS = (AGENT,)


def main_agent(turn: TurnCalls) -> str | None:
    steps = (step for role in (AGENT, INNER, LLM) for step in turn.of_role.get(role, ()))
    return next((step.agent for step in steps if step.agent and not turn.is_nested(step)), None)


def agent_runs(turn: TurnCalls, tools: ToolCalls) -> list[AgentRun]:
    runs = []
    names = _Names(turn, tools)
    in_tools = _agents_in_tools(turn, tools)
    errors = {tool.step.record.span_id: tool.error for tool in tools.spans} if in_tools else {}  # includes errors of inner layers
    of_spans = {None, *(step.agent for step in turn.of_role.get(AGENT, ()))}
    in_loops: dict[int, str | None] = {}
    for step in turn.steps:
        if step.record.span_id in in_tools:
            parent_agent, own = turn.agent_of(step) or main_agent(turn), in_tools[step.record.span_id]
            name = tools.name_at(step) if own == parent_agent or own in of_spans else own
            error = errors[step.record.span_id]
        else:
            parent = turn.nearest(step, _AGENTS)
            if not _begins_run(step, in_loops) or (parent is not None and names.is_same_run(parent, step)):
                continue
            name, parent_agent, error = names.name_of(step), turn.agent_of(step) if parent else None, step.error
        runs.append(AgentRun(name, f"{step.record.span_id:016x}", parent_agent, step.record.duration_s, error))
    return [*runs, *_agents_in_messages(turn, tools)]


def _begins_run(step: Step, in_loops: dict[int, str | None]) -> bool:
    """Return True if ``step`` is an agent's span, or the first loop step of an agent without a span."""
    if step.role != INNER or not step.agent:
        return step.role == AGENT
    if in_loops.get(step.record.parent_id) == step.agent:
        return False
    in_loops[step.record.parent_id] = step.agent
    return True


def _agents_in_tools(turn: TurnCalls, tools: ToolCalls) -> dict[int, str | None]:
    """Map each tool span with a model call below it to the agent's name (or None), by the tool's span ID."""
    if len(turn.llm) < 2 or not tools.spans:
        return {}
    ids = {tool.step.record.span_id for tool in tools.spans}
    tree = turn.tree
    found: dict[int, str | None] = {}
    for call in turn.llm:
        tool = tree.nearest(call, "agent or run of a tool", lambda at: at.role == AGENT or at.record.span_id in ids)
        if tool is None or tool.record.span_id not in ids:
            continue
        name = found.get(tool.record.span_id) or call.agent
        if not name:  # a span between the tool and the call may be named like an agent (billing_agent)
            between = tree.nearest(call, "name of an agent", lambda at: is_agent(at.record.name))
            name = between.record.name if between is not None and tree.is_ancestor(tool, between) else None
        found[tool.record.span_id] = name
    return found


def _agents_in_messages(turn: TurnCalls, tools: ToolCalls) -> Iterator[AgentRun]:
    """If tools don't have spans, yield one agent per tool call with an argument that equals a model call's user message."""
    if len(turn.llm) < 3 or tools.spans:
        return
    asked = {last_user_text(turn.inputs(step)) for step in turn.llm}
    if len(asked) > 1:
        for call in tools.calls or ():
            if any(isinstance(value, str) and value in asked for value in (call.arguments or {}).values()):
                yield AgentRun(call.name, None, main_agent(turn))


class _Names:
    def __init__(self, turn: TurnCalls, tools: ToolCalls) -> None:
        self._turn = turn
        self._tools = tools
        self._requests: dict[int, list[str]] = {}

    def is_same_run(self, parent: Step, step: Step) -> bool:
        """Return True if the agent span ``step`` describes the same run as ``parent``, the agent span around it."""
        if step.agent and not step.agent_is_class:
            return parent.agent == step.agent
        if self._turn.parent(step) is not parent:
            return False
        return parent.agent == step.agent if step.agent_is_class else self._requested_name(step, parent) is None

    def name_of(self, step: Step) -> str | None:
        """Return the agent's name. If it is unset or only a class name, return the name of the tool that runs the agent, if any."""
        caller = self._turn.nearest(step, TOOL_OR_CALLER)
        if step.agent and not step.agent_is_class:
            chosen = arguments_of(caller.tool_arguments) if caller is not None and caller.tool_name == step.agent else None
            return as_text((chosen or {}).get("subagent_type")) or step.agent
        if caller is None or caller.role == TOOL:
            return (self._tools.name_at(caller) if caller is not None else None) or step.agent
        return step.agent or self._requested_name(step, caller)

    def _requested_name(self, step: Step, caller: Step) -> str | None:
        """Return the tool name in the request that started an agent. A call's n-th request starts the n-th agent after the call."""
        calls = self._calls.get(caller.record.span_id, []) if caller.role == AGENT else []
        place = bisect_right(calls, step.record.start_ns, key=END)
        if not place:
            return None
        end = calls[place - 1].record.end_ns
        call = calls[bisect_left(calls, end, key=END)]
        names = self._requests.get(call.record.span_id)
        if names is None:
            names = self._requests[call.record.span_id] = [one.name for one in self._turn.requests_of(call) if one.name]
        starts = self._starts[step.record.parent_id]
        place = bisect_right(starts, step.record.start_ns) - bisect_left(starts, end)
        return names[place - 1] if place <= len(names) else None

    @computed_once
    def _calls(self) -> dict[int, list[Step]]:
        calls: dict[int, list[Step]] = {}
        for call in sorted(self._turn.llm, key=END):
            agent = self._turn.nearest(call, _AGENTS)
            if agent is not None:
                calls.setdefault(agent.record.span_id, []).append(call)
        return calls

    @computed_once
    def _starts(self) -> dict[int, list[int]]:
        starts: dict[int, list[int]] = {}
        for agent in self._turn.of_role[AGENT]:
            starts.setdefault(agent.record.parent_id, []).append(agent.record.start_ns)
        return starts
