"""Outlet that writes turns' spans to a file, for replay.

The file has the format of the Collector's file exporter. ``privacy.redact`` applies to the spans. Only the owner can read a new
file. If spans arrive late, the outlet writes all spans of the turn again. Readers must ignore repeated spans.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from ..core.files import fault_of_file
from ..core.semconv import EVENT
from ..core.telemetry import Telemetry
from ..evaluation.names import attributes_publicly, public_name
from ..evaluation.redaction import Redactor
from ..evaluation.scored_turn import ScoredTurn
from ..spans.record import SpanRecord
from ..spans.writing import as_otlp_json
from .base import Setup
from .jsonl import JsonLinesOutlet


class OtlpFileOutlet(JsonLinesOutlet):
    name = "otlp_file"
    may_hang = True
    of_what = "lines of spans"
    keeps_spans = True

    def __init__(self, path: str | os.PathLike[str], kinds: Collection[str], telemetry: Telemetry | None = None) -> None:
        super().__init__(path, telemetry)
        self._kinds = kinds

    def lines(self, scored: ScoredTurn) -> Iterator[dict[str, Any]]:
        if not scored.spans:
            return
        redactor = scored.redactor or Redactor(self._kinds)
        yield from as_otlp_json([_leaving(record, redactor) for record in scored.spans])


def _leaving(record: SpanRecord, redactor: Redactor) -> SpanRecord:
    clean, kinds = redactor.value, redactor.kinds
    left = attributes_publicly(record.resource_attributes, kinds) if kinds else record.resource_attributes
    resource = record.resource if left is record.resource_attributes else left
    copy = SpanRecord(
        clean(record.name), record.trace_id, record.span_id, record.parent_id, remote_parent=record.remote_parent, server=record.server,
        start_ns=record.start_ns, end_ns=record.end_ns, status=record.status, status_message=clean(record.status_message), attributes=clean(record.attributes),
        events=[one._replace(name=public_name(one.name, kinds), attributes=clean(one.attributes)) for one in record.events if one.name != EVENT],
        scope=public_name(record.scope, kinds), resource=resource, truncated=record.truncated,
    )  # fmt: skip
    copy.logs = [
        one._replace(name=public_name(one.name, kinds), attributes=clean(one.attributes), body=clean(one.body))
        for one in record.logs
    ]
    return copy


def outlet_from(wanted: str, setup: Setup) -> OtlpFileOutlet:
    setup.warn_of_fault(("outlets", "otlp_file"), wanted, fault_of_file, "spans aren't written")
    return OtlpFileOutlet(wanted, setup.config.privacy.redact, setup.telemetry)
