"""The OTLP outlet's bytes, compared with messages built by the protobuf classes and the SDK."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]  # no stub names it
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Direction, Kind, Policy, Score, Status
from otel_agenteval.core.semconv import INSTRUMENTS
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.evaluation.scored_turn import Judged, Root, ScoredTurn
from otel_agenteval.outlets.accounting import HISTOGRAM_OF_UNIT
from otel_agenteval.outlets.base import Outlet
from otel_agenteval.outlets.fan_out import FanOut
from otel_agenteval.outlets.otlp import encoding, protobuf
from otel_agenteval.outlets.otlp.encoding import MetricsEncoder, ScoreEncoder
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support import otlp_reference
from tests.support.otlp_compared import exactly, metrics_of
from tests.support.recordings import files_in
from tests.support.streams import Stream

NOW = 1_790_000_000_123_456_789
VERSION = "0.1.0"
ENCODER = ScoreEncoder(VERSION)
"""One encoder for all examples, because caches of one example must not affect another."""

many = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
"""Includes halves of surrogate pairs."""
LONG = st.one_of(TEXT, st.integers(100, 700).map(lambda length: "é" * length), st.just("x" * 20_000))
MAYBE = st.none() | TEXT
NUMBERS = st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.booleans())
SCALARS = st.one_of(st.none(), NUMBERS, TEXT, st.binary(max_size=10))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(TEXT | st.integers(), inner, max_size=3),
    max_leaves=8,
)
RESOURCES = st.dictionaries(TEXT, VALUES, max_size=4)


def word(of: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(of))


SCORES = st.builds(
    Score, TEXT, st.none() | NUMBERS, st.none() | st.booleans(), word(Status), MAYBE, st.none() | LONG, kind=word(Kind),
    unit=st.sampled_from([*HISTOGRAM_OF_UNIT, "other"]), direction=word(Direction), threshold=st.none() | NUMBERS, version=TEXT,
    error_type=MAYBE, policy=word(Policy), result_id=st.text(max_size=30) | st.just("0123456789abcdef" * 2),
)  # fmt: skip
JUDGED = st.builds(
    Judged, st.sampled_from(("llm", "embed")), st.floats(), MAYBE, st.none() | st.floats(), TEXT, st.none() | st.floats(),
    input_truncated=st.booleans(),
)  # fmt: skip
ROOTS = st.builds(
    Root, st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 1), st.booleans(), resource=RESOURCES, tenant=MAYBE,
    labels=st.dictionaries(TEXT, TEXT, max_size=2),
)  # fmt: skip


@st.composite
def turns(draw: Any) -> ScoredTurn:
    keys = {
        "turn_id": draw(TEXT), "conversation_id": draw(MAYBE), "agent": draw(MAYBE), "close_reason": draw(MAYBE),
        "complete": draw(st.booleans()), "revision": draw(st.integers(1, 2**63 - 1)), "llm_calls": [{"model": "m", "response_id": draw(MAYBE)}],
    }  # fmt: skip
    scored = scored_turn(
        turn=keys, root=draw(ROOTS), supersedes=draw(MAYBE), judged=draw(st.none() | JUDGED), new=draw(st.booleans())
    )
    scored.scores = draw(st.lists(SCORES, max_size=5))
    scored.content = draw(st.dictionaries(st.sampled_from((semconv.TURN_INPUT, semconv.TURN_OUTPUT)), LONG))
    scored.conversation = draw(st.booleans())
    scored.seconds = draw(st.floats(0, 1e6))
    return scored


@st.composite
def batches(draw: Any) -> list[ScoredTurn]:
    """Return batches of turns that share resources and metrics."""
    batch: list[ScoredTurn] = draw(st.lists(turns(), max_size=3))
    for scored in batch[1:]:
        if draw(st.booleans()):
            scored.root.resource = batch[0].root.resource
            scored.scores = [*scored.scores, *batch[0].scores]
    return batch


def logs(batch: Sequence[ScoredTurn], encoder: ScoreEncoder = ENCODER) -> tuple[Any, int]:
    body, count = encoder.log_records(batch, NOW, "engine-\ud800", "all")
    return ExportLogsServiceRequest.FromString(body), count


def assert_same_records(batch: Sequence[ScoredTurn]) -> int:
    """Compare log records and both kinds of spans, and return the number of records."""
    written, count = logs(batch)
    assert exactly(written) == exactly(otlp_reference.log_records(batch, NOW, "engine-\ud800", VERSION))
    assert count == sum(len(scope.log_records) for group in written.resource_logs for scope in group.scope_logs)
    for child in (False, True):
        body, spans = ENCODER.evaluate_spans(batch, NOW, "engine-1", child=child)
        as_spans = ExportTraceServiceRequest.FromString(body)
        assert exactly(as_spans) == exactly(otlp_reference.evaluate_spans(batch, NOW, "engine-1", VERSION, child=child))
        assert spans == sum(len(scope.spans) for group in as_spans.resource_spans for scope in group.scope_spans)
    return count


@many
@given(batches())
def test_records_and_spans_are_what_the_protobuf_classes_make(batch: list[ScoredTurn]) -> None:
    assert_same_records(batch)


@many
@given(VALUES)
def test_any_value_is_what_the_protobuf_classes_make(value: Any) -> None:
    deep: Any = value
    for _ in range(20):
        deep = [{"inner": deep}]
    for given_value in (value, [value], {"key": value}, deep):
        assert_same_records([scored_turn(Score("code_a", 1.0), root=Root(1, 1, resource={"key": given_value}))])


def test_a_varint_is_the_protobuf_classes() -> None:
    for number in (0, 1, 127, 128, 4095, 4096, 2**32, 2**64 - 1):
        assert protobuf.varint(number) == _VarintBytes(number)


def test_what_is_remembered_is_bounded() -> None:
    encoder = ScoreEncoder(VERSION)
    for number in range(3_000):
        text = str(number)
        score = Score(f"code_{text}", 0.5, True, label=f"label {text}", explanation="x" * number, version=text)
        root = Root(1, 1, resource={f"key_{text}": number}, labels={f"label_{text}": "x"})
        batch = [scored_turn(score, turn={"revision": number + 1}, root=root)]
        written, _ = encoder.log_records(batch, NOW, "engine-1", "all")
    expected = otlp_reference.log_records(batch, NOW, "engine-1", VERSION)
    assert exactly(ExportLogsServiceRequest.FromString(written)) == exactly(expected)
    kept = [encoder._scores._known, encoder._of_record._texts, encoder._of_record._plain]
    kept += [encoder._scores._explanation._heads, encoder._of_resource._texts, encoder._of_resource._plain]
    assert max(map(len, kept)) <= max(encoding._MAX_METRICS, protobuf._MAX_KEYS, protobuf._MAX_LENGTH + 1)


def test_a_resource_that_changed_since_is_encoded_anew() -> None:
    resource: dict[str, Any] = {"service.name": "one"}
    batch = [scored_turn(Score("code_a", 1.0), root=Root(1, 1, resource=resource))]
    before = logs(batch)[0]
    resource["service.name"] = "two"
    assert exactly(logs(batch)[0]) != exactly(before)
    assert_same_records(batch)


# --- metrics -----------------------------------------------------------------------------------------------------------


class Compared:
    """Both encoders: our accumulators, and the SDK with every observation."""

    def __init__(self, **options: int) -> None:
        self.telemetry = Telemetry(**options)
        self.sdk = otlp_reference.SdkMetrics(self.telemetry, VERSION, "engine-1")
        self.encoder = MetricsEncoder(self.telemetry, VERSION, NOW)
        self._fan_out = FanOut([self.sdk.outlet], self.telemetry)
        self._now = itertools.count(NOW + 1, 1_000)

    def emit(self, *batch: ScoredTurn) -> None:
        self._fan_out.emit(batch)

    def request(self) -> Any:
        return ExportMetricsServiceRequest.FromString(self.encoder.request(next(self._now), "engine-1"))

    def both(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        expected = metrics_of(self.sdk.request())
        return metrics_of(self.request()), expected


LABELS = st.sampled_from(["", "a", "b", "ünï\U0001f600"])
VALUED = st.builds(
    Score, st.sampled_from(["code_a", "code_b"]), st.none() | st.floats(0, 1e6), st.none() | st.booleans(), word(Status),
    unit=st.sampled_from([*HISTOGRAM_OF_UNIT, "other"]),
)  # fmt: skip
COUNTS = st.integers(0, 2**40)


@st.composite
def counted(draw: Any) -> ScoredTurn:
    keys = {
        "agent": draw(LABELS), "service": draw(LABELS), "close_reason": draw(LABELS), "complete": draw(st.booleans()),
        "duration_s": draw(st.none() | st.floats(0, 1e6)), "cost_usd": draw(st.none() | st.floats(0, 10)),
        "llm_calls": [{"model": draw(LABELS)}], "usage": draw(st.none() | st.fixed_dictionaries({"input_tokens": COUNTS, "output_tokens": COUNTS})),
    }  # fmt: skip
    root = Root(draw(st.integers(1, 2**128 - 1)), draw(st.integers(1, 2**64 - 1)), draw(st.booleans()))
    scored = scored_turn(*draw(st.lists(VALUED, max_size=6)), turn=keys, root=root, seconds=draw(st.floats(0, 100)))
    scored.new, scored.conversation = draw(st.booleans()), draw(st.booleans())
    return scored


@settings(many, max_examples=12)
@given(st.lists(st.lists(counted(), max_size=4), min_size=1, max_size=3))
def test_metrics_are_what_the_sdk_sent(collections: list[list[ScoredTurn]]) -> None:
    compared = Compared()
    try:
        for batch in collections:
            compared.emit(*batch)
            found, expected = compared.both()
            assert found == expected
    finally:
        compared.sdk.close()


def test_every_kind_of_metric_is_compared() -> None:
    compared = Compared()
    scores = [Score(f"code_{at}", 0.5, unit=unit) for at, unit in enumerate(HISTOGRAM_OF_UNIT)]
    compared.emit(scored_turn(*scores))
    watched = (semconv.TURNS_OPEN, semconv.ESTIMATE_MEAN, semconv.BUILD_INFO, semconv.SPANS_RECEIVED)
    for name in watched:
        attributes = next(instrument.attributes for instrument in INSTRUMENTS if instrument.name == name)
        compared.telemetry.watch(name, lambda attributes=attributes: [(dict.fromkeys(attributes, "x"), 7)])  # type: ignore[misc]
    compared.telemetry.watch(semconv.LOAD_LEVEL, lambda: [({}, 1.5)])
    compared.telemetry.expect(semconv.SPAN_EVENTS)
    found, expected = compared.both()
    assert found == expected
    assert {*HISTOGRAM_OF_UNIT.values(), *watched, semconv.LOAD_LEVEL, semconv.SPAN_EVENTS} <= found.keys()
    assert {found[name]["kind"] for name in found if name not in ("resource", "scope")} == {"gauge", "sum", "histogram"}
    compared.sdk.close()


def test_what_the_environment_says_of_us_and_of_temporality(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "scores")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=evals,service.version=9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    compared = Compared()
    for _ in range(2):
        compared.emit(scored_turn(Score("code_a", 0.5)))
        found, expected = compared.both()
        assert found == expected
    [point] = found[semconv.SCORE]["points"].values()
    assert (point["count"], found[semconv.SCORE]["aggregation_temporality"]) == (2, 2), "cumulative, whatever is preferred"
    compared.sdk.close()


@pytest.mark.parametrize("filtered", ["always_off", "trace_based"])
def test_the_filter_of_exemplars(monkeypatch: pytest.MonkeyPatch, filtered: str) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXEMPLAR_FILTER", filtered)
    compared = Compared()
    compared.emit(scored_turn(Score("code_a", 0.5)), scored_turn(Score("code_a", 0.05), root=Root(5, 6, sampled=False)))
    found, expected = compared.both()
    assert found == expected
    [point] = found[semconv.SCORE]["points"].values()
    sent = [(exemplar[1], exemplar[2]) for exemplar in point["exemplars"]]
    assert sent == ([] if filtered == "always_off" else [(TRACE_ID.to_bytes(16, "big"), SPAN_ID.to_bytes(8, "big"))])
    assert compared.both()[0][semconv.SCORE]["points"].popitem()[1]["exemplars"] == [], "each is sent once"
    compared.sdk.close()


def starts(request: Any, name: str = semconv.RESULTS) -> dict[str, int]:
    """Return the start time of each agent's first counter point."""
    return {
        point.attributes[1].value.string_value: point.start_time_unix_nano - NOW
        for group in request.resource_metrics
        for metric in group.scope_metrics[0].metrics
        if metric.name == name
        for point in metric.sum.data_points
    }


def test_a_label_set_counts_from_when_it_was_known_to_be_at_zero() -> None:
    compared = Compared()
    compared.emit(scored_turn(Score("code_a", 0.5), turn={"agent": "first"}))
    assert starts(compared.request()) == {"first": 0}
    compared.emit(scored_turn(Score("code_a", 0.5), turn={"agent": "second"}))
    assert starts(compared.request()) == {"first": 0, "second": 1}, "since the request before, which did not have it"
    assert starts(compared.request()) == {"first": 0, "second": 1}
    compared.telemetry.reset()
    assert starts(compared.request()) == {}
    compared.emit(scored_turn(Score("code_a", 0.5), turn={"agent": "first"}))
    assert starts(compared.request()) == {"first": 3_001}, "what it had counted before is gone"
    compared.sdk.close()


def test_numbers_beyond_64_bits_do_not_stop_the_metrics() -> None:
    telemetry = Telemetry()
    telemetry.add(semconv.TURN_TOKENS, 2**70, agent="a", model="m", service_name="s", token_type="input")
    body = MetricsEncoder(telemetry, VERSION, NOW).request(NOW + 1, "engine-1")
    found = metrics_of(ExportMetricsServiceRequest.FromString(body))
    [point] = found[semconv.TURN_TOKENS]["points"].values()
    assert point["value"] == ("as_double", float(2**70))


def test_the_outlet_brings_in_nothing_of_the_sdks_metrics() -> None:
    program = "import sys, otel_agenteval.outlets.otlp.outlet; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    unwanted = ("opentelemetry.sdk.metrics", "opentelemetry.exporter", "otel_agenteval.outlets.otlp_metrics")
    assert [name for name in done.stdout.split() if name.startswith(unwanted)] == []


def test_a_negative_value_is_counted_and_the_sum_is_left_out() -> None:
    telemetry = Telemetry()
    FanOut([], telemetry).emit([scored_turn(Score("code_a", -0.5), Score("code_a", 0.25))])
    found = metrics_of(
        ExportMetricsServiceRequest.FromString(MetricsEncoder(telemetry, VERSION, NOW).request(NOW + 1, "engine-1"))
    )
    [point] = found[semconv.SCORE]["points"].values()
    assert (point["count"], point["min"], point["max"], point["optional"]) == (2, -0.5, 0.25, [False, True, True])


# --- recordings

ARCHIVES = ("adk-go", "codex-cli", "gemini-cli", "langwatch-js-langchain", "openlit-agents", "spring-ai-alibaba", "upsonic")
"""Archives with and without log records, from Python, JavaScript and Java, with labels in many languages."""
CONFIG = {
    "conversation": {"metrics": ["code_agent_reliability", "code_agent_consistency"]},
    "privacy": {"export_content": True},
    "outlets": {"span_events": "off", "log_events": "off", "prometheus": None},
}


class BothWays(Outlet):
    """Encodes every batch with both encoders."""

    name = "compared"

    def __init__(self, sdk: otlp_reference.SdkMetrics) -> None:
        self._sdk = sdk
        self.compared = 0
        """Number of compared records."""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        self._sdk.outlet.emit(batch)
        self.compared += assert_same_records(batch)


@pytest.mark.parametrize("name", ARCHIVES)
def test_everything_that_leaves_of_a_recording_is_the_same(name: str) -> None:
    stream = Stream()
    stream.engine.shutdown()
    engine = stream.engine = engine_from(load_config(CONFIG), clock=stream.clock)
    sdk = otlp_reference.SdkMetrics(engine.telemetry, VERSION, "engine-1")
    outlet = BothWays(sdk)
    engine.outlets.add(outlet)
    for file, text in sorted(files_in(f"recordings/{name}.tar.xz").items()):
        if file.endswith(".jsonl"):
            (stream.send_logs if file.endswith(".logs.jsonl") else stream.send)(text.splitlines())
    stream.finish()
    assert engine.outlets.errors == {}
    expected = metrics_of(sdk.request())
    counted = engine.telemetry.read("agenteval.results").values.items()
    sent = sum(value for key, value in counted if key[2] in ("pass", "fail", "ok", "vacuous", "error"))
    assert outlet.compared >= sent > 0, "and revisions, which are counted once"
    request = ExportMetricsServiceRequest.FromString(MetricsEncoder(engine.telemetry, VERSION, NOW).request(NOW + 1, "engine-1"))
    assert metrics_of(request) == expected
    engine.shutdown()
    sdk.close()
