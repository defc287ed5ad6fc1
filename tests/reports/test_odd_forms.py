"""Situations of public reports on odd forms of answers, token counts and tool calls. See docs/internals/public-reports.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.spans import agent, chat, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."
MALFORMED = "MALFORMED_FUNCTION_CALL"


def answer_in(key: str, written: str, scope: str) -> str | None:
    attributes = {"gen_ai.operation.name": "chat", "openinference.span.kind": "LLM", "gen_ai.request.model": "g-1", key: written}
    return turn_of(agent(1), chat(2, 1, user=ASKED, attributes=attributes, scope=scope)).output


@pytest.mark.parametrize(
    "response",
    [
        {"content": {}, "finish_reason": MALFORMED, "usage_metadata": {"prompt_token_count": 6354}},
        {"content": {}, "finish_reason": MALFORMED},
        {"error_code": MALFORMED, "usage_metadata": {"prompt_token_count": 5}},
        {"model_version": "g-1", "error_code": "SAFETY", "error_message": "blocked"},
        {"candidates": [{"content": {}, "finishReason": MALFORMED}], "usageMetadata": {}},
        {"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": {}},
        {"choices": [], "usage": {"prompt_tokens": 3}},
    ],
)
@pytest.mark.parametrize("key", ["gcp.vertex.agent.llm_response", "output.value"])
def test_response_without_content_is_an_empty_answer(response: Any, key: str) -> None:
    """openinference 1785: Gemini ended a response without any part, and the whole response became the answer."""
    scope = "gcp.vertex.agent" if key.startswith("gcp") else "openinference.instrumentation.google_adk"
    assert answer_in(key, json.dumps(response), scope) == ""


@pytest.mark.parametrize(
    "value",
    [{"celsius": 21, "content": {}}, {"error_code": "E7", "error_message": "no city"}, {"finish_reason": "done", "celsius": 21}],
)
def test_object_that_is_no_response_is_the_answer(value: Any) -> None:
    """openinference 1785, the opposite: structured answers with some field of a response."""
    written = json.dumps(value)
    assert answer_in("output.value", written, "openinference.instrumentation.google_adk") == written


def test_truncated_response_without_content_is_unknown() -> None:
    """openinference 1785, the opposite: the text was after the part that the SDK cut."""
    written = '{"usage_metadata": {"prompt_token_count": 5}, "content": {"par'
    assert answer_in("output.value", written, "openinference.instrumentation.google_adk") is None
