"""A scripted judge and embedder on loopback, called by the real client."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import otel_agenteval as oa
from otel_agenteval.judging.models.base import JudgeModel
from otel_agenteval.metrics.question import Question


class ScriptedModels:
    """OpenAI's chat completions and embeddings on a free port of 127.0.0.1, and clients for them (fixture ``models``).

    >>> score = models.score("llm_relevance", oa.Turn(input="q", output="a"), {"score": 90})
    >>> models.asked  # the text of each judge call, in order
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        """Bodies of all requests since the last :meth:`play`, in order."""
        self.unused: list[Any] = []
        """Replies that were not used so far."""
        self.surplus = 0
        """Number of judge calls after the last reply."""
        self.trace_contexts: list[str | None] = []
        self._latest: Any = None
        self.vectors: Mapping[str, Sequence[float]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self.judge = oa.Judge(base_url=self.url, model="scripted", api_key="test")
        self.embedder = oa.Embedder(base_url=self.url, model="scripted", api_key="test")

    def play(self, *replies: Any, vectors: Mapping[str, Sequence[float]] | None = None) -> None:
        """Set the replies. A reply is an object (sent as JSON), a text (sent as it is) or a number (an HTTP status)."""
        self.judge.clear_cache()
        self.embedder.clear_cache()
        self.requests, self.unused, self.surplus = [], list(replies), 0
        self.vectors = vectors or {}

    def score(
        self, metric: str, turn: oa.Turn, /, *replies: Any, vectors: Mapping[str, Sequence[float]] | None = None, **params: Any
    ) -> oa.Score:
        """Evaluate a metric with these replies. Fail if a reply is unused, or if there are too few."""
        self.play(*replies, vectors=vectors)
        score = oa.get_metric(metric, **params).evaluate(turn, judge=self.judge, embedder=self.embedder)
        assert not self.unused, f"{len(self.unused)} replies were not asked for; {score}"
        assert not self.surplus, f"{self.surplus} questions too many; {score}"
        return score

    @property
    def asked(self) -> list[str]:
        """Texts of all judge calls without the system prompt: task, material and reply form."""
        return [_text_of(body["messages"][-1]["content"]) for body in self.requests if "messages" in body]

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        if path.endswith("/embeddings"):
            unknown = [text for text in body["input"] if text not in self.vectors]
            if unknown:
                return 400, {"error": {"message": f"no vector for {unknown[0]!r}"}}
            return 200, {"data": [{"index": i, "embedding": list(self.vectors[text])} for i, text in enumerate(body["input"])]}
        again = any(message["role"] == "assistant" for message in body.get("messages", ()))
        if again and isinstance(self._latest, dict):  # if the call is repeated, the model repeats its reply
            self.requests.pop()
            reply = self._latest
        elif self.unused:
            reply = self._latest = self.unused.pop(0)
        else:
            self.surplus += 1
            return 400, {"error": {"message": "there is no reply left"}}
        if isinstance(reply, int):
            return reply, {"error": {"message": "as scripted"}}
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}

    def close(self) -> None:
        self.judge.close()
        self.embedder.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class SteadyModels(ScriptedModels):
    """Models whose replies depend only on the call, so that callers and their order don't matter."""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        if path.endswith("/embeddings"):
            return 200, {"data": [{"index": i, "embedding": _numbers(text, 4)} for i, text in enumerate(body["input"])]}
        text = re.sub(r"[0-9a-f]{16}", "", _text_of(body["messages"][-1]["content"]))  # delimiters are random in each call
        reply = {"score": round(_numbers(text, 1)[0]), "confidence": round(_numbers(text, 1)[0], 2), "reason": None}
        message = {"role": "assistant", "content": json.dumps(reply)}
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def _numbers(text: str, count: int) -> list[float]:
    """Return numbers from 0 to 1 that depend only on the text."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:count]]


class SameReply(JudgeModel):
    """A judge in this process that always gives the same reply, for tests with very many turns."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    def answer(self, question: Question) -> dict[str, Any]:
        """Return a copy of the reply, so that metrics can't change it."""
        found: dict[str, Any] = json.loads(json.dumps(self.reply))
        return found


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _handler(models: ScriptedModels) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            models.trace_contexts.append(self.headers["traceparent"])
            status, answer = models.answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler
