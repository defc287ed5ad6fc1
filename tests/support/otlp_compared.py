"""Comparable forms of OTLP messages. Unordered content is sorted, and times that must differ are left out."""

from __future__ import annotations

from typing import Any


def exactly(message: Any) -> bytes:
    """Return a message's content. NaN equals NaN, and the grouping of records doesn't matter."""
    return bytes(message.SerializeToString(deterministic=True))


def metrics_of(request: Any) -> dict[str, Any]:
    """Return the content of a metrics request by metric and label set, without times of points and exemplars."""
    assert len(request.resource_metrics) <= 1
    found: dict[str, Any] = {}
    for group in request.resource_metrics:
        found["resource"] = _pairs(group.resource.attributes), group.schema_url
        for scope in group.scope_metrics:
            found["scope"] = exactly(scope.scope), scope.schema_url
            for metric in scope.metrics:
                assert metric.name not in found
                found[metric.name] = _metric(metric)
    return found


def _metric(metric: Any) -> dict[str, Any]:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind)
    about = {name: getattr(data, name, None) for name in ("aggregation_temporality", "is_monotonic")}
    points = {_pairs(point.attributes): _point(point, kind) for point in data.data_points}
    assert len(points) == len(data.data_points), "each label set has one point"
    return {"unit": metric.unit, "description": metric.description, "kind": kind, **about, "points": points}


def _point(point: Any, kind: str) -> dict[str, Any]:
    assert point.time_unix_nano
    if kind == "gauge":
        assert not point.start_time_unix_nano
    else:
        assert 0 < point.start_time_unix_nano <= point.time_unix_nano
    exemplars = sorted(map(_exemplar, point.exemplars))
    if kind != "histogram":
        return {"value": _number(point), "flags": point.flags, "exemplars": exemplars}
    return {
        "count": point.count, "sum": round(point.sum, 9), "buckets": list(point.bucket_counts), "bounds": list(point.explicit_bounds),
        "min": point.min, "max": point.max, "optional": [point.HasField(name) for name in ("sum", "min", "max")], "flags": point.flags,
        "exemplars": exemplars,
    }  # fmt: skip


def _exemplar(exemplar: Any) -> tuple[Any, ...]:
    assert exemplar.time_unix_nano
    return (_number(exemplar), exemplar.trace_id, exemplar.span_id, _pairs(exemplar.filtered_attributes))


def _number(of: Any) -> tuple[str, float]:
    kind = of.WhichOneof("value")
    return kind, getattr(of, kind)


def _pairs(attributes: Any) -> tuple[bytes, ...]:
    return tuple(sorted(map(exactly, attributes)))
