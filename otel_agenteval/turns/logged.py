"""Calls and prompts of a trace that only its log records describe.

A record of a model or tool call becomes a call below the span that wrote it. Records whose span isn't known, and the
user's prompt, belong to the trace's only turn. Spans of the same calls take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from ..dialects.content import decode
from ..dialects.generic.logged import PROMPT, LoggedCall, call_of, describes, kind_of_part, tool_in
from ..dialects.otel_genai import EVENTS
from ..dialects.reader import is_genai_scope, read, role_in
from ..dialects.step import LLM, TOOL, Step
from ..spans.record import LogPart, SpanRecord, join_logs


class Logged(NamedTuple):
    """A log record of a call or a prompt."""

    kind: str
    part: LogPart
    writer: SpanRecord | None
    """The span that wrote it, or None if it isn't known."""


def take_logged(records: Iterable[SpanRecord], loose: Iterable[LogPart] = ()) -> list[Logged]:
    """Return the records of calls and prompts by time. Those of calls are removed from the logs of their spans."""
    found = [Logged(kind, part, None) for part in loose if (kind := kind_of_part(part)) is not None]
    for record in records:
        if not record.logs or is_genai_scope(record.scope):
            continue
        kinds = [None if part.name in EVENTS or describes(part, record) else kind_of_part(part) for part in record.logs]
        found += [Logged(kind, part, record) for kind, part in zip(kinds, record.logs, strict=True) if kind is not None]
        if LLM in kinds or TOOL in kinds:
            record.logs = [part for kind, part in zip(kinds, record.logs, strict=True) if kind in (None, PROMPT)]
            record.dialects = None
    return sorted(found, key=lambda logged: logged.part.time_ns)


def calls_of_turn(root: SpanRecord, records: Sequence[SpanRecord], loose: Iterable[LogPart] = ()) -> list[SpanRecord]:
    """Return the calls of a turn that no span describes, and add its prompt to its root."""
    logged = take_logged(records, loose)
    add_prompt(logged, root)
    return [*calls_in(logged, records, root)] if logged else []


def add_prompt(logged: Sequence[Logged], root: SpanRecord) -> None:
    """Add the first prompt to the logs of the turn's root."""
    first = next((one for one in logged if one.kind == PROMPT), None)
    if first is not None and first.writer is not root:
        join_logs(root, [first.part])


def calls_in(logged: Sequence[Logged], records: Sequence[SpanRecord], root: SpanRecord | None) -> list[LoggedCall]:
    """Return the calls that no span describes, or whose span lacks facts. They are below that span.

    Args:
        logged: records of the trace.
        records: all spans of the trace.
        root: the root of its only turn. Without it, records whose span isn't known are dropped.
    """
    steps = [read(record) for record in records if role_in(record) in (LLM, TOOL) and not isinstance(record, LoggedCall)]
    model_spans = [step for step in steps if step.role == LLM]
    tools = [one for one in logged if one.kind == TOOL]
    models = [one for one in logged if one.kind == LLM]
    requested = _requested(model_spans)
    if requested is not None:
        tools = [one for one in tools if tool_in(one.part) in requested]
    placed = [*_by_tool(tools, [step for step in steps if step.role == TOOL])]
    placed += _by_model(models, model_spans, {record.span_id: record for record in records})
    for one in logged:
        if one.kind != PROMPT and one.writer is not None and not any(one is other for other, _ in placed):
            join_logs(one.writer, [one.part])  # not a call of this turn
    spans = ((one, span or one.writer or root) for one, span in placed)
    found = [call_of(one.part, one.kind, span) for one, span in spans if span is not None]
    return [*{call.span_id: call for call in found}.values()]


def _requested(steps: Iterable[Step]) -> set[str | None] | None:
    """Return the names of the tools that models requested, and the calls' ids, or None if no answer was captured."""
    answers = [step.output_messages for step in steps if step.output_messages is not None]
    calls = (call for answer in answers for message in decode(answer, "assistant").messages for call in message.tool_calls)
    return {key for call in calls for key in (call.name, call.call_id)} if answers else None


Placed = Iterable[tuple[Logged, SpanRecord | None]]
"""Records with the spans of their calls. None: no span describes the call."""


def _by_tool(logged: Sequence[Logged], steps: Sequence[Step]) -> Placed:
    """Yield each tool call with its span: the writer, or the one with its id or, in order, with its name."""
    ids = {step.tool_call_id: step.record for step in steps if step.tool_call_id}
    calls = [(one, read(call_of(one.part, TOOL, one.writer or _NOWHERE))) for one in logged]
    others: list[tuple[Logged, Step]] = []
    for one, call in calls:
        span = one.writer if one.writer is not None and role_in(one.writer) == TOOL else ids.get(call.tool_call_id or "")
        if span is not None:
            yield one, span
        elif call.tool_name:
            others.append((one, call))
    for name in {call.tool_name for _, call in others}:
        alike = [(one, call) for one, call in others if call.tool_name == name]
        spans = [step.record for step in steps if step.tool_name == name and not (step.tool_call_id and alike[0][1].tool_call_id)]
        if not spans or len(spans) == len(alike):
            yield from zip_longest((one for one, _ in alike), spans)


_NOWHERE = SpanRecord("", 0, 0)


def _by_model(logged: Sequence[Logged], steps: Sequence[Step], by_id: dict[int, SpanRecord]) -> Placed:
    own = [one for one in logged if one.writer is not None and _is_in_call(one.writer, by_id)]
    yield from ((one, one.writer) for one in own)
    rest = _once([one for one in logged if one not in own])
    if not steps:
        yield from ((one, None) for one in rest)
    elif own or not rest:
        return
    elif len(steps) == len(rest) and all(step.input_tokens is None and step.output_tokens is None for step in steps):
        yield from zip(rest, [step.record for step in steps], strict=True)
    elif len(steps) == 1 and sum(_tokens_of(one)[1] or 0 for one in rest) == steps[0].output_tokens:
        yield from ((one, steps[0].record) for one in rest)


def _once(logged: Sequence[Logged]) -> list[Logged]:
    """Return the records of one name, if those of other names describe the same calls."""
    named: dict[str, list[Logged]] = {}
    for one in logged:
        named.setdefault(one.part.name, []).append(one)
    tokens = {name: [_tokens_of(one) for one in ones] for name, ones in named.items()}
    return max(named.values(), key=len) if len(named) > 1 and len(set(map(str, tokens.values()))) == 1 else [*logged]


def _tokens_of(one: Logged) -> tuple[int | None, int | None]:
    call = read(call_of(one.part, LLM, _NOWHERE))
    return call.input_tokens, call.output_tokens


def _is_in_call(record: SpanRecord | None, by_id: dict[int, SpanRecord]) -> bool:
    for _ in range(8):
        if record is None or role_in(record) == LLM:
            break
        record = by_id.get(record.parent_id)
    return record is not None and role_in(record) == LLM
