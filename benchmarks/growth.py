"""Measure how the cost per span grows with the size of a turn, from n to 4 n, for all shapes of large turns.

    python benchmarks/growth.py           prints the table
    python benchmarks/growth.py --write   also writes it to benchmarks/README.md
    python benchmarks/growth.py --check   exit status 1 if the cost per span grows by more than a quarter, plus a quarter for noise

The last rows count metrics, characters, series and stored turns instead of spans. The garbage collector is off, because its time
depends on all objects of the process. ``tests/turns/test_growth.py`` checks the same shapes by counting operations.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Tracer, set_span_in_context
from prometheus_client import CollectorRegistry, generate_latest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.caches import forget
from otel_agenteval.core.semconv import RESULTS
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.turn import Turn
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.engine.engine import Engine
from otel_agenteval.engine.work import ClosedSpans
from otel_agenteval.evaluation.evaluator import run as evaluate
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.views import Filter, Summer, Views
from otel_agenteval.outlets.store.writer import Retention, Rows, ScoreStore
from otel_agenteval.spans.record import LogPart, SpanEvent, SpanRecord, join_logs
from otel_agenteval.turns.duplicates import Duplicates
from otel_agenteval.turns.recordings import turns_of
from otel_agenteval.turns.roots import SpanGroup, split
from otel_agenteval.turns.state import Closed
from otel_agenteval.turns.stitching import Stitcher

TRACE = 0xA1
START = 1_767_225_600_000_000_000
MS = 1_000_000
FLAT = 1.25
"""Maximum cost per span at 4 n, as a multiple of the cost per span at n."""
_MESSAGE = [{"role": "user", "parts": [{"type": "text", "content": "How far is it from Rome to Paris?"}]}]


def _span(number: int, parent: int, operation: str, at: int, ms: int, remote: bool = False, **attributes: Any) -> SpanRecord:
    return SpanRecord(
        f"{operation} x", TRACE, number, parent, remote_parent=remote, start_ns=START + at * MS, end_ns=START + (at + ms) * MS,
        attributes={"gen_ai.operation.name": operation, **{key.replace("__", "."): value for key, value in attributes.items()}},
        scope="acme",
    )  # fmt: skip


def _chat(number: int, parent: int, at: int, ms: int = 1, asked: Any = _MESSAGE, answer: Any = None) -> SpanRecord:
    said = answer if answer is not None else [{"type": "text", "content": f"It is {number} km."}]
    return _span(
        number, parent, "chat", at, ms, gen_ai__request__model="m", gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=5,
        gen_ai__response__finish_reasons=("stop",), gen_ai__input__messages=json.dumps(asked),
        gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": said}]),
    )  # fmt: skip


def nesting(n: int) -> list[SpanRecord]:
    """Return agents and model calls, each nested in the span before."""
    return [
        _span(i, i - 1, "invoke_agent", i, 2 * (n - i) + 2, gen_ai__agent__name=f"a{i}") if i % 2 else _chat(i, i - 1, i, 2 * (n - i) + 2)
        for i in range(1, n + 1)
    ]  # fmt: skip


def nested_calls(n: int) -> list[SpanRecord]:
    """Return nested spans of one model call, as several instrumented layers create them."""
    return [_span(1, 0, "invoke_agent", 0, 3 * n), *(_chat(i, i - 1, i, 2 * (n - i) + 2) for i in range(2, n + 1))]


def siblings(n: int) -> list[SpanRecord]:
    """Return model calls one after another below one agent."""
    return [_span(1, 0, "invoke_agent", 0, 3 * n), *(_chat(i, 1, i) for i in range(2, n + 1))]


def fan_out(n: int) -> list[SpanRecord]:
    """Return simultaneous model calls below one agent, recorded by two independent instrumentations."""
    found = [_span(1, 0, "invoke_agent", 0, 3 * n)]
    for i in range(2, n + 1):
        found.append(_chat(i, 1, i, 3 * n - 2 * i))
        found[-1].scope = f"layer{i % 2}"
    return found


def turns_per_trace(n: int) -> list[SpanRecord]:
    """Return agents below one request, each with one model call."""
    found = [SpanRecord("request", TRACE, 1, start_ns=START, end_ns=START + 9 * n * MS)]
    for i in range(2, n + 1, 2):
        found += [_span(i, 1, "invoke_agent", 3 * i, 4, gen_ai__agent__name="bot"), _chat(i + 1, i, 3 * i + 1)]
    return found


def orphans(n: int) -> list[SpanRecord]:
    """Return :func:`turns_per_trace` without the request's span."""
    return turns_per_trace(n)[1:]


def remote_turns(n: int) -> list[SpanRecord]:
    """Return :func:`turns_per_trace`, with each agent called from another process."""
    found = turns_per_trace(n)[1:]
    for record in found[::2]:
        record.remote_parent = True
    return found


def left_contexts(n: int) -> list[SpanRecord]:
    """Return requests nested in requests that have already ended, each with a model call."""
    found = []
    for i in range(1, n + 1, 2):
        found += [SpanRecord("request", TRACE, i, max(0, i - 2), start_ns=START + 99 * i * MS, end_ns=START + (99 * i + 9) * MS)]
        found += [_chat(i + 1, i, 99 * i + 1)]
    return found


def chains(n: int) -> list[SpanRecord]:
    """Return nested OpenInference chains with a model call at the end."""
    found = [
        SpanRecord("chain", TRACE, i, i - 1, start_ns=START + i * MS, end_ns=START + (4 * n - i) * MS,
                   attributes={"openinference.span.kind": "CHAIN"}, scope="openinference.instrumentation.langchain")
        for i in range(1, n)
    ]  # fmt: skip
    return [*found, _chat(n, n - 1, n)]


def handoffs(n: int) -> list[SpanRecord]:
    found = [_span(1, 0, "invoke_workflow", 0, 9 * n)]
    for i in range(2, n + 1, 2):
        name = f"a{i % 7}"
        call = [{"type": "tool_call", "id": f"c{i}", "name": f"transfer_to_{name}", "arguments": {}}]
        found += [_span(i, 1, "invoke_agent", 3 * i, 4, gen_ai__agent__name=name), _chat(i + 1, i, 3 * i + 1, answer=call)]
    return found


def sub_agents(n: int) -> list[SpanRecord]:
    """Return unnamed agents that are each other's tools: agent, tool, agent, tool …"""
    return [
        _span(i, i - 1, "execute_tool", i, 2 * (n - i) + 2, gen_ai__tool__name=f"t{i}") if i % 2 == 0
        else _span(i, i - 1, "invoke_agent", i, 2 * (n - i) + 2)
        for i in range(1, n + 1)
    ]  # fmt: skip


def requested_agents(n: int) -> list[SpanRecord]:
    """Return unnamed agents without tool spans, requested in one answer or in an answer each."""
    calls = [{"type": "tool_call", "id": f"c{i}", "name": f"ask_{i}", "arguments": {}} for i in range(n // 2 + 1, n + 1)]
    found = [_span(1, 0, "invoke_agent", 0, 9 * n, gen_ai__agent__name="boss")]
    for i in range(2, n // 2, 2):
        found += [_chat(i, 1, 3 * i, answer=[{**calls[0], "id": f"c{i}"}]), _span(i + 1, 1, "invoke_agent", 3 * i + 2, 1)]
    found.append(_chat(n // 2, 1, 2 * n, answer=calls))
    return [*found, *(_span(i, 1, "invoke_agent", 3 * n + 3 * i, 1) for i in range(n // 2 + 1, n + 1))]


def retries(n: int) -> list[SpanRecord]:
    """Return calls of one tool with the same arguments until it works."""
    found = [_span(1, 0, "invoke_agent", 0, 9 * n), _chat(2, 1, 1)]
    for i in range(3, n + 1):
        found.append(
            _span(i, 1, "execute_tool", 3 * i, 1, gen_ai__tool__name="search", gen_ai__tool__call__arguments='{"q": "x"}')
        )
        found[-1].status, found[-1].status_message = (2, "timeout") if i < n else (0, None)
    return found


def tools(n: int) -> list[SpanRecord]:
    """Return tools that one answer requests. Their spans lack call ids, and only the next prompt contains their results."""
    calls = [{"type": "tool_call", "id": f"c{i}", "name": "search", "arguments": {"q": i}} for i in range(4, n + 1)]
    results = [{"type": "tool_call_response", "id": f"c{i}", "response": f"found {i}"} for i in range(n, 3, -1)]
    return [
        _span(1, 0, "invoke_agent", 0, 9 * n),
        _chat(2, 1, 1, answer=calls),
        _chat(3, 1, 6 * n, asked=[*_MESSAGE, {"role": "assistant", "parts": calls}, {"role": "tool", "parts": results}]),
        *(
            _span(i, 1, "execute_tool", 3 * i, 1, gen_ai__tool__name="search", gen_ai__tool__call__arguments=f'{{"q": {i}}}')
            for i in range(n, 3, -1)
        ),
    ]


def tools_by_order(n: int) -> list[SpanRecord]:
    """Return :func:`tools` with other ids in the results than in the calls, and without requests in the answer."""
    found = tools(n)
    calls = [{"type": "tool_call", "id": f"x{i}", "name": "search", "arguments": {"q": i}} for i in range(n, 3, -1)]
    results = [{"type": "tool_call_response", "id": f"x{i}", "response": f"found {i}"} for i in range(4, n + 1)]
    asked = [*_MESSAGE, {"role": "assistant", "parts": calls}, {"role": "tool", "parts": results}]
    return [found[0], _chat(2, 1, 1), _chat(3, 1, 6 * n, asked=asked), *found[3:]]


def bare_tools(n: int) -> list[SpanRecord]:
    """Return tool requests without arguments, which appear only in messages."""
    calls = [{"type": "tool_call", "id": f"c{i}", "name": "now"} for i in range(n)]
    results = [{"type": "tool_call_response", "id": f"c{i}", "response": "noon"} for i in range(n)]
    asked = [*_MESSAGE, {"role": "assistant", "parts": calls}, {"role": "tool", "parts": results}]
    return [_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1, answer=calls), _chat(3, 1, 3, asked=asked)]


def messages(n: int) -> list[SpanRecord]:
    """Return one model call with many messages, including tool calls and reasoning."""
    said: list[dict[str, Any]] = []
    for i in range(n // 2):
        said += [
            {
                "role": "assistant",
                "parts": [{"type": "reasoning", "content": "so"}, {"type": "tool_call", "id": f"c{i}", "name": "t"}],
            },
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": f"c{i}", "response": "17"}]},
        ]
    return [_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1, asked=[*_MESSAGE, *said])]


def history(n: int) -> list[SpanRecord]:
    """Return four model calls, each with all earlier messages of the conversation."""
    said: list[dict[str, Any]] = []
    for i in range(n // 8):
        said += [
            *_MESSAGE,
            {"role": "assistant", "parts": [{"type": "text", "content": f"It is {i} km, as https://example.com/{i} says."}]},
        ]
    return [_span(1, 0, "invoke_agent", 0, 30), *(_chat(i, 1, 3 * i, asked=[*said, *_MESSAGE]) for i in range(2, 6))]


def links(n: int) -> list[SpanRecord]:
    """Return one answer with many links, half of which come from a tool."""
    found = [f"https://example.com/{i}" for i in range(n)]
    tool = _span(3, 1, "execute_tool", 3, 1, gen_ai__tool__name="search", gen_ai__tool__call__result=" ".join(found[::2]))
    return [_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 5, answer=[{"type": "text", "content": " ".join(found)}]), tool]


def parts(n: int) -> list[SpanRecord]:
    """Return one answer with many message parts."""
    said = [{"type": kind, "content": "so"} for kind in ("reasoning", "text") for _ in range(n // 2)]
    return [_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1, answer=said)]


def _call(call_id: str | None, name: str = "search", arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "arguments": arguments or {}, **({"id": call_id} if call_id is not None else {})}


def _result(call_id: str | None, says: str = "found") -> dict[str, Any]:
    return {"type": "tool_call_response", "response": says, **({"id": call_id} if call_id is not None else {})}


def _asked_and_brought(calls: list[Any], results: list[Any]) -> list[Any]:
    return [*_MESSAGE, {"role": "assistant", "parts": calls}, {"role": "tool", "parts": results}]


def linked_agents(n: int) -> list[SpanRecord]:
    """Return named agents that are each other's tools, each with a model call that requests the next: agent, call, tool, agent …"""
    found = []
    for i in range(1, n + 1, 3):
        name, ends = f"a{i}", 2 * (n - i) + 9
        found += [
            _span(i, i - 1, "invoke_agent", i, ends, gen_ai__agent__name=name),
            _chat(i + 1, i, i + 1, answer=[_call(f"c{i}", f"a{i + 3}", {"to": name})]),
            _span(i + 2, i, "execute_tool", i + 2, ends - 2, gen_ai__tool__name=f"a{i + 3}", gen_ai__tool__call__id=f"c{i}",
                  gen_ai__tool__call__result=f"https://example.com/{i}"),
        ]  # fmt: skip
    return found


def alike_names(n: int) -> list[SpanRecord]:
    """Return hand-offs to agents whose names are different spellings of one word."""
    names = ["".join(one.upper() if i >> at & 1 else one for at, one in enumerate("abcdefghijkl")) for i in range(n)]
    found = [_span(1, 0, "invoke_workflow", 0, 9 * n)]
    for i in range(2, n, 2):
        call = [_call(f"c{i}", "transfer_to_abcdefghijkl")]
        found += [_span(i, 1, "invoke_agent", 3 * i, 4, gen_ai__agent__name=names[i]), _chat(i + 1, i, 3 * i + 1, answer=call)]
    return found


def two_branches(n: int) -> list[SpanRecord]:
    """Return two deep branches of agents. Model calls alternate between their ends, and each answers a new user message."""
    depth = n // 3
    found = [_span(1, 0, "invoke_workflow", 0, 99 * n)]
    for branch in (0, depth):
        found += [_span(branch + i, branch + i - 1 if i > 2 else 1, "invoke_agent", i, 90 * n) for i in range(2, depth + 2)]
    said: list[Any] = [*_MESSAGE]
    for i in range(2 * depth + 2, n + 1):
        said = [*said[-4:], {"role": "assistant", "parts": [{"type": "text", "content": f"It is {i - 1} km."}]}, *_MESSAGE]
        found.append(_chat(i, depth + 1 if i % 2 else 2 * depth + 1, 2 * n + 3 * i, asked=said))
    return found


def same_call_id(n: int) -> list[SpanRecord]:
    """Return tool calls that all have the same id."""
    calls = [_call("call_0", arguments={"q": i}) for i in range(4, n + 1)]
    asked = _asked_and_brought(calls, [_result("call_0", f"found {i}") for i in range(4, n + 1)])
    tools = [
        _span(i, 1, "execute_tool", 3 * i, 1, gen_ai__tool__name="search", gen_ai__tool__call__id="call_0")
        for i in range(4, n + 1)
    ]
    return [_span(1, 0, "invoke_agent", 0, 9 * n), _chat(2, 1, 1, answer=calls), _chat(3, 1, 6 * n, asked=asked), *tools]


def alike_arguments(n: int) -> list[SpanRecord]:
    """Return tools with different arguments of the same shape, which run in reverse order of the requests."""
    calls = [_call(f"c{i}", arguments={"q": [i]}) for i in range(4, n + 1)]
    asked = _asked_and_brought([_call(None, arguments={"q": [i]}) for i in range(4, n + 1)], [_result(None)] * (n - 3))
    tools = [
        _span(
            i, 1, "execute_tool", 6 * n - 3 * i, 1, gen_ai__tool__name="search", gen_ai__tool__call__arguments=f'{{"q": [{i}]}}'
        )
        for i in range(4, n + 1)
    ]
    return [_span(1, 0, "invoke_agent", 0, 9 * n), _chat(2, 1, 1, answer=calls), _chat(3, 1, 7 * n, asked=asked), *tools]


def unnamed_tools(n: int) -> list[SpanRecord]:
    """Return tool spans that have only a class name, so that they are matched by their arguments."""
    calls = [_call(f"c{i}", f"t{i}", {"q": i}) for i in range(4, n + 1)]
    tools = [
        _span(i, 1, "execute_tool", 3 * n + 3 * i, 1, traceloop__entity__name="DynamicTool", gen_ai__tool__call__arguments=f'{{"q": {i}}}')
        for i in range(n, 3, -1)
    ]  # fmt: skip
    for tool in tools:
        tool.scope = "@traceloop/instrumentation-langchain"
    return [_span(1, 0, "invoke_agent", 0, 9 * n), _chat(2, 1, 1, answer=calls), _chat(3, 1, 9 * n), *tools]


def ids_read_back(n: int) -> list[SpanRecord]:
    """Return requests without tool spans. Only the next prompt contains their ids."""
    calls = [_call(None, arguments={"q": i}) for i in range(n)]
    asked = _asked_and_brought(
        [_call(f"c{i}", arguments={"q": i}) for i in range(n - 1, -1, -1)], [_result(f"c{i}") for i in range(n)]
    )
    return [_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1, answer=calls), _chat(3, 1, 3, asked=asked)]


def retrievals(n: int) -> list[SpanRecord]:
    """Return searches with a few documents each. One document is always the same."""
    documents = json.dumps(
        [{"id": "d0", "content": "Rome", "score": 0.5}, {"id": "d1", "content": "Paris is far.", "score": 0.4}]
    )
    return [
        _span(1, 0, "invoke_agent", 0, 9 * n),
        *(_span(i, 1, "retrieval", i, 1, gen_ai__retrieval__query__text=f"q{i}", gen_ai__retrieval__documents=documents) for i in range(2, n)),
        _chat(n, 1, 2 * n),
    ]  # fmt: skip


def documents(n: int) -> list[SpanRecord]:
    found = json.dumps([{"id": f"d{i}", "content": f"It is {i} km.", "score": 0.5} for i in range(n)])
    return [_span(1, 0, "invoke_agent", 0, 9), _span(2, 1, "retrieval", 1, 1, gen_ai__retrieval__documents=found), _chat(3, 1, 3)]


def pieces(n: int) -> list[SpanRecord]:
    """Return one answer as a stream of messages, each with a tool request."""
    said = [
        {"role": "assistant", "parts": [{"type": "text", "content": "so"}, _call(f"c{i}")], "finish_reason": ""} for i in range(n)
    ]
    found = _chat(2, 1, 1)
    found.attributes["gen_ai.output.messages"] = json.dumps(said)
    return [_span(1, 0, "invoke_agent", 0, 9), found]


def server_tools(n: int) -> list[SpanRecord]:
    """Return one answer with many tool calls that the model's server made."""
    return [
        _span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1, answer=[{"type": "server_tool_call", "server_tool_call": {"name": "t"}}] * n),
    ]  # fmt: skip


def log_records(n: int) -> list[SpanRecord]:
    """Return one call with many simultaneous log records."""
    found = _chat(2, 1, 1)
    join_logs(found, [LogPart("gen_ai.user.message", {}, {"content": {"said": i}}, START) for i in range(n)])
    return [_span(1, 0, "invoke_agent", 0, 9), found]


def failures(n: int) -> list[SpanRecord]:
    """Return nested model calls that fail, each with an exception on its span."""
    found = [_span(1, 0, "invoke_agent", 0, 9 * n)]
    for i in range(2, n + 1):
        found.append(_chat(i, max(1, i - 1) if i % 3 else 1, i, 4 * n - i))
        found[-1].status, found[-1].status_message = 2, "timeout"
        found[-1].events = [SpanEvent("exception", {"exception.type": "Timeout", "exception.message": "late"})]
    return found


def traces_of_calls(n: int) -> list[SpanRecord]:
    """Return a loop without a span of its own, in which each model call is a separate trace."""
    found = []
    for i in range(1, n + 1):
        asked = _asked_and_brought([_call(f"c{i - 1}")], [_result(f"c{i - 1}")]) if i > 1 else _MESSAGE
        found.append(_chat(i, 0, 3 * i, asked=asked, answer=[_call(f"c{i}")]))
        found[-1].trace_id = i
    return found


def conversations(n: int) -> list[SpanRecord]:
    """Return model calls of one conversation. Each is a trace and a turn, with relevant earlier messages in the prompt."""
    found = []
    for i in range(1, n + 1):
        found.append(
            _chat(
                i, 0, 3 * i, asked=[*_MESSAGE, {"role": "assistant", "parts": [{"type": "text", "content": "Far."}]}, *_MESSAGE]
            )
        )
        found[-1].trace_id = i
        found[-1].attributes["gen_ai.conversation.id"] = "c"
    return found


def same_response(n: int) -> list[SpanRecord]:
    """Return traces that all have the same response, as from an instrumentation that repeats itself."""
    found = conversations(n)
    for record in found:
        record.attributes["gen_ai.response.id"] = "r"
    return found


SHAPES: dict[str, Callable[[int], list[SpanRecord]]] = {
    "nesting depth": nesting,
    "nested model spans": nested_calls,
    "siblings": siblings,
    "concurrent model calls, two instrumentations": fan_out,
    "turns per trace": turns_per_trace,
    "turns per trace, request's span missing": orphans,
    "turns per trace, remote parents": remote_turns,
    "stale contexts": left_contexts,
    "nested chains": chains,
    "hand-offs": handoffs,
    "nested sub-agents": sub_agents,
    "agents without tool spans": requested_agents,
    "retries": retries,
    "tools per turn": tools,
    "tools per turn, matched by order": tools_by_order,
    "tools without arguments": bare_tools,
    "messages per call": messages,
    "history that each call repeats": history,
    "links per answer": links,
    "message parts per answer": parts,
    "agents that call the next agent": linked_agents,
    "agents with similar names": alike_names,
    "two branches of agents": two_branches,
    "calls with the same ID": same_call_id,
    "calls with similar arguments": alike_arguments,
    "tools without names": unnamed_tools,
    "tool call IDs only in the next prompt": ids_read_back,
    "retrievals per turn": retrievals,
    "documents per retrieval": documents,
    "messages of a streamed answer": pieces,
    "tool calls by the model's server": server_tools,
    "log records per call": log_records,
    "failed calls": failures,
    "traces per turn": traces_of_calls,
    "turns per conversation": conversations,
    "traces with the same response": same_response,
}


def rebuild(records: list[SpanRecord]) -> None:
    """Create turns from recorded spans, convert them to ``turn.v1``, and evaluate the default metrics."""
    metrics = select_metrics(_CONFIG)
    for turn in turns_of(records):
        turn.to_dict()
        for metric in metrics:
            metric.evaluate(turn)


_NO_OUTLETS = {"span_events": "off", "log_events": False, "prometheus": None}
_CONFIG = load_config({"outlets": _NO_OUTLETS})


def _handle(engine: Engine, closed: Iterable[Closed]) -> None:
    """Process closed spans on this thread, as the worker does."""
    engine.pipeline.run([ClosedSpans(item) for item in closed])


def one_by_one(n: int) -> Callable[[], None]:
    """Return a function that receives turns of one trace, each after the turn before was closed."""
    now = [0.0]
    engine = engine_from(_CONFIG, waited=lambda: now[0])
    found = remote_turns(n)

    def run() -> None:
        for i in range(0, len(found), 2):
            for record in (found[i + 1], found[i]):
                local_root = record.parent_id == 0 or record.remote_parent
                _handle(engine, engine.assembler.add(TRACE, record, 512, local_root))
            now[0] += 30.0
            _handle(engine, engine.assembler.tick())

    return run


def one_long_trace(n: int) -> Callable[[], None]:
    """Return a function that receives spans of one trace without a local root."""
    now = [0.0]
    engine = engine_from(_CONFIG, waited=lambda: now[0])
    found = orphans(n)

    def run() -> None:
        for record in found:
            _handle(engine, engine.assembler.add(TRACE, record, 512, local_root=False))
        _handle(engine, engine.assembler.close_all("shutdown"))

    return run


def open_turns(n: int) -> Callable[[], None]:
    """Return a function that receives turns that are all open before the first one ends."""
    engine = engine_from(_CONFIG, waited=lambda: 0.0)
    turns = [[_span(1, 0, "invoke_agent", 0, 9), _chat(2, 1, 1)] for _ in range(n // 2)]

    def run() -> None:
        for at in (1, 0):
            for trace, turn in enumerate(turns, 1):
                turn[at].trace_id = trace
                _handle(engine, engine.assembler.add(trace, turn[at], 512, local_root=at == 0))
        _handle(engine, engine.assembler.close_all("shutdown"))

    return run


def _in_process(open_spans: Callable[[Tracer, int], None], limit: int = 100_000) -> Callable[[int], Callable[[], None]]:
    """Return a shape that creates spans in this process. Above ``limit`` spans per turn, each span costs more."""

    def stream(n: int) -> Callable[[], None]:
        processor = AgentEvalSpanProcessor({"inline": {"metrics": []}, "outlets": _NO_OUTLETS, "turn": {"max_spans": limit}})
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        return lambda: open_spans(provider.get_tracer("acme"), n)

    return stream


def _open(tracer: Tracer, parent: Span | None, operation: str | None = "chat", remote: bool = False) -> Span:
    context = Context()
    if parent is not None:
        own = parent.get_span_context()
        carried = SpanContext(own.trace_id, _FAR_AWAY if remote else own.span_id, remote, own.trace_flags)
        context = set_span_in_context(NonRecordingSpan(carried), context)
    return tracer.start_span("x", context, attributes={"gen_ai.operation.name": operation} if operation else None)


_FAR_AWAY = 0xFA4


def _deep(tracer: Tracer, n: int) -> None:
    stack: list[Span] = []
    for i in range(n):
        stack.append(_open(tracer, stack[-1] if stack else None, "chat" if i % 2 else "invoke_agent"))
    while stack:
        stack.pop().end()


def _wide(tracer: Tracer, n: int) -> None:
    root = _open(tracer, None, None)
    spans = [_open(tracer, root, "invoke_agent") for _ in range(n - 1)]
    for span in (*spans, root):
        span.end()


def _in_turn(tracer: Tracer, n: int) -> None:
    root = _open(tracer, None, None)
    for _ in range(n // 2):
        _open(tracer, root, None).end()
        _open(tracer, root, "invoke_agent").end()
    root.end()


def _from_elsewhere(tracer: Tracer, n: int) -> None:
    first = _open(tracer, None, None)
    spans = [_open(tracer, first, "invoke_agent", remote=True) for _ in range(n - 1)]
    for span in (first, *spans):
        span.end()


def _without_parents(tracer: Tracer, n: int) -> None:
    root = _open(tracer, None, "invoke_agent")
    own = root.get_span_context()
    lost = NonRecordingSpan(SpanContext(own.trace_id, _FAR_AWAY, False, own.trace_flags))
    for _ in range(n):
        _open(tracer, lost).end()
    root.end()


def calls_seen_twice(n: int) -> Callable[[], None]:
    """Return a function that composes a loop's and an agent's model calls. A second instrumentation records each in its own trace."""

    def loop_call(i: int, number: int, at: int) -> SpanGroup:
        ask, asked = ([{"type": "tool_call", "id": f"c{k}", "name": "t", "arguments": {}}] for k in (i, i - 1))
        brought = [{"type": "tool_call_response", "id": f"c{i - 1}", "response": "r"}]
        more = [{"role": "assistant", "parts": asked}, {"role": "tool", "parts": brought}] if i else []
        return alone(_chat(number, 0, at, asked=[*_MESSAGE, *more], answer=ask), f"r{i}", second=at % 10 == 1)

    def alone(record: SpanRecord, response: str, *, second: bool = True) -> SpanGroup:
        record.trace_id = record.span_id
        record.scope = "second" if second else record.scope
        record.attributes = {**record.attributes, "gen_ai.response.id": response}
        return split([record])[0]

    loop = [loop_call(i, 10 * n + 2 * i + side, 10 * i + side) for i in range(n) for side in (0, 1)]
    inner = siblings(n)
    for record in inner[1:]:
        record.attributes = {**record.attributes, "gen_ai.response.id": f"s{record.span_id}"}
    outside = [alone(_chat(50 * n + i, 0, i), f"s{i}") for i in range(2, n + 1)]

    def run() -> None:
        duplicates = Duplicates(Stitcher(30.0))
        out = [whole for group in (*loop, *outside[::2], *split(inner), *outside[1::2]) for whole in duplicates.add(group, 0.0)]
        out += duplicates.due(60.0)
        assert len(out) == len(outside[::2]) + 3, len(out)  # the loop, and the agent's turn twice

    return run


def _waiting(made: Callable[[int, int], SpanRecord]) -> Callable[[int], Callable[[], None]]:
    """Return a shape of model calls that are separate traces and wait for the next calls."""

    def stream(n: int) -> Callable[[], None]:
        groups = []
        for i in range(1, n + 1):
            record = made(i, n)
            record.trace_id = i
            groups += split([record])

        def run() -> None:
            duplicates = Duplicates(Stitcher(30.0))
            for group in groups:
                duplicates.add(group, 0.0)
            duplicates.due(60.0)

        return run

    return stream


def _waits(i: int, n: int) -> SpanRecord:
    """Return a call that requests a tool with the same id as all other calls."""
    return _chat(i, 0, 3 * i, answer=[_call("call_0")])


def _goes_on(i: int, n: int, **more: Any) -> SpanRecord:
    """Return a result, request a tool again, and end long after the other calls began."""
    call_id = more.pop("call_id", None)
    found = _chat(i, 0, 3 * i, 9 * n, asked=_asked_and_brought([_call(call_id)], [_result(call_id)]), answer=[_call(call_id)])
    found.attributes.update(more)
    return found


def _unseen(i: int, n: int) -> SpanRecord:
    """Return a call that has token usage, but no messages."""
    found = _waits(i, n)
    for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
        del found.attributes[key]
    found.attributes.update({"gen_ai.response.finish_reasons": ("tool_calls",), "gen_ai.usage.input_tokens": 10 * (n - i) + 1})
    return found


def _of_conversation(i: int, n: int) -> SpanRecord:
    return _goes_on(i, n, **{"gen_ai.conversation.id": "c"}, call_id=f"x{i}")


def _unanswered(i: int, n: int) -> SpanRecord:
    """Return a call that requested tools, but has no recorded answer."""
    found = _goes_on(i, n)
    del found.attributes["gen_ai.output.messages"]
    found.attributes["gen_ai.response.finish_reasons"] = ("tool_calls",)
    return found


def _backwards(i: int, n: int) -> SpanRecord:
    """Return the calls of a loop in reverse order."""
    found = _goes_on(i, n)
    at = n - i
    found.start_ns, found.end_ns = START + 3 * at * MS, START + (3 * at + 1) * MS
    asked = _asked_and_brought([_call(f"c{at - 1}")], [_result(f"c{at - 1}")]) if at else _MESSAGE
    found.attributes["gen_ai.input.messages"] = json.dumps(asked)
    found.attributes["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": [_call(f"c{at}")]}])
    return found


def _repeated(i: int, n: int) -> SpanRecord:
    """Return the same waiting response again and again."""
    found = _waits(1, n)
    found.span_id = i
    found.attributes["gen_ai.response.id"] = "r"
    return found


STREAMS: dict[str, Callable[[int], Callable[[], None]]] = {
    "successive turns in one trace": one_by_one,
    "one long trace": one_long_trace,
    "open turns": open_turns,
    "calls recorded twice": calls_seen_twice,
    "waiting calls, one tool call ID": _waiting(_waits),
    "waiting calls, one tool call ID, continued": _waiting(lambda i, n: _goes_on(i, n, call_id="call_0")),
    "waiting calls, no IDs": _waiting(_goes_on),
    "waiting calls, no content": _waiting(_unseen),
    "waiting calls, no answers": _waiting(_unanswered),
    "waiting calls, one conversation": _waiting(_of_conversation),
    "waiting calls, in reverse order": _waiting(_backwards),
    "waiting calls, one response ID": _waiting(_repeated),
    "in process: nesting depth": _in_process(_deep),
    "in process: concurrent turns": _in_process(_wide),
    "in process: consecutive turns": _in_process(_in_turn),
    "in process: turns with remote parents": _in_process(_from_elsewhere),
    "in process: parents missing": _in_process(_without_parents),
    "in process: parents missing, after the limit": _in_process(_without_parents, limit=10),
}


_SENTENCE = "Which of the two trains from Rome to Paris is the faster one, and what does it cost to take a bicycle along? "


def _text(kind: str, size: int, text: str) -> Callable[[], None]:
    """Return a function that scores a turn with a long text, with empty caches."""
    long = (text * (size // len(text) + 1))[:size]
    more = {"output": long} if kind == "answer" else {"output": "Yes.", "tool_calls": [{"name": "search", "result": long}]}
    turn, metrics = Turn.from_dict({"input": "Which?", **more}), select_metrics(_CONFIG)

    def run() -> None:
        forget()
        evaluate(metrics, turn)

    return run


def number_of_metrics(n: int) -> Callable[[], None]:
    """Return a function that evaluates ``n`` default metrics on one turn."""
    metrics = select_metrics(_CONFIG)
    many = [metrics[i % len(metrics)] for i in range(n)]
    turn = next(iter(turns_of(siblings(9))))
    return lambda: (evaluate(many, turn), None)[1]


def prometheus_series(n: int) -> Callable[[], None]:
    """Return a function that counts ``n`` label sets of a counter, and scrapes them."""
    telemetry = Telemetry(max_values=n, max_series=n + 1)
    registry = CollectorRegistry()
    outlet = PrometheusOutlet(telemetry, registry=registry)

    def run() -> None:
        for i in range(n):
            telemetry.add(RESULTS, metric="m", agent=f"a{i}", outcome="pass")
        generate_latest(registry)
        outlet.close()

    return run


def stored_turns(n: int) -> Callable[[], None]:
    """Return a function that writes turns to a store (sixteen scores each), sums them by hour, and lists them."""
    from page import NOW, turns

    rows, folder = list(turns(n, seconds=60.0 * n)), tempfile.TemporaryDirectory()
    path = Path(folder.name, "scores.db")

    def run() -> None:
        store = ScoreStore(path, Retention(1e9, 1 << 40))
        for first in range(0, n, 20):
            batch = rows[first : first + 20]
            store.write(Rows([turn for turn, _ in batch], [score for _, scores in batch for score in scores]))
        store.close()
        summer, start, listed = Summer(path, lambda: NOW + 7_200), None, 0
        while summer.sum_one():
            pass
        summer.close()
        while listed < n:
            with Views(path) as views:
                page = views.listed(Filter(), start=start)
            listed, start = listed + len(page.turns), page.end
        folder.cleanup()

    return run


WORK: dict[str, Callable[[int], Callable[[], None]]] = {
    "metrics (µs per metric)": number_of_metrics,
    "prose in an answer (µs per 25 characters)": lambda n: _text("answer", 25 * n, _SENTENCE),
    "numbers in an answer (µs per 25 characters)": lambda n: _text("answer", 25 * n, "142.50 1001 18 2024 7,300 "),
    "trigger words in a tool's result (µs per 25 characters)": lambda n: _text(
        "tool", 25 * n, "The user asked the tool which model it was. "
    ),
    "one word in a tool's result (µs per 25 characters)": lambda n: _text("tool", 25 * n, "ignore "),
    "Prometheus series (µs per series)": prometheus_series,
    "turns in a score store (µs per turn)": stored_turns,
}


def per_span(prepare: Callable[[], Callable[[], None]], n: int, rounds: int = 2) -> float:
    """Return the CPU microseconds per span, the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        run = prepare()
        gc.collect()
        gc.disable()
        start = time.thread_time()
        run()
        best = min(best, time.thread_time() - start)
        gc.enable()
    return best / n * 1e6


def table(n: int = 1_000) -> list[tuple[str, float, float]]:
    """Return (shape, µs per span at n, µs per span at 4 n)."""

    def rebuilding(shape: Callable[[int], list[SpanRecord]], size: int) -> Callable[[], Callable[[], None]]:
        def prepare() -> Callable[[], None]:
            records = shape(size)
            return lambda: rebuild(records)

        return prepare

    rebuild(siblings(20))
    found = [(name, *(per_span(rebuilding(shape, size), size) for size in (n, 4 * n))) for name, shape in SHAPES.items()]
    return found + [
        (name, *(per_span(lambda size=size, stream=stream: stream(size), size) for size in (n, 4 * n)))
        for name, stream in (STREAMS | WORK).items()
    ]


def main() -> int:
    import harness  # only in a script, because a test imports the shapes

    parser = harness.parser(__doc__, against=False)
    parser.add_argument("-n", type=int, default=1_000)
    options = parser.parse_args()
    steep = False
    lines = [("Growing part", "µs per span at n", "µs per span at 4 n", "Ratio")]
    for name, small, large in table(options.n):
        steep |= large > harness.NOISE * FLAT * small
        lines.append((name, f"{small:.1f}", f"{large:.1f}", f"{large / small:.2f} ×{' STEEP' if large > FLAT * small else ''}"))
    text = harness.plain_table(lines)
    print(text)
    if options.write:
        harness.write(text, "growth")
    return int(steep and options.check)


if __name__ == "__main__":
    sys.exit(main())
