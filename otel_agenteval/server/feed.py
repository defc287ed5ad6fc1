"""Requests become spans and log records of the engine. Nothing is admitted or refused here, except what is not OTLP.

A request is read in two steps: :meth:`Feed.read` says what is in it, and :meth:`Feed.give` hands that to the engine. What decides
whether a request is accepted can look at it in between.
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
from ..spans.json_requests import json_logs, json_spans
from ..spans.otlp import OtlpLog, Signal
from ..spans.split import split_logs, split_spans
from ..spans.wire import Part
from .routing import Share

_SPANS_AT_ONCE = 256
"""Spans that are given to the engine under one hold of its lock."""
_NO_TRACES: frozenset[int] = frozenset()


@dataclass(slots=True)
class Batch:
    """What a request brought."""

    parts: Sequence[tuple[int, Part]] = ()
    """Its spans, by trace key."""
    logs: Sequence[tuple[OtlpLog, int]] = ()
    """Its log records, each with its size in bytes."""
    spans: int = 0
    """All spans that were in it, whether or not they are used."""
    sampled_out: int = 0
    """Those of traces that are not in the sample."""
    invalid: int = 0
    """Spans without valid ids, or log records that cannot be read."""

    def keep(self, share: Share) -> None:
        """Drop what is not of a share. What is counted without a trace is of the share that has the first position."""
        if share.is_everything:
            return
        self.parts = [(key, part) for key, part in self.parts if key in share]
        self.logs = [(log, size) for log, size in self.logs if log.trace_id in share]
        if not share.bits & 1:
            self.sampled_out = self.invalid = 0

    @property
    def traces(self) -> set[int]:
        """The keys of its traces."""
        return {key for key, _ in self.parts} or {log.trace_id for log, _ in self.logs}


class Feed:
    """Reads requests, and gives the engine what is in them.

    Args:
        engine: gets the spans and log records.
        options: say which traces are in the sample.
    """

    def __init__(self, engine: Engine, options: ServeOptions) -> None:
        self._engine = engine
        self.set_options(options)

    def set_options(self, options: ServeOptions) -> None:
        """Another sample from now on."""
        self._takes_all = options.sample_rate >= 1.0
        self._sampled_below = int(options.sample_rate * 2**64)

    def read(self, signal: Signal, body: bytes, is_json: bool, base: int = 0) -> Batch:
        """What is in a request.

        Args:
            signal: of the request.
            body: unpacked.
            is_json: whether it is OTLP/JSON instead of protobuf.
            base: makes trace ids trace keys (:mod:`otel_agenteval.core.tenancy`).

        Raises:
            NotOtlp: the body is no such request.
        """
        return self._read_spans(body, is_json, base) if signal == "traces" else self._read_logs(body, is_json, base)

    def give(self, batch: Batch, passed_over: Collection[int] = _NO_TRACES) -> None:
        """Hand a request to the engine, without the traces that are to be ``passed_over``."""
        engine = self._engine
        if batch.sampled_out:
            engine.count_drop("sampled_out", batch.sampled_out)
        pending: list[tuple[int, Part]] = []
        waiting = 0
        for key, part in batch.parts:
            if key in passed_over:
                continue
            pending.append((key, part))
            waiting += len(part.spans)
            if waiting >= _SPANS_AT_ONCE:
                engine.receive_spans(pending)
                pending, waiting = [], 0
        if pending:
            engine.receive_spans(pending)
        if batch.spans and batch.invalid:
            engine.count_drop("invalid", batch.invalid)
        for log, size in batch.logs:
            if log.trace_id in passed_over:
                continue
            if is_feedback_record(log.part.name, log.part.attributes):
                engine.receive_feedback_record(log.trace_id, log.span_id, log.part)
            else:
                engine.receive_log(log.trace_id, log.span_id, log.part, size, early=True)

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
            feedback = is_feedback_record(log.part.name, log.part.attributes)
            if not log.trace_id or not (
                feedback or (log.span_id and log.part.name != semconv.EVENT)
            ):  # a score of ours that came round
                continue
            if self._takes_all or self._is_sampled(log.trace_id.to_bytes(16, "big")):
                log.trace_id += base
                wanted.append((log, size))
        return Batch(logs=wanted, invalid=invalid)

    def _is_sampled(self, trace_id: bytes) -> bool:
        """Whether a trace is in the sample. Any process decides alike."""
        digest = hashlib.blake2b(trace_id, digest_size=8, key=b"agenteval.serve").digest()
        return int.from_bytes(digest, "big") < self._sampled_below
