"""A real OTLP receiver on loopback (HTTP with protobuf, and gRPC). It keeps all parsed requests, unless a test makes it refuse them."""

from __future__ import annotations

import gzip
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceServicer, add_LogsServiceServicer_to_server
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest, ExportMetricsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceServicer, add_TraceServiceServicer_to_server

_REQUESTS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


def plain(attributes: Any) -> dict[str, Any]:
    """Return OTLP attributes with scalar values as a dict. Other values stay protobuf messages."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in attributes}


class Received:
    """Requests of all signals, in order of arrival.

    Attributes:
        requests: accepted requests.
        attempts: (monotonic seconds, headers) of every request, including refused requests.
        refusals: responses that refuse the next requests of ``refused_signals``, one each. When none is left, requests are accepted.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.attempts: list[tuple[float, dict[str, Any]]] = []
        self.refusals: deque[Any] = deque()
        self.refused_signals = {"logs", "traces", "metrics"}
        self.changed = threading.Condition()

    def arrive(self, signal: str, request: Any, headers: dict[str, Any]) -> Any:
        """Keep a request and return None, or return the response that refuses it."""
        with self.changed:
            self.attempts.append((time.monotonic(), headers))
            refused = self.refusals.popleft() if self.refusals and signal in self.refused_signals else None
            if refused is None:
                self.requests.append(request)
            self.changed.notify_all()
        return refused

    def wait_for(self, what: Callable[[], Any], timeout: float = 60.0) -> Any:
        """Wait until a condition is true, and return its result.

        Raises:
            AssertionError: If the condition isn't true in time.
        """
        with self.changed:
            assert self.changed.wait_for(what, timeout), f"not within {timeout} s: {len(self.attempts)} attempts"
            return what()

    def spans(self, name: str | None = None) -> list[Any]:
        """Return the received spans of all scopes, as protobuf messages."""
        return [span for _, span in self._items("resource_spans", "scope_spans", "spans") if name in (None, span.name)]

    def log_records(self) -> list[Any]:
        return [record for _, record in self._items("resource_logs", "scope_logs", "log_records")]

    def scores(self) -> list[Any]:
        """Return the received log records that are scores."""
        return [record for record in self.log_records() if record.event_name == "gen_ai.evaluation.result"]

    def metrics(self) -> list[Any]:
        return [metric for _, metric in self._items("resource_metrics", "scope_metrics", "metrics")]

    def _items(self, of_resource: str, of_scope: str, items: str) -> Iterator[tuple[Any, Any]]:
        for request in self.requests:
            for resource in getattr(request, of_resource, ()):
                for scope in getattr(resource, of_scope):
                    for item in getattr(scope, items):
                        yield resource, item


class Receiver(Received):
    """OTLP over HTTP on a free port of 127.0.0.1 (or a given port), until :meth:`close`.

    A refusal is (status, headers).
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Base address; exporters post to ``/v1/traces``, ``/v1/logs`` and ``/v1/metrics`` below it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver(Received):
    """OTLP over gRPC on a free port of 127.0.0.1 (or a given port).

    A refusal is (code, trailing metadata), or a response message that reports a rejection of all items.
    """

    def __init__(self, port: int = 0, credentials: grpc.ServerCredentials | None = None) -> None:
        super().__init__()
        self._server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        add_TraceServiceServicer_to_server(
            _service(self, "traces", TraceServiceServicer, ExportTraceServiceResponse), self._server
        )
        add_LogsServiceServicer_to_server(_service(self, "logs", LogsServiceServicer, ExportLogsServiceResponse), self._server)
        add_MetricsServiceServicer_to_server(
            _service(self, "metrics", MetricsServiceServicer, ExportMetricsServiceResponse), self._server
        )
        address = f"127.0.0.1:{port}"
        self.port = (
            self._server.add_insecure_port(address) if credentials is None else self._server.add_secure_port(address, credentials)
        )
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def close(self) -> None:
        self._server.stop(0).wait()


def _service(received: Received, signal: str, base: type, response: type) -> Any:
    class Service(base):
        def Export(self, request: Any, context: Any) -> Any:
            refused = received.arrive(signal, request, dict(context.invocation_metadata()))
            if isinstance(refused, tuple):
                context.set_trailing_metadata(refused[1])
                context.abort(refused[0], "refused")
            return refused if refused is not None else response()

    return Service()


def _handler(received: Received) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = _REQUESTS[self.path]()
            request.ParseFromString(body)
            refused = received.arrive(self.path.rpartition("/")[2], request, dict(self.headers))
            self.send_response(200 if refused is None else refused[0])
            for name, value in ({} if refused is None else refused[1]).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler
