"""Find one span for each model call in a turn.

Several spans can describe one model call. A model span inside another model span is usually a duplicate, such as an SDK's span in
a framework's span. Usually, two model spans are also duplicates if they have the same parent and one ran during the other, or if
they have the same response ID. Because some servers reuse response IDs, :func:`is_next_call` also compares times and texts. Values
that a call's span lacks are copied from its duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ...core.turn import Message
from ...dialects.generic.events import LoggedCall
from ...dialects.step import AGENT, INNER, LLM, TOOL, WORKFLOW, Step
from .steps import END, START, TurnSteps

_MERGED = (
    "model", "provider", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd", "finish_reason",
    "response_id", "service_tier", "time_to_first_token_s", "input_messages", "output_messages", "system", "tool_definitions", "logprobs",
)  # fmt: skip
_SDK_SCOPES = ("com.anthropic.",)
"""Instrumentation scopes of model providers' SDKs. Token counts from these scopes take precedence."""
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_COUNTS_OF_MODEL = (*_COUNTS, "model", "provider")
_LLM_OR_LOOP = (LLM, AGENT, TOOL, WORKFLOW)
CLOCK_STEP_NS = 2_000_000
"""Nanoseconds of tolerance, because OpenTelemetry JS rounds start times to milliseconds, and callbacks can end spans late."""
_LAYERS = 8
_MOST_COMPARED = 64
"""Maximum number of earlier spans that are compared with a span. A span's duplicate usually began shortly before the span."""


def find_calls(turn: TurnSteps) -> tuple[list[Step], list[Step]]:
    """Return (one span per model call by start time, agent loop spans). The loop spans can have token counts that calls lack."""
    loops = [step for step in turn.of_role.get(AGENT, ()) if step.loop]
    if LLM not in turn.of_role:
        return [turn.root] if turn.root.calls_model else [], loops
    steps = turn.of_role[LLM]
    parents = {step.record.parent_id for step in turn.steps}
    nested = any(step.record.span_id in parents for step in steps)
    if nested and (len(steps) > 2 or any(step.loop for step in steps)):
        loops += _open_loops(turn)
    calls = _without_duplicates(turn, nested)
    counted = {id(turn.tree.nearest(one, "loop", lambda at: at.loop)) for one in calls if loops and one.output_tokens is not None}
    return calls, [loop for loop in loops if id(loop) not in counted]


def _open_loops(turn: TurnSteps) -> list[Step]:
    """Mark model spans that cover whole agent loops as inner steps. Return the loops whose model calls all lack token counts. A
    model span covers a loop if its dialect marks it as a loop, or if its token counts equal the sums for the calls below the span.
    """
    totals = []
    calls_in, below = _calls_below(turn)
    for span_id, held in below.items():
        loop = turn.by_id[span_id]
        calls = calls_in.get(span_id, []) if loop.loop else held if _sums_up(loop, held) else []
        if not calls:
            continue
        _move_facts(loop, calls)
        layers = (layer for call in calls for layer in (call, *calls_in.get(call.record.span_id, ())))
        if all(layer.input_tokens is None and layer.output_tokens is None for layer in layers):
            totals.append(loop)
    opened = [step for step in turn.of_role[LLM] if step.role != LLM]
    if opened:
        turn.of_role[LLM] = [step for step in turn.of_role[LLM] if step.role == LLM]
        turn.of_role[INNER] = sorted((*turn.of_role.get(INNER, ()), *opened), key=START)
        turn.drop_tree()  # cached lookups depend on roles
    return totals


def _calls_below(turn: TurnSteps) -> tuple[dict[int, list[Step]], dict[int, list[Step]]]:
    """Return two maps from model span IDs to the model spans below. Only the second map includes spans in agent runs and tools."""
    calls_in: dict[int, list[Step]] = {}
    below: dict[int, list[Step]] = {}
    for step in turn.of_role[LLM]:
        around = None if step.loop else turn.nearest(step, _LLM_OR_LOOP)
        if around is not None and around.role == LLM:
            calls_in.setdefault(around.record.span_id, []).append(step)
        summary = around if around is None or around.role == LLM else turn.nearest(around, (LLM,))
        if summary is not None:
            below.setdefault(summary.record.span_id, []).append(step)
    return calls_in, below


def _without_duplicates(turn: TurnSteps, nested: bool) -> list[Step]:
    """Return one span per call, completed with its duplicates' values. ``nested`` is True if model spans contain model spans."""
    leaves: list[Step] = []
    by_response: dict[str, Step] = {}
    steps = turn.of_role[LLM]
    if any(step.secondhand for step in steps):
        steps = [step for step in steps if not step.secondhand] or steps
    outermost: dict[int, Step | None] = {}
    if any(step.totals is not None for step in steps):
        _share_totals(turn, steps)
    any_separate = any(step.answer_only for step in steps)
    senders: dict[tuple[str, int], Step] = {}
    twins: dict[tuple[int, int, int], Step] = {}
    duplicates = _duplicates(turn, steps) if any(step.record.scope != steps[0].record.scope for step in steps) else {}
    for step in steps:
        record = step.record
        twin = twins.setdefault((record.parent_id, record.start_ns, record.end_ns), step)
        call = (
            (_outer_llm(turn, step, outermost) if nested else None)
            or _of_response(turn, step, by_response)
            or duplicates.get(record.span_id)
            # recorded by two callbacks; without times, equal calls can be two calls
            or (twin if twin is not step and record.duration_s and twin.record.attributes == record.attributes else None)
            # the call below the span that sent the request (SDK with its own spans)
            or (senders.get((record.scope, record.parent_id)) if step.answer_only else None)
        )
        if call is not None:
            _fill_call(call, step)
            turn.forget_messages(call)
            continue
        leaves.append(step)
        if step.response_id:
            by_response[step.response_id] = step
        if any_separate:
            _add_sender(turn, step, senders)
    for step in leaves:
        if step.error is None and step.output_tokens is None:
            consumer = turn.parent(step)  # the consumer failed to read the stream after the span ended
            if consumer is not None and consumer.error is not None and _failed_with(turn, consumer, step, step is leaves[-1]):
                step.error = consumer.error
    return leaves


def _failed_with(turn: TurnSteps, consumer: Step, step: Step, is_last: bool) -> bool:
    """Return True if ``consumer``, an agent run or loop step, failed because the call ``step`` didn't return anything."""
    if consumer.role == INNER:
        return step.deferred and step.output_messages is None
    if not is_last or consumer.role != AGENT or step.response_id is not None or step.finish_reason is not None:
        return False
    return not any(message.content or message.tool_calls for message in turn.outputs(step))


def _of_response(turn: TurnSteps, step: Step, by_response: dict[str, Step]) -> Step | None:
    """Return the earlier span of the same call with the same response ID, or None. Some servers reuse response IDs."""
    call = by_response.get(step.response_id) if step.response_id else None
    if call is None or not (call.deferred or step.record.start_ns <= call.record.end_ns + CLOCK_STEP_NS):
        return None
    if is_next_call(turn, call, turn, step):
        return None
    return call if _is_alike(turn, call, step) or None in (call.output_tokens, step.output_tokens) else None


def is_next_call(turn: TurnSteps, call: Step, of_next: TurnSteps, step: Step) -> bool:
    """Return True if ``step`` is a separate call after ``call``, even if their response IDs or token counts are equal."""
    one, other = call.record, step.record
    shorter_ns = min(one.end_ns - one.start_ns, other.end_ns - other.start_ns)
    if one.start_ns == other.start_ns or one.end_ns - other.start_ns > min(CLOCK_STEP_NS, shorter_ns // 2):
        return False
    if one.scope == other.scope and not call.deferred and one.resource_attributes == other.resource_attributes:
        return True
    said, says = _said(turn.outputs(call)), _said(of_next.outputs(step))
    known = [before == now for before, now in zip(said, says, strict=True) if before and now]
    if any(said) and any(says) and not (known and all(known)):
        return True
    earlier, repeated = ([one for one in of.inputs(at) if one.role == "assistant"] for of, at in ((turn, call), (of_next, step)))
    return any(said) and len(repeated) > len(earlier) and _said(repeated[-1:]) == said


def _said(answers: list[Message]) -> tuple[list[str], list[tuple[str | None, str]]]:
    requests = [(one.name, str(one.arguments)) for answer in answers for one in answer.tool_calls]
    return " ".join(answer.content or "" for answer in answers).split(), requests


def _duplicates(turn: TurnSteps, steps: list[Step]) -> dict[int, Step]:
    """For each call that two instrumentations recorded, map the inner span's ID to the outer span. Either the spans have the same
    parent, and one span ran during the other, or they overlap in one agent run, and have equal token counts or answers.
    """
    found: dict[int, Step] = {}
    running: dict[tuple[bool, int, str], list[Step]] = {}
    scopes = [*dict.fromkeys(step.record.scope for step in steps)][:_LAYERS]
    taken: set[int] = set()
    for step in steps:
        record = step.record
        places = _places(turn, step)
        for alike, place in places:
            spans = running.get((alike, place, record.scope))
            outer = _take_duplicate(spans, step, taken, partial(_is_alike, turn) if alike else None) if spans else None
            if outer is not None:
                found[record.span_id] = outer
                taken.add(outer.record.span_id)
                break
        else:
            for alike, place in places:
                for scope in scopes:
                    if scope != record.scope:  # this span may be around a span of another scope
                        running.setdefault((alike, place, scope), []).append(step)
    return found


def _places(turn: TurnSteps, step: Step) -> list[tuple[bool, int]]:
    parent = (False, step.record.parent_id)
    run = turn.nearest(step, _LLM_OR_LOOP)
    if run is None:
        return [parent, (True, 0)]
    return [parent] if run.role == LLM else [parent, (True, run.record.span_id)]


def _is_alike(turn: TurnSteps, one: Step, other: Step) -> bool:
    """Return True if two spans have equal token counts or, if an output count is unknown, equal answers."""
    counts = (one.input_tokens, one.output_tokens)
    if counts == (other.input_tokens, other.output_tokens) and one.input_tokens and one.output_tokens:
        return True
    if one.output_tokens is not None and other.output_tokens is not None:
        return False
    answers = [message.content for message in turn.outputs(one)]
    return any(answers) and answers == [message.content for message in turn.outputs(other)]


def _add_sender(turn: TurnSteps, step: Step, senders: dict[tuple[str, int], Step]) -> None:
    if step.deferred:
        senders[step.record.scope, step.record.parent_id] = step
    sender = turn.parent(step)
    if sender is not None:
        senders[sender.record.scope, sender.record.parent_id] = step


def _share_totals(turn: TurnSteps, steps: list[Step]) -> None:
    """Convert running token totals, which some instrumentations write, to token counts per call. If a streamed call requested
    tools, its span contains the later calls' spans, and repeats their values. Remove these repetitions.
    """
    latest: dict[int, Step] = {}
    for step in steps:
        if step.totals is None:
            continue
        ancestor = turn.nearest(step, _LLM_OR_LOOP)
        if ancestor is not None and ancestor.totals is not None:
            ancestor.input_tokens = ancestor.output_tokens = ancestor.response_id = ancestor.output_messages = None
            ancestor.finish_reason = "tool_calls"
        before = latest.get(step.record.parent_id)
        latest[step.record.parent_id] = step
        if before is not None and before.totals is not None and before.finish_reason == "tool_calls":
            input_tokens, output_tokens = step.totals[0] - before.totals[0], step.totals[1] - before.totals[1]
            if input_tokens >= 0 and output_tokens >= 0:
                step.input_tokens, step.output_tokens = input_tokens, output_tokens


def _outer_llm(turn: TurnSteps, step: Step, outermost: dict[int, Step | None]) -> Step | None:
    """Return the topmost model span above ``step`` that records the same call, or None. ``outermost`` is a cache."""
    path: list[Step] = []
    at = step
    while id(at) not in outermost:
        outermost[id(at)] = None
        path.append(at)
        ancestor = turn.nearest(at, _LLM_OR_LOOP)
        if ancestor is None or ancestor.role != LLM or _is_later_call(turn, at, ancestor):
            break
        at = ancestor
    top = outermost[id(at)] or at
    for passed in path:
        if passed is not top:
            outermost[id(passed)] = top
    return outermost[id(step)]


def _is_later_call(turn: TurnSteps, step: Step, outer: Step) -> bool:
    """Return True if ``step`` is a separate call from the span ``outer`` around it, judging by times, token counts, and answers."""
    if step.totals is not None and outer.totals is not None:
        return True
    if isinstance(step.record, LoggedCall):  # its time is the time of a log record
        return False
    if is_next_call(turn, outer, turn, step):
        return True
    if outer.guesses_tokens or (step.response_id and step.response_id == outer.response_id) or _is_alike(turn, outer, step):
        return False
    answers = turn.outputs(outer)
    if not answers and not outer.output_tokens:
        return False
    if any(one.content for one in answers) and [one.content for one in answers] == [one.content for one in turn.outputs(step)]:
        return False
    if not outer.deferred and outer.record.end_ns + CLOCK_STEP_NS < step.record.start_ns:
        return True
    # the outer span may exclude cached tokens
    new_tokens = (step.input_tokens or 0) - (step.cached_tokens or 0) - (step.cache_write_tokens or 0)
    return outer.record.scope == step.record.scope and 0 < (outer.input_tokens or 0) < new_tokens


def _move_facts(loop: Step, calls: list[Step]) -> None:
    loop.role = INNER
    for call in calls:
        fill(call, loop, ("model", "provider"))
    fill(calls[0], loop, ("input_messages", "system", "tool_definitions"))
    last = max(calls, key=END)
    fill(last, loop, ("finish_reason",))
    last.error = last.error or loop.error


def fill(target: Step, source: Step, names: Iterable[str]) -> None:
    for name in names:
        if getattr(target, name) is None:
            value = getattr(source, name)
            if value is not None:
                setattr(target, name, value)


def _fill_call(target: Step, source: Step) -> None:
    """Fill in missing values of ``target`` from its duplicate ``source``. If ``source`` has better token counts, use those."""
    if source.verbatim or (target.texts_only and not source.texts_only):
        for name in ("input_messages", "output_messages"):
            if getattr(source, name) is not None:
                setattr(target, name, getattr(source, name))
    if _counts_more(source, target):
        for name in _COUNTS if source.model is None or _is_same_model(target, source) else _COUNTS_OF_MODEL:
            setattr(target, name, getattr(source, name))
    fill(target, source, _MERGED)
    if source.answer_only and source.record.parent_id == target.record.parent_id and target.duration_s is None:
        target.duration_s = (source.record.end_ns - target.record.start_ns) / 1e9
    if target.finish_reason == "error" and target.error is None:
        target.error = source.error
    if target.record.name == "call_llm" and target.duration_s is None:  # ADK's span includes the tool runs
        target.duration_s = source.record.duration_s


def _counts_more(source: Step, target: Step) -> bool:
    if source.input_tokens is None or source.output_tokens is None:
        return False
    if target.guesses_tokens or not (target.input_tokens or target.output_tokens) or source.record.scope.startswith(_SDK_SCOPES):
        return True
    return bool(source.cached_tokens or source.cache_write_tokens) and not (target.cached_tokens or target.cache_write_tokens)


def _take_duplicate(
    running: list[Step], step: Step, taken: set[int], is_alike: Callable[[Step, Step], bool] | None
) -> Step | None:
    """Remove and return the latest matching span in ``running``, or None. If ``is_alike`` is None, ``step`` must have run during it."""
    record = step.record
    found: Step | None = None
    ended = compared = 0
    for index in range(len(running) - 1, -1, -1):
        outer = running[index]
        if not outer.deferred and outer.record.end_ns < record.start_ns:
            ended += 1
            continue
        if outer.record.span_id in taken:
            running.pop(index)
            continue
        fits = is_alike is not None or outer.deferred or outer.record.end_ns + CLOCK_STEP_NS >= record.end_ns
        if fits and _same_call(outer, step) and (is_alike is None or is_alike(outer, step)):
            found = running.pop(index)
            break
        compared += 1
        if compared == _MOST_COMPARED:
            break
    if ended > _MOST_COMPARED:  # skip ended spans next time
        running[:] = [one for one in running if one.deferred or one.record.end_ns >= record.start_ns]
    return found


def _sums_up(step: Step, calls: list[Step]) -> bool:
    given, made = ([count for call in calls if (count := getattr(call, name))] for name in ("input_tokens", "output_tokens"))
    return len(made) > 1 and (step.input_tokens, step.output_tokens) == (sum(given), sum(made))


def _same_call(one: Step, other: Step) -> bool:
    if one.response_id and other.response_id:
        return one.response_id == other.response_id
    if one.output_tokens is not None and other.output_tokens is not None and one.output_tokens != other.output_tokens:
        return False
    return _is_same_model(one, other)


def _is_same_model(one: Step, other: Step) -> bool:
    first, second = one.model or "", other.model or ""  # the request's model is often a prefix of the response's model
    return bool(first and second) and (first.startswith(second) or second.startswith(first))
