"""An invalid attribute only loses its own value. The rest of the trace is read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.spans import agent, span, turn_of

LANGCHAIN, GEMINI = "openinference.instrumentation.langchain", "openinference.instrumentation.google_genai"


@pytest.mark.parametrize(
    ("scope", "kind", "odd"),
    [
        (LANGCHAIN, "LLM", {"metadata": r'{"lc_agent_name": "a\x41"}'}),
        (LANGCHAIN, "CHAIN", {"metadata": '{"lc_agent_name": "a\tb"}'}),
        (LANGCHAIN, "AGENT", {"metadata": r'{"lc_agent_name": "\ud800"}'}),
        (GEMINI, "LLM", {"message.tool_calls.0": "my tool_call"}),
        (GEMINI, "LLM", {"message.tool_calls.0": 5}),
        (GEMINI, "LLM", {"message.tool_calls.0.tool_call": "x", "message.tool_calls.x": [1]}),
    ],
)
def test_odd_attribute_leaves_the_rest_of_the_turn(scope: str, kind: str, odd: dict[str, Any]) -> None:
    call = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
    said = {**call, "llm.output_messages.0.message.content": "Rome."}
    turn = turn_of(
        agent(1),
        span(2, 1, "x", {"openinference.span.kind": kind, **odd}, scope=scope),
        span(3, 1, "y", said, scope=scope, at=20),
    )
    assert turn.output == "Rome."
    assert turn.to_dict()
