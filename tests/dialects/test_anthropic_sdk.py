"""The Anthropic SDK's own spans. A call that another instrumentation also records counts once."""

from __future__ import annotations

import json

import pytest

from tests.support.spans import span, turn_of

OTHER, SDK = "openinference.instrumentation.anthropic", "com.anthropic.sdk.python"
APP = span(1, name="handle_message", ms=100)


def outer(span_id, parent=1, tokens=(27, 47), at=0.0, ms=50.0, model="claude-sonnet-4-5", response=None):
    counts = {"llm.token_count.prompt": tokens[0], "llm.token_count.completion": tokens[1]} if tokens else {}
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": model, **counts}
    if response:
        attributes["gen_ai.response.id"] = response
    return span(span_id, parent, "messages.stream", attributes, scope=OTHER, at=at, ms=ms)


def own(span_id, parent=1, tokens=(27, 47), at=1.0, ms=40.0, model="claude-sonnet-4-5-20250929", response="msg_1"):
    counts = {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]} if tokens else {}
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.model": model, "gen_ai.response.id": response, **counts}
    return span(span_id, parent, "anthropic.messages.create", attributes, scope=SDK, at=at, ms=ms)


@pytest.mark.parametrize(
    ("spans", "calls"),
    [
        pytest.param([outer(2), own(3, parent=2)], 1, id="one under the other"),
        pytest.param([outer(2), own(3)], 1, id="one beside the other, within its time"),
        pytest.param([outer(2, tokens=None), own(3)], 1, id="a layer that counts no tokens"),
        pytest.param([outer(2), own(3), outer(4, at=60), own(5, at=61, ms=30, response="msg_2")], 2, id="two calls in a row"),
        pytest.param(
            [outer(2, ms=60), own(3, ms=58), outer(4, at=2, ms=50), own(5, at=3, ms=48, response="msg_2")], 2, id="two at once"
        ),
        pytest.param([outer(2), own(3, at=60)], 2, id="one after the other"),
        pytest.param([outer(2), own(3, model="claude-opus-4")], 2, id="another model"),
        pytest.param([outer(2), own(3, tokens=(27, 12))], 2, id="other token counts"),
        pytest.param([outer(2, response="msg_0"), own(3)], 2, id="another response"),
        pytest.param([outer(2), outer(3, at=1, ms=40)], 2, id="two of the same layer"),
        pytest.param([outer(2), own(3), own(4, at=2, ms=30, response="msg_2")], 2, id="two of the SDK's in one other span"),
    ],
)
def test_calls_are_counted_once(spans, calls):
    assert len(turn_of(APP, *spans).llm_calls) == calls


@pytest.mark.parametrize(
    ("seen", "said", "expected"),
    [
        pytest.param((27, 47), (27, 46), (27, 46), id="a stream's first token counted twice"),
        pytest.param((0, 46), (27, 46), (27, 46), id="a stream whose prompt was not counted"),
        pytest.param((27, 46), None, (27, 46), id="the SDK did not count"),
    ],
)
def test_the_sdk_s_own_count_is_the_provider_s(seen, said, expected):
    usage = turn_of(APP, outer(2, tokens=seen), own(3, parent=2, tokens=said)).usage
    assert (usage.input_tokens, usage.output_tokens) == expected


def test_several_results_in_one_message_of_openinference_for_js():
    """The span has only the last result, but the request has all of them. A tool result with the user role isn't the user's input."""
    asked = {f"llm.output_messages.0.message.tool_calls.{at}.tool_call.{key}": value for at in (0, 1)
             for key, value in (("id", f"c{at}"), ("function.name", "look"), ("function.arguments", f'{{"at": {at}}}'))}  # fmt: skip
    asked["llm.output_messages.0.message.role"] = "assistant"
    results = [{"type": "tool_result", "tool_use_id": f"c{at}", "content": f"seen {at}"} for at in (0, 1)]
    uses = [{"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": at}} for at in (0, 1)]
    messages = [
        {"role": "user", "content": "Look!"},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
    ]
    flat = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.tool_call_id": "c1",
        "llm.input_messages.0.message.content": "seen 1",
    }
    kind, scope = {"openinference.span.kind": "LLM"}, "@arizeai/openinference-instrumentation-anthropic"
    request = {"input.value": json.dumps({"system": "Be brief.", "messages": messages})}
    first = span(2, 1, "Anthropic Messages", {**kind, **asked}, scope=scope, at=1)
    turn = turn_of(APP, first, span(3, 1, "Anthropic Messages", {**kind, **flat, **request}, scope=scope, at=30))
    assert [(call.arguments, call.result) for call in turn.tool_calls] == [({"at": 0}, "seen 0"), ({"at": 1}, "seen 1")]
    assert (turn.system, turn.input) == ("Be brief.", "Look!")
    turn = turn_of(APP, first, span(3, 1, "Anthropic Messages", {**kind, **flat}, scope=scope, at=30))
    assert ([call.result for call in turn.tool_calls], turn.input) == ([None, "seen 1"], None)
