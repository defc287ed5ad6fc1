"""Read model calls, tool calls, and prompts that exist only in log records.

A logged call becomes a child of its own span or of the span that wrote its log record. If both are unknown, the logged call belongs
to the only turn or the only running turn. If a call has both a log record and a span, the span's values take precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import NamedTuple

from ..dialects.content import decode
from ..dialects.generic.events import ANSWER, PROMPT, LoggedCall, call_of, describes, kind_of_part, tool_in
from ..dialects.otel_genai import EVENTS
from ..dialects.reader import is_genai_scope, read, role_in, state_role
from ..dialects.step import AGENT, LLM, TOOL, WORKFLOW, Step
from ..spans.record import LogPart, SpanRecord, join_logs

_START = attrgetter("start_ns", "span_id")
_NOWHERE = SpanRecord("", 0, 0)
_DEEPEST = 100


class Logged(NamedTuple):
    """Log record of a model call, tool call, prompt, or answer."""

    kind: str
    part: LogPart
    writer: SpanRecord | None


def take_logged(records: Iterable[SpanRecord], loose: Iterable[LogPart] = ()) -> list[Logged]:
    """Return logged calls, prompts, and answers in time order. Remove each call's log record from the span that wrote it."""
    found = [Logged(kind, part, None) for part in loose if (kind := kind_of_part(part)) is not None]
    for record in records:
        if not record.logs or is_genai_scope(record.scope):
            continue
        kinds = [None if part.name in EVENTS or describes(part, record) else kind_of_part(part) for part in record.logs]
        found += [Logged(kind, part, record) for kind, part in zip(kinds, record.logs, strict=True) if kind is not None]
        if LLM in kinds or TOOL in kinds:
            record.logs = [part for kind, part in zip(kinds, record.logs, strict=True) if kind not in (LLM, TOOL)]
            record.dialects = None
    return sorted(found, key=lambda logged: logged.part.time_ns)


def calls_of_turn(root: SpanRecord, records: Sequence[SpanRecord], loose: Iterable[LogPart] = ()) -> list[SpanRecord]:
    """Return a turn's logged calls. Add the turn's first logged prompt and, if needed, its last answer to the root span."""
    logged = take_logged(records, loose)
    add_prompt(logged, root)
    calls = calls_in(logged, records, [root]) if logged else []
    add_answers(logged, {record.span_id: record for record in (*records, *calls)}, [root])
    return [*calls]


def add_prompt(logged: Sequence[Logged], root: SpanRecord) -> None:
    first = next((one for one in logged if one.kind == PROMPT), None)
    if first is not None and first.writer is not root:
        join_logs(root, [first.part])


def add_answers(logged: Sequence[Logged], by_id: Mapping[int, SpanRecord], roots: Sequence[SpanRecord]) -> None:
    """If a prompt is logged and no model span has an answer, add each turn's last logged answer to the turn's root."""
    answers = [one for one in logged if one.kind == ANSWER]
    if not answers or all(one.kind != PROMPT for one in logged):
        return
    if any(role_in(record) == LLM and read(record).output_messages is not None for record in by_id.values()):
        return
    last: dict[int, tuple[SpanRecord, Logged]] = {}
    for one in answers:
        above = {span.span_id for span in _path(one.writer, by_id)}
        root = next((root for root in roots if root.span_id in above), None) or _running(roots, one.part.time_ns)
        if root is not None:
            last[root.span_id] = root, one
    for root, one in last.values():
        stated = role_in(root) == WORKFLOW and root.dialects.inferred
        root.logs = [part for part in root.logs if kind_of_part(part) != ANSWER]
        join_logs(root, [one.part])
        if stated:
            state_role(root, WORKFLOW)


def turns_by_prompts(logged: Sequence[Logged], by_id: Mapping[int, SpanRecord], models: Iterable[SpanRecord]) -> list[SpanRecord]:
    """Add a session's prompts to its turns. Return the turns' roots (topmost spans with some, but not all, prompts), or ``[]``."""
    prompts = [one for one in logged if one.kind == PROMPT]
    if len(prompts) < 2:
        return []
    written = [*_with_writers(logged, by_id)]
    paths = [_path(writer, by_id) for one, writer in written if one.kind == PROMPT]
    if not all(paths):
        return []
    level = next(
        (level for level, spans in enumerate(zip(*paths, strict=False)) if any(span is not spans[0] for span in spans)), None
    )
    if level is None or any(role_in(span) in (AGENT, WORKFLOW) for span in paths[0][:level]):
        return []
    found = {path[level].span_id: path[level] for path in paths if len(path) > level}
    callers = [*models, *(writer for one, writer in written if one.kind == LLM)]
    if not found.keys() <= {span.span_id for caller in callers for span in _path(caller, by_id)}:
        return []
    for one, path in zip(reversed(prompts), reversed(paths), strict=True):
        if path[level:] and one.writer is not path[level]:
            join_logs(path[level], [one.part])
    for span in found.values():
        if role_in(span) not in (AGENT, WORKFLOW):
            state_role(span, WORKFLOW)
    return [*found.values()]


def _with_writers(logged: Iterable[Logged], by_id: Mapping[int, SpanRecord]) -> Iterator[tuple[Logged, SpanRecord | None]]:
    """Yield (record, writing span). If this span is unknown, use the innermost running span, or None if none or several ran."""
    starts = sorted(by_id.values(), key=_START, reverse=True)
    running: list[SpanRecord] = []
    for one in logged:
        time_ns = one.part.time_ns
        while starts and starts[-1].start_ns <= time_ns:
            running.append(starts.pop())
        running = [span for span in running if span.end_ns >= time_ns]
        alone = bool(running) and len(running) <= len(_path(running[-1], by_id))
        yield one, one.writer or (running[-1] if alone else None)


def _path(span: SpanRecord | None, by_id: Mapping[int, SpanRecord]) -> list[SpanRecord]:
    path: list[SpanRecord] = []
    while span is not None and len(path) < _DEEPEST:
        path.append(span)
        span = by_id.get(span.parent_id)
    return path[::-1]


def calls_in(logged: Sequence[Logged], records: Sequence[SpanRecord], roots: Sequence[SpanRecord]) -> list[LoggedCall]:
    """Return logged calls, including those with spans. A call without a known span or writer belongs to the only (running) turn."""
    steps = [read(record) for record in records if role_in(record) in (LLM, TOOL) and not isinstance(record, LoggedCall)]
    model_spans = [step for step in steps if step.role == LLM]
    tools = [one for one in logged if one.kind == TOOL]
    models = [one for one in logged if one.kind == LLM]
    requested = _requested(model_spans)
    if requested is not None:
        tools = [one for one in tools if tool_in(one.part) in requested]
    matched = [*_by_tool(tools, [step for step in steps if step.role == TOOL])]
    matched += _by_model(models, model_spans, {record.span_id: record for record in records})
    used = {id(one) for one, _ in matched}
    for one in logged:
        if one.kind in (LLM, TOOL) and one.writer is not None and id(one) not in used:
            join_logs(one.writer, [one.part])  # not a call of this turn
    spans = ((one, span or one.writer or _running(roots, one.part.time_ns)) for one, span in matched)
    found = [call_of(one.part, one.kind, span) for one, span in spans if span is not None]
    return [*{call.span_id: call for call in found}.values()]


def _running(roots: Sequence[SpanRecord], time_ns: int) -> SpanRecord | None:
    found = roots if len(roots) == 1 else [root for root in roots if root.start_ns <= time_ns <= root.end_ns]
    return found[0] if len(found) == 1 else None


def _requested(steps: Iterable[Step]) -> set[str | None] | None:
    answers = [step.output_messages for step in steps if step.output_messages is not None]
    calls = (call for answer in answers for message in decode(answer, "assistant").messages for call in message.tool_calls)
    return {key for call in calls for key in (call.name, call.call_id)} if answers else None


Matched = Iterable[tuple[Logged, SpanRecord | None]]
"""Pairs (log record, span of the logged call). The span is None if the call doesn't have a span."""


def _by_tool(logged: Sequence[Logged], steps: Sequence[Step]) -> Matched:
    """Match logged tool calls with spans by writer or call ID. If a tool has as many calls as spans, also match by tool name."""
    ids = {step.tool_call_id: step.record for step in steps if step.tool_call_id}
    calls = [(one, read(call_of(one.part, TOOL, one.writer or _NOWHERE))) for one in logged]
    others: list[tuple[Logged, Step]] = []
    for one, call in calls:
        span = one.writer if one.writer is not None and role_in(one.writer) == TOOL else ids.get(call.tool_call_id or "")
        if span is not None:
            yield one, span
        elif call.tool_name:
            others.append((one, call))
    alike: dict[str | None, list[Logged]] = {}
    for one, call in others:
        alike.setdefault(call.tool_name, []).append(one)
    without_id = {call.tool_name for _, call in others if not call.tool_call_id}
    with_name: dict[str | None, list[SpanRecord]] = {}
    for step in steps:
        if not step.tool_call_id or step.tool_name in without_id:
            with_name.setdefault(step.tool_name, []).append(step.record)
    for name, ones in alike.items():
        spans = with_name.get(name, [])
        if not spans or len(spans) == len(ones):
            yield from zip_longest(ones, spans)


def _by_model(logged: Sequence[Logged], steps: Sequence[Step], by_id: dict[int, SpanRecord]) -> Matched:
    own = [one for one in logged if one.writer is not None and _is_in_call(one.writer, by_id)]
    yield from ((one, one.writer) for one in own)
    owned = set(map(id, own))
    rest = _without_repetitions([one for one in logged if id(one) not in owned])
    if not steps:
        yield from ((one, None) for one in rest)
    elif own or not rest:
        return
    elif len(steps) == len(rest) and all(step.input_tokens is None and step.output_tokens is None for step in steps):
        yield from zip(rest, [step.record for step in steps], strict=True)
    elif len(steps) == 1 and sum(_tokens_of(one)[1] or 0 for one in rest) == steps[0].output_tokens:
        yield from ((one, steps[0].record) for one in rest)


def _without_repetitions(logged: Sequence[Logged]) -> list[Logged]:
    """Drop records that log the same calls again with another event name and equal token counts."""
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
