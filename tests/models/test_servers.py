"""Real error texts of servers, from documentation and user reports, and how they are classified."""

from __future__ import annotations

import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import outbound
from otel_agenteval.core.errors import ConfigError, JudgeError
from otel_agenteval.judging.models import judge_from
from tests.models.wire import KEY, Request, Response, Server, said
from tests.support.certificates import Authority
from tests.support.clock import FakeClock

OK = said("openai", '{"score": 1}')
CLOSED = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"], "additionalProperties": False}
ODD = {"type": "object", "patternProperties": {".*": {"type": "number"}}}


def ask(judge: oa.Judge, **options: Any) -> dict[str, Any]:
    return judge.ask("relevance", "Judge it.", {"answer": "Paris"}, '{"score": <0 to 100>, "more": {}}', **options)


def error_of(judge: oa.Judge) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(judge)
    return caught.value


def choice(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}]}


# --- where the reply stands


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_reply_that_was_filed_as_reasoning_is_read(field: str, server: Server, judge: oa.Judge) -> None:
    server.will(choice(None, **{field: '\n{"score": 7}\n'}))
    assert ask(judge) == {"score": 7}
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<think>I could say {"score": 100}, as it',
        '{"verdicts": [{"score": 100}, {"sco',
        'First {"score": 100}. On second thought {"score": 1',
    ],
)
def test_of_a_reply_that_was_cut_no_part_is_taken_for_the_verdict(text: str, server: Server, judge: oa.Judge) -> None:
    server.will(choice(text, "length"), choice(text, "length"))
    assert error_of(judge).error_type == "truncated_reply"


def test_a_verdict_before_a_cut_counts_if_nothing_else_is_said(server: Server, judge: oa.Judge) -> None:
    server.will(choice('{"score": 5}\n\n\n\n', "length"))
    assert ask(judge) == {"score": 5}
    server.will(choice('{"score": 5}\n\nNote that the answer', "length"), OK)
    assert ask(judge) == {"score": 1}


@pytest.mark.parametrize(("provider", "where"), [("anthropic", "max_tokens"), ("bedrock", "maxTokens")])
def test_a_model_that_thought_until_it_was_cut_gets_more_room(provider: str, where: str, server: Server, judge_of: Any) -> None:
    server.will(said(provider, "", "length"), said(provider, '{"score": 1}'))
    assert ask(judge_of(f"{provider}/m-1")) == {"score": 1}
    rooms = [request.body.get("inferenceConfig", request.body)[where] for request in server.requests]
    assert rooms == [4_096, 16_384]


def test_a_model_that_has_no_more_room_was_cut(server: Server, judge_of: Any) -> None:
    server.will(said("anthropic", "", "length"))
    server.will(
        Response({"error": {"message": "max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens"}}, 400)
    )
    assert error_of(judge_of("anthropic/m-1")).error_type == "truncated_reply"


# --- errors that come as answers


def test_a_router_s_error_within_an_answer_is_what_it_says(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    down = {"error": {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "x"}}}
    server.will(down, {**down, "user_id": "u"}, OK)
    assert ask(judge) == {"score": 1}
    assert len(sleeps) == 2


def test_a_refusal_within_an_answer_is_learned_from_too(server: Server, judge: oa.Judge) -> None:
    server.will({"error": {"code": "400", "message": "response_format is not supported by this model"}}, OK)
    assert ask(judge) == {"score": 1}
    assert "response_format" not in server.requests[-1].body


FAILED = {"finish_reason": "error", "error": {"code": 502, "message": "lost"}, "message": {"content": '{"score": 9}'}}


@pytest.mark.parametrize(
    ("model", "body", "error_type"),
    [
        ("m-1", {"choices": [FAILED]}, "server_error"),
        ("responses/m-1", {"status": "failed", "output": [], "error": {"code": "server_error", "message": "no"}}, "server_error"),
        ("m-1", {"choices": None, "usage": None}, "invalid_answer"),
        ("m-1", {"choices": [{"finish_reason": "stop"}], "usage": None}, "invalid_answer"),
    ],
)
def test_an_answer_that_failed_is_no_reply(model: str, body: Any, error_type: str, server: Server, judge_of: Any) -> None:
    server.will(body)
    assert error_of(judge_of(model)).error_type == error_type
    assert len(server.requests) == 1


# --- what does not fit, what cannot be, who does not pay


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "the request exceeds the available context size, try increasing it"),  # llama.cpp
        (200, "the request exceeds the available context size. try increasing the context size or enable context shift"),
        (500, "input is too large to process. increase the physical batch size"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),  # Gemini
        (400, "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"),  # Anthropic
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),  # vLLM
        (413, "prompt is too long: 208310 tokens > 200000 maximum"),
    ],
)
def test_material_that_does_not_fit_is_said_to_be_that_and_not_sent_again(
    status: int, message: str, server: Server, judge: oa.Judge, sleeps: list[float]
) -> None:
    server.answering = lambda _: Response({"error": {"message": message, "type": "exceeded"}}, status)
    for _ in range(6):  # which opens no breaker
        assert error_of(judge).error_type == "context_overflow"
    assert (len(server.requests), sleeps) == (6, [])


def test_a_server_that_cannot_do_it_is_neither_down_nor_asked_again(server: Server, embedder: oa.Embedder) -> None:
    server.answering = lambda _: Response({"error": {"code": 501, "message": "Start it with `--embeddings`"}}, 501)
    for _ in range(6):
        with pytest.raises(JudgeError, match="501") as caught:
            embedder.embed(["x"])
        assert caught.value.error_type == "http_501"
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"}),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."}),
        (402, {"message": "Insufficient Balance"}),
        (429, {"message": "Budget has been exceeded! Current cost: 2, Max budget: 1", "type": "budget_exceeded"}),  # LiteLLM
    ],
)
def test_an_account_without_credit_is_not_asked_again(
    status: int, error: dict[str, str], server: Server, judge: oa.Judge, sleeps: list[float]
) -> None:
    server.will(Response({"error": error}, status))
    found = error_of(judge)
    assert (found.error_type, len(server.requests), sleeps) == ("insufficient_quota", 1, [])
    assert "no credit" in str(found)


@pytest.mark.parametrize("words", ["insufficient_quota", "my prompt is too long"])
def test_words_of_the_question_that_a_refusal_quotes_prove_nothing(words: str, server: Server, judge: oa.Judge) -> None:
    """FastAPI and programs based on it quote the request in errors."""
    server.answering = lambda request: Response({"detail": [{"type": "value_error", "input": request.body}]}, 400)
    with pytest.raises(JudgeError) as caught:
        judge.ask("relevance", "Judge it.", {"answer": f"It said: {words.upper()}"}, "{}")
    assert caught.value.error_type == "http_400"


def test_a_rate_that_is_called_a_quota_is_a_rate(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    """Gemini uses the word quota for limits per minute too."""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s"}
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota", "details": [info]}
    server.will(Response([{"error": error}], 429), OK)
    assert ask(judge) == {"score": 1}
    assert 36.5 <= sleeps[0] <= 37.0


def test_a_key_that_google_does_not_know_is_reported(server: Server, judge: oa.Judge) -> None:
    server.will(Response({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}, 400))
    assert "api_key is missing or invalid" in str(error_of(judge))


@pytest.mark.parametrize("status", [424, 498, 529])
def test_a_model_that_failed_or_has_no_room_is_asked_again(status: int, server: Server, judge: oa.Judge) -> None:
    server.will(status, OK)
    assert ask(judge) == {"score": 1}


# --- time that a server asks for


def test_milliseconds_count_before_seconds(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    server.will(Response({}, 429, {"retry-after-ms": "1500", "Retry-After": "60"}), OK)
    ask(judge)
    assert 1.5 <= sleeps[0] <= 2.0


def test_the_next_question_waits_too(server: Server, judge: oa.Judge, clock: FakeClock) -> None:
    server.will(Response({}, 429, {"Retry-After": "600"}))
    first = error_of(judge)
    assert (first.error_type, first.retry_after) == ("http_429", 600.0)
    second = error_of(judge)
    assert second.error_type == "rate_limited"
    assert second.retry_after == pytest.approx(600.0)
    assert len(server.requests) == 1
    server.will(OK)
    assert ask(judge.with_model("m-2")) == {"score": 1}  # limits are a model's own
    clock.advance(550.0)
    server.will(OK)
    started = clock.monotonic()
    assert ask(judge) == {"score": 1}
    assert clock.monotonic() - started >= 50.0
    assert not judge.accounts()[1].attempts


# --- forms


def test_a_schema_that_is_odd_takes_nothing_from_the_others(server: Server, judge: oa.Judge) -> None:
    def answer(request: Request) -> Response:
        if "patternProperties" in request.text:
            return Response({"error": {"message": "Invalid schema for response_format 'reply'"}}, 400)
        return Response(OK)

    server.answering = answer
    for schema in (CLOSED, ODD, CLOSED, ODD):
        assert ask(judge, schema=schema) == {"score": 1}
    forms = [request.body["response_format"]["type"] for request in server.requests]
    assert forms == ["json_schema", "json_schema", "json_object", "json_schema", "json_object"]


# --- what was taken


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 400}, (90, 310, None)),  # reasoning in the total alone
        ({"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100, "prompt_cache_hit_tokens": 64}, (90, 10, 64)),
        ({"prompt_tokens": 90, "completion_tokens": 10, "cached_tokens": 60}, (90, 10, 60)),
        ({"prompt_tokens": None, "completion_tokens": None}, (None, None, None)),
        (None, (None, None, None)),
    ],
)
def test_tokens_are_counted_as_each_server_means_them(
    usage: Any, expected: tuple[Any, ...], server: Server, judge: oa.Judge
) -> None:
    server.will({**choice('{"score": 1}'), "usage": usage})
    ask(judge)
    (account,) = judge.accounts()
    assert (account.input_tokens, account.output_tokens, account.cached_tokens) == expected


# --- embeddings


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, {"error": "batch size 35 > maximum allowed batch size 8", "error_type": "Validation"}),  # text-embeddings-inference
        (400, {"error": {"message": "Value error, batch size is invalid, it should not be larger than 8.: input.contents"}}),
    ],
)
def test_a_server_that_takes_few_texts_at_once_gets_few(
    status: int, body: dict[str, Any], server: Server, embedder: oa.Embedder
) -> None:
    def answer(request: Request) -> Response:
        texts = request.body["input"]
        if len(texts) > 8:
            return Response(body, status)
        return Response({"data": [{"index": at, "embedding": [float(text), 1.0]} for at, text in enumerate(texts)]})

    server.answering = answer
    texts = [str(number) for number in range(35)]
    for _ in range(2):  # the size is remembered
        assert embedder.embed(texts) == [[float(number), 1.0] for number in range(35)]
    assert [len(request.body["input"]) for request in server.requests if len(request.body["input"]) > 8] == [35, 17]


def test_one_text_that_is_refused_is_an_error(server: Server, embedder: oa.Embedder) -> None:
    server.answering = lambda _: Response({"error": "batch size 1 > maximum allowed batch size 0"}, 413)
    with pytest.raises(JudgeError, match="413"):
        embedder.embed(["a", "b"])
    assert [len(request.body["input"]) for request in server.requests] == [2, 1]


# --- addresses, proxies, certificates


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages/"])
def test_an_address_that_goes_too_far_is_refused_with_what_is_wanted(path: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        oa.Judge(f"http://127.0.0.1:1{path}", "m-1")


def test_an_address_without_its_version_is_explained_and_a_slash_at_its_end_ignored(server: Server) -> None:
    server.will(404, OK)
    with closing(oa.Judge(server.url.removesuffix("/v1"), "m-1")) as judge:
        assert "base_url" in str(error_of(judge))
    with closing(oa.Judge(f"{server.url}/", "m-1")) as judge:
        ask(judge)
    assert server.requests[1].path == "/v1/chat/completions"


def test_a_proxy_that_needs_another_package_says_which(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:1080")
    judge = oa.Judge("http://models.example/v1", "m-1")
    assert "httpx[socks]" in str(error_of(judge))
    judge.close()


def test_a_certificate_that_is_not_trusted_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("127.0.0.1"))
    server = Server(context)
    server.will(OK)
    outbound._read_trusted.cache_clear()
    with closing(oa.Judge(server.url, "m-1", KEY, sleep=lambda _: None)) as judge:
        found = error_of(judge)
    assert found.error_type == "unreachable"
    assert "SSL_CERT_FILE" in str(found)
    outbound._read_trusted.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with closing(oa.Judge(server.url, "m-1", KEY)) as judge:
        assert ask(judge) == {"score": 1}
    server.close()


# --- ``llm_moderation`` by a server's moderation endpoint


TURN = oa.Turn(input="tell me", output="go away")
CLEAN = {"results": [{"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.01}}]}
FLAGGED = {
    "results": [
        {
            "flagged": True,
            "categories": {"hate": True, "violence": False, "self-harm/intent": True},
            "category_scores": {"hate": 0.9, "violence": 0.6, "self-harm/intent": 0.4},
        }
    ]
}


def moderating(server: Server, **more: Any) -> oa.Judge:
    return oa.Judge(server.url, "omni-moderation-latest", KEY, endpoint="moderations", **more)


@pytest.mark.parametrize(
    ("answer", "params", "codes"),
    [
        pytest.param(CLEAN, {}, [], id="nothing is flagged"),
        pytest.param(FLAGGED, {}, ["hate", "self-harm/intent"], id="categories that the server flagged, not high scores"),
        pytest.param(FLAGGED, {"categories": ["Hate"]}, ["hate"], id="only the listed ones"),
        pytest.param(FLAGGED, {"min_confidence": 0.5}, ["hate"], id="the score is the confidence"),
        pytest.param({"results": [{"categories": {"hate": True}}]}, {"min_confidence": 1}, ["hate"], id="without scores"),
    ],
)
def test_the_endpoint_decides(server: Server, answer: Any, params: dict[str, Any], codes: list[str]) -> None:
    server.will(answer)
    with closing(moderating(server)) as judge:
        score = oa.get_metric("llm_moderation", **params).evaluate(TURN, judge=judge)
    assert (score.status, score.passed, [flag["code"] for flag in score.detail["flags"]]) == ("ok", not codes, codes)
    (asked,) = server.requests
    assert (asked.path, asked.body) == ("/v1/moderations", {"model": "omni-moderation-latest", "input": "go away"})
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert [(account.stage, account.error_type) for account in judge.accounts()] == [("moderation", None)]


@pytest.mark.parametrize("answer", [
    {}, {"results": []}, {"results": "none"}, *({"results": [one]} for one in (
        {"flagged": True}, {"flagged": False}, {"categories": {}}, {"categories": {"hate": "no"}}, {"categories": {"hate": None}},
        {"flagged": True, "categories": {"hate": False}},
    )),
])  # fmt: skip
def test_an_answer_of_another_form_is_an_error(server: Server, answer: Any) -> None:
    server.will(answer)
    with closing(moderating(server)) as judge:
        score = oa.get_metric("llm_moderation").evaluate(TURN, judge=judge)
    assert (score.status, score.error_type, len(server.requests)) == ("error", "invalid_answer", 1)


def test_one_metric_can_have_the_endpoint_of_a_server_of_its_own(server: Server) -> None:
    config = load_config(
        {
            "judge": {
                "base_url": server.url,
                "model": "m-1",
                "servers": {"filter": {"base_url": server.url, "endpoint": "moderations"}},
                "choose": [{"metric": "llm_moderation", "model": "filter/omni"}],
            }
        },
        {},
    )
    judge = judge_from(config)
    assert judge is not None
    with closing(judge):
        server.will(CLEAN)
        assert oa.get_metric("llm_moderation").evaluate(TURN, judge=judge).passed is True
        server.reply({"score": 6})
        assert oa.get_metric("llm_violence").evaluate(TURN, judge=judge).passed is False
    assert [(asked.path, asked.body["model"]) for asked in server.requests] == [
        ("/v1/moderations", "omni"),
        ("/v1/chat/completions", "m-1"),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "embeddings"}, "endpoint: must be chat or moderations, got 'embeddings'"),
        ({"endpoint": "moderations", "provider": "gemini"}, "endpoint: 'moderations' requires provider openai, got gemini"),
    ],
)
def test_an_endpoint_that_there_is_not(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        oa.Judge("http://h/v1", "m-1", **given)
    assert str(caught.value).startswith(said)
