"""A real OTLP receiver on loopback: HTTP with protobuf, and gRPC. What it gets is parsed and kept."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
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
    """OTLP key-value pairs with scalar values as a dict; other values stay protobuf messages."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in attributes}


class Received:
    """Requests of all signals, in the order of their arrival."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def spans(self, name: str | None = None) -> list[Any]:
        """The spans that arrived, of all scopes, as protobuf messages."""
        return [span for _, span in self._items("resource_spans", "scope_spans", "spans") if name in (None, span.name)]

    def log_records(self) -> list[Any]:
        """The log records that arrived."""
        return [record for _, record in self._items("resource_logs", "scope_logs", "log_records")]

    def scores(self) -> list[Any]:
        """The log records that are scores."""
        return [record for record in self.log_records() if record.event_name == "gen_ai.evaluation.result"]

    def metrics(self) -> list[Any]:
        """The metrics that arrived."""
        return [metric for _, metric in self._items("resource_metrics", "scope_metrics", "metrics")]

    def _items(self, of_resource: str, of_scope: str, items: str) -> Iterator[tuple[Any, Any]]:
        for request in self.requests:
            for resource in getattr(request, of_resource, ()):
                for scope in getattr(resource, of_scope):
                    for item in getattr(scope, items):
                        yield resource, item


class Receiver(Received):
    """OTLP over HTTP on a free port of 127.0.0.1, from construction to :meth:`close`."""

    def __init__(self) -> None:
        super().__init__()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.requests))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Base address; exporters post to ``/v1/traces``, ``/v1/logs`` and ``/v1/metrics`` below it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver(Received):
    """OTLP over gRPC on a port of 127.0.0.1, a free one unless it is given."""

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self._server = grpc.server(ThreadPoolExecutor(4))
        add_TraceServiceServicer_to_server(_TraceService(self.requests), self._server)
        add_LogsServiceServicer_to_server(_LogsService(self.requests), self._server)
        add_MetricsServiceServicer_to_server(_MetricsService(self.requests), self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"
        self._server.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.stop(0).wait()


class _TraceService(TraceServiceServicer):
    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def Export(self, request: Any, context: Any) -> Any:
        self._requests.append(request)
        return ExportTraceServiceResponse()


class _LogsService(LogsServiceServicer):
    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def Export(self, request: Any, context: Any) -> Any:
        self._requests.append(request)
        return ExportLogsServiceResponse()


class _MetricsService(MetricsServiceServicer):
    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def Export(self, request: Any, context: Any) -> Any:
        self._requests.append(request)
        return ExportMetricsServiceResponse()


def _handler(requests: list[Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = _REQUESTS[self.path]()
            request.ParseFromString(body)
            requests.append(request)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Tests print nothing."""

    return Handler
