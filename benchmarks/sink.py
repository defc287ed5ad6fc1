"""An OTLP receiver that discards everything. ``python benchmarks/sink.py grpc|http`` runs it in a process, and prints its port."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import harness


@contextmanager
def sink(protocol: str) -> Iterator[str]:
    """Start a receiver in a separate process, and yield its address."""
    with harness.running(__file__, protocol) as port:
        yield f"http://127.0.0.1:{port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.send_response(200)
        self.send_header("Content-Type", self.headers["Content-Type"] or "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def _serve_grpc() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, _: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda *_: b"")

    server = grpc.server(ThreadPoolExecutor(4), handlers=(Everything(),), options=[("grpc.max_receive_message_length", -1)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


def _serve_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _serve_grpc() if sys.argv[1] == "grpc" else _serve_http()
