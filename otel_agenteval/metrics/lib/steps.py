"""What an agent did, as a judge reads it: a numbered list of steps, one line each, in the order in which they happened.

    1. said: I look up the order first.
    2. tool get_order(id="A-17") → ok: {"status":"shipped"}
    3. agent billing, called by support
    4. [billing] tool refund(order="A-17", amount=20.0) → error: Timeout: no reply in 10 s
    5. hand-off billing → support

A step says who (the agent, where there are several), what, with which arguments, what came of it and whether it failed. It has no raw
attributes, no ids but those in arguments and results, no times and no prompts. Long fields keep their heads and tails, and of a long list
the first and the last steps stay; marks say what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...core import jsonio
from ...core.turn import ErrorInfo, Message, SpanInfo, ToolCall, Turn

ARGUMENT_CHARS = 1_000
"""Of a call's arguments, which are what many judgements are about."""
RESULT_CHARS = 500
"""Of a call's result, an error, or what a step that we do not know says of itself."""
REMARK_CHARS = 700
"""Of what the agent said on the way, which may be its plan."""
STEPS = 100
TOTAL_CHARS = 16_000
"""Of all steps together, about 4,000 tokens."""
_OWN_CHARS, _OWN = 80, 4
"""Of an attribute that an application set on a span of its own, and how many of them."""
_CONVENTIONS = (
    "gen_ai.", "llm.", "openinference.", "traceloop.", "otel.", "telemetry.", "service.", "process.", "host.", "code.", "thread.", "session.", "user.",
    "metadata", "langfuse.", "langsmith.", "logfire.", "input.", "output.", "graph.", "agenteval.", "tool.", "tool_call.", "message.", "retrieval.",
    "embedding.", "crewai.", "crew_", "task_", "ai.", "agent.", "agentops.", "pydantic_ai.", "mlflow.", "weave.", "model_", "exception.", "error.", "langgraph.",
)  # fmt: skip
"""Namespaces of conventions and libraries: what counts of them is in the turn already."""
_INFRASTRUCTURE = ("http.", "url.", "net.", "network.", "server.address", "db.", "rpc.", "messaging.")
"""Of spans that are no step of an agent."""
_AGAIN = ('"messages"', '"outputs": null', '"outputs":null', '"langgraph_', '"ls_integration"')
"""What marks the state of a framework."""
_IDS = ("id", "ids", "uuid", "hash", "timestamp", "_at", "version")
"""How attributes end that no judgement is about."""
_IN_THE_TURN = frozenset(
    ("embeddings", "embedding", "invoke_agent", "create_agent", "retrieval", "retriever", "reranker", "agent")
)
"""Operations and kinds of spans whose texts are elsewhere in the turn."""
_PROMPTS = ("input.messages", "input_messages", "prompt", "system_instructions", "tool.definitions", "tools")
"""Attributes that repeat the input of every model call."""
_INPUTS = ("input.value", "traceloop.entity.input", "gen_ai.task.input")
_OUTPUTS = ("output.value", "traceloop.entity.output", "gen_ai.task.output")

Item = TypeVar("Item")
Shorten = Callable[[str, int], str]


def shortened(text: str, limit: int) -> str:
    """A text of about ``limit`` characters: its head and its tail, and between them a mark of how much is missing."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail]} [… {len(text) - limit} characters left out …] {text[len(text) - tail :] if tail else ''}".rstrip()


def ends_of(items: Sequence[Item], limit: int) -> tuple[Sequence[Item], Sequence[Item], int]:
    """The first and the last items that fit the limit, and how many between them do not."""
    if len(items) <= limit:
        return items, (), 0
    first = limit - limit // 2
    return items[:first], items[len(items) - limit // 2 :], len(items) - limit


def steps_of(turn: Turn, *, most: int = STEPS, chars: int = TOTAL_CHARS) -> str:
    """All that the agent did, one step a line; nothing when the turn knows of no step.

    Args:
        turn: whose steps.
        most: steps that are listed; past it the middle ones are left out.
        chars: of all lines together, about; past it too.
    """
    return numbered_lines(_every_step(turn), most=most, chars=chars)


def calls_as_text(
    calls: Sequence[ToolCall],
    *,
    most: int | None = STEPS,
    argument_chars: int = ARGUMENT_CHARS,
    result_chars: int = RESULT_CHARS,
    shorten: Shorten = shortened,
) -> str:
    """Tool calls alone, one a line, in order.

    Args:
        calls: which ones.
        most: past it the middle ones are left out; None for all of them, where each gets a verdict.
        argument_chars: of the arguments of one call.
        result_chars: of its result; 0 leaves out results, but not the outcome.
        shorten: how arguments and results are cut, where a metric promises another way.
    """
    several = _several(calls)
    lines = [_call(call, several, argument_chars, result_chars, shorten) for call in calls]
    return numbered_lines(lines, most=len(lines) if most is None else most, chars=None, what="calls")


def messages_as_text(messages: Sequence[Message]) -> str:
    """What was said, one message a line: ``user: …``. Those without a text are left out."""
    return "\n".join(f"{one_line(message.role)}: {one_line(message.content)}" for message in messages if message.content)


def tools_as_text(definitions: Sequence[Mapping[str, Any]], *, most: int = 200) -> str:
    """Tools that the agent had: ``- name(parameter: type, optional?: type): description``, with what the schema says of each parameter."""
    first, last, left_out = ends_of(definitions, most)
    lines = [_tool(one) for one in first]
    if left_out:
        lines.append(f"[… {left_out} tools left out …]")
    return "\n".join([*lines, *map(_tool, last)])


def numbered_lines(lines: Sequence[str], *, most: int = STEPS, chars: int | None = TOTAL_CHARS, what: str = "steps") -> str:
    """Lines by number; past the limits the middle ones are left out, and a mark says how many."""
    kept = most
    if chars is not None:
        while kept > 2 and sum(map(len, _both(ends_of(lines, kept)))) > chars:
            kept = kept * 3 // 4
    first, last, left_out = ends_of(lines, kept)
    found = [f"{number}. {line}" for number, line in enumerate(first, 1)]
    if left_out:
        found.append(f"[… {left_out} {what} left out …]")
    return "\n".join([*found, *(f"{number}. {line}" for number, line in enumerate(last, len(lines) - len(last) + 1))])


def _both(ends: tuple[Sequence[str], Sequence[str], int]) -> Iterator[str]:
    yield from ends[0]
    yield from ends[1]


# --- one step


def failure_of(error: ErrorInfo) -> str:
    """An error in words."""
    return shortened(one_line(": ".join(part for part in (error.type, error.message) if part) or "failed"), RESULT_CHARS)


def _call(
    call: ToolCall,
    several: bool,
    argument_chars: int = ARGUMENT_CHARS,
    result_chars: int = RESULT_CHARS,
    shorten: Shorten = shortened,
) -> str:
    """One call: ``[agent] tool name(argument=value, …) → ok: result``."""
    agent = f"[{one_line(call.agent)}] " if several and call.agent else ""
    arguments = _arguments(call.arguments, argument_chars, shorten)
    return f"{agent}tool {one_line(call.name)}({arguments}) → {_outcome(call, result_chars, shorten)}"


def _arguments(arguments: Mapping[str, Any] | None, limit: int, shorten: Shorten) -> str:
    if arguments is None:
        return "arguments unknown"
    return shorten(one_line(", ".join(f"{key}={jsonio.text_of([value])[1:-1]}" for key, value in arguments.items())), limit)


def _outcome(call: ToolCall, limit: int, shorten: Shorten) -> str:
    result = None if call.result is None else shorten(one_line(jsonio.text_of(call.result)), limit) if limit else ""
    if call.permission_denied or call.error is not None:
        failure = "" if call.error is None else failure_of(call.error)
        failed = ": ".join(part for part in (("permission denied" if call.permission_denied else "error"), failure) if part)
        return f"{failed}; result: {result}" if result and result not in failure else failed
    if result is None:
        return "result unknown"
    return f"ok: {result or '(empty)'}" if limit else "ok"


def one_line(text: str) -> str:
    """A text in one line, so that none can look like another step."""
    return " ⏎ ".join(part for part in map(str.strip, text.splitlines()) if part)


def _tool(definition: Mapping[str, Any]) -> str:
    schema = definition.get("parameters")
    parameters = _parameters(schema, _DEEPEST) if isinstance(schema, Mapping) else "…"
    about = shortened(str(definition.get("description") or "").strip(), REMARK_CHARS)
    return one_line(f"- {definition.get('name') or '(unnamed)'}({parameters})" + (f": {about}" if about else ""))


def _parameters(schema: Mapping[str, Any], depth: int) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    needed = set(map(str, required)) if isinstance(required, (list, tuple)) else set()
    given = properties.items() if isinstance(properties, Mapping) else ()
    return ", ".join(_parameter(str(key), value, str(key) in needed, depth) for key, value in given)


_DEEPEST = 2
"""Objects within parameters that are shown with theirs."""
_CONSTRAINTS = ("default", "minimum", "maximum", "format", "pattern")


def _parameter(name: str, schema: Any, required: bool, depth: int) -> str:
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    items = known.get("items")
    kind = known.get("type")
    words = "|".join(map(str, kind)) if isinstance(kind, (list, tuple)) else str(kind or "any")
    if words == "array" and isinstance(items, Mapping) and items.get("type"):
        words = f"{items['type']}[]"
    if isinstance(known.get("enum"), (list, tuple)):
        words = "|".join(map(jsonio.text_of, known["enum"]))
    elif isinstance(known.get("properties"), Mapping) and depth:
        words = f"{{{_parameters(known, depth - 1)}}}"
    notes = [f"{key} {jsonio.text_of(known[key])}" for key in _CONSTRAINTS if known.get(key) is not None]
    if known.get("description"):
        notes.append(one_line(str(known["description"])))
    said = f" ({shortened('; '.join(notes), 160)})" if notes else ""
    return f"{name}{'' if required else '?'}: {shortened(words, 400)}{said}"


# --- all of them, in order


def _every_step(turn: Turn) -> list[str]:
    """Spans in their order; before a call what the agent said with it, after them what has no place of its own."""
    calls = turn.tool_calls or []
    several = _several(calls) or len({run.name for run in turn.agent_runs if run.name}) > 1
    by_span: dict[str, list[ToolCall]] = {}
    for call in calls:
        if call.span_id is not None:
            by_span.setdefault(call.span_id, []).append(call)
    said = _Remarks(turn)
    runs = {run.span_id: run for run in turn.agent_runs[1:] if run.span_id is not None}
    models = {call.span_id: call for call in turn.llm_calls if call.span_id is not None}
    recognised = {span.id for span in turn.spans if span.id in by_span or span.id in runs or span.id in models or _is_model(span)}
    wrappers = _above(turn.spans, recognised)
    found: list[str] = []
    for span in turn.spans:
        run, model = runs.get(span.id), models.get(span.id)
        if model is not None:
            found.append(f"model {one_line(model.model or '(unknown)')}{_failed(model.error)}")
        if span.id in by_span:  # several in a model's own span, where its server runs tools
            found += [line for call in by_span[span.id] for line in (*said.before(call), _call(call, several))]
            by_span[span.id] = []
        elif run is not None:
            parent = f", called by {one_line(run.parent)}" if run.parent else ""
            found.append(f"agent {one_line(run.name or span.name or '(unnamed)')}{parent}{_failed(run.error)}")
        elif model is None and (span.id not in wrappers or (not models and _is_model(span))):
            found += _of_span(span, turn)
    ids = {span.id for span in turn.spans}
    for call in calls:
        if call.span_id not in ids:
            found += [*said.before(call), _call(call, several)]
    retrieved = [
        f'retrieval "{shortened(one_line(one.query), RESULT_CHARS)}" → {len(one.documents)} documents'
        for one in turn.retrievals
        if one.query
    ]
    return [*said.rest(first=True), *retrieved, *found, *said.rest(first=False), *_handoffs(turn)]


def _failed(error: ErrorInfo | None) -> str:
    return "" if error is None else f" → error: {failure_of(error)}"


def _above(spans: Sequence[SpanInfo], recognised: Iterable[str]) -> set[str]:
    """Spans that have a step below them: a framework's own, whose texts are those of the steps."""
    parents = {span.id: span.parent for span in spans}
    found: set[str] = set()
    for start in recognised:
        at = parents.get(start)
        while at is not None and at not in found:
            found.add(at)
            at = parents.get(at)
    return found


def _several(calls: Iterable[ToolCall]) -> bool:
    return len({call.agent for call in calls if call.agent}) > 1


def _handoffs(turn: Turn) -> Iterator[str]:
    for handoff in turn.handoffs:
        failed = " → failed" if handoff.success is False else ""
        yield f"hand-off {one_line(handoff.from_ or '(unknown)')} → {one_line(handoff.to or '(unknown)')}{failed}"


class _Remarks:
    """What the agent said beside its tool calls since the user spoke last."""

    def __init__(self, turn: Turn) -> None:
        messages = turn.messages
        asked = max((place for place, one in enumerate(messages) if one.role == "user" and one.content), default=-1)
        self._by_call: dict[str, str] = {}
        self._first: list[str] = []
        calls = {call.call_id for call in turn.tool_calls or () if call.call_id is not None}
        for message in messages[asked + 1 :]:
            if message.role == "assistant" and message.tool_calls and message.content and message.content.strip():
                text = f"said: {shortened(one_line(message.content), REMARK_CHARS)}"
                place = next((request.call_id for request in message.tool_calls if request.call_id in calls), None)
                if place is None:
                    self._first.append(text)
                else:
                    self._by_call[place] = text

    def before(self, call: ToolCall) -> list[str]:
        """What was said with a call, once."""
        text = self._by_call.pop(call.call_id, None) if call.call_id is not None else None
        return [] if text is None else [text]

    def rest(self, *, first: bool) -> list[str]:
        """What has no call of its own, which stands first; and what is left of the others."""
        return self._first if first else list(self._by_call.values())


def _is_model(span: SpanInfo) -> bool:
    return span.attributes.get("gen_ai.request.model") is not None


def _of_span(span: SpanInfo, turn: Turn) -> list[str]:
    """A step that is in no other list of the turn: a model's by its name, others by what went in and came out."""
    attributes = span.attributes
    kind = str(attributes.get("openinference.span.kind") or attributes.get("gen_ai.operation.name") or "").lower()
    if kind in _IN_THE_TURN or any(key.startswith(_INFRASTRUCTURE) for key in attributes):
        return []
    if _is_model(span):
        return [f"model {one_line(str(attributes['gen_ai.request.model']))}"]
    texts = {word: _first_of(attributes, keys) for word, keys in (("in", _INPUTS), ("out", _OUTPUTS))}
    parts = [
        f"{word}: {shortened(one_line(text), RESULT_CHARS)}" for word, text in texts.items() if text and not _repeats(text, turn)
    ]
    own = [
        f"{key}={shortened(one_line(jsonio.text_of(value)), _OWN_CHARS)}"
        for key, value in attributes.items()
        if isinstance(value, (str, int, float, bool)) and not _is_noise(key)
    ]
    if attributes and not parts and not own:
        return []  # a framework's own: all that it has is in other steps
    name = f"step {one_line(span.name or '(unnamed)')}"
    says = "; ".join([*parts, *own[:_OWN]])
    return [one_line(f"{name}: {says}" if says else name)]


def _first_of(attributes: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((jsonio.text_of(attributes[key]) for key in keys if attributes.get(key) not in (None, "")), "")


def _repeats(text: str, turn: Turn) -> bool:
    """Whether what went in or came out is the conversation again, as frameworks write it, or nothing."""
    known = (turn.input, turn.output)
    return any(mark in text for mark in _AGAIN) or any(said.strip() in text for said in known if said and said.strip())


def _is_noise(key: str) -> bool:
    return key.startswith(_CONVENTIONS) or key.endswith(_IDS) or any(part in key for part in _PROMPTS)
