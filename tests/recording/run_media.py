"""Record media: real SDKs and frameworks send images, recordings, videos and documents to a scripted model, under one instrumentation each.

    python tests/recording/run_media.py FOLDER [SET ...]     # each set in a process of its own
    python tests/recording/run_media.py --pack FOLDER        # writes tests/data/media.tar.xz

Packages: openai anthropic google-genai langchain langchain-openai langgraph pydantic-ai-slim[openai] google-adk pillow numpy av
openinference-instrumentation-{openai,anthropic,google-genai,langchain} opentelemetry-instrumentation-genai-openai
opentelemetry-instrumentation-{openai,anthropic,google-genai} opentelemetry-exporter-otlp-proto-http.

A set is ``SET.jsonl`` (OTLP/JSON) and ``SET.truth.json``: for each turn its question and answer by the script, and the media that the model's server got,
by hash or address. What an instrumentation does not write is in no span, whatever the server got; the test says which sets lack what.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANSWER = "It is a hill under a grey sky."
ADDRESS = "https://cdn.example.com/hill.jpg"
CLIP = "https://cdn.example.com/hill.mp4"
os.environ |= {
    "OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x", "GOOGLE_API_KEY": "x", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental", "TRACELOOP_TRACE_CONTENT": "true",
}  # fmt: skip


def png(shade: int) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    picture = Image.linear_gradient("L").resize((32, 24)).point(lambda value: (value + shade) % 256)
    picture.save(out, "PNG")
    return out.getvalue()


def wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"".join(int(8000 * (n % 20 - 10) / 10).to_bytes(2, "little", signed=True) for n in range(800)))
    return out.getvalue()


PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
IMAGE, SOUND = png(0), wav()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def uri(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{b64(data)}"


KNOWN = {hashlib.sha256(data).hexdigest()[:16]: kind for data, kind in ((IMAGE, "image"), (SOUND, "audio"), (PDF, "document"))}


class Model:
    """The model's server: answers one sentence, and keeps what media it was sent."""

    def __init__(self) -> None:
        self.media: list[dict] = []
        self.asked = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.media = list(media_in(body))
                model.asked += 1
                out = json.dumps(reply(self.path, str(model.asked))).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

            def log_message(self, *args) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"


def media_in(value):
    """Hashes and addresses of the media in a request."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from media_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from media_in(inner)
    elif isinstance(value, str) and value.startswith("https://cdn."):
        yield {"uri": value}
    elif isinstance(value, str):
        body = value.partition(",")[2] if value.startswith("data:") else value
        try:
            data = base64.b64decode(body.replace("-", "+").replace("_", "/"), validate=True)
        except ValueError:
            return
        key = hashlib.sha256(data).hexdigest()[:16]
        if key in KNOWN:
            yield {"kind": KNOWN[key], "sha256": key}


def reply(path: str, number: str) -> dict:
    if "messages" in path:
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": ANSWER}],
                "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 90, "output_tokens": 9}}  # fmt: skip
    if "generateContent" in path:
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}],
                "responseId": f"gem_{number}", "usageMetadata": {"promptTokenCount": 90, "candidatesTokenCount": 9, "totalTokenCount": 99}, "modelVersion": "gemini-x"}  # fmt: skip
    if "responses" in path:
        message = {"id": f"m{number}", "type": "message", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": ANSWER, "annotations": []}]}  # fmt: skip
        return {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-x", "status": "completed", "output": [message], "parallel_tool_calls": True,
                "tool_choice": "auto", "tools": [], "usage": {"input_tokens": 90, "output_tokens": 9, "total_tokens": 99,
                "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}  # fmt: skip
    return {"id": f"c{number}", "object": "chat.completion", "created": 1, "model": "gpt-x",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}}  # fmt: skip


# --- what each API is sent: turns of a question and parts

CHAT = {
    "What is in this picture?": [{"type": "image_url", "image_url": {"url": uri(IMAGE, "image/png")}}],
    "And what is in this one?": [{"type": "image_url", "image_url": {"url": ADDRESS}}],
    "What do you hear?": [{"type": "input_audio", "input_audio": {"data": b64(SOUND), "format": "wav"}}],
    "What does this paper say?": [{"type": "file", "file": {"filename": "a.pdf", "file_data": uri(PDF, "application/pdf")}}],
}
RESPONSES = {
    "What is in this picture?": [{"type": "input_image", "image_url": uri(IMAGE, "image/png"), "detail": "auto"}],
    "And what is in this one?": [{"type": "input_image", "image_url": ADDRESS, "detail": "auto"}],
    "What does this paper say?": [{"type": "input_file", "filename": "a.pdf", "file_data": uri(PDF, "application/pdf")}],
}
ANTHROPIC = {
    "What is in this picture?": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(IMAGE)}}],
    "And what is in this one?": [{"type": "image", "source": {"type": "url", "url": ADDRESS}}],
    "What does this paper say?": [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": b64(PDF)}}],
}


def openai_chat(model: Model):
    import openai

    client = openai.OpenAI(base_url=f"{model.url}/v1")
    for question, parts in CHAT.items():
        yield question, lambda question=question, parts=parts: client.chat.completions.create(
            model="gpt-x", messages=[{"role": "user", "content": [{"type": "text", "text": question}, *parts]}]
        )


def openai_responses(model: Model):
    import openai

    client = openai.OpenAI(base_url=f"{model.url}/v1")
    for question, parts in RESPONSES.items():
        yield question, lambda question=question, parts=parts: client.responses.create(
            model="gpt-x", input=[{"role": "user", "content": [{"type": "input_text", "text": question}, *parts]}]
        )


def anthropic_messages(model: Model):
    import anthropic

    client = anthropic.Anthropic(base_url=model.url)
    for question, parts in ANTHROPIC.items():
        yield question, lambda question=question, parts=parts: client.messages.create(
            model="claude-x", max_tokens=50, messages=[{"role": "user", "content": [{"type": "text", "text": question}, *parts]}]
        )


def gemini(model: Model):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=model.url))
    for question, part in (
        ("What is in this picture?", types.Part.from_bytes(data=IMAGE, mime_type="image/png")),
        ("What do you hear?", types.Part.from_bytes(data=SOUND, mime_type="audio/wav")),
        ("What happens in this film?", types.Part.from_uri(file_uri=CLIP, mime_type="video/mp4")),
    ):
        content = types.Content(role="user", parts=[types.Part.from_text(text=question), part])
        yield question, lambda content=content: client.models.generate_content(model="gemini-x", contents=[content])


def langgraph(model: Model):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    agent = create_agent(ChatOpenAI(model="gpt-x", base_url=f"{model.url}/v1"), [], system_prompt="Be brief.", name="viewer")
    blocks = {
        "What is in this picture?": {"type": "image", "base64": b64(IMAGE), "mime_type": "image/png"},
        "And what is in this one?": {"type": "image_url", "image_url": {"url": ADDRESS}},
        "What do you hear?": {"type": "audio", "base64": b64(SOUND), "mime_type": "audio/wav"},
    }
    for question, block in blocks.items():
        said = {"messages": [{"role": "user", "content": [{"type": "text", "text": question}, block]}]}
        yield question, lambda said=said: agent.invoke(said)


def pydantic_ai(model: Model):
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, BinaryContent, ImageUrl
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    Agent.instrument_all()
    client = AsyncOpenAI(base_url=f"{model.url}/v1")
    agent = Agent(OpenAIChatModel("gpt-x", provider=OpenAIProvider(openai_client=client)), name="viewer")
    for question, part in (
        ("What is in this picture?", BinaryContent(IMAGE, media_type="image/png")),
        ("And what is in this one?", ImageUrl(ADDRESS)),
        ("What do you hear?", BinaryContent(SOUND, media_type="audio/wav")),
    ):
        yield question, lambda question=question, part=part: agent.run_sync([question, part])


def adk(model: Model):
    from google.adk.agents import LlmAgent
    from google.adk.models.google_llm import Gemini
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    os.environ |= {"ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "true", "GOOGLE_GEMINI_BASE_URL": model.url}
    runner = InMemoryRunner(LlmAgent(name="viewer", model=Gemini(model="gemini-2.5-flash"), instruction="Be brief."), app_name="viewer")

    async def ask(content) -> None:
        session = await runner.session_service.create_session(app_name="viewer", user_id="u")
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=content):
            pass

    for question, part in (
        ("What is in this picture?", types.Part.from_bytes(data=IMAGE, mime_type="image/png")),
        ("What happens in this film?", types.Part.from_uri(file_uri=CLIP, mime_type="video/mp4")),
    ):
        content = types.Content(role="user", parts=[types.Part.from_text(text=question), part])
        yield question, lambda content=content: asyncio.run(ask(content))


def instrumentor(name: str):
    module, _, cls = name.rpartition(".")
    return getattr(__import__(module, fromlist=[cls]), cls)


SETS = {
    "openai-chat-genai": (openai_chat, "opentelemetry.instrumentation.genai.openai.OpenAIInstrumentor"),
    "openai-chat-openinference": (openai_chat, "openinference.instrumentation.openai.OpenAIInstrumentor"),
    "openai-chat-traceloop": (openai_chat, "opentelemetry.instrumentation.openai.OpenAIInstrumentor"),
    "openai-responses-genai": (openai_responses, "opentelemetry.instrumentation.genai.openai.OpenAIInstrumentor"),
    "openai-responses-openinference": (openai_responses, "openinference.instrumentation.openai.OpenAIInstrumentor"),
    "openai-responses-traceloop": (openai_responses, "opentelemetry.instrumentation.openai.OpenAIInstrumentor"),
    "anthropic-openinference": (anthropic_messages, "openinference.instrumentation.anthropic.AnthropicInstrumentor"),
    "anthropic-traceloop": (anthropic_messages, "opentelemetry.instrumentation.anthropic.AnthropicInstrumentor"),
    "gemini-openinference": (gemini, "openinference.instrumentation.google_genai.GoogleGenAIInstrumentor"),
    "gemini-genai": (gemini, "opentelemetry.instrumentation.google_genai.GoogleGenAiSdkInstrumentor"),
    "langgraph-openinference": (langgraph, "openinference.instrumentation.langchain.LangChainInstrumentor"),
    "pydantic-ai": (pydantic_ai, ""),
    "adk": (adk, ""),
}


def record(name: str, folder: Path) -> None:
    """Play a set, and write its spans and its truth."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    play, package = SETS[name]
    spans, provider = InMemorySpanExporter(), TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    if package:
        instrumentor(package)().instrument(tracer_provider=provider)
    model = Model()
    turns, lines = [], []
    for question, ask in play(model):
        ask()
        turns.append({"input": question, "output": ANSWER, "media": model.media})
        request = MessageToDict(encode_spans(spans.get_finished_spans()))
        spans.clear()
        for group in request["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    span |= {key: base64.b64decode(span[key]).hex() for key in ("traceId", "spanId", "parentSpanId") if key in span}
        lines.append(json.dumps(request, sort_keys=True))
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / f"{name}.truth.json").write_text(json.dumps(turns, indent=1) + "\n", encoding="utf-8")


def pack(folder: Path) -> None:
    """All sets in one archive; the same files give the same bytes."""
    target = Path(__file__).parents[1] / "data" / "media.tar.xz"
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(folder.glob("*.json*")):
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = path.stat().st_size, 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))


if __name__ == "__main__":
    if sys.argv[1] == "--pack":
        pack(Path(sys.argv[2]))
    elif sys.argv[1] == "--one":
        record(sys.argv[2], Path(sys.argv[3]))
    else:
        for one in sys.argv[2:] or SETS:
            done = subprocess.run([sys.executable, __file__, "--one", one, sys.argv[1]], check=False)
            print(one, "ok" if done.returncode == 0 else "FAILED", flush=True)
