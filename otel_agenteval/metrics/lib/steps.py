"""Describe a turn to a judge as a numbered list of the agent's steps, one line per step.

::

    1. said: I look up the order first.
    2. tool get_order(id="A-17") → ok: {"status":"shipped"}
    3. agent billing, called by support
    4. [billing] tool refund(order="A-17", amount=20.0) → error: Timeout: no reply in 10 s
    5. hand-off billing → support

A tool call's step contains the agent (if there are several), the arguments, and the result or error. Times, prompts, most span
attributes, and IDs outside arguments and results are omitted. Long fields and lists are shortened in the middle, with a note
such as ``[… 12 steps left out …]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...core import jsonio
from ...core.turn import ErrorInfo, Message, SpanInfo, ToolCall, Turn
from .replies import numbered
from .values import word_list

ARGUMENT_CHARS = 1_000
RESULT_CHARS = 500
"""Maximum characters of a result, an error, a retrieval query, or the input or output of a custom span."""
REMARK_CHARS = 700
"""Maximum characters of a tool's description, or of the agent's remark between steps."""
STEPS = 100
TOTAL_CHARS = 16_000
"""Maximum characters of all steps together, about 4,000 tokens."""
_OWN_CHARS, _OWN = 80, 4
"""Maximum characters per attribute, and attributes per custom span (not a model, tool, retrieval, or agent span)."""
_INFRASTRUCTURE = ("http.", "url.", "net.", "network.", "server.address", "db.", "rpc.", "messaging.")
"""Attribute namespaces of spans that aren't agent steps."""
_AGAIN = ('"messages"', '"outputs": null', '"outputs":null', '"langgraph_', '"ls_integration"')
"""Signs that a text is a framework's internal state. Such texts are omitted."""
_IDS = ("id", "ids", "uuid", "hash", "timestamp", "_at", "version")
"""Attributes whose names end with one of these suffixes are omitted, because judges don't need them."""
_IN_THE_TURN = frozenset(
    ("embeddings", "embedding", "invoke_agent", "create_agent", "retrieval", "retriever", "reranker", "agent")
)
"""Operations and kinds of spans that aren't listed as custom spans, because other fields of the turn contain their texts."""
_PROMPTS = ("input.messages", "input_messages", "prompt", "system_instructions", "tool.definitions", "tools")
"""Attributes whose names contain one of these strings are omitted, because they repeat the input of model calls."""
_INPUTS = ("input.value", "traceloop.entity.input", "gen_ai.task.input")
_OUTPUTS = ("output.value", "traceloop.entity.output", "gen_ai.task.output")

Item = TypeVar("Item")
Shorten = Callable[[str, int], str]


def shortened(text: str, limit: int) -> str:
    """Shorten a text to about ``limit`` characters by replacing its middle with a note."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail]} [… {len(text) - limit} characters left out …] {text[len(text) - tail :] if tail else ''}".rstrip()


def ends_of(items: Sequence[Item], limit: int) -> tuple[Sequence[Item], Sequence[Item], int]:
    if len(items) <= limit:
        return items, (), 0
    first = limit - limit // 2
    return items[:first], items[len(items) - limit // 2 :], len(items) - limit


def steps_of(turn: Turn) -> str:
    """Return the turn's steps, one per line. If there are too many steps, the middle steps are omitted."""
    return numbered_lines(list(_StepWriter(turn).lines()))


def calls_as_text(
    calls: Sequence[ToolCall],
    *,
    most: int | None = STEPS,
    argument_chars: int = ARGUMENT_CHARS,
    result_chars: int = RESULT_CHARS,
    shorten: Shorten = shortened,
) -> str:
    """Return the tool calls in order, one per line.

    Args:
        calls: The tool calls.
        most: Maximum number of calls. If there are more, the middle calls are omitted. None includes all calls.
        argument_chars: Maximum length of one call's arguments.
        result_chars: Maximum length of one call's result. With 0, only the outcome is included, such as ``ok``.
        shorten: Function that shortens arguments and results.
    """
    several = _have_several_agents(calls)
    lines = [_call(call, several, argument_chars, result_chars, shorten) for call in calls]
    return numbered_lines(lines, most=len(lines) if most is None else most, chars=None, what="calls")


def tools_as_text(definitions: Sequence[Mapping[str, Any]], *, most: int = 200) -> str:
    """Return tools, one per line: ``- name(parameter: type, optional?: type): description``."""
    first, last, left_out = ends_of(definitions, most)
    mark = [f"[… {left_out} tools left out …]"] if left_out else []
    return "\n".join([*map(_tool, first), *mark, *map(_tool, last)])


def numbered_lines(lines: Sequence[str], *, most: int = STEPS, chars: int | None = TOTAL_CHARS, what: str = "steps") -> str:
    """Return numbered lines. Above the limits, a note replaces the middle lines."""
    kept = most
    first, last, left_out = ends_of(lines, kept)
    while chars is not None and kept > 2 and sum(map(len, (*first, *last))) > chars:
        kept = kept * 3 // 4
        first, last, left_out = ends_of(lines, kept)
    mark = f"[… {left_out} {what} left out …]" if left_out else ""
    return "\n".join(filter(None, (numbered(first), mark, numbered(last, len(lines) - len(last) + 1))))


# --- one step


def failure_of(error: ErrorInfo) -> str:
    return shortened(one_line(": ".join(part for part in (error.type, error.message) if part) or "failed"), RESULT_CHARS)


def _call(
    call: ToolCall,
    several: bool,
    argument_chars: int = ARGUMENT_CHARS,
    result_chars: int = RESULT_CHARS,
    shorten: Shorten = shortened,
) -> str:
    agent = f"[{one_line(call.agent)}] " if several and call.agent else ""
    arguments = "arguments unknown"
    if call.arguments is not None:
        given = ", ".join(f"{key}={jsonio.text_of([value])[1:-1]}" for key, value in call.arguments.items())
        arguments = shorten(one_line(given), argument_chars)
    return f"{agent}tool {one_line(call.name)}({arguments}) → {_outcome(call, result_chars, shorten)}"


def _outcome(call: ToolCall, limit: int, shorten: Shorten) -> str:
    result = None if call.result is None else shorten(one_line(jsonio.text_of(call.result)), limit) if limit else ""
    if call.state == "requested":
        return "not executed"
    if call.state == "declined" or call.error is not None:
        failure = "" if call.error is None else failure_of(call.error)
        failed = ": ".join(part for part in (("permission denied" if call.state == "declined" else "error"), failure) if part)
        return f"{failed}; result: {result}" if result and result not in failure else failed
    if result is None:
        return "result unknown"
    return f"ok: {result or '(empty)'}" if limit else "ok"


def one_line(text: str) -> str:
    """Join the lines of a text, so that a line can't imitate a step."""
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
"""Levels of nested objects whose parameters are shown."""
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
    about = f" ({shortened('; '.join(notes), 160)})" if notes else ""
    return f"{name}{'' if required else '?'}: {shortened(words, 400)}{about}"


# --- all steps in order


class _StepWriter:
    """Writer of a turn's steps, in this order: remarks without a tool call, retrievals, spans, other tool calls, and hand-offs."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._calls = turn.tool_calls or []
        names = {run.name for run in turn.agent_runs if run.name}
        self._have_several_agents = _have_several_agents(self._calls) or len(names) > 1
        self._first_remarks, self._remarks = _remarks(turn)
        self._calls_by_span: dict[str | None, list[ToolCall]] = {}
        for call in self._calls:
            self._calls_by_span.setdefault(call.span_id, []).append(call)
        self._runs = {run.span_id: run for run in turn.agent_runs[1:]}
        self._models = {call.span_id: call for call in turn.llm_calls if call.span_id is not None}
        recognized = {*self._calls_by_span, *self._runs, *self._models, *(span.id for span in turn.spans if _is_model(span))}
        parents: dict[str | None, str | None] = {span.id: span.parent for span in turn.spans}
        self._wrappers: set[str] = set()
        """IDs of spans above a recognized step. These spans aren't steps, because their texts repeat the step's text."""
        for start in recognized:
            at = parents.get(start)
            while at is not None and at not in self._wrappers:
                self._wrappers.add(at)
                at = parents.get(at)

    def lines(self) -> Iterator[str]:
        turn = self._turn
        yield from self._first_remarks
        for one in turn.retrievals:
            if one.query:
                yield f'retrieval "{shortened(one_line(one.query), RESULT_CHARS)}" → {len(one.documents)} documents'
        for span in turn.spans:
            run, model = self._runs.get(span.id), self._models.get(span.id)
            if model is not None:
                yield f"model {one_line(model.model or '(unknown)')}{_failed(model.error)}"
            if span.id in self._calls_by_span:  # a model span has several calls if the model's server runs tools
                yield from self._call_lines(self._calls_by_span[span.id])
                self._calls_by_span[span.id] = []
            elif run is not None:
                parent = f", called by {one_line(run.parent)}" if run.parent else ""
                yield f"agent {one_line(run.name or span.name or '(unnamed)')}{parent}{_failed(run.error)}"
            elif model is None and (span.id not in self._wrappers or (not self._models and _is_model(span))):
                yield from _other_span_lines(span, turn)
        ids = {span.id for span in turn.spans}
        yield from self._call_lines([call for call in self._calls if call.span_id not in ids])
        yield from self._remarks.values()
        for handoff in turn.handoffs:
            failed = " → failed" if handoff.success is False else ""
            yield f"hand-off {one_line(handoff.from_ or '(unknown)')} → {one_line(handoff.to or '(unknown)')}{failed}"

    def _call_lines(self, calls: Iterable[ToolCall]) -> Iterator[str]:
        for call in calls:
            if (remark := self._remarks.pop(call.call_id, None)) is not None:
                yield remark
            yield _call(call, self._have_several_agents)


def _failed(error: ErrorInfo | None) -> str:
    return "" if error is None else f" → error: {failure_of(error)}"


def _have_several_agents(calls: Iterable[ToolCall]) -> bool:
    return len({call.agent for call in calls if call.agent}) > 1


def _remarks(turn: Turn) -> tuple[list[str], dict[str | None, str]]:
    """Return the agent's remarks in this turn: remarks without a known tool call, and the other remarks by call ID."""
    messages = turn.messages
    asked = max((place for place, one in enumerate(messages) if one.role == "user" and one.content), default=-1)
    calls = {call.call_id for call in turn.tool_calls or () if call.call_id is not None}
    without_call: list[str] = []
    by_call: dict[str | None, str] = {}
    for message in messages[asked + 1 :]:
        if message.role == "assistant" and message.tool_calls and message.content and message.content.strip():
            text = f"said: {shortened(one_line(message.content), REMARK_CHARS)}"
            call_id = next((request.call_id for request in message.tool_calls if request.call_id in calls), None)
            if call_id is None:
                without_call.append(text)
            else:
                by_call[call_id] = text
    return without_call, by_call


def _is_model(span: SpanInfo) -> bool:
    return span.attributes.get("gen_ai.request.model") is not None


def _other_span_lines(span: SpanInfo, turn: Turn) -> list[str]:
    """Return a list with the line for a span, or [] for infrastructure spans and repetitions of other steps."""
    attributes = span.attributes
    kind = str(attributes.get("openinference.span.kind") or attributes.get("gen_ai.operation.name") or "").lower()
    if kind in _IN_THE_TURN or any(key.startswith(_INFRASTRUCTURE) for key in attributes):
        return []
    if _is_model(span):
        return [f"model {one_line(str(attributes['gen_ai.request.model']))}"]
    texts = {
        word: next((jsonio.text_of(attributes[key]) for key in keys if attributes.get(key) not in (None, "")), "")
        for word, keys in (("in", _INPUTS), ("out", _OUTPUTS))
    }
    known = [text.strip() for text in (turn.input, turn.output) if text and text.strip()]
    parts = [
        f"{word}: {shortened(one_line(text), RESULT_CHARS)}"
        for word, text in texts.items()
        if text and not any(mark in text for mark in (*_AGAIN, *known))  # repeats a framework's state or the conversation
    ]
    conventions = tuple(word_list("attribute_namespaces"))
    own = [
        f"{key}={shortened(one_line(jsonio.text_of(value)), _OWN_CHARS)}"
        for key, value in attributes.items()
        if isinstance(value, (str, int, float, bool))
        and not (key.startswith(conventions) or key.endswith(_IDS) or any(part in key for part in _PROMPTS))
    ]
    if attributes and not parts and not own:
        return []  # a framework's span, whose values are all in other steps
    name = f"step {one_line(span.name or '(unnamed)')}"
    values = "; ".join([*parts, *own[:_OWN]])
    return [one_line(f"{name}: {values}" if values else name)]


# --- the course of a turn

_TEXTS, _CHARS = 40, 500
"""Maximum number of retrieved texts, and maximum characters of each text."""


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def trace_of(turn: Turn, *, findings: bool = True) -> dict[str, Any]:
    """Return the turn's request, reasoning, steps, answer, and error for a judge, as far as they are known.

    With ``findings``, retrieved texts that the steps don't contain are added. Request, reasoning, and answer aren't shortened.
    """
    known: dict[str, Any] = {
        "user_input": turn.input,
        "reasoning": turn.reasoning,
        "steps": steps_of(turn),
        "retrieved": findings_of(turn) if findings else None,
        "final_answer": turn.output if turn.output is None or turn.output.strip() else "(empty)",
        "error": failure_of(turn.error) if turn.error is not None else None,
    }
    return {name: value for name, value in known.items() if value}


def findings_of(turn: Turn) -> str:
    """Return shortened texts of retrieved documents. Texts that the steps contain are omitted."""
    given = [jsonio.text_of(call.result) for call in turn.tool_calls or () if call.result is not None]
    results = "\n".join(text for text in given if len(text) <= RESULT_CHARS)
    known = (text for text in turn.context if text.strip() and text not in results)
    texts = [shortened(text, _CHARS) for text in known if jsonio.text_of([text])[2:-2] not in results]
    first, last, left_out = ends_of(texts, _TEXTS)
    mark = [f"[… {left_out} texts left out …]"] if left_out else []
    return "\n---\n".join([*first, *mark, *last])


# --- the conversation before the turn: each message is one line, so that no message can imitate another


def line_of(role: str, text: str | None) -> str:
    return one_line(f"{role}: {text or '(empty)'}")


def history_of(turn: Turn) -> list[tuple[str, str]]:
    roles = (("user", "input"), ("assistant", "output"))
    texts = ((role, jsonio.text_of(earlier.get(key))) for earlier in turn.history for role, key in roles)
    return [(role, text) for role, text in texts if text.strip()]


def unsent(turn: Turn, before: Iterable[Message]) -> list[tuple[str, str]]:
    known = {message.content for message in before}
    return [(role, text) for role, text in history_of(turn) if text not in known]


def start_of(messages: Sequence[Message], asked: str | None = None) -> int:
    """Return the index of the last user message that equals ``asked`` or, if none does, of the last user message, or 0."""
    places = [place for place, message in enumerate(messages) if message.role == "user" and message.content]
    return next((place for place in reversed(places) if messages[place].content == asked), places[-1] if places else 0)


def whole_conversation(turn: Turn) -> list[Message]:
    """Return the turn's ``messages``, preceded by texts of ``history`` that ``messages`` lacks, or [] if ``messages`` is empty."""
    messages = turn.messages
    earlier = unsent(turn, messages[: start_of(messages)]) if messages else ()
    return [*(Message(role, text) for role, text in earlier), *messages]


def last_as_text(earlier: Sequence[tuple[str, str]], max_messages: int | None = None, max_chars: int | None = None) -> str:
    """Return the last messages as numbered lines, after a note about omitted messages."""
    left_out = 0 if max_messages is None else max(0, len(earlier) - max_messages)
    lines = (line_of(role, text if max_chars is None else cut(text, max_chars)) for role, text in earlier[left_out:])
    mark = f"[… {left_out} messages left out …]\n" if left_out else ""
    return mark + numbered(lines, left_out + 1)
