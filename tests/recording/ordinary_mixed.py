"""Ordinary applications around, beside and below the model calls of an agent that a known instrumentation traces.

    python tests/recording/ordinary_mixed.py FOLDER [MODULE]

Each application of ``ordinary_apps.py``, or of another module with ``APPS``, becomes the set ``mixed-NAME``: a loop with the OpenAI SDK (3.54) that plays one scenario of the
stage, with the application's spans in the same traces, before the first call, in every tool, and after the answer. The spans that count come
from genai-openai 1.3b0 (content in spans or in events), openinference 0.1.66 or openllmetry 0.62.4; httpx traces the requests, with their bodies.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import urllib.request
from pathlib import Path

import httpx
import openai
import stage
from app_telemetry import SERVER, App, js
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

SCENARIOS = ("s2", "s3", "s6", "s8", "s4", "s9b")
MODEL = "gpt-4.1-mini"


def genai(w: App, capture: str):
    os.environ.update(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=capture, OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT="true" if "EVENT" in capture else "false")
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    found = OpenAIInstrumentor()
    found.instrument(tracer_provider=w.tracers, logger_provider=w.loggers, skip_dep_check=True)
    return found


def in_spans(w: App):
    return genai(w, "SPAN_ONLY")


def in_events(w: App):
    return genai(w, "EVENT_ONLY")


def openinference(w: App):
    from openinference.instrumentation.openai import OpenAIInstrumentor

    found = OpenAIInstrumentor()
    found.instrument(tracer_provider=w.tracers, skip_dep_check=True)
    return found


def traceloop(w: App):
    os.environ.update(TRACELOOP_TRACE_CONTENT="true")
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    found = OpenAIInstrumentor()
    found.instrument(tracer_provider=w.tracers, skip_dep_check=True)
    return found


DIALECTS = (in_spans, openinference, traceloop, in_events)


class Play:
    """One set: a scenario, played by a loop around the SDK."""

    def __init__(self, port: int, w: App, run) -> None:
        self.port, self.w, self.run = port, w, run

    def post(self, path: str, body: dict) -> tuple[int, dict]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", js(body).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def client(self) -> openai.OpenAI:
        def asked(span, request):
            span.set_attribute("http.request.body", bytes(request.stream).decode() if hasattr(request.stream, "__bytes__") else b"".join(request.stream).decode())

        transport = httpx.Client()
        HTTPXClientInstrumentor.instrument_client(transport, tracer_provider=self.w.tracers, request_hook=asked)
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0, http_client=transport)

    def turn(self, history: list, said: str, tools: list[str]) -> None:
        w = self.w
        body = {"messages": [{"role": "user", "content": said}], "conversation": "c-1"}
        with w.span("POST /assist", SERVER, **{"http.request.method": "POST", "http.route": "/assist", "http.request.body": body}):
            self.run(w)
            history.append({"role": "user", "content": said})
            try:
                answer = self.loop(self.client(), history, tools)
            except openai.APIError as error:
                self.post("/control/answer", {"error": {"type": type(error).__name__, "message": str(error)}})
                raise
            self.run(w)
            w.log({"path": "/assist", "response": {"role": "assistant", "content": "sent"}}, event="http.access")
        self.post("/control/answer", {"answer": answer})

    def loop(self, client: openai.OpenAI, history: list, tools: list[str]) -> str:
        offered = [{"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object", "properties": {}}}} for name in tools]
        while True:
            reply = client.chat.completions.create(model=MODEL, messages=history, **({"tools": offered} if offered else {})).choices[0].message
            history.append(reply.model_dump(exclude_none=True))
            if not reply.tool_calls:
                return reply.content
            for call in reply.tool_calls:
                self.run(self.w)
                code, result = self.post(f"/tools/{call.function.name}", json.loads(call.function.arguments))
                said = result["result"] if code == 200 else f"Error: {result['message']}"
                history.append({"role": "tool", "tool_call_id": call.id, "content": said if isinstance(said, str) else js(said)})


def play(port: int, folder: Path, name: str, run, scenario: str, dialect) -> None:
    w = App(f"mixed-{name}", f"acme.{name.replace('-', '_')}")
    instrumentor = dialect(w)
    one = Play(port, w, run)
    plan = one.post("/control/start", {"set": w.name, "scenario": scenario})[1]
    history: list = []
    for index, turn in enumerate(plan["turns"]):
        one.post("/control/turn", {"index": index})
        try:
            one.turn(history, turn["user_input"], plan["tools"])
        except openai.APIError:
            pass
    instrumentor.uninstrument()
    for suffix, requests in w.requests().items():
        lines = [json.dumps(stage.neutral(request), ensure_ascii=False, separators=(",", ":")) for request in requests]
        (folder / w.name / f"{scenario}{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(w.name, dialect.__name__, one.post("/control/finish", {"no_session": True})[1])


def main(folder: Path, module: str) -> None:
    stage.Stage.out = folder
    server = stage.fake_llm.Srv(("127.0.0.1", 0), stage.Stage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    apps = importlib.import_module(module).APPS
    for index, (name, run) in enumerate(apps.items()):
        play(server.server_address[1], folder, name, run, SCENARIOS[index % len(SCENARIOS)], DIALECTS[index % len(DIALECTS)])
    server.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "ordinary_apps")
