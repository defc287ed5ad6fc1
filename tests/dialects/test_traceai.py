"""traceAI's spellings, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.dialects.step import Step
from otel_agenteval.spans.record import SpanRecord


def step(**attributes: Any) -> Step:
    return read(
        SpanRecord(
            trace_id=1, span_id=2, name="span", scope="traceai_openai", start_ns=1_000, end_ns=2_000,
            attributes={key.replace("__", "."): value for key, value in attributes.items()},
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "name", "role"),
    [
        pytest.param({"gen_ai.span.kind": "LLM"}, "x", "llm", id="a kind"),
        pytest.param({"fi.span.kind": "TOOL"}, "x", "tool", id="a kind, as it was called first"),
        pytest.param({"gen_ai.span.kind": "STEP"}, "x", "inner", id="a step is no turn"),
        pytest.param({"gen_ai.span.kind": "CHAIN", "lc_agent_name": "x"}, "x", "agent", id="a chain with an agent's name"),
        pytest.param({"gen_ai.span.kind": "CHAIN", "lc_agent_name": "x"}, "model", "chain", id="a chain in an agent"),
        pytest.param({}, "x", "unknown", id="no kind yet"),
    ],
)
def test_role(attributes: dict[str, Any], name: str, role: str) -> None:
    assert role_of(attributes, "traceai_langchain", name) == role


def test_a_streamed_call_of_a_tool_has_no_answer_that_could_be_read() -> None:
    assert step(gen_ai__span__kind="LLM", output__value="").output_messages is None


def test_the_model_of_a_failed_call_stands_among_its_parameters() -> None:
    assert step(gen_ai__span__kind="LLM", gen_ai__request__parameters='{"model": "m"}').model == "m"


def test_versions_before_wrote_openinferences_names() -> None:
    found = step(**{"fi.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 3, "llm.input_messages.0.message.role": "user",
                    "llm.input_messages.0.message.content": "hi"})  # fmt: skip
    assert (found.model, found.input_tokens, decode(found.input_messages, "user").messages[0].content) == ("m", 3, "hi")
