from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import LogPart
from tests.support.spans import span, turn_of

SCOPE = "com.anthropic.claude_code.tracing"


def made(span_id, parent_id, kind, attributes=None, **more):
    return span(span_id, parent_id, f"claude_code.{kind}", attributes, scope=SCOPE, **more)


def interaction(*logs, **attributes):
    return made(1, 0, "interaction", {"user_prompt": "Weather?", "session.id": "s-1", **attributes}, ms=200, logs=list(logs))


def log(event, **attributes):
    return LogPart(event, attributes, None)


@pytest.mark.parametrize(
    ("name", "attributes", "role"),
    [
        ("claude_code.interaction", {}, "agent"),
        ("claude_code.llm_request", {"gen_ai.request.model": "m"}, "llm"),
        ("claude_code.llm_request", {"llm_request.context": "standalone"}, "setup"),
        ("claude_code.tool", {}, "tool"),
        ("claude_code.tool", {"subagent_type": "Explore"}, "agent"),
        ("claude_code.tool.execution", {}, "tool"),
        ("claude_code.hook", {}, "unknown"),
    ],
)
def test_a_span_s_role(name, attributes, role):
    assert role_of(attributes, SCOPE, name) == role


def test_another_scope_s_spans_are_not_claude_code():
    assert role_of({}, "acme", "claude_code.interaction") is None


def test_the_answer_and_the_cost_stand_in_events():
    events = [log("api_request", cost_usd=0.25), log("api_request", cost_usd=0.5), log("assistant_response", response="Sunny.")]
    turn = turn_of(interaction(*events), made(2, 1, "llm_request", {"model": "m"}))
    assert (turn.input, turn.output, turn.conversation_id, turn.framework) == ("Weather?", "Sunny.", "s-1", "claude-code")
    assert turn.cost_usd == 0.75


def test_the_answer_of_detailed_tracing_stands_on_the_model_call():
    turn = turn_of(interaction(), made(2, 1, "llm_request", {"model": "m", "response.model_output": "Sunny."}))
    assert turn.output == "Sunny."


def test_tokens_from_and_to_the_cache_are_input_tokens():
    step = read(made(2, 1, "llm_request", {
        "model": "m", "input_tokens": 27, "cache_read_tokens": 64, "cache_creation_tokens": 9, "output_tokens": 14, "ttft_ms": 67, "stop_reason": "end_turn",
    }))  # fmt: skip
    assert (step.input_tokens, step.cached_tokens, step.output_tokens) == (100, 64, 14)
    assert (step.time_to_first_token_s, step.finish_reason) == (0.067, "end_turn")


@pytest.mark.parametrize(
    ("attributes", "logs", "arguments"),
    [
        pytest.param({"tool_input": '[TOOL INPUT: Bash]\n{"command":"ls"}'}, [], {"command": "ls"}, id="detailed tracing"),
        pytest.param({"full_command": "ls"}, [], {"command": "ls"}, id="the command alone"),
        pytest.param({"file_path": "a.txt"}, [], {"file_path": "a.txt"}, id="the file alone"),
        pytest.param(
            {"full_command": "ls"}, [log("tool_result", tool_use_id="t1", tool_input='{"command":"ls","timeout":5}')],
            {"command": "ls", "timeout": 5}, id="an event that says more",
        ),
        pytest.param({"tool_input": "<REDACTED>"}, [], None, id="held back"),
    ],
)  # fmt: skip
def test_a_tool_s_arguments_come_from(attributes, logs, arguments):
    turn = turn_of(interaction(*logs), made(2, 1, "tool", {"tool_name": "Bash", "tool_use_id": "t1", **attributes}))
    assert [(call.name, call.call_id, call.arguments) for call in turn.tool_calls] == [("Bash", "t1", arguments)]


def test_the_phases_of_a_tool_are_one_call_and_its_failure_counts():
    turn = turn_of(
        interaction(),
        made(2, 1, "tool", {"tool_name": "Bash", "tool_use_id": "t1", "new_context": "[TOOL RESULT: Bash]\nnone"}),
        made(3, 2, "tool.blocked_on_user", {"decision": "accept"}),
        made(4, 2, "tool.execution", {"tool_use_id": "t1", "success": False, "error": "no such file"}),
    )
    assert [(call.name, call.result, call.error.message, call.permission_denied) for call in turn.tool_calls] == [
        ("Bash", "none", "no such file", False)
    ]


def test_a_call_that_the_user_refused_is_denied():
    turn = turn_of(
        interaction(),
        made(2, 1, "tool", {"tool_name": "Bash", "tool_use_id": "t1"}),
        made(3, 2, "tool.blocked_on_user", {"decision": "reject"}),
    )
    assert [call.permission_denied for call in turn.tool_calls] == [True]


def test_a_held_back_prompt_is_unknown():
    turn = turn_of(
        interaction(log("assistant_response", response="<REDACTED>"), user_prompt="<REDACTED>"),
        made(2, 1, "llm_request", {"model": "m"}),
    )
    assert (turn.input, turn.output) == (None, None)
