"""LiteLLM's own OpenTelemetry callback: litellm 1.106.2. MODE: bare (each call is a trace), parent (an application's span, on which
LiteLLM writes), parent-late (it has ended before the callbacks run), request (with USE_OTEL_LITELLM_REQUEST_SPAN), semconv, …
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from stage_client import BASE, TOOLS, Skip, exporters, play

MODE = sys.argv[1]
os.environ.update(OTEL_EXPORTER="otlp_http", OTEL_ENDPOINT=f"{BASE}/v1/traces", OTEL_SERVICE_NAME="shop-assistant", LITELLM_LOCAL_MODEL_COST_MAP="True")
os.environ.update({
    "bare": {}, "parent": {}, "parent-late": {}, "request": {"USE_OTEL_LITELLM_REQUEST_SPAN": "true"},
    "semconv": {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"},
    "semconv-parent": {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
    "events": {"LITELLM_OTEL_INTEGRATION_ENABLE_EVENTS": "true", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY",
               "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
    "v2": {"LITELLM_OTEL_V2": "true", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"},
    "parent-off": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"},
}[MODE])  # fmt: skip

WITH_PARENT = MODE in ("parent", "parent-late", "request", "parent-off", "semconv-parent")
import litellm
from opentelemetry import _logs, trace

if WITH_PARENT:
    exporters("shop-assistant")
litellm.callbacks = ["otel"]
litellm.suppress_debug_info = True
KINDS = {"amount": "number"}


def schema(function) -> dict:
    names = [name for name in function.__annotations__ if name != "return"]
    properties = {name: {"type": KINDS.get(name, "string")} for name in names}
    return {"type": "function", "function": {"name": function.__name__, "description": function.__doc__, "parameters": {"type": "object", "properties": properties, "required": names}}}


def prepare(plan):
    if plan["documents"] or plan["sub_agent"]:
        raise Skip("a model's client has neither")
    history = [{"role": "system", "content": "You are a helpful assistant."}]
    tools = [schema(TOOLS[name]) for name in plan["tools"]] or [schema(TOOLS["get_weather"])]
    session = plan["conversation_id"]

    async def call(stream: bool):
        more = {"metadata": {"session_id": session}} if session else {}
        answer = await litellm.acompletion(model="openai/gpt-4o-mini", messages=history, tools=tools, api_base=f"{BASE}/v1", api_key="x", max_retries=0, num_retries=0, stream=stream, **({"stream_options": {"include_usage": True}} if stream else {}), **more)
        if stream:
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=history)
        return answer.choices[0].message

    async def loop(text: str) -> str:
        if plan["scenario"] == "s11":
            del history[1:]
        history.append({"role": "user", "content": text})
        while True:
            message = await call(plan["stream"])
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            for request in message.tool_calls:
                try:
                    result = TOOLS[request.function.name](**json.loads(request.function.arguments))
                except Exception as error:
                    result = f"Error: {error}"
                history.append({"role": "tool", "tool_call_id": request.id, "name": request.function.name, "content": result})

    async def ask(text: str) -> str:
        try:
            if not WITH_PARENT:
                return await loop(text)
            with trace.get_tracer("shop").start_as_current_span("handle_request", attributes={"session.id": session} if session else {}):
                try:
                    return await loop(text)
                finally:
                    if MODE != "parent-late":
                        await asyncio.sleep(0.4)  # the request still does something, and the span gets what its callbacks write
        finally:
            await asyncio.sleep(0.4)  # its callbacks run in the background
            trace.get_tracer_provider().force_flush()
            if MODE == "events":
                _logs.get_logger_provider().force_flush()

    return ask


play(f"litellm-{MODE}", prepare, ("litellm",))
