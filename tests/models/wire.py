"""Scripted model servers on loopback with each provider's API."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-very-secret"
PATHS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1/models/m-1:generateContent",
    "bedrock": "/v1/model/m-1/converse",
}


def said(provider: str, text: str, finish: str = "stop", usage: bool = True) -> dict[str, Any]:
    """Return an answer in the provider's format. ``finish`` is stop, length or refusal."""
    if provider == "openai":
        reason = {"refusal": "content_filter"}.get(finish, finish)
        counted = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 40}}
        body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]}
        return {**body, **({"usage": counted} if usage else {})}
    if provider == "responses":
        part = {"type": "output_text", "text": text} if finish != "refusal" else {"type": "refusal", "refusal": "I cannot."}
        cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        counted = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 40}}
        output = [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": [part]}]
        return {"output": output, "usage": counted if usage else None, **(cut if finish == "length" else {"status": "completed"})}
    if provider == "anthropic":
        reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[finish]
        counted = {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10, "output_tokens": 20}
        content = [{"type": "thinking", "thinking": "{}"}, {"type": "text", "text": text}]
        return {"content": content, "stop_reason": reason, **({"usage": counted} if usage else {})}
    if provider == "gemini":
        reason = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[finish]
        parts = [{"text": "{}", "thought": True}, {"text": text}]
        counted = {"promptTokenCount": 100, "candidatesTokenCount": 15, "thoughtsTokenCount": 5, "cachedContentTokenCount": 40}
        body = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]}
        return {**body, **({"usageMetadata": counted} if usage else {})}
    reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "guardrail_intervened"}[finish]
    counted = {"inputTokens": 50, "cacheReadInputTokens": 40, "cacheWriteInputTokens": 10, "outputTokens": 20}
    message = {"role": "assistant", "content": [{"reasoningContent": {}}, {"text": text}]}
    return {"output": {"message": message}, "stopReason": reason, **({"usage": counted} if usage else {})}


@dataclass
class Response:
    """A response of the server. ``body`` is an object, or raw bytes."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """True to break the connection in the body."""
    wait: threading.Event | None = None
    """Event to wait for before sending."""


@dataclass
class Request:
    """A request that the server received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int = 0
    """Port of the client."""

    @property
    def text(self) -> str:
        """Return the body as one text."""
        return json.dumps(self.body, ensure_ascii=False)


class Server:
    """Sends scripted responses in order, or the result of a function of the request."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.script: list[Response] = []
        self.answering: Callable[[Request], Response] = lambda _: self.script.pop(0)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._http.server_port}/v1"

    def will(self, *responses: Response | dict[str, Any] | int) -> None:
        """Script the next responses: whole responses, bodies, or statuses."""
        for item in responses:
            if isinstance(item, Response):
                self.script.append(item)
            elif isinstance(item, int):
                self.script.append(Response({"error": {"message": "no"}}, item))
            else:
                self.script.append(Response(item))

    def reply(self, *replies: Any, provider: str = "openai") -> None:
        """Script the next replies of the model. Objects are written as JSON, texts unchanged."""
        self.will(*(said(provider, item if isinstance(item, str) else json.dumps(item)) for item in replies))

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or the body would wait for the client to acknowledge the headers

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Request(
                self.path, {name.lower(): value for name, value in self.headers.items()}, body, self.client_address[1]
            )
            server.requests.append(request)
            response = server.answering(request)
            if response.wait is not None:
                response.wait.wait(60)
            data = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
            try:
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data) + response.cut))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # the client went away
                self.close_connection = True
            if response.cut:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler
