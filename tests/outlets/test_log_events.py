"""Scores as OpenTelemetry events, through the real SDK."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry._logs import NoOpLoggerProvider, SeverityNumber
from opentelemetry._logs._internal import ProxyLoggerProvider
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.metrics._internal import _ProxyMeterProvider
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TraceState

from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.scored_turn import Root
from otel_agenteval.outlets.log_events import LogEventOutlet, usable
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support.clock import FakeClock

MORE = {"label": "pass", "explanation": "3 of 4 tool calls worked.", "threshold": 0.7, "policy": "gate", "result_id": "f" * 32}
PASSED = Score("code_tool_success", 0.75, True, **MORE)


class Written:
    """An outlet on a real provider with an in-memory exporter."""

    def __init__(self, clock: FakeClock) -> None:
        self._exporter = InMemoryLogRecordExporter()
        self.provider = LoggerProvider(Resource({"service.name": "shop"}), shutdown_on_exit=False)
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self._exporter))
        self.outlet = LogEventOutlet(self.provider, "engine-1", "0.1.0", clock)

    @property
    def records(self) -> list[ReadableLogRecord]:
        return list(self._exporter.get_finished_logs())

    def attributes(self) -> list[dict[str, Any]]:
        return [dict(record.log_record.attributes or {}) for record in self.records]


@pytest.fixture
def written(clock: FakeClock) -> Written:
    return Written(clock)


def test_a_score_is_one_event_with_everything_that_is_known(written: Written, clock: FakeClock) -> None:
    written.outlet.emit([scored_turn(PASSED)])
    (record,) = written.records
    log = record.log_record
    assert (log.event_name, log.severity_number) == ("gen_ai.evaluation.result", SeverityNumber.INFO)
    assert (log.timestamp, log.body) == (clock.time_ns(), None)
    assert record.instrumentation_scope is not None
    assert (record.instrumentation_scope.name, record.instrumentation_scope.version) == ("otel_agenteval", "0.1.0")
    assert record.resource.attributes["service.name"] == "shop"
    assert written.attributes() == [{
        "gen_ai.evaluation.name": "code_tool_success", "gen_ai.evaluation.score.value": 0.75, "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "3 of 4 tool calls worked.", "gen_ai.response.id": "last", "gen_ai.conversation.id": "conv-1",
        "gen_ai.agent.name": "travel", "agenteval.result.id": "f" * 32, "agenteval.turn.id": f"{TRACE_ID:032x}-{SPAN_ID:016x}",
        "agenteval.turn.revision": 1, "agenteval.turn.close_reason": "root_ended", "agenteval.turn.complete": True,
        "agenteval.metric.kind": "code", "agenteval.metric.version": "1", "agenteval.passed": True, "agenteval.threshold": 0.7,
        "agenteval.policy": "gate", "agenteval.instance.id": "engine-1",
    }]  # fmt: skip


@pytest.mark.parametrize("sampled", [True, False])
def test_the_event_stands_under_the_evaluated_root(written: Written, sampled: bool) -> None:
    root = Root(TRACE_ID, SPAN_ID, sampled, TraceState([("vendor", "x")]))
    written.outlet.emit([scored_turn(PASSED, root=root, turn={"revision": 2}, supersedes="t-1", new=False)])
    (found,) = written.attributes()
    assert (found["agenteval.turn.revision"], found["agenteval.turn.supersedes"]) == (2, "t-1")
    encoded = encode_logs(written.records).resource_logs[0].scope_logs[0].log_records[0]
    assert encoded.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert encoded.span_id.hex() == "00f067aa0ba902b7"
    assert encoded.flags == int(sampled)
    assert encoded.event_name == "gen_ai.evaluation.result"
    value = next(item.value for item in encoded.attributes if item.key == "gen_ai.evaluation.score.value")
    assert value.WhichOneof("value") == "double_value"


def test_a_failure_with_only_info_findings_is_a_warning(written: Written) -> None:
    detail = {"findings": [{"path": "output", "start": 0, "end": 2, "type": "number", "severity": "info"}]}
    failed = Score("code_ungrounded_numbers", 0.0, False, direction="neutral", threshold=1, detail=detail)
    signal = Score("code_ungrounded_numbers", 0.0, direction="neutral", detail=detail)
    written.outlet.emit([scored_turn(failed, signal)])
    levels = [record.log_record.severity_number for record in written.records]
    assert levels == [SeverityNumber.WARN, SeverityNumber.INFO]


def test_an_error_says_its_type_and_nothing_like_a_score(written: Written) -> None:
    written.outlet.emit([scored_turn(Score("code_a", status="error", error_type="timeout", explanation="code_a took too long"))])
    (record,), (found,) = written.records, written.attributes()
    assert record.log_record.severity_number == SeverityNumber.WARN
    assert found["error.type"] == "timeout"
    assert [key for key in found if "score" in key or key == "agenteval.passed"] == []


def test_what_is_unknown_is_left_out(written: Written) -> None:
    unknown = dict.fromkeys(("agent", "conversation_id", "llm_calls", "close_reason"))
    skipped = Score("code_b", status="skipped", detail={"reason": "missing:tool_calls"})
    written.outlet.emit([scored_turn(skipped), scored_turn(Score("code_a", 1, threshold=1), skipped, turn=unknown)])
    (found,) = written.attributes()
    assert [type(found[key]) for key in ("gen_ai.evaluation.score.value", "agenteval.threshold")] == [float, float]
    assert set(found) == {
        "agenteval.threshold",
        "gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "agenteval.result.id", "agenteval.turn.id",
        "agenteval.turn.revision", "agenteval.turn.complete", "agenteval.metric.kind", "agenteval.metric.version",
        "agenteval.policy", "agenteval.instance.id",
    }  # fmt: skip


def test_the_turn_s_messages_never_leave(written: Written) -> None:
    turn = {"messages": [{"role": "user", "content": "SECRET MESSAGE"}], "system": "SECRET SYSTEM", "user_id": "SECRET USER"}
    written.outlet.emit([scored_turn(PASSED, Score("code_a", status="error", error_type="ValueError"), turn=turn)])
    assert len(written.records) == 2
    assert "SECRET" not in "".join(record.to_json() for record in written.records)


def test_instrumentation_is_suppressed_while_emitting_and_only_then(written: Written) -> None:
    seen = []

    class Looking(SimpleLogRecordProcessor):
        def on_emit(self, log_record: ReadWriteLogRecord) -> None:
            contexts = (None, log_record.log_record.context)
            seen.extend(otel_context.get_value(_SUPPRESS_INSTRUMENTATION_KEY, context) for context in contexts)
            raise RuntimeError("a broken processor")

    written.provider.add_log_record_processor(Looking(InMemoryLogRecordExporter()))
    with pytest.raises(RuntimeError):
        written.outlet.emit([scored_turn(PASSED)])
    assert seen == [True, True]
    assert otel_context.get_value(_SUPPRESS_INSTRUMENTATION_KEY) is None


@pytest.mark.parametrize("handed_over", [True, False])
def test_flush_asks_the_provider_within_the_time(written: Written, handed_over: bool) -> None:
    asked = []

    class Slow(SimpleLogRecordProcessor):
        def force_flush(self, timeout_millis: int = 30000) -> bool:
            asked.append(timeout_millis)
            return handed_over

    written.provider.add_log_record_processor(Slow(InMemoryLogRecordExporter()))
    assert written.outlet.flush(60) is handed_over
    assert 0 < asked[0] <= 60_000


def test_only_an_sdk_s_provider_is_usable() -> None:
    others = (NoOpLoggerProvider(), ProxyLoggerProvider(), NoOpMeterProvider(), _ProxyMeterProvider(), None)
    assert not any(map(usable, others))
    assert usable(LoggerProvider(shutdown_on_exit=False))
    assert usable(MeterProvider(shutdown_on_exit=False))
