"""Situations of public reports on judges, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from otel_agenteval.judging.models.base import cost_of
from otel_agenteval.judging.models.providers.base import TokenUsage
from tests.models.wire import Response, Server

TURN = oa.Turn.from_dict({"turn_id": "t", "input": "Capital of Peru?", "output": "Lima."})
VERDICT = '{"reason": "It answers.", "score": 75}'


def said(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}]}


def refused(message: str, status: int = 400, **more: Any) -> Response:
    return Response({"error": {"message": message, **more}}, status)


def score(judge: oa.Judge) -> oa.Score:
    return oa.get_metric("llm_relevance").evaluate(TURN, judge=judge)


# --- servers


@pytest.mark.parametrize(
    "refusal",
    [
        "System role not supported",
        "Conversation roles must alternate user/assistant",
        "'messages[0].role' does not support 'system'",
    ],
)
def test_server_without_a_system_role(refusal: str, server: Server, judge: oa.Judge) -> None:
    """mistral.rs 506, autogen 1037: the instructions move into the user's message, in this and later calls."""
    server.will(refused(refusal), said(VERDICT), said(VERDICT))
    assert [score(judge).value, score(judge).value] == [0.75, 0.75]
    first, *others = [request.body["messages"] for request in server.requests]
    for messages in others:
        assert [message["role"] for message in messages] == ["user"]
        assert messages[0]["content"].startswith(first[0]["content"])


@pytest.mark.parametrize(
    "replies",
    [
        [refused("response_format can be text or json_object, got json_schema", 500), said(VERDICT)],
        [refused("Failed to generate JSON.", code="json_validate_failed", failed_generation=VERDICT), said(VERDICT)],
        [said(None, "tool_calls", tool_calls=[{"type": "function", "function": {"name": "reply", "arguments": VERDICT}}])],
        [said(None, "function_call", function_call={"name": "reply", "arguments": json.loads(VERDICT)})],
        [Response(b"\xef\xbb\xbf" + json.dumps(said(VERDICT)).encode())],
        [Response({}, 307, {"Location": "/v1/other/chat"}), said(VERDICT)],
        [said("\ufeff\u200b" + VERDICT)],
        [said('{"Reason": "It answers.", "SCORE": 75}')],
        [said('{"verdict": "good"}'), said(VERDICT)],
        [said('{"score": null}'), said(VERDICT)],
        [said('{"score": "75%"}'), said(VERDICT)],
        [said('{"score": 0.75, "reason": "x"}'), said(VERDICT)],
    ],
)
def test_reply_in_another_form(replies: list[Any], server: Server, judge: oa.Judge) -> None:
    """ik_llama.cpp 778, openai-agents-python 1602, OpenViking 2096, trulens 658, agent-eval-harness 182, pinchbench 73."""
    server.will(*replies)
    assert score(judge).value == 0.75
    assert len(server.requests) == len(replies)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "refusal",
    [
        "model: deepseek/r1 does not support feature: structured-outputs",
        "Thinking mode does not support this tool_choice",  # of a gateway that sends the schema as a tool
        "guided decoding is not enabled",
        "structured_outputs: not available for this model",
    ],
)
def test_server_without_structured_output(refusal: str, status: int, server: Server, judge: oa.Judge) -> None:
    """MinusPod 628, explorbot 58, takt 1593: the judge calls the model again without it, and remembers that."""
    server.answering = lambda request: refused(refusal, status) if "response_format" in request.body else Response(said(VERDICT))
    assert [score(judge).value, score(judge).value] == [0.75, 0.75]
    assert ["response_format" in request.body for request in server.requests] == [True, True, False, False]


@pytest.mark.parametrize("refusal", ["The model is not enabled for your account.", "Your plan is not active.", "Invalid image"])
def test_other_rejection_is_final(refusal: str, server: Server, judge: oa.Judge) -> None:
    """MinusPod 628, the opposite: the request isn't sent again."""
    server.answering = lambda request: refused(refusal)
    assert score(judge).error_type == "http_400"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("replies", "error_type"),
    [
        ([said(None, "PROHIBITED_CONTENT")], "refusal"),
        ([{"choices": [{"finish_reason": "SAFETY", "message": None}]}], "refusal"),
        ([Response({}, 308, {"Location": "http://127.0.0.2/v1/chat/completions"})], "http_308"),
        ([said('{"score": 0.9}')] * 2, "invalid_reply"),
    ],
)
def test_reply_that_is_none(replies: list[Any], error_type: str, server: Server, judge: oa.Judge) -> None:
    """EverOS 219: invalid replies, and redirects that would send the key to another host."""
    server.will(*replies)
    assert score(judge).error_type == error_type


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 0),
        ({"x-ratelimit-reset-requests": "12s", "x-ratelimit-reset-tokens": "3s"}, 12),
        ({"x-ratelimit-reset-requests": "50s", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"anthropic-ratelimit-requests-reset": "soon"}, 0),
        ({"ratelimit-reset": "20"}, 20),
    ],
)
def test_rate_limit_is_waited_for(
    headers: dict[str, str], least: float, server: Server, judge: oa.Judge, sleeps: list[float]
) -> None:
    """ragas 1519, 2580, NeMo-Agent-Toolkit 842: wait as long as the headers require, even beyond three attempts until the deadline."""
    server.will(*[Response({}, 429, headers)] * 5, said(VERDICT))
    found = score(judge)
    if "6m0s" in headers.values():  # longer than the deadline
        assert found.status == "error"
        assert not sleeps
    else:
        assert found.value == 0.75 if least * 5 < 110 else found.status == "error"
        assert min(sleeps) >= least


# --- prices and clients


@pytest.mark.parametrize(("model", "name"), [("x", "openai/x"), ("openai/x", "x"), ("vendor/x", "x"), ("x", "x")])
def test_price_with_or_without_the_provider(model: str, name: str) -> None:
    """litellm 20600: a price under the model's other name."""
    prices = {name: {"input": 1.0, "output": 2.0}}
    assert cost_of(model, "http://127.0.0.1/v1", TokenUsage(1_000_000, 0), prices)[0] == 1.0


class Client:
    """Like an asynchronous client's pool, bound to the event loop of its first use."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, question: str) -> str:
        loop = asyncio.get_running_loop()
        self.loop = self.loop or loop
        assert self.loop is loop
        assert not self.loop.is_closed()
        await asyncio.sleep(0)
        return question


def test_asynchronous_client_can_be_used_again() -> None:
    """nextmoe-infra 193: a second run, a notebook's event loop, and an event loop of the caller."""
    client, cases = Client(), [{"input": str(number)} for number in range(5)]

    def rate() -> float | None:
        (summary,) = oa.evaluate(client.ask, cases, ["code_empty_answer"]).summary()
        return summary.pass_rate

    async def notebook() -> float | None:
        return rate()

    assert [rate(), rate(), asyncio.run(notebook())] == [1.0, 1.0, 1.0]
    own = Client()

    async def awaiting() -> Any:
        first = await oa.evaluate_async(own.ask, cases, ["code_empty_answer"])
        await own.ask("again")
        return first.summary()

    assert asyncio.run(awaiting())[0].pass_rate == 1.0


def test_task_can_run_an_experiment_of_its_own() -> None:
    async def inner(question: str) -> str:
        return question

    async def outer(question: str) -> str:
        return str(oa.evaluate(inner, [{"input": question}], ["code_empty_answer"]).summary()[0].pass_rate)

    found = threading.Thread(target=lambda: results.append(oa.evaluate(outer, [{"input": "a"}], ["code_empty_answer"])))
    results: list[Any] = []
    found.start()
    found.join(60)
    assert results[0].summary()[0].pass_rate == 1.0


def test_error_of_a_redirect_names_the_setting(server: Server, judge: oa.Judge) -> None:
    server.will(Response({}, 307, {"Location": "https://example.invalid/v1"}))
    with pytest.raises(JudgeError, match="base_url"):
        judge.ask("score", "Rate it.", {"response": "x"}, '{"score": <0 to 1>}')
