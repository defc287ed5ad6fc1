"""Clients for OTLP receivers over gRPC and HTTP.

The clients send encoded requests and interpret responses as specified by OTLP. The outlet handles retries.
"""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ...config.outlets import OtlpOptions
from ...core.pacing import LONGEST_WAIT, retry_after

if TYPE_CHECKING:
    import grpc
    import httpx

_SERVICES: Mapping[str, tuple[str, Any, str]] = {
    "logs": ("logs.v1.LogsService", ExportLogsServiceResponse, "rejected_log_records"),
    "traces": ("trace.v1.TraceService", ExportTraceServiceResponse, "rejected_spans"),
    "metrics": ("metrics.v1.MetricsService", ExportMetricsServiceResponse, "rejected_data_points"),
}
_RETRYABLE_CODES = frozenset(("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"))
_RETRYABLE_STATUSES = frozenset((429, 502, 503, 504))
_ABOUT_THE_BODY = frozenset(("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INTERNAL", "UNKNOWN", "400", "413", "422", "500"))
"""Status codes that a single request's content can cause. Other errors affect all requests."""
_RECONNECT_MS = 5_000
_LARGEST_ANSWER = 65_536


class SendResult(NamedTuple):
    kind: Literal["sent", "retry", "refused"]
    """``sent``: the receiver accepted the request. ``retry``: a retry can succeed. ``refused``: a retry can't succeed."""
    reason: str = ""
    """Status code or error type, used as a label in counters."""
    wait: float = 0.0
    rejected: int = 0
    """Number of rejected records, spans, or data points in a request that the receiver otherwise accepted."""

    @property
    def about_the_body(self) -> bool:
        """True if the request's content might be the cause of the failure. In this case, smaller requests might succeed."""
        return self.reason in _ABOUT_THE_BODY


class GrpcClient:
    def __init__(self, wanted: OtlpOptions) -> None:
        import grpc

        target = wanted.endpoint.partition("://")[2].partition("/")[0]
        if ":" not in target.rpartition("]")[2]:
            target += ":443" if wanted.endpoint.startswith("https:") else ":4317"
        # By default, a channel waits up to two minutes before it reconnects to a receiver that was unavailable.
        options = [
            ("grpc.enable_retries", 0), ("grpc.initial_reconnect_backoff_ms", 500), ("grpc.min_reconnect_backoff_ms", 500),
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS),
        ]  # fmt: skip
        compression = grpc.Compression.Gzip if wanted.compression == "gzip" else grpc.Compression.NoCompression
        if wanted.endpoint.startswith("https:"):
            files = (wanted.ca_file, wanted.key_file, wanted.cert_file)
            credentials = grpc.ssl_channel_credentials(*(None if file is None else Path(file).read_bytes() for file in files))
            self._channel = grpc.secure_channel(target, credentials, options, compression)
        else:
            self._channel = grpc.insecure_channel(target, options, compression)
        self._metadata = tuple(wanted.headers.items())
        self._calls: dict[str, Callable[..., Any]] = {
            signal: self._channel.unary_unary(f"/opentelemetry.proto.collector.{service}/Export", None, message.FromString)
            for signal, (service, message, _) in _SERVICES.items()
        }
        self._error: type[grpc.RpcError] = grpc.RpcError

    def send(self, signal: str, body: bytes, timeout: float) -> SendResult:
        """Send one request within ``timeout`` seconds. Return network errors instead of raising them."""
        try:
            response = self._calls[signal](body, timeout=timeout, metadata=self._metadata)
        except self._error as error:
            code, wait = error.code().name, _retry_info(error.trailing_metadata() or ())
            if code in _RETRYABLE_CODES or (code == "RESOURCE_EXHAUSTED" and wait is not None):
                return SendResult("retry", code, wait or 0.0)
            return SendResult("refused", code)
        except ValueError:  # the channel was closed in the meantime
            return SendResult("retry", "CANCELLED")
        return _accepted(signal, response)

    def close(self) -> None:
        self._channel.close()


def _retry_info(metadata: Sequence[tuple[str, str | bytes]]) -> float | None:
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    for key, value in metadata:
        if not isinstance(value, bytes):
            continue
        info = RetryInfo()
        try:
            if key == "google.rpc.retryinfo-bin":
                info.ParseFromString(value)
            elif key != "grpc-status-details-bin" or not any(detail.Unpack(info) for detail in Status.FromString(value).details):
                continue
        except DecodeError:
            continue
        seconds: float = info.retry_delay.seconds + info.retry_delay.nanos / 1e9
        return min(max(0.0, seconds), LONGEST_WAIT)
    return None


class HttpClient:
    def __init__(self, wanted: OtlpOptions) -> None:
        import httpx

        from ...core.outbound import answer_of, client_to

        verify: ssl.SSLContext | None = None
        if wanted.endpoint.startswith("https:") and (wanted.ca_file or wanted.cert_file):
            verify = ssl.create_default_context(cafile=wanted.ca_file)
            if wanted.cert_file is not None:
                verify.load_cert_chain(wanted.cert_file, wanted.key_file)
        self._zip = wanted.compression == "gzip"
        self._url = wanted.endpoint
        headers = {**wanted.headers, "content-type": "application/x-protobuf", "user-agent": "otel-agenteval"}
        self._client: httpx.Client = client_to(wanted.endpoint, verify=verify, headers=headers)
        self._answer_of = answer_of
        self._transient = (httpx.TransportError,)
        self._never = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)

    def send(self, signal: str, body: bytes, timeout: float) -> SendResult:
        headers = {"content-encoding": "gzip"} if self._zip else {}
        content = gzip.compress(body, 5) if self._zip else body
        try:
            response, answer = self._answer_of(
                self._client, "POST", f"{self._url}/v1/{signal}", seconds=timeout, most=_LARGEST_ANSWER, content=content,
                headers=headers,
            )  # fmt: skip
        except self._never as error:
            return SendResult("refused", type(error).__name__)
        except self._transient as error:
            return SendResult("retry", type(error).__name__)
        except RuntimeError:  # the client was closed in the meantime
            return SendResult("retry", "CANCELLED")
        if response.is_success:
            message = _SERVICES[signal][1]()
            try:
                if response.headers.get("content-type", "").startswith("application/x-protobuf"):
                    message.ParseFromString(answer)
            except DecodeError:  # the status says that the request was accepted
                message.Clear()
            return _accepted(signal, message)
        if response.status_code in _RETRYABLE_STATUSES:
            return SendResult("retry", str(response.status_code), retry_after(response.headers.get("retry-after")))
        return SendResult("refused", str(response.status_code))

    def close(self) -> None:
        self._client.close()


def _accepted(signal: str, message: Any) -> SendResult:
    rejected = int(getattr(message.partial_success, _SERVICES[signal][2]))
    return SendResult("sent", "partial_success" if rejected else "", rejected=max(0, rejected))


Client = GrpcClient | HttpClient


def client_for(wanted: OtlpOptions) -> Client:
    return GrpcClient(wanted) if wanted.protocol == "grpc" else HttpClient(wanted)
