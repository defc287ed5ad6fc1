"""Turns that resemble real traffic: recordings of all dialects, written turns in 23 languages, and large turns made of these texts.

Every run creates the same turns. Written and large turns become spans of the GenAI conventions, with a model call before each tool
call and one for the answer. Each model call therefore repeats the instructions and the history.
"""

from __future__ import annotations

import json
import lzma
import runpy
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_agenteval.core.turn import Turn
from otel_agenteval.spans.otlp import Signal
from otel_agenteval.turns.recordings import Reading, items_in, turns_of

DATA = Path(__file__).parents[1] / "tests" / "data"
RECORDED, WRITTEN = "recorded", "written, 23 languages"
LARGE = ("long history", "tool results of 100 kB", "non-Latin scripts", "data tables", "long instructions")
KINDS = (RECORDED, WRITTEN, *LARGE)
STEP = 3
"""Only every third recording is used, because recordings of a framework are similar."""
EACH = 8
"""Number of large turns of each kind."""
NON_LATIN = ("zh", "ja", "hi", "ar", "ru", "ko", "el", "uk")
_message_of = runpy.run_path(str(DATA.parent / "support" / "otlp_messages.py"))[
    "message_of"
]  # always from this checkout, even with --against
MS = 1_000_000
START = 1_767_225_600_000 * MS


class Case(NamedTuple):
    """One conversation's spans and log records."""

    kind: str
    lines: Sequence[bytes]
    """Export requests as OTLP/JSON."""

    def turns(self) -> list[Turn]:
        """Return the turns, with all their fields computed."""
        seen = Reading()
        found = list(turns_of(item for line in self.lines for item in items_in(line, seen, lambda _: None)))
        for turn in found:
            turn.to_dict()
        return found

    def requests(self) -> list[tuple[Signal, Any]]:
        """Return the export requests as OTLP messages, each with its signal."""
        kinds: dict[Signal, Any] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}
        found: list[tuple[Signal, bytes]] = [("logs" if b'"resourceLogs"' in line else "traces", line) for line in self.lines]
        return [(signal, _message_of(line, kinds[signal])) for signal, line in found]


def cases() -> list[Case]:
    """Return the whole mix: recordings, written turns and large turns."""
    recorded = [
        Case(RECORDED, lines)
        for path in sorted(DATA.rglob("*.tar.xz"))
        if not path.name.startswith("ordinary_apps")
        for lines in recordings(path)[::STEP]
    ]
    written = list(_written_turns())
    made = [*((WRITTEN, turn) for turn in written), *_large_turns(written, recorded)]
    return [
        *recorded,
        *(Case(kind, [json.dumps(_request(number, turn)).encode()]) for number, (kind, turn) in enumerate(made, 1)),
    ]


def recordings(archive: Path) -> list[list[bytes]]:
    """Return the lines of every recording in an archive, with its log records."""
    found: dict[str, list[bytes]] = {}
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            file = packed.extractfile(member) if member.name.endswith(".jsonl") else None
            if file is not None:
                lines = [line for line in file.read().splitlines() if line.strip()]
                found.setdefault(member.name.replace(".logs.jsonl", ".jsonl"), []).extend(lines)
    return list(found.values())


def second_turn(first: Turn, other: Turn) -> Turn:
    """Return a turn that continues the conversation of ``first`` with the question, tool calls and answer of ``other``."""
    new = [message for message in other.messages if message.role != "system"]
    return first.but({
        "messages": [*first.messages, *new], "input": other.input, "output": other.output, "tool_calls": other.tool_calls,
    })  # fmt: skip


def text_of(turn: Turn) -> str:
    """Return the turn's content as JSON."""
    known = turn.to_dict()
    names = ("system", "tool_definitions", "messages" if known.get("messages") else "output")
    return json.dumps([known[name] for name in names if name in known], ensure_ascii=False)


# --- written and large turns, in the form of ``turn.v1``


def _written_turns() -> Iterator[dict[str, Any]]:
    """Yield turns of ``tests/data/detectors`` without a fault."""
    for name in ("train", "test"):
        with lzma.open(DATA / "detectors" / "turns" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if row["ordinary"]:
                    yield {**row["turn"], "lang": row["lang"]}


def _large_turns(written: Sequence[dict[str, Any]], recorded: Sequence[Case]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and content of each large turn."""
    with_tools = [turn for turn in written if turn.get("tool_calls")]
    instructions = sorted({turn.system for case in recorded for turn in case.turns() if turn.system}, key=len)[-EACH:]
    for number in range(EACH):
        turn = with_tools[13 * number]
        others = list(islice(cycle(with_tools), 31 * number, 31 * number + 400))
        yield LARGE[0], {**turn, "history": [message for other in others[:30] for message in _said(other)]}

        results = [call for other in others for call in other["tool_calls"] if "result" in call]
        yield LARGE[1], {**turn, "tool_calls": [{**results[0], "result": _up_to(100_000, [call["result"] for call in results])}]}

        local = [other for other in written if other["lang"] == NON_LATIN[number]]
        said = [text for other in local for message in _said(other) for text in (message["content"],)]
        yield LARGE[2], {
            **local[0], "output": "\n".join(said[1::2])[:3_000],
            "tool_calls": [{"name": "search", "arguments": {"q": local[0]["input"]}, "result": "\n".join(said)[:20_000]}],
        }  # fmt: skip

        table = [
            line
            for other in others
            for line in other["output"].splitlines()
            if line.startswith("|") and any(map(str.isdigit, line))
        ]
        yield LARGE[3], {
            **turn, "output": "\n".join(table[:60]),
            "tool_calls": [{"name": "query", "arguments": {"q": turn["input"]}, "result": _up_to(30_000, [line.strip("|").split("|") for line in table[::2]])}],
        }  # fmt: skip

        yield LARGE[4], {**turn, "system": instructions[number]}


def _said(turn: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"role": "user", "content": turn["input"]}, {"role": "assistant", "content": turn["output"]}]


def _up_to(size: int, values: Sequence[Any]) -> list[Any]:
    """Repeat the values until they have ``size`` characters as JSON."""
    found: list[Any] = []
    for value in cycle(values):
        size -= len(json.dumps(value, ensure_ascii=False)) + 2
        if size < 0:
            return found
        found.append(value)
    raise AssertionError


# --- their spans


def _request(number: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return an export request with the spans of a turn."""
    messages = [_message(one["role"], {"type": "text", "content": one["content"]}) for one in turn.get("history", ())]
    messages.append(_message("user", {"type": "text", "content": turn["input"]}))
    system = [{"type": "text", "content": turn["system"]}] if "system" in turn else []
    spans = [_span(number, "invoke_agent", {
        "gen_ai.agent.name": "bot", "gen_ai.conversation.id": f"c-{number}", "gen_ai.system_instructions": system,
        "gen_ai.tool.definitions": turn.get("tool_definitions", []),
    })]  # fmt: skip
    for found in turn.get("retrievals", ()):
        spans.append(
            _span(
                number,
                "retrieval",
                {"gen_ai.retrieval.query.text": found.get("query") or "", "gen_ai.retrieval.documents": found["documents"]},
                len(spans),
            )
        )
    for call in turn.get("tool_calls") or ():
        call_id, asked, result = f"call-{len(spans)}", call.get("arguments") or {}, call.get("result")
        reply = _message("assistant", {"type": "tool_call", "id": call_id, "name": call["name"], "arguments": asked})
        spans.append(_chat(number, len(spans), system, messages, reply, "tool_call"))
        spans.append(_span(number, "execute_tool", {
            "gen_ai.tool.name": call["name"], "gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": asked, "gen_ai.tool.call.result": result,
        }, len(spans)))  # fmt: skip
        messages += [reply, _message("tool", {"type": "tool_call_response", "id": call_id, "response": result})]
    spans.append(
        _chat(number, len(spans), system, messages, _message("assistant", {"type": "text", "content": turn["output"]}), "stop")
    )
    spans[0]["endTimeUnixNano"] = spans[-1]["endTimeUnixNano"]
    return {
        "resourceSpans": [{"scopeSpans": [{"scope": {"name": "opentelemetry.instrumentation.genai.openai"}, "spans": spans}]}]
    }


def _message(role: str, part: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


def _chat(number: int, index: int, system: Any, messages: Any, reply: Mapping[str, Any], reason: str) -> dict[str, Any]:
    return _span(number, "chat", {
        "gen_ai.request.model": "gpt-5", "gen_ai.provider.name": "openai", "gen_ai.response.id": f"r-{number}-{index}",
        "gen_ai.response.finish_reasons": [reason], "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 200,
        "gen_ai.system_instructions": system, "gen_ai.input.messages": messages, "gen_ai.output.messages": [{**reply, "finish_reason": reason}],
    }, index)  # fmt: skip


def _span(number: int, operation: str, attributes: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
    start = START + number * 1_000 * MS + index * 10 * MS
    return {
        "name": operation, "traceId": f"{number:032x}", "spanId": f"{(number << 16) + index + 1:016x}", "parentSpanId": f"{(number << 16) + 1:016x}" if index else "",
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 9 * MS),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}, *({"key": key, "value": _value(value)} for key, value in attributes.items() if value not in ([], None))],
    }  # fmt: skip


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
