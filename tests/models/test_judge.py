"""Judge calls: supported settings, cache, usage accounts, secrets, and no instrumentation of the calls."""

from __future__ import annotations

import json
import traceback
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import ConfigError, JudgeError
from otel_agenteval.judging.models import transport
from tests.models.wire import KEY, Request, Response, Server, said
from tests.support.clock import FakeClock

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}
SECRET_TEXT = "the patient's name is Erika"


def ask(judge: oa.Judge, text: str = "Paris", **options: Any) -> dict[str, Any]:
    return judge.ask("relevance", "Judge it.", {"answer": text}, '{"score": <0 to 100>, "more": {}}', **options)


def forms(server: Server) -> list[str]:
    return [request.body.get("response_format", {}).get("type", "plain") for request in server.requests]


# --- manners


def refusing(server: Server, refused: dict[str, str], status: int = 400) -> None:
    """Make the server refuse some settings, with its own error texts."""

    def answer(request: Request) -> Response:
        for words, message in refused.items():
            if words in json.dumps(request.body):
                return Response({"error": {"message": message}}, status)
        return Response(said("openai", '{"score": 1}'))

    server.answering = answer


@pytest.mark.parametrize(
    ("status", "message"), [(400, "Invalid value: 'json_schema'"), (422, "unsupported"), (400, "Bad Request")]
)
def test_a_server_that_takes_no_schema_is_asked_for_json_and_that_is_remembered(
    status: int, message: str, server: Server, judge: oa.Judge
) -> None:
    refusing(server, {"json_schema": message}, status)
    assert ask(judge, schema=SCHEMA) == ask(judge, schema=SCHEMA) == {"score": 1}
    assert forms(server) == ["json_schema", "json_object", "json_object"]


def test_a_server_that_takes_no_response_format_is_asked_without(server: Server, judge: oa.Judge) -> None:
    refusing(server, {"response_format": "'response_format' is not known here"})
    assert ask(judge) == ask(judge) == ask(judge, schema=SCHEMA) == {"score": 1}
    assert forms(server) == ["json_object", "plain", "plain", "plain"]


def test_temperature_and_form_can_be_refused(server: Server, judge: oa.Judge) -> None:
    refusing(server, {"temperature": "Unsupported value: 'temperature'", "response_format": "no response_format"})
    assert ask(judge) == ask(judge)
    assert ["temperature" in request.body for request in server.requests] == [True, False, False, False]
    assert forms(server) == ["json_object", "json_object", "plain", "plain"]


@pytest.mark.parametrize("message", ["the key is disabled", "This model's maximum context length is 8192 tokens"])
def test_a_refusal_about_something_else_is_not_repeated(message: str, server: Server, judge: oa.Judge) -> None:
    server.will(Response({"error": {"message": message}}, 400))
    with pytest.raises(JudgeError):
        ask(judge)
    assert len(server.requests) == 1


def test_what_was_accepted_before_is_not_the_reason(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1})
    ask(judge)
    server.will(Response({"error": {"message": "bad request"}}, 400))
    with pytest.raises(JudgeError):
        ask(judge)
    server.reply({"score": 1})
    ask(judge)
    assert forms(server) == ["json_object"] * 3


def test_a_server_that_refuses_everything_leaves_nothing_learned(server: Server, judge: oa.Judge) -> None:
    server.will(*[Response(b"", 400)] * 3)
    with pytest.raises(JudgeError):
        ask(judge)
    assert len(server.requests) == 3
    server.reply({"score": 1})
    ask(judge)
    assert forms(server)[-1] == "json_object"


@pytest.mark.parametrize(
    ("status", "body", "error_type"),
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "x"}}, "context_overflow"),
        (413, {"message": "prompt is too long: 250000 tokens"}, "context_overflow"),
        (400, {"error": {"code": "content_filter", "message": "x"}}, "refusal"),
        (401, {"error": "x"}, "http_401"),
        (404, {"error": "x"}, "http_404"),
        (302, {}, "http_302"),
        (200, {"error": {"message": "upstream failed"}}, "server_error"),
    ],
)
def test_a_refusal_says_its_kind(status: int, body: Any, error_type: str, server: Server, judge: oa.Judge) -> None:
    server.will(Response(body, status, {"Location": "http://127.0.0.1:9/"}))
    with pytest.raises(JudgeError) as caught:
        ask(judge)
    assert caught.value.error_type == error_type
    assert len(server.requests) == 1


# --- one call per question


def test_a_question_is_one_call_and_a_repair_is_the_only_other(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1}, "no", "still no", {"score": 9})
    assert ask(judge) == {"score": 1}
    with pytest.raises(JudgeError) as caught:
        ask(judge)
    assert caught.value.error_type == "unreadable_reply"
    assert len(server.requests) == 3


def test_a_cache_answers_the_same_question_and_can_be_cleared(server: Server, judge_of: Any) -> None:
    cache: dict[str, str] = {}
    judge = judge_of(cache=cache)
    server.reply({"score": 1}, {"score": 2}, {"score": 3}, {"score": 4})
    assert [ask(judge), ask(judge)] == [{"score": 1}] * 2
    assert ask(judge, "Rome") == {"score": 2}
    assert ask(judge.with_model("m-2")) == {"score": 3}
    judge.clear_cache()
    assert ask(judge) == {"score": 4}
    assert SECRET_TEXT not in str(cache.keys())


def test_text_that_is_no_text_is_sent_all_the_same(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1})
    assert ask(judge, "half \ud83d of a pair") == {"score": 1}


# --- accounts


def test_configured_prices_give_the_cost(server: Server, judge_of: Any) -> None:
    server.reply({"score": 1})
    judge = judge_of(prices={"m-1": {"input": 1.0, "output": 10.0, "cached_input": 0.5}})
    ask(judge)
    (account,) = judge.accounts()
    assert account.cost_usd == pytest.approx((60 * 1.0 + 40 * 0.5 + 20 * 10.0) / 1e6)
    assert account.price_source == "prices"
    assert judge.total().cost_usd == account.cost_usd


@pytest.mark.parametrize(
    "usage",
    [
        None, {"prompt_tokens": 0}, {"prompt_tokens": 10**8, "completion_tokens": 5}, {"prompt_tokens": "9", "completion_tokens": -1},
    ],
)  # fmt: skip
def test_what_a_server_miscounted_has_no_known_cost_and_budgets_are_charged_with_an_estimate(
    usage: Any, server: Server, judge_of: Any
) -> None:
    server.will({**said("openai", '{"score": 1}'), "usage": usage})
    judge = judge_of(prices={"m-1": {"input": 1.0, "output": 10.0}})
    ask(judge)
    (account,) = judge.accounts()
    assert (account.input_tokens, account.cost_usd) == (None, None)
    assert account.charge_usd is not None
    assert 0 < account.charge_usd < 0.01


def test_a_budget_is_charged_with_what_may_have_been_done_and_not_with_a_refusal(server: Server, judge_of: Any) -> None:
    judge = judge_of(prices={"m-1": {"input": 1.0, "output": 10.0}})
    server.will(said("openai", '{"score": 1}'), 401, *[Response(b"no json")] * 3)
    ask(judge)
    for _ in range(2):
        with pytest.raises(JudgeError):
            ask(judge)
    good, refused, unreadable = judge.accounts()
    assert good.charge_usd == good.cost_usd == pytest.approx((100 + 20 * 10) / 1e6)
    assert refused.charge_usd == 0.0
    assert unreadable.charge_usd is not None
    assert unreadable.charge_usd > 0


def test_a_price_is_never_invented_for_an_unknown_server(server: Server, judge_of: Any) -> None:
    server.reply({"score": 1})
    judge = judge_of("gpt-4o")
    ask(judge)
    assert (judge.accounts()[0].cost_usd, judge.accounts()[0].price_source) == (None, None)
    assert judge.total().unpriced == 1


def test_the_table_knows_public_servers() -> None:
    from otel_agenteval.judging.models.base import cost_of
    from otel_agenteval.judging.models.providers.base import TokenUsage

    cost, source = cost_of("gpt-4o-mini", "https://api.openai.com/v1", TokenUsage(1_000_000, 0, 0), {})
    assert cost == pytest.approx(0.15)
    assert source is not None
    assert source.startswith("genai-prices ")
    assert cost_of("no-such-model", "https://api.openai.com/v1", TokenUsage(1, 1, 0), {}) == (None, None)


# --- secrets


@pytest.mark.parametrize(
    ("option", "url", "key"),
    [
        *(("base_url", url, None) for url in ("http://me:hunter2@h/v1", "http://h/v1?key=hunter2", "file:///hunter2", "")),
        ("api_key", "http://h/v1", "hunter2\r\nX-Evil: 1"),
    ],
)
def test_secrets_are_not_shown_when_options_are_refused(option: str, url: str, key: str | None) -> None:
    for make in (oa.Judge, oa.Embedder):
        with pytest.raises(ConfigError, match=option) as caught:
            make(url, "m-1", key)
        assert "hunter2" not in str(caught.value)


def test_a_newline_at_a_key_s_end_does_no_harm(server: Server) -> None:
    server.reply({"score": 1})
    judge = oa.Judge(server.url, "m-1", f"{KEY}\n")
    ask(judge)
    judge.close()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "response", [500, Response(b"garbage"), Response(b"half", cut=True), Response({"error": SECRET_TEXT}, 400)]
)
def test_neither_key_nor_content_is_in_errors_or_logs(
    response: Any, server: Server, judge: oa.Judge, caplog: pytest.LogCaptureFixture
) -> None:
    server.will(*[response] * 3)
    with caplog.at_level(0), pytest.raises(JudgeError) as caught:
        ask(judge, SECRET_TEXT)
    error: BaseException | None = caught.value
    while error is not None:  # also what hangs on it
        for word in (KEY, SECRET_TEXT):
            assert word not in "".join(traceback.format_exception_only(error)) + repr(vars(error))
        assert type(error).__module__.split(".")[0] == "otel_agenteval"
        error = error.__context__
    assert KEY not in caplog.text
    assert SECRET_TEXT not in caplog.text
    assert KEY not in repr(judge) + repr(vars(judge))
    assert KEY not in repr(judge.server.transport)


# --- our own calls are no turn


def test_instrumentations_see_nothing_of_it(server: Server, judge: oa.Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import context
    from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled, is_instrumentation_enabled

    seen: list[tuple[Any, ...]] = []
    read = transport._read

    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append(
            (is_instrumentation_enabled(), is_http_instrumentation_enabled(), context.get_value("suppress_instrumentation"))
        )
        return read(*args, **kwargs)

    monkeypatch.setattr(transport, "_read", spy)
    server.reply({"score": 1})
    ask(judge)
    assert seen == [(False, False, True)]
    assert is_instrumentation_enabled()
    assert is_http_instrumentation_enabled()


# --- the embedder


def test_texts_become_vectors_in_their_order_in_one_call(server: Server, embedder: oa.Embedder) -> None:
    server.will({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}], "usage": {"prompt_tokens": 7}})
    assert embedder.embed(["a", "b", "a"]) == [[1, 0], [0, 1], [1, 0]]
    (request,) = server.requests
    assert (request.path, request.body) == ("/v1/embeddings", {"model": "e-1", "input": ["a", "b"]})
    (account,) = embedder.accounts()
    assert (account.stage, account.input_tokens, account.output_tokens) == ("embed", 7, 0)
    assert embedder.embed([]) == []
    assert repr(embedder) == f"Embedder('{server.url}', 'e-1')"
    assert embedder.total().requests == 1


def test_an_embedder_s_cache_is_by_model_and_text(server: Server) -> None:
    cache: dict[str, list[float]] = {}
    one, two = (oa.Embedder(server.url, model, cache=cache) for model in ("e-1", "e-2"))
    server.will(*[{"data": [{"embedding": [n]}]} for n in (1.0, 2.0, 3.0)])
    assert (one.embed(["a"]), one.embed(["a"]), two.embed(["a"])) == ([[1.0]], [[1.0]], [[2.0]])
    one.clear_cache()
    assert one.embed(["a"]) == [[3.0]]
    one.close()
    two.close()


@pytest.mark.parametrize(
    "body",
    [
        {}, {"data": []}, {"data": [{"embedding": []}]}, {"data": [{"embedding": [True]}]}, {"data": [5]},
        {"data": [{"embedding": [1]}, {"embedding": [2]}]},
    ],
)  # fmt: skip
def test_an_answer_without_a_vector_for_each_text_is_an_error(body: Any, server: Server, embedder: oa.Embedder) -> None:
    server.will(body)
    with pytest.raises(JudgeError) as caught:
        embedder.embed(["a"])
    assert caught.value.error_type == "invalid_answer"
    assert embedder.accounts()[0].error_type == "invalid_answer"


def test_vectors_of_different_lengths_are_an_error(server: Server, embedder: oa.Embedder) -> None:
    server.will({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]})
    with pytest.raises(JudgeError, match="different lengths"):
        embedder.embed(["a", "b"])


# --- what judges and embedders take


URL = "http://127.0.0.1:1/v1"
GIVEN: dict[str, Any] = {
    "headers": {"X-Team": "a"}, "timeout": 1.0, "deadline": 2.0, "max_concurrency": 3, "requests_per_minute": 4.0,
    "tokens_per_minute": 5.0, "prices": {"m": {"input": 1.0, "output": 1.0}},
}  # fmt: skip


@pytest.mark.parametrize("taker", [oa.Judge, oa.Embedder])
def test_what_both_take_may_be_given_as_keywords(taker: Any) -> None:
    made = taker(base_url=URL, model="m", api_key="k", cache={}, clock=FakeClock(), **GIVEN)
    server = made.server if taker is oa.Judge else made._server
    assert server.transport._timeout == 1.0
    assert server.until() - server.clock.monotonic() == 2.0
    assert server.transport._headers["X-Team"] == "a"
    assert made.priced
    assert not taker(URL, "m").priced


@pytest.mark.parametrize("taker", [oa.Judge, oa.Embedder])
def test_an_unknown_keyword_is_refused_in_the_name_of_the_class(taker: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{taker.__name__}\(\) .*timeuot"):
        taker(URL, "m", timeuot=3)


@pytest.mark.parametrize("name", ["a b", "", "X-Key\r\nY", "ключ"])
def test_header_name_is_refused_with_invalid_characters(name: str) -> None:
    with pytest.raises(oa.ConfigError, match="headers: invalid"):
        oa.Judge(URL, "m-1", headers={name: "v"})
