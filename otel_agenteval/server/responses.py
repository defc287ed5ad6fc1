"""Responses to OTLP senders over gRPC and HTTP.

OTLP defines these responses. If a status is wrong, senders can drop data or retry an invalid request forever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

Kind = Literal[
    "bad_data", "too_large", "unauthenticated", "forbidden", "not_found", "bad_method", "bad_type", "timeout", "throttled",
    "overloaded", "stopping", "error",
]  # fmt: skip
_CODES: dict[Kind, tuple[int, int]] = {
    "bad_data": (code_pb2.INVALID_ARGUMENT, 400),
    "too_large": (code_pb2.RESOURCE_EXHAUSTED, 413),  # without RetryInfo, because a retry has the same size
    "unauthenticated": (code_pb2.UNAUTHENTICATED, 401),
    "forbidden": (code_pb2.PERMISSION_DENIED, 403),
    "not_found": (code_pb2.UNIMPLEMENTED, 404),
    "bad_method": (code_pb2.UNIMPLEMENTED, 405),
    "bad_type": (code_pb2.INVALID_ARGUMENT, 415),
    "timeout": (code_pb2.DEADLINE_EXCEEDED, 408),
    "throttled": (code_pb2.UNAVAILABLE, 429),
    "overloaded": (code_pb2.UNAVAILABLE, 503),
    "stopping": (code_pb2.UNAVAILABLE, 503),
    "error": (code_pb2.UNAVAILABLE, 503),  # internal error: a retry can succeed
}
RETRY_AFTER = 1.0
"""Default number of seconds until a retry. A Collector drops a batch if the delay exceeds its own limit."""
_RETRYABLE = frozenset(("throttled", "overloaded", "stopping", "error"))


@dataclass(frozen=True, slots=True)
class Refused:
    kind: Kind
    message: str
    retry_after: float | None

    @property
    def code(self) -> int:
        return _CODES[self.kind][0]

    @property
    def http_status(self) -> int:
        return _CODES[self.kind][1]

    def status(self) -> Any:
        """Return the ``google.rpc.Status`` that OTLP requires in the body of an HTTP response."""
        status = status_pb2.Status(code=self.code, message=self.message)
        if self.retry_after is not None:
            packed = any_pb2.Any()
            packed.Pack(self._retry_info())
            status.details.append(packed)
        return status

    def trailers(self) -> tuple[tuple[str, bytes], ...]:
        """Return gRPC trailers with the retry delay in the Collector's and the SDK's format. Without a delay, return ``()``."""
        if self.retry_after is None:
            return ()
        return (
            ("grpc-status-details-bin", self.status().SerializeToString()),
            ("google.rpc.retryinfo-bin", self._retry_info().SerializeToString()),
        )

    def _retry_info(self) -> Any:
        seconds = self.retry_after or 0.0
        delay = duration_pb2.Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))
        return error_details_pb2.RetryInfo(retry_delay=delay)


class Refusal(Exception):
    """Error for a request that isn't accepted.

    Handlers must store :attr:`answer` instead of the exception, whose traceback would keep the request in memory until the next
    garbage collection. A tenant's refusals are counted by ``reason`` (default: ``kind``).
    """

    def __init__(self, kind: Kind, message: str, retry_after: float = RETRY_AFTER, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or kind
        self.answer = Refused(kind, message, retry_after if kind in _RETRYABLE else None)


FAULT = Refusal("error", "internal error").answer


class Accepted(NamedTuple):
    """Response to an accepted request. The receiver might have rejected some of the request's records."""

    rejected: int = 0
    message: str = ""


def response_of(signal: str, accepted: Accepted) -> Any:
    partial: dict[str, Any] | None = None
    if accepted.message:
        rejected = "rejected_spans" if signal == "traces" else "rejected_log_records"
        partial = {rejected: accepted.rejected, "error_message": accepted.message}
    response: Any = ExportTraceServiceResponse if signal == "traces" else ExportLogsServiceResponse
    return response(partial_success=partial)
