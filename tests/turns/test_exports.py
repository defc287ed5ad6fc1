"""Files of other tools give the same turns as the spans in OTLP."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode

import otel_agenteval as oa
from otel_agenteval.core import jsonio
from otel_agenteval.spans.exports import otlp_lines
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.spans.writing import as_otlp_json
from otel_agenteval.turns.recordings import Reading, load_turns, read_items
from tests.support.other_forms import FORMS, console
from tests.support.recordings import CORPUS, CORPUS_B, unpack_all

NO_SCOPE = ("console", "phoenix", "phoenix frame", "azure")
"""Formats that don't contain the instrumentation scope."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return every 15th recording of both corpora without log records."""
    found: list[Path] = []
    for archive in (CORPUS, CORPUS_B):
        folder = tmp_path_factory.mktemp("corpus")
        unpack_all(archive, folder)
        found += [path for path in sorted(folder.rglob("*.jsonl")) if b'"resourceLogs"' not in path.read_bytes()]
    assert len(found) > 900
    return found[::15]


def spans_in(path: Path) -> list[SpanRecord]:
    return [item for item in read_items([path], Reading(), quiet) if isinstance(item, SpanRecord)]


SAID = slice(2, 4)
"""The items of an outline that contain input and output."""


def quiet(_: str) -> None:
    """Ignore warnings about unknown spans."""


def outline(path: Path) -> list[Any]:
    """Return agent, input, output and tools of each turn."""
    return [
        (
            turn.turn_id, turn.agent, turn.input, turn.output, turn.conversation_id, len(turn.llm_calls or ()),
            [(call.name, call.arguments, call.result) for call in turn.tool_calls or ()], turn.usage, turn.error,
        )
        for turn in load_turns(path, report=quiet)
    ]  # fmt: skip


def as_lines(spans: Iterable[SpanRecord]) -> str:
    return "".join(f"{json.dumps(message)}\n" for message in as_otlp_json(spans))


@pytest.mark.parametrize("form", ["otlp", *FORMS])
def test_turns_of_a_recording_are_the_same_in_every_form(form: str, recordings: list[Path], tmp_path: Path) -> None:
    write = FORMS.get(form, as_lines)
    other = tmp_path / "other.json"
    same = said = 0
    for path in recordings:
        other.write_text(write(spans_in(path)))
        found, wanted = outline(other), outline(path)
        same += repr(found) == repr(wanted)
        said += [one[SAID] for one in found] == [one[SAID] for one in wanted]
    if form not in NO_SCOPE:
        assert same == len(recordings)
    else:  # some dialects are told by their scope alone, and some spell a name or a count in a way that only it explains
        assert same >= 0.78 * len(recordings)
        assert said >= 0.95 * len(recordings)


def test_spans_in_a_wrapper_are_read(recordings: list[Path], tmp_path: Path) -> None:
    spans = [
        json.loads(document)
        for document in re.split(r"(?<=^})\n", console(spans_in(recordings[0])), flags=re.MULTILINE)
        if document
    ]
    bare, wrapped = tmp_path / "bare.json", tmp_path / "wrapped.json"
    bare.write_text(json.dumps(spans))
    for key in ("spans", "traces", "data"):
        wrapped.write_text(json.dumps({"exported_at": "2026-06-26", key: spans}, indent=2))
        assert outline(wrapped) == outline(bare) != []


def test_what_the_sdk_prints_is_read(tmp_path: Path) -> None:
    out = io.StringIO()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    tracer = provider.get_tracer("app")
    for question in ("One?", "Two?"):
        out.write("the application prints this\n")
        asked = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "desk",
            "gen_ai.input.messages": said("user", question),
        }
        with tracer.start_as_current_span("invoke_agent desk", attributes=asked) as span:
            called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rooms", "gen_ai.tool.call.id": "1"}
            with tracer.start_as_current_span("execute_tool rooms", attributes=called) as tool:
                tool.record_exception(LookupError("no such room"))
                tool.set_status(Status(StatusCode.ERROR, "no such room"))
            span.set_attribute("gen_ai.output.messages", said("assistant", "None."))
    file = tmp_path / "console.txt"
    file.write_text(out.getvalue())
    faults: list[str] = []
    turns = list(oa.load_turns(file, report=faults.append))
    assert [(turn.agent, turn.input, turn.output) for turn in turns] == [("desk", "One?", "None."), ("desk", "Two?", "None.")]
    assert [call.error.message for turn in turns for call in turn.tool_calls or () if call.error] == ["no such room"] * 2
    assert len(faults) == 2
    assert all(": not JSON: " in fault for fault in faults)


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


TEMPO = {
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
    "scopeSpans": [
        {
            "scope": {"name": "acme"},
            "spans": [
                {
                    "traceId": "EREREREREREREREREREREQ==", "spanId": "IiIiIiIiIiI=", "name": "invoke_agent desk",
                    "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
                    "attributes": [
                        {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
                        {"key": "gen_ai.agent.name", "value": {"stringValue": "desk"}},
                    ],
                }
            ],
        }
    ],
}  # fmt: skip
OLD_TEMPO = {
    "resource": TEMPO["resource"],
    "instrumentationLibrarySpans": [
        {"instrumentationLibrary": {"name": "acme"}, "spans": TEMPO["scopeSpans"][0]["spans"]}  # type: ignore[index]
    ],
}


@pytest.mark.parametrize(
    "document",
    [{"batches": [TEMPO]}, {"trace": {"resourceSpans": [TEMPO]}}, {"batches": [OLD_TEMPO]}, {"resourceSpans": [TEMPO]}],
    ids=["batches", "trace", "old batches", "OTLP over many lines"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_trace_from_tempo(document: dict[str, Any], indent: int | None, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(document, indent=indent))
    (turn,) = load_turns(file)
    assert (turn.turn_id, turn.agent, turn.service, turn.duration_s) == (f"{'11' * 16}-{'22' * 8}", "desk", "shop", 1.0)


OBSERVATIONS = [
    {
        "id": "obs-1", "traceId": "tr-1", "type": "AGENT", "name": "desk", "startTime": "2026-01-02T03:04:05.678Z",
        "endTime": "2026-01-02T03:04:07.678Z", "parentObservationId": None, "input": "Which room is free?", "output": "Room 4.",
        "metadata": {}, "level": "DEFAULT",
    },
    {
        "id": "obs-2", "traceId": "tr-1", "type": "GENERATION", "name": "chat", "startTime": "2026-01-02T03:04:05.700Z",
        "endTime": "2026-01-02T03:04:06.700Z", "parentObservationId": "obs-1", "model": "m-1",
        "input": [{"role": "user", "content": "Which room is free?"}], "output": {"role": "assistant", "content": "Room 4."},
        "usageDetails": {"input": 7, "output": 3, "total": 10}, "metadata": {}, "level": "DEFAULT",
    },
    {
        "id": "obs-3", "traceId": "tr-1", "type": "TOOL", "name": "rooms", "startTime": "2026-01-02T03:04:06.800Z",
        "endTime": "2026-01-02T03:04:06.900Z", "parentObservationId": "obs-1", "input": {"day": "Friday"}, "output": None,
        "level": "ERROR", "statusMessage": "no such day", "metadata": {},
    },
]  # fmt: skip
TRACE = {
    "id": "tr-1",
    "name": "desk",
    "timestamp": "2026-01-02T03:04:05.678Z",
    "sessionId": "conv-1",
    "userId": "u-1",
    "observations": OBSERVATIONS,
}


def exported(observation: dict[str, Any]) -> dict[str, Any]:
    """Return an export in the form of Langfuse's UI: snake case, with JSON text for values that aren't text."""
    snake = {"".join(f"_{one.lower()}" if one.isupper() else one for one in key): value for key, value in observation.items()}
    return {key: json.dumps(value) if isinstance(value, (dict, list)) else value for key, value in snake.items()}


@pytest.mark.parametrize(
    ("text", "conversation"),
    [
        (json.dumps(TRACE), "conv-1"),
        (json.dumps({"data": OBSERVATIONS, "meta": {"page": 1}}, indent=2), None),
        ("".join(f"{json.dumps(one)}\n" for one in OBSERVATIONS), None),
        (json.dumps([exported(one) for one in OBSERVATIONS]), None),
    ],
    ids=["a trace", "a page of observations", "lines", "the page's export"],
)
def test_a_trace_from_langfuse(text: str, conversation: str | None, tmp_path: Path) -> None:
    file = tmp_path / "langfuse.json"
    file.write_text(text)
    (turn,) = load_turns(file)
    assert (turn.agent, turn.input, turn.output, turn.conversation_id) == ("desk", "Which room is free?", "Room 4.", conversation)
    assert (turn.duration_s, turn.usage and turn.usage.input_tokens, turn.usage and turn.usage.output_tokens) == (2.0, 7, 3)
    assert [(call.name, call.arguments, call.error is not None) for call in turn.tool_calls or ()] == [
        ("rooms", {"day": "Friday"}, True)
    ]
    assert [call.model for call in turn.llm_calls or ()] == ["m-1"]


SPANS = [
    {
        "span_id": "b8000001-0001-4000-8000-000000000001", "parent_span_id": None, "name": "desk", "kind": "AGENT", "status": "OK",
        "input": None, "output": None, "started_at": "2026-01-02T03:04:05.700Z", "ended_at": "2026-01-02T03:04:07.600Z",
    },
    {
        "span_id": "b8000001-0001-4000-8000-000000000002", "parent_span_id": "b8000001-0001-4000-8000-000000000001", "name": "rooms",
        "kind": "TOOL", "status": "ERROR", "input": {"day": "Friday"}, "output": None, "error": "no such day",
        "started_at": "2026-01-02T03:04:05.800Z", "ended_at": "2026-01-02T03:04:05.900Z",
    },
    {
        "span_id": "b8000001-0001-4000-8000-000000000003", "parent_span_id": None, "name": "chat", "kind": "LLM", "status": "OK",
        "model": "m-1", "input": {"messages": [{"role": "user", "content": "Which room is free?"}]},
        "output": {"messages": [{"role": "assistant", "content": "Room 4."}]}, "started_at": "2026-01-02T03:04:06Z", "ended_at": None,
        "token_usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, "cost": {"total_cost": 0.002},
    },
]  # fmt: skip
PANDA = {
    "trace_id": "a1b2c3d4-0008-4000-8000-000000000001", "name": "desk", "status": "COMPLETED", "session_id": "conv-1", "user_id": "u-1",
    "input": {"messages": [{"role": "user", "content": "Which room is free?"}]}, "release": "v2.4.1",
    "output": {"messages": [{"role": "assistant", "content": "Room 4."}]}, "started_at": "2026-01-02T03:04:05.678Z",
    "ended_at": "2026-01-02T03:04:07.678Z", "spans": SPANS,
}  # fmt: skip
OTHER_NAMES = {
    "trace_id": "id", "span_id": "id", "parent_span_id": "parent_id", "kind": "type", "started_at": "start_time", "ended_at": "end_time",
    "token_usage": "usage", "prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_cost": "total",
}  # fmt: skip


def renamed(value: Any) -> Any:
    """Return a trace in the names of a similar tool."""
    if isinstance(value, list):
        return [renamed(one) for one in value]
    return {OTHER_NAMES.get(key, key): renamed(one) for key, one in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PANDA, indent=2),
        json.dumps({"session_id": "conv-1", "trace_count": 1, "traces": [PANDA]}),
        json.dumps({"items": [PANDA], "pagination": {"total": 1}}, indent=2),
        json.dumps(PANDA),
        json.dumps([renamed(PANDA)]),
    ],
    ids=["traces get", "sessions get", "a page", "the body of POST /traces", "another tool's names"],
)
def test_a_trace_from_pandaprobe(text: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(text)
    (turn,) = load_turns(file)
    assert (turn.agent, turn.input, turn.output) == ("desk", "Which room is free?", "Room 4.")
    assert (turn.conversation_id, turn.user_id, turn.service_version) == ("conv-1", "u-1", "v2.4.1")
    assert (turn.duration_s, turn.cost_usd) == (2.0, 0.002)
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 3)
    (call,) = turn.tool_calls or ()
    assert (call.name, call.arguments, call.result, call.error and call.error.message) == (
        "rooms",
        {"day": "Friday"},
        None,
        "no such day",
    )
    assert [call.model for call in turn.llm_calls or ()] == ["m-1"]


def test_spans_of_pandaprobe_without_their_trace(tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    file.write_text(json.dumps({"items": [{"trace_id": PANDA["trace_id"], **span} for span in SPANS[:2]]}))
    (turn,) = load_turns(file)
    assert (turn.agent, [call.name for call in turn.tool_calls or ()]) == ("desk", ["rooms"])


@pytest.mark.parametrize(
    "broken", [{**PANDA, "spans": ["chat"]}, {**PANDA, "spans": {}}, {key: PANDA[key] for key in ("trace_id", "name", "spans")}]
)
def test_a_broken_trace_of_pandaprobe_is_a_fault(broken: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(broken))
    faults: list[str] = []
    assert list(load_turns(file, report=faults.append)) == []
    assert faults[0].startswith(f"{file}:1: not OTLP: ")


@pytest.mark.parametrize(
    "start", [["x" * 1_000, 1], [[1], 2], [1], [1, 2, 3], ["9" * 5_000, 0], [float("inf"), 0], [None, None], {}, True]
)
def test_a_flat_span_with_a_strange_time_is_no_crash(start: Any, tmp_path: Path) -> None:
    """A text or list multiplied by a billion would use all memory."""
    file = tmp_path / "flat.json"
    span = {
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "name": "chat",
        "start_time": start,
        "attributes": {"gen_ai.operation.name": "chat"},
    }
    file.write_text(json.dumps(span))
    faults: list[str] = []
    turns = list(load_turns(file, report=faults.append))
    assert len(turns) + len(faults) == 1


def lines_of(*lines: bytes) -> list[tuple[int, bytes]]:
    return list(otlp_lines(enumerate(lines, 1)))


def test_lines_of_otlp_are_left_alone() -> None:
    line, other = b'{"resourceSpans": [], "x": 1.0}\n', b'{"x": 1.0, "resourceLogs": []}'
    assert lines_of(line, other) == [(1, line), (2, other)]


def test_a_document_that_breaks_off_costs_itself_alone() -> None:
    whole = console([SpanRecord("a", 1, 2, start_ns=10**18, end_ns=10**18)]).encode().splitlines(keepends=True)
    broken = whole[:5]
    found = lines_of(*broken, *whole, *broken)
    assert [number for number, _ in found] == [1, 6, 6 + len(whole)]
    assert found[0][1] == b"".join(broken) == found[2][1]
    assert json.loads(found[1][1])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] == "a"


def test_a_document_without_end_is_not_parsed_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    loads = jsonio.loads_lenient
    monkeypatch.setattr(jsonio, "loads_lenient", lambda text: parsed.append(len(text)) or loads(text))
    lines_of(b"{\n", *[b"}}\n"] * 5_000)
    assert sum(parsed) < 100_000


def test_what_has_no_known_form_is_a_fault_and_not_dropped(tmp_path: Path) -> None:
    file = tmp_path / "mixed.json"
    known = {"context": {"trace_id": "0x1", "span_id": "0x2"}, "name": "a", "start_time": "2026-01-02T03:04:05Z"}
    file.write_text(json.dumps([known, {"made": "up"}, 7], indent=1))
    faults: list[str] = []
    reading = Reading()
    assert list(load_turns(file, report=faults.append, reading=reading)) == []
    assert (reading.spans, reading.bad) == (1, 2)
    assert [fault.startswith(f"{file}:1: ") for fault in faults] == [True, True]


KEYS = st.sampled_from((
    "context", "trace_id", "span_id", "traceID", "traceId", "id", "spans", "processes", "data", "rows", "columns",
    "batches", "trace", "observations", "tags", "localEndpoint", "type", "startTime", "start_timestamp",
    "context.trace_id", "context.span_id", "attributes", "events", "resourceSpans", "metadata", "timestamp", "duration",
    "values", "name", "logs", "references", "SpanContext", "startTimeUnixNano", "observedTimeUnixNano", "OperationId", "Id", "Properties",
    "message", "@message", "field", "tables", "results", "scopeSpans", "body", "time", "Attributes", "Key", "Value", "DurationMs", "processID", "annotations", "value", "span_kind", "parent_id", "status",
    "started_at", "ended_at", "span_id", "parent_span_id", "token_usage", "cost", "items", "traces", "kind", "input", "metadata",
))  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)


@given(VALUES)
def test_no_document_is_too_strange(value: Any) -> None:
    line = jsonio.dumps(value).encode()
    for _, found in lines_of(line):
        jsonio.loads(found)


TIMES: list[tuple[Any, int]] = [
    ("2026-01-02T03:04:05.123456789Z", 1767323045123456789),
    ("2026-01-02 03:04:05", 1767323045000000000),
    ("2026-01-02T04:04:05.5+01:00", 1767323045500000000),
    (1767323045123, 1767323045123000000),
    (1767323045.25, 1767323045250000000),
    (1767323045123456, 1767323045123456000),
    (1767323045123456789, 1767323045123456789),
    ("soon", 0),
    (True, 0),
]


@pytest.mark.parametrize(("written", "meant"), TIMES)
def test_times_as_tools_write_them(written: Any, meant: int) -> None:
    span = {"context": {"trace_id": "1", "span_id": "2"}, "name": "a", "start_time": written}
    ((_, line),) = lines_of(json.dumps(span).encode())
    found = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert int(found.get("startTimeUnixNano", 0)) == meant
