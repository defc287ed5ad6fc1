"""Recordings as a stream: sends single spans and log records into an engine without outlets."""

from __future__ import annotations

import json

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.jsonio import loads
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.spans.otlp import OtlpLog, from_json
from otel_agenteval.spans.record import SpanRecord, cut_long_values
from tests.support.clock import FakeClock


def pieces(lines):
    """Yield (is_log, item, line) for each span and log record. The line is a separate request."""
    for line in lines:
        message = json.loads(line)
        for outer, inner, leaf in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
            for resource in message.get(outer, []):
                for scope in resource.get(inner, []):
                    for item in scope.get(leaf, []):
                        one = {**resource, inner: [{**scope, leaf: [item]}]}
                        yield leaf == "logRecords", item, json.dumps({outer: [one]})


def standing(evaluated):
    """Return the last revision of each turn that no later turn supersedes or contains."""
    last = {}
    for scored in evaluated:
        for earlier in (scored.supersedes, *scored.absorbs):
            last.pop(earlier, None)
        last[scored.turn.turn_id] = scored.turn
    return list(last.values())


class Stream:
    """An engine without outlets that receives spans and log records after their end."""

    def __init__(self):
        self.clock = FakeClock()
        outlets = {"span_events": "off", "log_events": False, "prometheus": None}
        self.engine = engine_from(load_config({"inline": {"metrics": ["code_refusal"]}, "outlets": outlets}), clock=self.clock)
        self.kept = []
        self.engine.keep_turns(self.kept)

    def send(self, lines):
        for line in lines:
            for item in from_json(loads(line)):
                if isinstance(item, OtlpLog):
                    assert self.engine.assembler.add_log(item.trace_id, item.span_id, item.part)
                elif isinstance(item, SpanRecord):
                    size = cut_long_values(item)
                    local_root = item.parent_id == 0 or item.remote_parent
                    self.engine.intake.take(self.engine.assembler.add(item.trace_id, item, size, local_root))

    def send_logs(self, lines):
        """Send log records, some of which may not belong to a turn."""
        for line in lines:
            for item in from_json(loads(line)):
                if isinstance(item, OtlpLog):
                    self.engine.assembler.add_log(item.trace_id, item.span_id, item.part)

    def finish(self):
        """Wait longer than any timeout."""
        for _ in range(3):
            self.clock.advance(400)
            self.engine.intake.tick()
            assert self.engine.flush(60)

    def turns(self):
        """Return the last revision of each final turn."""
        self.finish()
        return {turn.turn_id: turn.to_dict() for turn in standing(self.kept)}
