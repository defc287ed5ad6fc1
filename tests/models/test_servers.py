"""What servers really say, in the words of their documentation and of their users' reports, and what is made of it."""

from __future__ import annotations

import json
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import outbound
from otel_agenteval.core.errors import ConfigError, JudgeError
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


def test_a_draft_in_the_reasoning_is_no_reply(server: Server, judge: oa.Judge) -> None:
    server.will(choice(None, reasoning_content='They want {"score": 100}, but I think {"score": 0}'), OK)
    assert ask(judge) == {"score": 1}
    assert len(server.requests) == 2


def test_reasoning_counts_for_nothing_beside_a_reply(server: Server, judge: oa.Judge) -> None:
    server.will(choice('{"score": 3}', reasoning_content='{"score": 100}'))
    assert ask(judge) == {"score": 3}


@pytest.mark.parametrize(
    "text",
    [
        'The user wants {"score": 100}.\n```json\n{"score": 100}\n```\nNo.</think>\n\n{"score": 4}',  # the prompt began the thought
        '[THINK]maybe ```json\n{"score": 100}\n```[/THINK]{"score": 4}',
        '<thinking>{"score": 100}</thinking>\n{"score": 4}',
    ],
)
def test_a_thought_that_the_server_left_in_is_passed_over(text: str, server: Server, judge: oa.Judge) -> None:
    server.will(choice(text))
    assert ask(judge) == {"score": 4}


@pytest.mark.parametrize(
    "text",
    [
        '{"reason": "it ends with </think> and {\\"score\\": 100}", "score": 4}',
        'Verdict:\n```json\n{"reason": "</think>{\\"score\\": 100}", "score": 4}\n```',
    ],
)
def test_the_end_of_a_thought_that_a_verdict_quotes_is_none(text: str, server: Server, judge: oa.Judge) -> None:
    server.will(choice(text))
    assert ask(judge)["score"] == 4


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


def test_a_choice_that_failed_midway_may_go_well_the_next_time(server: Server, judge: oa.Judge) -> None:
    failed = {"finish_reason": "error", "error": {"code": 502, "message": "lost"}, "message": {"content": '{"score": 9}'}}
    server.will({"choices": [failed]})
    assert error_of(judge).error_type == "server_error"


def test_a_response_that_failed_is_not_taken_for_an_empty_reply(server: Server, judge_of: Any) -> None:
    server.will({"status": "failed", "output": [], "error": {"code": "server_error", "message": "The model failed."}})
    assert error_of(judge_of("responses/m-1")).error_type == "server_error"
    assert len(server.requests) == 1


@pytest.mark.parametrize("choices", [[], None, [{"finish_reason": "stop"}]])
def test_an_answer_without_a_choice_is_no_reply(choices: Any, server: Server, judge: oa.Judge) -> None:
    server.will({"choices": choices, "usage": None})
    assert error_of(judge).error_type == "invalid_answer"


# --- what does not fit, what cannot be, who does not pay


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "the request exceeds the available context size, try increasing it"),  # llama.cpp
        (500, "Context size has been exceeded."),  # the same, from another place
        (200, "the request exceeds the available context size. try increasing the context size or enable context shift"),
        (500, "input is too large to process. increase the physical batch size"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),  # Gemini
        (400, "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"),  # Anthropic
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),  # vLLM
        (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),  # xAI
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


@pytest.mark.parametrize("words", ["insufficient_quota", "my prompt is too long", "content_filter"])
def test_words_of_the_question_that_a_refusal_quotes_prove_nothing(words: str, server: Server, judge: oa.Judge) -> None:
    """As FastAPI does it, and what is built with it."""
    server.answering = lambda request: Response({"detail": [{"type": "value_error", "input": request.body}]}, 400)
    with pytest.raises(JudgeError) as caught:
        judge.ask("relevance", "Judge it.", {"answer": f"It said: {words.upper()}"}, "{}")
    assert caught.value.error_type == "http_400"


def test_a_rate_that_is_called_a_quota_is_a_rate(server: Server, judge: oa.Judge, sleeps: list[float]) -> None:
    """Gemini says the same words for a quota of a minute."""
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
        ({"prompt_tokens": 90, "completion_tokens": 10, "prompt_tokens_details": None, "total_tokens": None}, (90, 10, None)),
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
        (413, {"code": 20042, "message": "input batch size 35 > maximum allowed batch size 8", "data": None}),  # SiliconFlow
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
    assert embedder.embed(texts) == [[float(number), 1.0] for number in range(35)]
    refused = sum(len(request.body["input"]) > 8 for request in server.requests)
    assert refused == 2  # 35, 17
    embedder.embed(texts)
    assert sum(len(request.body["input"]) > 8 for request in server.requests) == refused  # it is remembered


def test_one_text_that_is_refused_is_an_error(server: Server, embedder: oa.Embedder) -> None:
    server.answering = lambda _: Response({"error": "batch size 1 > maximum allowed batch size 0"}, 413)
    with pytest.raises(JudgeError, match="413"):
        embedder.embed(["a", "b"])
    assert [len(request.body["input"]) for request in server.requests] == [2, 1]


# --- addresses, proxies, certificates


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages/", "/v1/embeddings", "/v1/responses"])
def test_an_address_that_goes_too_far_is_refused_with_what_is_wanted(path: str) -> None:
    with pytest.raises(ConfigError, match="API's version"):
        oa.Judge(f"http://127.0.0.1:1{path}", "m-1")


def test_an_address_without_its_version_is_explained(server: Server) -> None:
    server.will(404)
    judge = oa.Judge(server.url.removesuffix("/v1"), "m-1")
    assert "base_url must end with the API's version" in str(error_of(judge))
    judge.close()


def test_a_slash_at_the_end_of_an_address_makes_no_difference(server: Server) -> None:
    server.will(OK)
    judge = oa.Judge(f"{server.url}/", "m-1")
    ask(judge)
    judge.close()
    assert server.requests[0].path == "/v1/chat/completions"


def test_a_proxy_may_be_named_without_a_scheme(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, server.url.removesuffix("/v1").removeprefix("http://"))
    server.will(OK)
    judge = oa.Judge("http://models.example/v1", "m-1")
    assert ask(judge) == {"score": 1}
    judge.close()
    assert server.requests[0].path == "http://models.example/v1/chat/completions"


def test_a_proxy_that_needs_another_package_says_which(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    for name in ("ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:1080")
    judge = oa.Judge("http://models.example/v1", "m-1")
    assert "httpx[socks]" in str(error_of(judge))
    judge.close()


def test_a_certificate_that_is_not_trusted_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps(OK).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests print nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        outbound._read_trusted.cache_clear()
        judge = oa.Judge(f"https://127.0.0.1:{http.server_port}/v1", "m-1", KEY, sleep=lambda _: None)
        found = error_of(judge)
        assert found.error_type == "unreachable"
        assert "certificate isn't trusted" in str(found)
        assert "SSL_CERT_FILE" in str(found)
        judge.close()
        outbound._read_trusted.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        judge = oa.Judge(f"https://127.0.0.1:{http.server_port}/v1", "m-1", KEY, sleep=lambda _: None)
        assert ask(judge) == {"score": 1}
        judge.close()
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
