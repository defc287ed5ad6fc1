"""Recordings with a fault inserted into their spans, before turns are created from them.

Instrumentations write the same fact under different names, so facts are found by their values. A result's text is replaced
everywhere in the trace, including JSON inside JSON.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from otel_agenteval.core import jsonio
from otel_agenteval.core.turn import Turn
from otel_agenteval.dialects.reader import read
from otel_agenteval.dialects.step import HANDOFF, RERANK, RETRIEVAL, Step
from otel_agenteval.turns.recordings import Reading, read_items, turn_of, wholes_of

Draw = random.Random
Data = dict[str, Any]
_SHORTEST = 8
"""Minimum length of a text that is found by its value."""
_NUMBER = re.compile(r"(?<![\w.,-])\d{2,6}(?![\w.,%-])")
_PLACE = re.compile(r"(.*(?:messages|prompt|prompts))\.(\d+)(\..*)")
_STOPS = {"stop": "length", "end_turn": "max_tokens", "STOP": "MAX_TOKENS", "completed": "length", "COMPLETE": "MAX_TOKENS"}
_STOPPED = re.compile(r"""((?:finish|stop)_?reason\\*["']:\s*\\*["'])(stop|end_turn|STOP|COMPLETE)(?=\\*["'])""", re.IGNORECASE)


class FaultyRecording(NamedTuple):
    """A recording with a failed turn, and the inserted fault."""

    name: str
    text: str
    turn_id: str
    kind: str
    path: str


class _NotHere(Exception):
    """Raised if the fault can't be inserted into the turn."""


class Trace:
    """The spans of a recording as OTLP/JSON, and one of its turns."""

    def __init__(self, messages: list[Data], turn: Turn, steps: dict[str, Step]) -> None:
        self.messages, self.turn, self.steps = messages, turn, steps
        self.ids = {span.id for span in turn.spans}
        for span in self.spans:
            span.setdefault("attributes", [])

    @property
    def groups(self) -> Iterator[list[Data]]:
        for message in self.messages:
            for resource in message.get("resourceSpans", ()):
                for scope in resource.get("scopeSpans", ()):
                    yield scope.get("spans", [])

    @property
    def spans(self) -> list[Data]:
        """The spans of the turn."""
        return [span for group in self.groups for span in group if span["spanId"] in self.ids]

    def span(self, span_id: str | None) -> Data:
        found = next((span for span in self.spans if span["spanId"] == span_id), None)
        if found is None:
            raise _NotHere
        return found

    def role(self, span: Data) -> str | None:
        step = self.steps.get(span["spanId"])
        return None if step is None else step.role

    def hands_off(self, span: Data) -> bool:
        step = self.steps.get(span["spanId"])
        return step is not None and (step.role == HANDOFF or re.match("transfer_to|handoff", step.tool_name or "") is not None)

    def keep(self, wanted: Callable[[Data], bool]) -> None:
        for group in self.groups:
            group[:] = [span for span in group if span["spanId"] not in self.ids or wanted(span)]

    def add(self, beside: Data, added: list[Data]) -> None:
        next(group for group in self.groups if any(span is beside for span in group)).extend(added)

    def replace(self, old: Any, new: Any) -> None:
        """Replace a value everywhere in the trace."""
        found = rewritten(self.messages, replacing(old, new))
        if found == self.messages:
            raise _NotHere
        self.messages[:] = found


def rewritten(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with its parts changed, including JSON in strings."""
    new = change(value)
    if new is not value:
        return new
    if isinstance(value, dict):
        return {key: rewritten(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [rewritten(inner, change) for inner in value]
    if isinstance(value, str) and value[:1] in '{["':
        try:
            held = json.loads(value)
        except ValueError:
            return value
        found = rewritten(held, change)
        return value if found == held else json.dumps(found, ensure_ascii=False)
    return value


def replacing(old: Any, new: Any) -> Callable[[Any], Any]:
    """Return a change that replaces values equal to ``old``, and occurrences in strings that aren't JSON."""
    text = jsonio.text_of(old)
    if len(text) < _SHORTEST:
        raise _NotHere

    def change(value: Any) -> Any:
        if value in (old, text):
            return new if isinstance(value, type(new)) else jsonio.text_of(new)
        if isinstance(value, str) and text in value and not _is_json(value):
            return value.replace(text, jsonio.text_of(new))
        return value

    return change


def _is_json(text: str) -> bool:
    try:
        return text[:1] in '{["' and json.loads(text) is not None
    except ValueError:
        return False


def holds(value: Any, wanted: Any) -> bool:
    return bool(rewritten(value, replacing(wanted, "?")) != value)


def _is_list(value: Any) -> bool:
    """Return True for a list inside an attribute or its JSON, but not for a list of attributes or events."""
    return isinstance(value, list) and not any(
        isinstance(one, dict) and one.keys() & {"key", "attributes", "spanId"} for one in value
    )


def _times(span: Data) -> tuple[int, int]:
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def fail(span: Data, error: str, message: str) -> None:
    """Set the status, attributes and event that an SDK sets for an exception."""
    span["status"] = {"code": 2, "message": message}
    pairs = (("exception.type", error), ("exception.message", message))
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in pairs]
    span.setdefault("events", []).append({"timeUnixNano": span["endTimeUnixNano"], "name": "exception", "attributes": attributes})
    span["attributes"].append({"key": "error.type", "value": {"stringValue": error}})


def lose(span: Data, value: Any) -> None:
    """Remove the attributes and events that contain a value."""
    for name in ("attributes", "events"):
        span[name] = [one for one in span.get(name) or () if not holds(one, value)]


def _last_of_its_name(turn: Turn, draw: Draw) -> int:
    calls = turn.tool_calls or []
    last = {call.name: at for at, call in enumerate(calls)}
    results = [jsonio.text_of(call.result) for call in calls]
    fits = [at for at in last.values() if calls[at].span_id and calls[at].error is None and results.count(results[at]) == 1]
    if not fits or any(call.error is not None for call in calls):
        raise _NotHere
    return draw.choice(fits)


def tool_error(trace: Trace, draw: Draw) -> str:
    at = _last_of_its_name(trace.turn, draw)
    call = (trace.turn.tool_calls or [])[at]
    span = trace.span(call.span_id)
    error = draw.choice(["TimeoutError", "ConnectionError", "ValueError"])
    lose(span, call.result)
    fail(span, error, "the service didn't answer")
    trace.replace(call.result, f"{error}: the service didn't answer")
    return f"tool_calls[{at}]"


def reported_error(trace: Trace, draw: Draw) -> str:
    at = _last_of_its_name(trace.turn, draw)
    trace.replace(
        (trace.turn.tool_calls or [])[at].result, draw.choice(["Error: connection refused", {"error": "order service is down"}])
    )
    return f"tool_calls[{at}]"


def loop(trace: Trace, draw: Draw) -> str:
    """Repeat a tool's span and the model call that requested it."""
    calls = trace.turn.tool_calls or []
    same = [(call.name, call.arguments) for call in calls]
    fits = [
        at
        for at, call in enumerate(calls)
        if call.span_id and call.arguments and call.result is not None and same.count(same[at]) == 1
    ]
    if not fits:
        raise _NotHere
    at = draw.choice(fits)
    tool = trace.span(calls[at].span_id)
    models = [span for span in trace.spans if span["spanId"] in {one.span_id for one in trace.turn.llm_calls}]
    if not holds(tool, calls[at].arguments):
        raise _NotHere
    asked = [span for span in models if _times(span)[1] <= _times(tool)[0]]
    pattern = [*([max(asked, key=lambda span: _times(span)[1])] if asked else []), tool]
    others = [trace.span(call.span_id) for call in calls if call.span_id and call is not calls[at]]
    if any(_times(pattern[0])[0] <= _times(one)[0] < _times(tool)[1] for one in others):
        raise _NotHere  # it ran in parallel with others
    names = {one.response_id for one in trace.turn.llm_calls} | {calls[at].call_id}
    step = max(_times(tool)[1] - _times(pattern[0])[0], 1)
    rounds = draw.randint(4, 6)
    shift = (rounds + 1) * step
    for span in trace.spans:  # move later spans
        start, end = _times(span)
        span["startTimeUnixNano"] = str(start + (shift if start >= _times(tool)[1] else 0))
        span["endTimeUnixNano"] = str(
            end + (shift if end > _times(tool)[1] or (span is not tool and end == _times(tool)[1]) else 0)
        )
    for again in range(1, rounds + 1):
        for span in pattern:
            new = {name: f"{name}x{again}" for name in names if name}
            copied = rewritten(copy.deepcopy(span), lambda one, new=new: new.get(one, one) if isinstance(one, str) else one)  # type: ignore[misc]
            copied["spanId"] = f"{draw.getrandbits(64):016x}"
            start, end = _times(span)
            copied["startTimeUnixNano"], copied["endTimeUnixNano"] = str(start + again * step), str(end + again * step)
            trace.add(span, [copied])
    return f"tool_calls[{at + 1}]"


def empty_retrieval(trace: Trace, draw: Draw) -> str:
    documents = [document for one in trace.turn.retrievals for document in one.documents]
    spans = [span for span in trace.spans if trace.role(span) in (RETRIEVAL, RERANK)]
    if not documents or not spans:
        raise _NotHere
    texts = [text for one in documents for text in (one.content, one.id) if text and len(text) >= _SHORTEST]
    for span in spans:
        span["attributes"] = [one for one in span["attributes"] if not re.search(r"\.documents\.\d", one["key"])]
        for text in texts:
            span.update(rewritten(span, lambda value, text=text: [] if _is_list(value) and holds(value, text) else value))  # type: ignore[misc]
    for text in texts:
        trace.replace(text, "")
    return "retrievals[0]"


def model_error(trace: Trace, draw: Draw) -> str:
    calls, output = trace.turn.llm_calls, trace.turn.output
    if not calls:
        raise _NotHere
    at = max(range(len(calls)), key=lambda at: (_times(trace.span(calls[at].span_id))[0], at))
    start, end = _times(trace.span(calls[at].span_id))
    trace.keep(lambda span: _times(span)[0] < end)
    above, inner = set(), trace.span(calls[at].span_id)
    while any(span["spanId"] == inner.get("parentSpanId") for span in trace.spans):
        inner = trace.span(inner["parentSpanId"])
        above.add(inner["spanId"])
    error = draw.choice(["RateLimitError", "APITimeoutError", "InternalServerError"])
    for span in trace.spans:
        if span["spanId"] in above or _times(span)[0] >= start:
            lose(span, output)
            span["attributes"] = [
                one for one in span["attributes"] if not re.search("finish|stop_reason|completion|output", one["key"])
            ]
            fail(span, error, "Error code: 429")
    return f"llm_calls[{at}]"


def truncated_answer(trace: Trace, draw: Draw) -> str:
    output = trace.turn.output or ""
    last = max(trace.turn.llm_calls, key=lambda one: _times(trace.span(one.span_id))[0], default=None)
    if last is None or len(output) < 30:
        raise _NotHere
    start = _times(trace.span(last.span_id))[0]
    changed = 0
    for span in trace.spans:
        if _times(span)[0] < start:
            continue
        for one in span["attributes"]:
            by_key = re.search("finish_?reason|stop_?reason", one["key"], re.IGNORECASE) is not None
            before = json.dumps(one["value"])
            after = (
                re.sub(r'(?<=")(stop|end_turn|STOP|COMPLETE)(?=\\*")', lambda found: _STOPS[found[0]], before)
                if by_key
                else before
            )
            after = _STOPPED.sub(lambda found: found[1] + _STOPS.get(found[2], "length"), after)
            changed += after != before
            one["value"] = json.loads(after)
    if not changed:
        raise _NotHere
    trace.replace(output, output[: len(output) // 2])
    return "output"


def failed_handoff(trace: Trace, draw: Draw) -> str:
    spans = [span for span in trace.spans if trace.hands_off(span)]
    if not spans or len(trace.turn.handoffs) != 1:
        raise _NotHere
    error = draw.choice(["HandoffError", "AgentNotFound", "TimeoutError"])
    for span in spans:
        fail(span, error, "the agent isn't available")
    end = max(_times(span)[1] for span in spans)
    trace.keep(lambda other: _times(other)[0] < end)
    return "handoffs[0]"


def lost_instructions(trace: Trace, draw: Draw) -> str:
    """Remove the instructions from a prompt after the first and from all later prompts, as if the history was cut."""
    turn = trace.turn
    if not turn.system or len(turn.llm_calls) < 2:
        raise _NotHere
    at = draw.randrange(1, len(turn.llm_calls))
    start = _times(trace.span(turn.llm_calls[at].span_id))[0]
    first = trace.span(turn.llm_calls[0].span_id)
    seen = 0
    for span in trace.spans:
        if _times(span)[0] >= start and holds(span, turn.system):
            seen += 1
            forget(span, turn.system)
    if not seen or not holds(first, turn.system) or not holds(trace.span(turn.llm_calls[at].span_id), turn.input):
        raise _NotHere
    return f"llm_calls[{at}]"


def forget(span: Data, text: str) -> None:
    """Remove a message from a prompt, in each form that instrumentations use."""

    def without(value: Any) -> Any:
        if _is_list(value):
            kept = [one for one in value if not (isinstance(one, dict) and "messages" not in one and holds(one, text))]
            return kept if len(kept) < len(value) else value
        if isinstance(value, dict) and text in value.values():
            return {key: inner for key, inner in value.items() if inner != text}
        return value

    places = {
        found[1] for one in span["attributes"] if (found := _PLACE.match(one["key"])) and found[2] == "0" and holds(one, text)
    }
    kept = []
    for one in span["attributes"]:
        found = _PLACE.match(one["key"])
        key = one["key"]
        if found is not None and found[1] in places:
            if found[2] == "0":
                continue
            key = f"{found[1]}.{int(found[2]) - 1}{found[3]}"
        kept.append({"key": key, "value": rewritten(one["value"], without)})
    span["attributes"] = [one for one in kept if not holds(one, text)]
    span["events"] = [one for one in span.get("events") or () if not holds(one, text)]


def changed_number(trace: Trace, draw: Draw) -> str:
    turn, output = trace.turn, trace.turn.output or ""
    results = " ".join(jsonio.text_of(call.result) for call in turn.tool_calls or ())
    found = [one for one in _NUMBER.finditer(output) if re.search(rf"(?<!\d){one[0]}(?!\d)", results)]
    if not found:
        raise _NotHere
    one = draw.choice(found)
    digits = [*one[0]]
    place = draw.randrange(len(digits))
    digits[place] = str((int(digits[place]) + draw.randint(1, 8)) % 9 + 1)
    changed = "".join(digits)
    if changed == one[0] or changed in results + output + (turn.input or ""):
        raise _NotHere
    trace.replace(output, output[: one.start()] + changed + output[one.end() :])
    return "output"


def leak(trace: Trace, draw: Draw) -> str:
    output = trace.turn.output or ""
    trace.replace(output, f"{output} Use the key AKIA{''.join(draw.choices('ABCDEFGHJKLMNPQRSTUVWXYZ234567', k=16))} for it.")
    return "output"


KINDS: dict[str, tuple[str, Callable[[Trace, Draw], str]]] = {
    "tool_error": ("tool_error", tool_error), "reported_error": ("tool_error", reported_error), "loop": ("loop", loop),
    "empty_retrieval": ("empty_retrieval", empty_retrieval), "model_error": ("model_error", model_error),
    "truncated_answer": ("truncated_answer", truncated_answer), "failed_handoff": ("failed_handoff", failed_handoff), "lost_instructions": ("lost_instructions", lost_instructions),
    "changed_number": ("changed_number", changed_number), "leak": ("leak", leak),
}  # fmt: skip


class Recorded(NamedTuple):
    """A recording and its turns."""

    name: str
    lines: list[str]
    turns: list[Turn]
    steps: dict[str, Step]


def recorded(path: Path) -> Recorded:
    """Read a recording and its log file."""
    paths = [one for one in (path, path.with_suffix(".logs.jsonl")) if one.exists()]
    groups = wholes_of(read_items(paths, Reading(), lambda _: None))
    steps = {f"{record.span_id:016x}": read(record) for group in groups for record in group.members}
    lines = [line for one in paths for line in one.read_text().splitlines() if line]
    return Recorded(f"{path.parent.name}/{path.name}", lines, [turn_of(group) for group in groups], steps)


def faulty_recordings(given: Iterable[tuple[Recorded, Turn]], most: int, seed: int = 1) -> Iterator[FaultyRecording]:
    """Yield up to ``most`` recordings with each fault. Each fault is in one of the given turns."""
    places = [*given]
    for name, (kind, put_in) in KINDS.items():
        draw = random.Random(f"{name} {seed}")
        made = 0
        for recording, turn in draw.sample(places, len(places)):
            trace = Trace([*map(json.loads, recording.lines)], turn, recording.steps)
            try:
                path = put_in(trace, draw)
            except _NotHere:
                continue
            text = "\n".join(map(json.dumps, trace.messages))
            yield FaultyRecording(recording.name, text, turn.turn_id, kind, path)
            made += 1
            if made == most:
                break
