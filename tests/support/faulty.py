"""A model server that misbehaves: a share of its responses is late, broken, refused or missing."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULTS = (
    "busy", "broken", "hang", "drip", "cut", "no_json", "prose", "words", "refusal", "huge", "no_usage", "wrong_usage", "vast_usage",
)  # fmt: skip
"""busy: 429 with Retry-After · broken: 500 · hang: no response · drip: byte by byte · cut: the connection breaks in the body ·
no_json: invalid JSON · prose: text around the verdict · words: no verdict · refusal: blocked by a filter · huge: too large to read ·
others: a good response with wrong token counts.
"""
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that disconnect, as these tests expect."""


class FaultyModel:
    """Chat completions on a free port of 127.0.0.1.

    Args:
        share: share of the requests that get a fault.
        seed: seed for the order of the faults.
        reply: verdict of a good response.
        served: called after each response that costs money.
        faults: possible faults.
    """

    def __init__(
        self,
        share: float,
        reply: Any,
        seed: int = 1,
        served: Callable[[], object] = lambda: None,
        faults: Sequence[str] = FAULTS,
    ) -> None:
        self.met: Counter[str] = Counter()
        """Number of requests by fault. ``none`` counts good responses."""
        self._closing = threading.Event()
        self._share = share
        self._reply = json.dumps(reply)
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._served = served
        self._faults = faults
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def fault(self) -> str:
        """Return the fault of the next request."""
        with self._lock:
            found = self._random.choice(self._faults) if self._random.random() < self._share else "none"
            self.met[found] += 1
            return found

    def answer(self, handler: BaseHTTPRequestHandler, fault: str) -> None:
        if fault == "busy":
            return _send(handler, b'{"error": {"message": "slow down"}}', 429, {"Retry-After": "7"})
        if fault == "broken":
            return _send(handler, b'{"error": {"message": "oh"}}', 500)
        self._served()
        if fault == "hang":
            self._closing.wait(30)
            handler.close_connection = True
            return None
        text = {"prose": f"Well, let me see. {self._reply} That is my verdict.", "words": "I would say it is fine."}.get(
            fault, self._reply
        )
        if fault == "huge":
            text = "x" * 5 * 2**20
        usage: Any = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
        usage = {
            "no_usage": None, "wrong_usage": {"prompt_tokens": "many", "completion_tokens": -5},
            "vast_usage": {"prompt_tokens": 999_999_999, "completion_tokens": 999_999_999},
        }.get(fault, usage)  # fmt: skip
        choice = {
            "message": {"role": "assistant", "content": text},
            "finish_reason": "content_filter" if fault == "refusal" else "stop",
        }
        body = b"<html>nginx</html>" if fault == "no_json" else json.dumps({"choices": [choice], "usage": usage}).encode()
        if fault == "drip":
            return self._drip(handler, body)
        return _send(handler, body, missing=5 if fault == "cut" else 0)

    def _drip(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for byte in body:
            handler.wfile.write(bytes([byte]))
            if self._closing.wait(0.02):
                break
        handler.close_connection = True

    def close(self) -> None:
        """Stop listening, and end all hanging responses."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _send(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, headers: dict[str, str] | None = None, missing: int = 0
) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) - missing])
    handler.close_connection = handler.close_connection or bool(missing)


def _handler(model: FaultyModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            try:
                model.answer(self, model.fault())
            except OSError:  # the client disconnected
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler
