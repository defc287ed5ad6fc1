"""Find one span per tool call. Several spans can describe one call, such as a framework's span and its MCP client's span."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...core.turn import ErrorInfo
from ...core.wellformed import Later
from ...dialects.generic.keys import words_of
from ...dialects.payloads import arguments_of
from ...dialects.step import AGENT, LLM, TOOL, Step
from .call_spans import CLOCK_STEP_NS
from .handoffs import is_handoff_tool
from .llm_calls import TurnCalls
from .requests import id_without_name, is_output_tool

TOOL_OR_CALLER = (TOOL, AGENT, LLM)


@dataclass(slots=True)
class ToolSpan:
    """One tool call's values. If the outer span lacks a value, inner spans of the same call provide it."""

    step: Step
    name: str | None
    call_id: str | None
    arguments: Any
    result: Any
    error: ErrorInfo | None
    permission_denied: bool

    @classmethod
    def of_tool(cls, step: Step) -> ToolSpan:
        return cls(
            step, step.tool_name, step.tool_call_id, step.tool_arguments, step.tool_result, step.error, step.permission_denied
        )

    @classmethod
    def of_function(cls, step: Step) -> ToolSpan:
        arguments = step.input_value if step.input_messages is None else step.input_messages
        result = step.output_value if step.output_messages is None else step.output_messages
        arguments, result = (raw.reader(raw.raw) if raw.__class__ is Later else raw for raw in (arguments, result))
        return cls(step, step.record.name, step.tool_call_id, arguments, result, step.error, step.permission_denied)

    @property
    def has_only_name(self) -> bool:
        return self.call_id is None and self.arguments is None and self.result is None and self.step.tool_inputs is None

    def add_layer(self, inner: ToolSpan) -> None:
        self.call_id = inner.call_id if self.call_id is None else self.call_id
        self.arguments = inner.arguments if self.arguments is None else self.arguments
        self.result = inner.result if self.result is None else self.result
        self.error = self.error or inner.error
        self.permission_denied |= inner.permission_denied


def is_no_tool(name: str | None) -> bool:
    """Return True if a tool only hands the turn over to another agent, or only structures the turn's answer."""
    return is_handoff_tool(name) or is_output_tool(name)


def join_layers(turn: TurnCalls, tools: Iterable[ToolSpan]) -> list[ToolSpan]:
    """Join spans that describe one call, and omit hand-offs and output tools. ``tools`` contains all tool spans by start time."""
    found: list[ToolSpan] = []
    layers: list[tuple[ToolSpan, ToolSpan]] = []
    outermost: dict[int, ToolSpan] = {}
    by_span_id = {tool.step.record.span_id: tool for tool in tools}
    by_call_id: dict[str, ToolSpan] = {}
    for tool in tools:
        step = tool.step
        if step is turn.root or step.gives_form or is_no_tool(tool.name):
            continue  # the application itself called the root function
        outer = _layer_around(turn, tool, by_span_id)
        if outer is not None:
            outer = outermost[step.record.span_id] = outermost.get(outer.step.record.span_id, outer)
        elif tool.call_id:
            call_id = id_without_name(tool.name, tool.call_id)
            outer = by_call_id.get(call_id)
            if outer is None or not _are_one_call(outer, tool):
                outer = None
                if tool.name:
                    by_call_id[call_id] = tool
        if outer is not None:
            layers.append((outer, tool))
            outer.add_layer(tool)
        elif tool.name:
            found.append(tool)
    return _drop_empty_copies(found, layers) if any(tool.has_only_name for tool in found) else found


def _layer_around(turn: TurnCalls, tool: ToolSpan, by_span_id: dict[int, ToolSpan]) -> ToolSpan | None:
    """Return the tool span above ``tool`` that describes the same call, or None."""
    around = turn.nearest(tool.step, TOOL_OR_CALLER)
    outer = by_span_id.get(around.record.span_id) if around is not None and around.role == TOOL else None
    if outer is None:
        return None
    if tool.call_id is not None and outer.call_id is not None and tool.call_id != outer.call_id:
        one, other = arguments_of(outer.arguments), arguments_of(tool.arguments)
        if one is not None and other is not None and not (one.items() <= other.items() or other.items() <= one.items()):
            return None  # a recursive tool, or a parallel call with the wrong parent
    return outer if _is_same_tool(outer, tool) or (tool.call_id and outer.call_id == tool.call_id) else None


def _drop_empty_copies(tools: list[ToolSpan], layers: list[tuple[ToolSpan, ToolSpan]]) -> list[ToolSpan]:
    """Drop spans without content that repeat another span of the same tool, or have only an operation's name as tool name."""
    names = {tool.name for tool in tools if tool.has_only_name}
    for outer, name in [(outer, inner.name) for outer, inner in layers if inner.name != outer.name]:
        if name in names:
            outer.name = name
    with_content = {tool.name: tool for tool in tools if not tool.has_only_name}
    return [
        tool for tool in tools
        if not tool.has_only_name or (tool.error is not None and not any(_is_copy(tool, other) for other in tools))
        or (tool.error is None and not any(_is_same_tool(other, tool) for other in with_content.values())
            and not (with_content and tool.name == tool.step.record.attributes.get("gen_ai.operation.name")))
    ]  # fmt: skip


def _is_copy(tool: ToolSpan, other: ToolSpan) -> bool:
    """Return True if ``tool`` started during ``other``, a failed span of the same tool, and only repeats its failure."""
    starts_within = other.step.record.start_ns <= tool.step.record.start_ns < other.step.record.end_ns
    return starts_within and not other.has_only_name and other.error is not None and _is_same_tool(other, tool)


def _is_same_tool(outer: ToolSpan, inner: ToolSpan) -> bool:
    """Return True if two nested tool spans describe one call: their names are equal, or the inner span lacks a name. If one name
    only ends with the other name, the inner span must also be an MCP span, or have the same arguments.
    """
    if outer.name is None or outer.name == inner.name or not inner.name:
        return outer.name == inner.name or not inner.name
    shorter, longer = sorted((words_of(outer.name), words_of(inner.name)), key=len)
    if not shorter or longer[-len(shorter) :] != shorter:
        return False
    arguments = arguments_of(inner.arguments)
    return "mcp.method.name" in inner.step.record.attributes or (
        arguments is not None and arguments == arguments_of(outer.arguments)
    )


def _are_one_call(one: ToolSpan, later: ToolSpan) -> bool:
    """Return True if two tool spans with the same call ID describe one call. Some models reuse call IDs."""
    if not (_is_same_tool(one, later) or _is_same_tool(later, one) or (one.name or "").endswith(later.name or "")):
        return False
    pairs = ((one.arguments, later.arguments), (one.result, later.result))
    if any(first is not None and other is not None and first != other for first, other in pairs):
        return False
    earlier, repeated = one.step.record, later.step.record
    shorter = min(earlier.end_ns - earlier.start_ns, repeated.end_ns - repeated.start_ns)
    overlap = earlier.end_ns - repeated.start_ns > min(CLOCK_STEP_NS, shorter // 2)
    return overlap or any((first is None) != (other is None) for first, other in pairs)
