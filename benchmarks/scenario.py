"""Workload of the benchmarks: one agent turn, and one application trace without GenAI spans."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from opentelemetry.trace import Tracer

MODEL = "gpt-4o-2024-08-06"

SYSTEM = (
    "You are the travel and order assistant of the Acme store. Answer politely and shortly, in the language of the customer. "
    "Use the tools when a question is about an order or about the weather; never guess a price, a date or a temperature. "
    "If an order cannot be found, ask for its number. Do not promise refunds; send such questions to the service desk."
)
QUESTION = (
    "Hello! I am leaving for Paris next week and have two questions. First, what is the weather like there at the moment, and "
    "do I need a coat in the evening? We plan to walk along the river and to have dinner outside if that is possible at all. "
    "Second, my order A-1001 has a pair of hiking boots and a rain jacket in it; has it been sent, and will it be here before "
    "I have to leave? "
)
SMALL_TALK = (
    "The last time I ordered something from you it took longer than the shop had said, which was fine then, but this time I "
    "cannot wait, because the apartment will be empty and nobody could take the parcel from the courier. "
)
THINKING = (
    "The customer asks about the weather and about an order. Both need a tool: the weather is not something that I know, and "
    "the state of an order has to be looked up. I start with the question that the trip depends on and then go on. "
)
ANSWER = (
    "It is 18 degrees and sunny in Paris right now, with a light wind from the west, so you will not need a heavy coat during "
    "the day; for dinner outside I would take the rain jacket or a sweater, because it cools down to 11 degrees at night. "
    "Your order A-1001 has been sent: the boots and the jacket left our warehouse on Monday and cost $142.50 in total. "
    "The courier expects to deliver the parcel on Thursday, which is before you leave. If you are not at home then, you can "
    "choose another day or a pick-up point on the page of the courier. "
)
WISHES = (
    "I wish you a good journey and many pleasant walks along the river; write to me again if anything about the parcel should "
    "change or if you would like to know more about the weather on the days of your stay. "
)
TOOLS = ("get_weather", "lookup_order")
ARGUMENTS: tuple[dict[str, Any], ...] = ({"city": "Paris", "unit": "celsius"}, {"order_id": "A-1001"})
RESULTS = (
    json.dumps({
        "city": "Paris", "temperature": 18, "night": 11, "conditions": "sunny", "wind": {"from": "west", "speed_kmh": 9},
        "forecast": "stable until the end of the week, some clouds on Friday afternoon",
    }),
    json.dumps({
        "order_id": "A-1001", "state": "sent", "items": ["hiking boots", "rain jacket"], "total": 142.5, "currency": "USD",
        "sent_on": "Monday", "expected_on": "Thursday", "carrier": "courier, parcel",
    }),
)  # fmt: skip
DEFINITIONS = json.dumps([
    {
        "type": "function", "name": "get_weather", "description": "The weather in a city at the moment and in the next days.",
        "parameters": {
            "type": "object", "required": ["city"],
            "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        },
    },
    {
        "type": "function", "name": "lookup_order", "description": "State, items and price of an order.",
        "parameters": {"type": "object", "required": ["order_id"], "properties": {"order_id": {"type": "string"}}},
    },
])  # fmt: skip
INSTRUCTIONS = json.dumps([{"type": "text", "content": SYSTEM}])


def _text(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}], **more}


def _sized(start: str, filler: str, size: int) -> str:
    """Return ``start``, extended with the filler to ``size`` characters."""
    return (start + filler * (size // len(filler) + 1))[:size]


def _inputs() -> list[str]:
    """Return the prompts of the three model calls, 2 kB each. Later prompts also contain tool results."""
    found = []
    steps: list[dict[str, Any]] = []
    for call in range(3):
        if call:
            i = call - 1
            request = {"type": "tool_call", "id": f"call_{i}", "name": TOOLS[i], "arguments": ARGUMENTS[i]}
            answer = {"type": "tool_call_response", "id": f"call_{i}", "response": RESULTS[i]}
            steps += [{"role": "assistant", "parts": [request]}, {"role": "tool", "parts": [answer]}]
        room = 2048 - len(json.dumps([_text("user", ""), *steps]))
        found.append(json.dumps([_text("user", _sized(QUESTION, SMALL_TALK, room)), *steps]))
    return found


def _outputs() -> list[str]:
    """Return the answers of the three model calls, 1 kB each. The first two contain a thought and a tool call."""
    found = []
    for i in range(2):
        request = {"type": "tool_call", "id": f"call_{i}", "name": TOOLS[i], "arguments": ARGUMENTS[i]}
        message = {"role": "assistant", "parts": [{"type": "text", "content": ""}, request], "finish_reason": "tool_call"}
        message["parts"][0]["content"] = _sized("", THINKING, 1024 - len(json.dumps([message])))  # type: ignore[index]
        found.append(json.dumps([message]))
    room = 1024 - len(json.dumps([_text("assistant", "", finish_reason="stop")]))
    found.append(json.dumps([_text("assistant", _sized(ANSWER, WISHES, room), finish_reason="stop")]))
    return found


INPUTS, OUTPUTS = _inputs(), _outputs()
CONTENTS = (INSTRUCTIONS, DEFINITIONS, *INPUTS, *OUTPUTS, *map(json.dumps, ARGUMENTS), *RESULTS)
"""All JSON texts of a turn."""
_ORDER = "A-1001"


_orders = itertools.count()


def turn(tracer: Tracer) -> float:
    """Create a turn: ``invoke_agent`` with three ``chat`` and two ``execute_tool`` spans. Return the seconds of the root's ``end()``.

    Each turn is about another order, so that cached results of one turn's texts don't apply to the next turn.
    """
    order = f"A-{next(_orders) % 9_000 + 1_000}"
    with tracer.start_as_current_span(
        "invoke_agent travel",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel", "gen_ai.provider.name": "openai"},
        end_on_exit=False,
    ) as root:
        root.set_attributes({
            "gen_ai.conversation.id": "conversation-1", "gen_ai.system_instructions": INSTRUCTIONS, "gen_ai.tool.definitions": DEFINITIONS,
        })  # fmt: skip
        for i in range(3):
            with tracer.start_as_current_span(
                "chat gpt-4o",
                attributes={
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "gpt-4o",
                    "gen_ai.provider.name": "openai",
                    "server.address": "llm.test",
                },
            ) as chat:
                chat.set_attributes({
                    "gen_ai.input.messages": INPUTS[i].replace(_ORDER, order), "gen_ai.output.messages": OUTPUTS[i].replace(_ORDER, order),
                    "gen_ai.usage.input_tokens": 620 + i, "gen_ai.usage.output_tokens": 240, "operation.cost": 0.004,
                    "gen_ai.response.id": f"response-{i}", "gen_ai.response.model": MODEL,
                    "gen_ai.response.finish_reasons": ("stop" if i == 2 else "tool_call",),
                    "gen_ai.response.time_to_first_chunk": 0.31,
                })  # fmt: skip
            if i < 2:
                with tracer.start_as_current_span(
                    f"execute_tool {TOOLS[i]}",
                    attributes={
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": TOOLS[i],
                        "gen_ai.tool.call.id": f"call_{i}",
                    },
                ) as tool:
                    tool.set_attributes({
                        "gen_ai.tool.call.arguments": json.dumps(ARGUMENTS[i]).replace(_ORDER, order),
                        "gen_ai.tool.call.result": RESULTS[i].replace(_ORDER, order),
                    })  # fmt: skip
    start = time.perf_counter()
    root.end()
    return time.perf_counter() - start


def application_trace(tracer: Tracer) -> None:
    """Create fifty application spans with three attributes each, none of them for GenAI."""
    with tracer.start_as_current_span(
        "POST /orders", attributes={"http.request.method": "POST", "url.path": "/orders", "server.port": 443}
    ):
        for _ in range(49):
            with tracer.start_as_current_span(
                "SELECT orders", attributes={"db.system.name": "postgresql", "db.query.text": "select 1", "server.port": 5432}
            ):
                pass
