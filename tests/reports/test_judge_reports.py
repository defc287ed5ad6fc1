"""Situations of public reports on judges and models, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.judging.models.model_server import RateLimits, RequestOptions
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels

TURN = oa.Turn.from_dict({"turn_id": "t", "input": "Capital of Peru?", "output": "Lima.", "context": ["Lima is in Peru."]})
VERDICT = '{"reasoning": "It answers the question.", "score": 75}'
JUDGED = Response(said("openai", VERDICT))


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def score_of(server: Server, answer: Callable[[Request], Response], **options: Any) -> oa.Score:
    server.answering = answer
    with contextlib.closing(oa.Judge(server.url, "m", **options)) as judge:
        ((_, (score,)),) = oa.score_turns([TURN], ["llm_relevance"], judge=judge)
    return score


# --- replies


@pytest.mark.parametrize(
    "message",
    [
        *[{"finish_reason": reason} for reason in ("eos", "end_turn", "STOP", "eos_token", "", None)],
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": '{"score": 10}'}]}, {"type": "text", "text": VERDICT}]},
        {"content": f'<think>A draft: {{"score": 10}}, and {{more}}</think>\n{VERDICT}'},
        {"content": f'A draft: {{"score": 10}}.\n</think>\n\n{VERDICT}'},
        {"content": VERDICT.replace("the question", "the\nquestion\t\a")},
        {"usage": None},
        {"usage": {"prompt_tokens": "100", "completion_tokens": None}},
    ],
    ids=str,
)  # fmt: skip
def test_reply_is_read(message: dict[str, Any], server: Server) -> None:
    """ragas 2831, openinference 3761, deepeval 2991, mlflow 22674, autoevals 28: complete replies that other tools refused."""
    content = message.get("content", VERDICT)
    choice: dict[str, Any] = {
        "message": {"role": "assistant", "content": content},
        "finish_reason": message.get("finish_reason", "stop"),
    }
    body = {"choices": [choice], "usage": message.get("usage", {"prompt_tokens": 9, "completion_tokens": 9})}
    assert score_of(server, lambda _: Response(body)).value == 0.75


@pytest.mark.parametrize("count", [0, 1, 3])
def test_missing_verdicts_of_claims_are_no_good_result(count: int, models: ScriptedModels) -> None:
    """promptfoo 9978, 2468: statements without a verdict counted as supported. Of hallucinations, 0 is best."""
    given = {"verdicts": [{"claim": "1", "reason": "r", "verdict": "SUPPORTED"}] * count}
    models.play({"claims": list("abcd")}, given, given)
    score = oa.get_metric("llm_hallucination").evaluate(TURN, judge=models.judge)
    assert (score.value, score.error_type) == (None, "invalid_reply")


# --- servers


def event_stream(*pieces: str, **last: Any) -> Response:
    deltas = [{"reasoning_content": '{"score": 1}'}, *({"content": piece} for piece in pieces)]
    events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], **last}]
    lines = [": keep-alive", *(f"data: {json.dumps(event)}" for event in events), "data: [DONE]"]
    return Response("\n\n".join(lines).encode(), headers={"Content-Type": "text/event-stream; charset=utf-8"})


@pytest.mark.parametrize(
    "refusal",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "Streaming is required for this model",
        None,
    ],
)
def test_event_stream_is_read(refusal: str | None, server: Server) -> None:
    """evalscope 998: models that answer only with an event stream, and gateways that always do."""
    stream = event_stream(VERDICT[:30], VERDICT[30:], usage={"prompt_tokens": 7, "completion_tokens": 5})

    def answer(request: Request) -> Response:
        return stream if refusal is None or "stream" in request.body else Response({"error": {"message": refusal}}, 400)

    assert score_of(server, answer).value == 0.75
    assert len(server.requests) == (1 if refusal is None else 2)


@pytest.mark.parametrize(
    ("stream", "error_type"),
    [
        (event_stream(VERDICT[:30]), "unreadable_reply"),
        (event_stream(), "unreadable_reply"),
        (
            Response(b'data: {"error": {"message": "overloaded"}}\n\n', headers={"Content-Type": "text/event-stream"}),
            "server_error",
        ),
        (Response(b"data: {\n\n", headers={"Content-Type": "text/event-stream"}), "invalid_answer"),
    ],
)
def test_broken_event_stream_is_an_error(stream: Response, error_type: str, server: Server) -> None:
    """evalscope 998, with streams that end early or report an error."""
    assert score_of(server, lambda _: stream).error_type == error_type


@pytest.mark.parametrize(("blank", "finish"), [("", "stop"), (None, "stop"), ("\n" * 200, "length"), (" ", "stop")])
def test_blank_reply_with_structured_output_is_repeated_without(blank: str | None, finish: str, server: Server) -> None:
    """vllm 21148, cuga-agent 89: constrained decoding replies with nothing or with white space, and no score is left."""

    def reply(text: str | None, finish: str) -> Response:
        return Response({"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}]})

    server.answering = lambda request: reply(blank, finish) if "response_format" in request.body else reply(VERDICT, "stop")
    with contextlib.closing(oa.Judge(server.url, "m")) as judge:
        scores = [score for _, (score,) in oa.score_turns([TURN, TURN], ["llm_relevance"], judge=judge)]
    assert [score.value for score in scores] == [0.75, 0.75]
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]


def test_structured_output_stays_if_only_the_thoughts_were_too_long(server: Server) -> None:
    """agent-native 4861: a model spends its output limit on thoughts, so its reply is empty."""

    def answer(request: Request) -> Response:
        is_first = len(server.requests) == 1
        message = {"role": "assistant", "content": "" if is_first else VERDICT, "reasoning_content": "A score of 10?"}
        return Response({"choices": [{"index": 0, "finish_reason": "length" if is_first else "stop", "message": message}]})

    assert score_of(server, answer).value == 0.75
    assert all("response_format" in request.body for request in server.requests)


def test_slow_server_judges_everything(server: Server) -> None:
    """deepeval 1376: several simultaneous metrics time out at a server that processes one request at a time."""
    working, forgotten = threading.Lock(), threading.Event()

    def answer(_: Request) -> Response:
        if not working.acquire(blocking=False):
            return Response(wait=forgotten)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000)
        working.release()
        return JUDGED

    assert score_of(server, lambda _: JUDGED).value == 0.75  # imports the client
    server.answering = answer
    cases = [{"case_id": str(number), "input": f"q{number}"} for number in range(6)]
    with contextlib.closing(oa.Judge(server.url, "m", timeout=0.3, sleep=lambda _: None)) as judge:
        found = oa.evaluate(lambda question: "Lima", cases, ["llm_relevance", "llm_coherence", "llm_fluency"], judge=judge)
    forgotten.set()
    assert [(summary.n, summary.errors) for summary in found.summary()] == [(6, 0)] * 3


def test_time_outs_halve_the_concurrency_and_answers_raise_it(clock: FakeClock) -> None:
    """deepeval 1376, step by step."""
    limits = RateLimits(RequestOptions(max_concurrency=8, clock=clock, sleep=clock.advance))

    def places() -> int:
        taken = 0
        with contextlib.suppress(oa.JudgeError):
            while True:
                limits.enter(0, clock.monotonic())
                taken += 1
        for _ in range(taken):
            limits.leave(answered=False)
        return taken

    assert places() == 8
    began = clock.monotonic()
    assert limits.slow_down(began)  # the server never answered, so it can be down
    assert (places(), limits.is_reduced) == (1, False)
    for _ in range(40):
        limits.enter(0, clock.monotonic())
        limits.leave()
    assert places() == 8
    for _ in range(7):
        limits.enter(0, clock.monotonic())
    clock.advance(1)
    assert limits.slow_down(clock.monotonic())
    assert not limits.slow_down(began)  # it waited for the others
    assert limits.is_reduced
    for _ in range(7):
        limits.leave(answered=False)
    assert places() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0.05, "sleep": lambda _: None}, "no reply within 0.05 s"),
        ({"timeout": 9, "deadline": 0.1}, "no reply before the deadline"),
    ],
)
def test_timeout_names_the_limit_that_ended_the_wait(options: dict[str, Any], message: str, server: Server) -> None:
    """deepeval 2232: a server that accepts a request and never answers."""
    gate = threading.Event()
    score = score_of(server, lambda _: Response(wait=gate), **options)
    gate.set()
    assert (score.error_type, score.explanation) == ("timeout", f"relevance: judge: {message}")


def test_configured_headers_are_sent(server: Server) -> None:
    """mlflow 20136, 23375: a gateway with its own path and headers, from a configuration."""
    server.answering = lambda request: (
        Response({"data": [{"index": index, "embedding": [1.0, 0.0]} for index in range(2)]})
        if "input" in request.body
        else JUDGED
    )
    own = {"base_url": server.url, "model": "m", "headers": {"X-Team": "a", "Authorization": "Basic own"}, "api_key": "k"}
    other = {"base_url": server.url, "headers": {"X-Team": "b"}}
    choose = [{"metric": "llm_coherence", "model": "gate/m"}]
    config = oa.load_config({"judge": {**own, "servers": {"gate": other}, "choose": choose}, "embedder": own})
    list(oa.score_turns([TURN], ["llm_relevance", "llm_coherence", "embed_coherence"], config=config))
    sent = [(request.headers["x-team"], request.headers.get("authorization")) for request in server.requests]
    assert sent == [("a", "Basic own"), ("b", None), ("a", "Basic own")]


# --- what the judge sees


BRACES = "Hi {{name}}, {% if x %}{# note #}{0} {user!r} %s ${HOME} }} {{ {"


def test_braces_reach_the_judge(models: ScriptedModels) -> None:
    """promptfoo 1405, 404: braces and template signs in answers and rubrics."""
    turn = oa.Turn.from_dict({"turn_id": "t", "input": f"Q {BRACES}", "output": f"A {BRACES}"})
    models.score("llm_rubric", turn, {"reason": "r", "score": 1, "pass": True}, rubric=f"R {BRACES}")
    assert all(f"{letter} {BRACES}" in models.asked[0] for letter in "QAR")


@pytest.mark.parametrize(
    ("metrics", "column"),
    [
        ([{"promptfoo:llm-rubric": {"value": "Does it greet {{customer}}?"}}], {}),
        ([], {"metrics": [{"llm_rubric": {"rubric": "Does it greet {{ customer }}?"}}]}),
        ([], {"assert": [{"type": "llm-rubric", "value": "Does it greet {{customer}}?"}]}),
    ],
)
def test_placeholders_are_filled_from_the_case(metrics: list[Any], column: dict[str, Any], models: ScriptedModels) -> None:
    """promptfoo 7861: a rubric for all cases reached the judge with a literal placeholder."""
    models.play(*[{"reason": "r", "score": 1, "pass": True}] * 2)
    cases = [{"case_id": name, "input": "hi", "customer": name, **column} for name in ("Ada", "Bob")]
    oa.evaluate(lambda question: "Hello", cases, [*metrics, "code_empty_answer"], judge=models.judge)
    assert all(sum(f"greet {name}?" in asked for asked in models.asked) == 1 for name in ("Ada", "Bob"))


def test_placeholder_in_a_text_is_filled_from_the_case() -> None:
    """promptfoo 7861, for metrics without a judge, nested values and names that aren't columns."""
    own = [{"type": "contains", "value": "{{who}} {{year}}"}, {"type": "contains-any", "value": ["x", "{{who}}"]}]
    cases = [{"input": who, "who": who, "year": 1815, "assert": own} for who in ("Ada", "Bob")]
    result = oa.evaluate(lambda question: f"{question} 1815", cases, ["code_empty_answer"])
    assert [summary.pass_rate for summary in result.summary()] == [1.0, 1.0, 1.0]
    for value in ("{{whom}}", "{{ who | upper }}"):
        with pytest.raises(oa.ConfigError, match=r"unknown column in \{\{.*\}\}\. This case has the columns input, .*who"):
            oa.evaluate(str, [{"input": "a", "who": "b", "assert": [{"type": "contains", "value": value}]}])
    literal = oa.evaluate(str, [{"input": "a {{b}}"}], [{"code_contains": {"value": "{{b}}"}}])
    assert literal.summary()[0].pass_rate == 1.0


IMAGE = {"modality": "image", "mime_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize("metric", [{"llm_rubric": {"rubric": "It names the color."}}, "llm_relevance"])
def test_judge_is_told_of_media_that_it_does_not_receive(metric: Any, models: ScriptedModels) -> None:
    """langfuse 13799, deepeval 2284: an evaluator for text graded an image that it couldn't see."""
    message = {"role": "user", "content": TURN.input, "attachments": [IMAGE]}  # turns from spans list an image twice
    turn = oa.Turn.from_dict({**TURN.to_dict(), "attachments": [IMAGE], "messages": [message]})
    for judged, note in ((turn, "image × 1"), (TURN, None)):
        models.play({"reason": "r", "score": 75 if metric == "llm_relevance" else 1, "pass": True})
        ((_, (score,)),) = oa.score_turns([judged], [metric], judge=models.judge)
        assert (score.status, score.detail.get("media_not_shown")) == ("ok", note)
        assert ("image × 1 (not shown to you)" in models.asked[0]) is (note is not None)
