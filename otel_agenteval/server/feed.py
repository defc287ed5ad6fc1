"""Parser for OTLP requests. Passes spans and log records to the engine.

:meth:`Feed.read` parses a request, and :meth:`Feed.pass_on` passes it to the engine. Between these calls, the caller can refuse the
request. The module itself refuses only bodies that aren't OTLP.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..config.serve import ServeOptions
from ..core import semconv
from ..core.feedback import is_feedback_record
from ..dialects.reader import GENAI
from ..engine.engine import Engine
from ..spans.otlp import OtlpLog, Signal, json_logs, json_spans
from ..spans.split import split_logs, split_spans
from ..spans.wire import Part
from .routing import Share

_SPANS_AT_ONCE = 256
_NO_TRACES: frozenset[int] = frozenset()


@dataclass(slots=True)
class Batch:
    parts: Sequence[tuple[int, Part]] = ()
    logs: Sequence[tuple[OtlpLog, int]] = ()
    spans: int = 0
    sampled_out: int = 0
    invalid: int = 0

    def keep(self, share: Share) -> None:
        """Drop traces outside ``share``. Only the process that owns position 0 counts ``sampled_out`` and ``invalid``."""
        if share.is_everything:
            return
        self.parts = [(key, part) for key, part in self.parts if key in share]
        self.logs = [(log, size) for log, size in self.logs if log.trace_id in share]
        if not share.bits & 1:
            self.sampled_out = self.invalid = 0

    @property
    def traces(self) -> set[int]:
        return {key for key, _ in self.parts} or {log.trace_id for log, _ in self.logs}


class Feed:
    def __init__(self, engine: Engine, options: ServeOptions) -> None:
        self._engine = engine
        self.set_options(options)

    def set_options(self, options: ServeOptions) -> None:
        self._takes_all = options.sample_rate >= 1.0
        self._sampled_below = int(options.sample_rate * 2**64)

    def read(self, signal: Signal, body: bytes, is_json: bool, base: int = 0) -> Batch:
        """Parse a decompressed request. A trace's key is the trace ID plus the tenant's ``base``. On failure, raise NotOtlp."""
        return self._read_spans(body, is_json, base) if signal == "traces" else self._read_logs(body, is_json, base)

    def pass_on(self, batch: Batch, passed_over: Collection[int] = _NO_TRACES) -> None:
        engine = self._engine
        if batch.sampled_out:
            engine.intake.count_drop("sampled_out", batch.sampled_out)
        pending: list[tuple[int, Part]] = []
        waiting = 0
        for key, part in batch.parts:
            if key in passed_over:
                continue
            pending.append((key, part))
            waiting += len(part.spans)
            if waiting >= _SPANS_AT_ONCE:
                engine.intake.receive_spans(pending)
                pending, waiting = [], 0
        if pending:
            engine.intake.receive_spans(pending)
        if batch.spans and batch.invalid:
            engine.intake.count_drop("invalid", batch.invalid)
        for log, size in batch.logs:
            if log.trace_id in passed_over:
                continue
            if is_feedback_record(log.part.name, log.part.attributes):
                engine.intake.receive_feedback_record(log.trace_id, log.span_id, log.part)
            else:
                engine.intake.receive_log(log.trace_id, log.span_id, log.part, size, early=True)

    def _read_spans(self, body: bytes, is_json: bool, base: int) -> Batch:
        parts, invalid = json_spans(body, semconv.SCOPE, base) if is_json else split_spans(body, semconv.SCOPE, base, GENAI)
        batch = Batch(spans=invalid, invalid=invalid)
        wanted: list[tuple[int, Part]] = []
        for trace_id, part in parts.items():
            spans = len(part.spans)
            batch.spans += spans
            if self._takes_all or self._is_sampled(trace_id):
                wanted.append((base + int.from_bytes(trace_id, "big"), part))
            else:
                batch.sampled_out += spans
        batch.parts = wanted
        return batch

    def _read_logs(self, body: bytes, is_json: bool, base: int) -> Batch:
        logs, invalid = json_logs(body, GENAI) if is_json else split_logs(body, GENAI)
        wanted: list[tuple[OtlpLog, int]] = []
        for log, size in logs:
            # a score that otel-agenteval exported itself
            is_score = log.part.name == semconv.EVENT and not is_feedback_record(log.part.name, log.part.attributes)
            if log.trace_id and not is_score and (self._takes_all or self._is_sampled(log.trace_id.to_bytes(16, "big"))):
                log.trace_id += base
                wanted.append((log, size))
        return Batch(logs=wanted, invalid=invalid)

    def _is_sampled(self, trace_id: bytes) -> bool:
        digest = hashlib.blake2b(trace_id, digest_size=8, key=b"agenteval.serve").digest()
        return int.from_bytes(digest, "big") < self._sampled_below
