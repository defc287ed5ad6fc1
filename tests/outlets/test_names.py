"""Names on the wire: where they come from, and what Prometheus makes of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from otel_agenteval.core import semconv
from otel_agenteval.core.semconv import INSTRUMENTS, Instrument, prometheus_name
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.server.responses import Kind


@pytest.mark.parametrize(
    ("otlp", "prometheus"),
    [
        ("agenteval.score", "agenteval_score"),
        ("agenteval.measure.duration", "agenteval_measure_duration_seconds"),
        ("agenteval.measure.tokens", "agenteval_measure_tokens"),
        ("agenteval.measure.cost.usd", "agenteval_measure_cost_usd"),
        ("agenteval.measure.items", "agenteval_measure_items"),
        ("agenteval.measure.severity", "agenteval_measure_severity"),
        ("agenteval.results", "agenteval_results_total"),
        ("agenteval.turns", "agenteval_turns_total"),
        ("agenteval.turn.duration", "agenteval_turn_duration_seconds"),
        ("agenteval.turn.cost.usd", "agenteval_turn_cost_usd_total"),
        ("agenteval.turn.tokens", "agenteval_turn_tokens_total"),
        ("agenteval.spans.received", "agenteval_spans_received_total"),
        ("agenteval.spans.dropped", "agenteval_spans_dropped_total"),
        ("agenteval.late_spans", "agenteval_late_spans_total"),
        ("agenteval.turns.open", "agenteval_turns_open"),
        ("agenteval.queue.size", "agenteval_queue_size"),
        ("agenteval.queue.capacity", "agenteval_queue_capacity"),
        ("agenteval.metric.duration", "agenteval_metric_duration_seconds"),
        ("agenteval.emit.errors", "agenteval_emit_errors_total"),
        ("agenteval.span_events", "agenteval_span_events_total"),
        ("agenteval.judge.requests", "agenteval_judge_requests_total"),
        ("agenteval.judge.cost.usd", "agenteval_judge_cost_usd_total"),
        ("agenteval.budget.remaining.usd", "agenteval_budget_remaining_usd"),
    ],
)
def test_each_promised_metric_has_the_promised_prometheus_name(otlp: str, prometheus: str) -> None:
    instrument = next(item for item in INSTRUMENTS if item.name == otlp)
    assert prometheus_name(instrument) == prometheus


@pytest.mark.parametrize(
    ("kind", "unit", "expected"),
    [("gauge", "1", "x_share_ratio"), ("histogram", "1", "x_share"), ("gauge", "By", "x_share_bytes"), ("gauge", "", "x_share")],
)
def test_units_become_suffixes(kind: str, unit: str, expected: str) -> None:
    assert prometheus_name(Instrument("x.share", kind, unit, (), "")) == expected


def test_a_unit_that_the_name_already_ends_in_is_not_added_again() -> None:
    assert prometheus_name(Instrument("x.wait_seconds", "counter", "s", (), "")) == "x_wait_seconds_total"


def test_opentelemetry_s_own_prometheus_exporter_translates_to_the_same_names() -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.prometheus")
    registry = CollectorRegistry()
    provider = MeterProvider(metric_readers=[exporter.PrometheusMetricReader(registry=registry, disable_target_info=True)])
    meter = provider.get_meter(semconv.SCOPE)
    for instrument in INSTRUMENTS:
        labels = dict.fromkeys(instrument.attributes, "x")
        if instrument.kind == "counter":
            meter.create_counter(instrument.name, instrument.unit).add(1, labels)
        elif instrument.kind == "gauge":
            meter.create_gauge(instrument.name, instrument.unit).set(1, labels)
        else:
            meter.create_histogram(instrument.name, instrument.unit).record(1, labels)
    samples = {sample.name for family in registry.collect() for sample in family.samples}
    provider.shutdown()
    series = {"counter": "", "gauge": "", "histogram": "_bucket"}
    expected = {prometheus_name(instrument) + series[instrument.kind] for instrument in INSTRUMENTS}
    assert {name for name in samples if not name.endswith(("_sum", "_count"))} == expected


def test_each_instrument_stands_once_and_is_whole() -> None:
    assert len({instrument.name for instrument in INSTRUMENTS}) == len(INSTRUMENTS)
    for instrument in INSTRUMENTS:
        assert instrument.name.startswith("agenteval.")
        assert instrument.description.endswith(".")
        assert (instrument.kind == "histogram") == bool(instrument.buckets)
        assert list(instrument.buckets) == sorted(set(instrument.buckets))


def test_names_are_the_convention_s_or_under_our_own_prefix() -> None:
    wire = [value for key, value in vars(semconv).items() if key.isupper() and isinstance(value, str) and "." in value]
    assert len(wire) > 20
    assert [value for value in wire if not value.startswith(("gen_ai.", "agenteval.", "error.", "service."))] == []


# --- what is 0 before it happens --------------------------------------------------------------------------------------

_COUNTED_AT = {
    (semconv.SPANS_DROPPED, "reason"): (
        r'\bspans\.count\("(\w+)"',
        r'found\["(\w+)"\] \+?= (?:\w+\.|sum\()',
        r'\bcount_drop\("(\w+)"',
        r'self\._account\(.+, "(\w+)"\)',
        r'\bleave\("(\w+)"\)',
    ),
    (semconv.FAULTS, "where"): (r'\b_?failed\("(\w+)", error',),
    (semconv.DROPPED, "reason"): (
        r'\blose\((?:\w+, )?"(\w+)"\)',
        r'outcomes\.drop\(.+, "(\w+)"\)',
        r'\bDiscard\("(\w+)"\)',
        r'NoScore\.dropped\("(\w+)"\)',
    ),
    (semconv.EMIT_ERRORS, "reason"): (r'EMIT_ERRORS,.+ reason="(\w+)"\)', r'self\._failed\("(spool_\w+)"\)'),
    (semconv.EMIT_RECORDS, "outcome"): (r'\.finish(?:ed)?\("(\w+)",', r'EMIT_RECORDS,.+ outcome="(\w+)"'),
    (semconv.JUDGE_REQUESTS, "outcome"): (
        r'JUDGE_REQUESTS, outcome="(\w+)"',
        r'\boutcome = "(ok)"',
        r'fault, outcome = \S+, "(\w+)"',
    ),
    (semconv.SERVE_REQUESTS, "outcome"): (r'\bRefusal\(\s*"(\w+)"', r'\.count\("\w+", \w+, "(\w+)"'),
}
"""Counter and label → how the code names a value that it counts."""


@pytest.mark.parametrize(("counter", "label"), _COUNTED_AT, ids=str)
def test_whatever_the_code_counts_is_known_up_front(counter: str, label: str) -> None:
    package = Path(semconv.__file__).parent.parent
    text = "\n".join(file.read_text(encoding="utf-8") for file in package.rglob("*.py"))
    counted = {value for pattern in _COUNTED_AT[counter, label] for value in re.findall(pattern, text)}
    known = {value for group in semconv.KNOWN_LABELS[counter] for value in group[label]}
    assert len(counted) > 1
    assert counted - known == set(), "add them to semconv.KNOWN_LABELS, so that their series begin as 0"


def test_every_refusal_is_known_for_its_transport() -> None:
    known = {value for group in semconv.KNOWN_LABELS[semconv.SERVE_REQUESTS] for value in group["outcome"]}
    assert set(get_args(Kind)) <= known


def test_a_counter_is_shown_as_0_by_every_outlet_until_it_is_counted() -> None:
    registry = CollectorRegistry()
    telemetry = Telemetry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    telemetry.expect(semconv.SPANS_DROPPED)
    telemetry.expect(semconv.EMIT_ERRORS, outlet=["jsonl"])
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 0
    assert registry.get_sample_value("agenteval_emit_errors_total", {"outlet": "jsonl", "reason": "OSError"}) == 0
    assert registry.get_sample_value("agenteval_emit_errors_total", {"outlet": "store", "reason": "OSError"}) is None
    telemetry.add(semconv.SPANS_DROPPED, 2, reason="queue_full")
    telemetry.expect(semconv.SPANS_DROPPED)  # as a reload does
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 2
    telemetry.reset()
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 0
    outlet.close()


def test_labels_that_only_configuration_knows_must_be_given() -> None:
    with pytest.raises(KeyError, match="metric"):
        Telemetry().expect(semconv.DROPPED)
    telemetry = Telemetry()
    telemetry.expect(semconv.DROPPED, metric=["code_a"], reason=["queue_full", "shutdown"])
    assert telemetry.read(semconv.DROPPED).values == {("code_a", "queue_full"): 0, ("code_a", "shutdown"): 0}
