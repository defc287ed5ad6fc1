"""Encoding of all metrics as one OTLP request, made when it is due.

Observations cost nothing beyond counting. All metrics are cumulative, with the names, units, buckets and exemplars that the
SDK would send. Unlike the SDK's, histograms accept negative values, as in Prometheus.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping

from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from ...core import semconv
from ...core.semconv import INSTRUMENTS, Instrument
from ...core.telemetry import Distribution, Exemplar, Family, Labels, Telemetry
from .protobuf import (
    BYTES,
    FIXED64,
    AttributeWriter,
    TextWriter,
    as_double,
    as_fixed64,
    as_sfixed64,
    delimited,
    tag,
    utf8,
    varint,
)

_CUMULATIVE, _MONOTONIC = b"\x10\x02", b"\x18\x01"
_START, _TIME = tag(2, FIXED64), tag(3, FIXED64)
_DOUBLE, _INT = tag(4, FIXED64), tag(6, FIXED64)
_COUNT, _SUM, _MIN, _MAX = tag(4, FIXED64), tag(5, FIXED64), tag(11, FIXED64), tag(12, FIXED64)
_BUCKET_COUNTS, _BOUNDS, _EXEMPLAR = tag(6, BYTES), tag(7, BYTES), tag(8, BYTES)
_EXEMPLAR_TIME, _EXEMPLAR_DOUBLE, _EXEMPLAR_INT = tag(2, FIXED64), tag(3, FIXED64), tag(6, FIXED64)
_ATTRIBUTES_OF_A_NUMBER, _ATTRIBUTES_OF_A_HISTOGRAM = tag(7, BYTES), tag(9, BYTES)
_DATA = {"gauge": 5, "counter": 7, "histogram": 9}
"""Number of the field that contains a metric's data, by kind."""


class MetricsEncoder:
    """Encoder of the accumulators as export requests. Used by one thread at a time.

    Args:
        telemetry: the accumulators.
        version: version of this package, for scope and Resource.
        since: time at which all counts were 0, in nanoseconds since the Unix epoch.
    """

    def __init__(self, telemetry: Telemetry, version: str, since: int) -> None:
        self._telemetry = telemetry
        self._version = version
        self._scope = delimited(1, delimited(1, utf8(semconv.SCOPE)), delimited(2, utf8(version)))
        self._resource = b""
        exemplars = os.environ.get("OTEL_METRICS_EXEMPLAR_FILTER", "").strip().lower() != "always_off"
        self._writers = [_MetricWriter(instrument, since, exemplars=exemplars) for instrument in INSTRUMENTS]

    def request(self, now: int, instance_id: str) -> bytes:
        """Return a request with all metrics that have a value, or an empty one.

        It has a Resource that describes otel-agenteval.

        Args:
            now: time of the values, in nanoseconds since the Unix epoch.
            instance_id: id of this engine within a fleet.
        """
        if not self._resource:
            self._resource = delimited(1, AttributeWriter(1).write(_about_us(self._version, instance_id)))
        metrics = b"".join([writer.metric(self._telemetry.read(writer.name), now) for writer in self._writers])
        if not metrics:
            return b""
        return delimited(1, self._resource, delimited(2, self._scope, metrics))


def _about_us(version: str, instance_id: str) -> Mapping[str, object]:
    """Return the attributes of otel-agenteval's Resource.

    Environment variables take precedence.
    """
    about = {"service.name": "otel-agenteval", "service.version": version, "service.instance.id": instance_id}
    return Resource(about).merge(OTELResourceDetector().detect()).attributes


class _MetricWriter:
    """Encoder of one instrument."""

    def __init__(self, instrument: Instrument, since: int, *, exemplars: bool) -> None:
        self.name = instrument.name
        self._field = _DATA[instrument.kind]
        self._head = b"".join(
            delimited(number, utf8(text))
            for number, text in ((1, instrument.name), (2, instrument.description), (3, instrument.unit))
            if text
        )
        after = {"gauge": b"", "counter": _CUMULATIVE + _MONOTONIC, "histogram": _CUMULATIVE}
        self._after = after[instrument.kind]
        self._is_gauge = instrument.kind == "gauge"
        before = _ATTRIBUTES_OF_A_HISTOGRAM if instrument.kind == "histogram" else _ATTRIBUTES_OF_A_NUMBER
        self._labels = [TextWriter(before, name) for name in instrument.attributes]
        bounds = b"".join(map(as_double, instrument.buckets))
        self._bounds = _BOUNDS + varint(len(bounds)) + bounds
        self._pack_counts = struct.Struct(f"<{len(instrument.buckets) + 1}Q").pack
        self._since = since
        """Start time of a new label set."""
        self._starts: dict[Labels, int] = {}
        """Start times of the last request's label sets.

        An evicted label set that returns starts again.
        """
        self._exemplars = exemplars
        self._newest = 0.0
        """Time of the latest exported exemplar, in seconds since the Unix epoch.

        Each is sent once.
        """

    def metric(self, family: Family, now: int) -> bytes:
        """Return the metric as a field of its scope. Empty without a value."""
        times = _TIME + as_fixed64(now)
        starts: dict[Labels, int] = {}
        points: list[bytes] = []
        for labels, value in family.values.items():
            start = starts[labels] = self._starts.get(labels, self._since)
            points.append(
                delimited(1, *self._number(labels, value), b"" if self._is_gauge else _START + as_fixed64(start), times)
            )
        newest = self._newest
        for labels, distribution in family.distributions.items():
            start = starts[labels] = self._starts.get(labels, self._since)
            points.append(delimited(1, *self._histogram(labels, distribution), _START, as_fixed64(start), times))
            newest = max(newest, *(0.0 if kept is None else kept.time_s for kept in distribution.exemplars))
        self._newest, self._starts, self._since = newest, starts, now
        return delimited(2, self._head, delimited(self._field, *points, self._after)) if points else b""

    def _attributes(self, labels: Labels) -> Iterator[bytes]:
        return (write(label) for write, label in zip(self._labels, labels, strict=True))

    def _number(self, labels: Labels, value: float) -> Iterator[bytes]:
        yield from self._attributes(labels)
        yield _number(value, _INT, _DOUBLE)

    def _histogram(self, labels: Labels, distribution: Distribution) -> Iterator[bytes]:
        yield from self._attributes(labels)
        counts = self._pack_counts(*distribution.counts)
        yield _COUNT + as_fixed64(sum(distribution.counts))
        if distribution.least >= 0:  # OTLP forbids sums that can decrease
            yield _SUM + as_double(distribution.sum)
        yield _BUCKET_COUNTS + varint(len(counts)) + counts
        yield self._bounds
        yield _MIN + as_double(distribution.least)
        yield _MAX + as_double(distribution.most)
        if self._exemplars:
            for kept in distribution.exemplars:
                if kept is not None and kept.time_s > self._newest:
                    exemplar = _exemplar(kept)
                    yield _EXEMPLAR + varint(len(exemplar)) + exemplar


def _number(value: float, as_int: bytes, as_float: bytes) -> bytes:
    """Return an encoded integer or double. An integer beyond 64 bits becomes a double."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return as_int + as_sfixed64(value)
    return as_float + as_double(value)


def _exemplar(kept: Exemplar) -> bytes:
    return b"".join((
        _EXEMPLAR_TIME,
        as_fixed64(round(kept.time_s * 1e9)),
        _number(kept.value, _EXEMPLAR_INT, _EXEMPLAR_DOUBLE),
        delimited(4, bytes.fromhex(kept.labels["span_id"])),
        delimited(5, bytes.fromhex(kept.labels["trace_id"])),
    ))  # fmt: skip
