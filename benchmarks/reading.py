"""Measure the CPU time of creating turns from recorded spans, and the memory while spans arrive."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time

from mix import DATA, recordings

from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.spans.otlp import OtlpLog, from_json
from otel_agenteval.spans.record import LogPart, SpanRecord, cut_long_values, join_logs
from otel_agenteval.turns.relations import stitch
from otel_agenteval.turns.roots import SpanGroup, split
from otel_agenteval.turns.stitching import reader_of

ROUNDS = 5
CONTENT = ("input", "output", "error", "messages", "tool_calls", "retrievals", "agent_runs", "handoffs")
FLOOD = 1_000_000
FLOOD_BYTES = 64 * 2**20
QUEUE_BYTES = 16 * 2**20
PAST_BYTES = 3 * 2**20
"""Maximum bytes of closed turns that can still be revised."""
STAGES = ("json.loads of the line", "parsing", "assembling and reading turns", "reading the turns' content")


def _records(messages: list[object]) -> list[SpanRecord]:
    spans: dict[tuple[int, int], SpanRecord] = {}
    logs: dict[tuple[int, int], list[LogPart]] = {}
    for message in messages:
        for item in from_json(message):
            if isinstance(item, OtlpLog):
                logs.setdefault((item.trace_id, item.span_id), []).append(item.part)
            elif isinstance(item, SpanRecord):
                cut_long_values(item)
                spans[item.trace_id, item.span_id] = item
    for key, parts in logs.items():
        if key in spans:
            join_logs(spans[key], parts)
    return list(spans.values())


def _groups(records: list[SpanRecord]) -> list[SpanGroup]:
    traces: dict[int, list[SpanRecord]] = {}
    for record in records:
        traces.setdefault(record.trace_id, []).append(record)
    return sorted((group for trace in traces.values() for group in split(trace)), key=lambda group: group.root.start_ns)


def cost_per_span() -> dict[str, float]:
    """Return the CPU microseconds per span for each of :data:`STAGES`, over the whole corpus. The best round of each stage counts."""
    lines = recordings(DATA / "corpus.tar.xz")
    best = [float("inf")] * len(STAGES)
    spans = 0
    for _ in range(ROUNDS):
        spent, spans = [0.0] * len(STAGES), 0
        for recording in lines:
            times = [time.thread_time()]
            messages = [json.loads(line) for line in recording]
            times.append(time.thread_time())
            records = _records(messages)
            times.append(time.thread_time())
            turns = [reader_of(group).turn("recorded_file", group.all_seen) for group in stitch(_groups(records))]
            times.append(time.thread_time())
            for turn in turns:
                for field in CONTENT:
                    getattr(turn, field)
            times.append(time.thread_time())
            spent = [total + after - before for total, before, after in zip(spent, times, times[1:], strict=False)]
            spans += len(records)
        best = [min(pair) for pair in zip(best, spent, strict=True)]
    return {stage: seconds / spans * 1e6 for stage, seconds in zip(STAGES, best, strict=True)}


def flood_curve() -> list[tuple[int, float]]:
    """Return (spans, MB added) while a million spans arrive whose turns never close. Runs in a separate process."""
    found = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True)
    return [(int(spans), float(size)) for spans, size in (line.split() for line in found.stdout.splitlines())]


def _flood() -> None:
    import psutil

    process = psutil.Process()
    outlets = {"span_events": "off", "log_events": False, "prometheus": None}
    bounds = {"turn": {"total_bytes": FLOOD_BYTES, "max_open": 1_000_000}, "queue": {"max_bytes": QUEUE_BYTES}}
    options = {"inline": {"metrics": []}, "outlets": outlets, **bounds}
    engine = engine_from(load_config(options))
    start = process.memory_info().rss
    for count in range(FLOOD):
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": f"{count}" * 150}
        record = SpanRecord("chat m", count // 20 + 1, count + 1, 7, attributes=attributes, scope="acme")
        engine.intake.take(engine.assembler.add(record.trace_id, record, cut_long_values(record), local_root=False))
        if (count + 1) % (FLOOD // 10) == 0:
            assert engine.flush(60)
            gc.collect()
            print(count + 1, (process.memory_info().rss - start) / 1e6)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    _flood()
