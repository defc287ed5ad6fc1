"""The responses that senders get, in both transports. OTLP fixes them: a wrong code makes senders drop data, or send poison for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

Kind = Literal[
    "bad_data", "too_large", "unauthenticated", "forbidden", "not_found", "bad_method", "bad_type", "timeout", "throttled",
    "overloaded", "stopping", "error",
]  # fmt: skip
_CODES: dict[Kind, tuple[grpc.StatusCode, int]] = {
    "bad_data": (grpc.StatusCode.INVALID_ARGUMENT, 400),
    "too_large": (grpc.StatusCode.RESOURCE_EXHAUSTED, 413),  # without RetryInfo: it will not get smaller
    "unauthenticated": (grpc.StatusCode.UNAUTHENTICATED, 401),
    "forbidden": (grpc.StatusCode.PERMISSION_DENIED, 403),
    "not_found": (grpc.StatusCode.UNIMPLEMENTED, 404),
    "bad_method": (grpc.StatusCode.UNIMPLEMENTED, 405),
    "bad_type": (grpc.StatusCode.INVALID_ARGUMENT, 415),
    "timeout": (grpc.StatusCode.DEADLINE_EXCEEDED, 408),
    "throttled": (grpc.StatusCode.UNAVAILABLE, 429),
    "overloaded": (grpc.StatusCode.UNAVAILABLE, 503),
    "stopping": (grpc.StatusCode.UNAVAILABLE, 503),
    "error": (grpc.StatusCode.UNAVAILABLE, 503),  # a fault in this process: a retry may succeed
}
RETRY_AFTER = 1.0
"""Seconds after which to retry. Small: a Collector drops a batch whose delay exceeds its own limit."""
_RETRYABLE = frozenset(("throttled", "overloaded", "stopping", "error"))


@dataclass(frozen=True, slots=True)
class Refused:
    """The response to a request that is not accepted."""

    kind: Kind
    message: str
    retry_after: float | None
    """Seconds after which to retry; None for never."""

    @property
    def code(self) -> grpc.StatusCode:
        """The gRPC status."""
        return _CODES[self.kind][0]

    @property
    def http_status(self) -> int:
        """The HTTP status."""
        return _CODES[self.kind][1]

    def status(self) -> Any:
        """As ``google.rpc.Status``, which OTLP requires in the body of an HTTP response."""
        status = status_pb2.Status(code=self.code.value[0], message=self.message)
        if self.retry_after is not None:
            packed = any_pb2.Any()
            packed.Pack(self._retry_info())
            status.details.append(packed)
        return status

    def trailers(self) -> tuple[tuple[str, bytes], ...]:
        """For gRPC: the Collector reads the one, the Python SDK the other."""
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
    """A request is not accepted.

    Whoever catches it keeps :attr:`answer` and never the exception: its traceback holds the frames that it came through, and
    they hold the request. In a variable of one of them, or in a future that one of them waits for, it would hold them all
    until the next garbage collection.

    Args:
        kind: of the response.
        message: for the sender; holds nothing of what it sent.
        retry_after: seconds, for requests that may be sent again.
        reason: under which it is counted among a tenant's refusals; the kind, unless a quota says it more precisely.
    """

    def __init__(self, kind: Kind, message: str, retry_after: float = RETRY_AFTER, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or kind
        self.answer = Refused(kind, message, retry_after if kind in _RETRYABLE else None)


FAULT = Refusal("error", "internal error").answer
"""A fault in this process: the sender may retry."""


class Accepted(NamedTuple):
    """A request that was accepted, perhaps without some of its records."""

    rejected: int = 0
    """Spans or log records that cannot be used. They must not be sent again."""
    message: str = ""
