"""Requests and replies in every provider's format."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import ConfigError, JudgeError
from tests.models.wire import KEY, PATHS, Response, Server, said

PROVIDERS = sorted(PATHS)
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"], "additionalProperties": False}
PNG = base64.b64encode(b"\x89PNG").decode()
PICTURE = f"data:image/png;base64,{PNG}"


def ask(judge: oa.Judge, **options: Any) -> dict[str, Any]:
    return judge.ask("relevance", "Judge it.", {"answer": "Paris, naïve 🎈"}, '{"score": <0 to 100>, "more": {}}', **options)


def error_of(judge: oa.Judge, **options: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(judge, **options)
    return caught.value


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_question_goes_out_and_the_reply_comes_back(provider: str, server: Server, judge_of: Any) -> None:
    server.reply({"score": 90}, provider=provider)
    judge = judge_of(f"{provider}/m-1")
    assert (judge.provider, judge.model) == (provider, "m-1")
    assert ask(judge) == {"score": 90}
    (request,) = server.requests
    assert request.path.replace("%3A", ":") == PATHS[provider]
    for words in ("Judge it.", "Paris, naïve 🎈", "0 to 100", "careful evaluator", '"temperature": 0.0'):
        assert words in request.text
    assert any(request.headers.get(name, "").endswith(KEY) for name in ("authorization", "x-api-key", "x-goog-api-key"))
    assert KEY not in request.path + request.text
    (account,) = judge.accounts()
    assert (account.input_tokens, account.output_tokens, account.cached_tokens) == (100, 20, 40)
    assert (account.stage, account.provider, account.model, account.attempts) == ("relevance", provider, "m-1", 1)
    assert account.error_type is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_usage_that_is_not_given_stays_unknown(provider: str, server: Server, judge_of: Any) -> None:
    server.will(said(provider, '{"score": 1}', usage=False))
    judge = judge_of("m-1", provider=provider, prices={"m-1": {"input": 1.0, "output": 1.0}})
    ask(judge)
    (account,) = judge.accounts()
    assert (account.input_tokens, account.output_tokens, account.cost_usd) == (None, None, None)


TEXT, REFUSED = {"type": "text", "text": '{"score": 100}'}, {"type": "refusal", "refusal": "No."}
RATING = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}


def choice(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        *((provider, said(provider, "", "refusal")) for provider in PROVIDERS),
        ("openai", choice('{"score": 100}', refusal="No.")),
        ("openai", choice([TEXT, REFUSED])),
        ("openai", choice("No.", "refusal")),  # a router's
        ("anthropic", {"content": [TEXT], "stop_reason": "refusal"}),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}),
        ("gemini", {"candidates": [{"content": {"parts": [TEXT]}, "finishReason": "OTHER", "safetyRatings": [RATING]}]}),
        ("gemini", {"candidates": [{"content": {}, "finishReason": "PROHIBITED_CONTENT"}]}),
        ("bedrock", {"output": {"message": {"content": []}}, "stopReason": "content_filtered"}),
        ("bedrock", {"output": {"message": {"content": []}}, "stopReason": "refusal"}),
    ],
)
def test_a_refusal_is_an_error_of_its_own(provider: str, body: dict[str, Any], server: Server, judge_of: Any) -> None:
    server.will(body)
    score = oa.get_metric("llm_relevance").evaluate(oa.Turn(input="q", output="a"), judge=judge_of("m-1", provider=provider))
    assert (score.status, score.error_type, score.value, score.passed) == ("error", "refusal", None, None)
    assert len(server.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_that_was_cut_is_said_to_be(provider: str, server: Server, judge_of: Any) -> None:
    server.will(said(provider, '{"score": 9', "length"), said(provider, '{"score": 9', "length"))
    assert error_of(judge_of("m-1", provider=provider)).error_type == "truncated_reply"
    assert len(server.requests) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_that_cannot_be_read_is_repaired_in_the_same_conversation(provider: str, server: Server, judge_of: Any) -> None:
    server.reply("I think it is fine.", {"score": 5}, "", {"score": 6}, provider=provider)
    judge = judge_of("m-1", provider=provider)
    assert ask(judge) == {"score": 5}
    again = server.requests[1].text
    assert "I think it is fine." in again
    assert "could not be read" in again
    assert [account.repair for account in judge.accounts()] == [False, True]
    assert ask(judge) == {"score": 6}
    assert '""' not in server.requests[3].text


@pytest.mark.parametrize(
    ("provider", "key"),
    [
        ("openai", "response_format"), ("responses", "text"), ("anthropic", "output_config"), ("bedrock", "outputConfig"),
        ("gemini", "generationConfig"),
    ],
)  # fmt: skip
def test_a_schema_is_sent_where_the_provider_takes_it(provider: str, key: str, server: Server, judge_of: Any) -> None:
    server.reply({"score": 1}, provider=provider)
    ask(judge_of("m-1", provider=provider), schema=SCHEMA)
    sent = json.dumps(server.requests[0].body[key]).replace("\\", "")
    assert json.dumps(SCHEMA) in sent
    assert ("responseJsonSchema" if provider == "gemini" else "json_schema") in sent


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_reason_comes_first_in_the_schema_that_is_sent(provider: str, server: Server, judge_of: Any) -> None:
    server.reply({"reason": "r", "score": 1}, provider=provider)
    form = '{"reason": "<why>", "score": <0 to 1>, "also": [{"statement": "<s>", "reason": "<why>", "ok": <true or false>}]}'
    judge_of("m-1", provider=provider).ask("x", "Judge it.", {"answer": "a"}, form)
    sent = json.dumps(server.requests[0].body).replace("\\", "")
    sent = sent[sent.index('"properties"') :]
    places = [sent.index(f'"{key}": {{') for key in ("reason", "score", "also", "statement", "ok")]
    assert places == sorted(places)
    assert '"required": ["reason", "score", "also"]' in sent
    if provider == "gemini":
        assert '"propertyOrdering": ["reason", "score", "also"]' in sent
        assert '"propertyOrdering": ["statement", "reason", "ok"]' in sent


@pytest.mark.parametrize(
    ("provider", "mode"),
    [
        ("openai", '"response_format": {"type": "json_object"}'),
        ("responses", '"text": {"format": {"type": "json_object"}}'),
        ("gemini", '"responseMimeType": "application/json"'),
    ],
)
def test_without_a_schema_the_json_mode_is_used(provider: str, mode: str, server: Server, judge_of: Any) -> None:
    server.reply({"score": 1}, provider=provider)
    ask(judge_of("m-1", provider=provider))
    assert mode in server.requests[0].text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_picture_is_sent_and_an_opaque_id_is_named(provider: str, server: Server, judge_of: Any) -> None:
    server.reply({"score": 1}, {"score": 1}, provider=provider)
    judge = judge_of("m-1", provider=provider)
    ask(judge, media=[PICTURE])
    assert PNG in server.requests[0].text
    assert "png" in server.requests[0].text
    ask(judge, media=["frame-17"])
    assert "frame-17" in server.requests[1].text.partition("<<<MEDIA ")[2]
    assert "image" not in server.requests[1].text


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic", "gemini"])
def test_an_address_is_passed_on_and_never_fetched(provider: str, server: Server, judge_of: Any) -> None:
    server.reply({"score": 1}, provider=provider)
    uri = f"{server.url}/cat.png"
    ask(judge_of("m-1", provider=provider), media=[uri])
    assert uri in server.requests[0].text
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("uri", "error_type"),
    [
        ("FILE:/etc/passwd", "media_not_allowed"), ("gs://bucket/x.png", "media_not_allowed"), ("javascript:alert(1)", "media_not_allowed"),
        ("data:image/png;base64,%%%", "invalid_media"), ("data:image/png;base64,", "invalid_media"),
        ("data:image/png", "invalid_media"),
    ],
)  # fmt: skip
def test_media_are_refused_before_anything_is_sent(uri: str, error_type: str, server: Server, judge: oa.Judge) -> None:
    error = error_of(judge, media=[uri])
    assert error.error_type == error_type
    assert uri not in str(error)
    assert server.requests == []


def test_a_data_uri_without_base64_is_read(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1})
    ask(judge, media=["data:image/svg+xml,%3Csvg/%3E"])
    assert base64.b64encode(b"<svg/>").decode() in server.requests[0].text


@pytest.mark.parametrize(
    ("provider", "uri"),
    [
        ("openai", "data:application/zip;base64,AAAA"), ("openai", "http://h/speech.wav"), ("responses", "data:video/mp4;base64,AAAA"),
        ("anthropic", "data:audio/wav;base64,AAAA"), ("bedrock", "https://h/cat.png"),
    ],
)  # fmt: skip
def test_media_that_a_provider_has_no_place_for_are_an_error(provider: str, uri: str, server: Server, judge_of: Any) -> None:
    assert error_of(judge_of("m-1", provider=provider), media=[uri]).error_type == "unsupported_media"
    assert server.requests == []


def test_sound_and_film_for_chat_completions(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1})
    ask(judge, media=["data:audio/mpeg;base64,AAAA", "data:video/mp4;base64,BBBB"])
    parts = server.requests[0].body["messages"][1]["content"][1:]
    assert parts == [
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,BBBB"}},
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("body", [{}, {"choices": 5, "output": 5, "content": "x", "candidates": {}}])
def test_an_answer_of_another_form_is_an_error(provider: str, body: Any, server: Server, judge_of: Any) -> None:
    server.will(body)
    assert error_of(judge_of("m-1", provider=provider)).error_type == "invalid_answer"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff\xfe"])
def test_garbage_is_an_error(body: bytes, server: Server, judge: oa.Judge) -> None:
    server.will(Response(body))
    assert error_of(judge).error_type == "invalid_answer"


@pytest.mark.parametrize("count", [-1, "12", True, 10**30])
def test_a_count_that_cannot_be_is_unknown(count: Any, server: Server, judge: oa.Judge) -> None:
    server.will({**said("openai", '{"score": 1}'), "usage": {"prompt_tokens": count, "completion_tokens": 5}})
    ask(judge)
    assert judge.accounts()[0].input_tokens is None
    assert judge.total().input_tokens == 0


def test_content_in_parts_is_put_together(server: Server, judge: oa.Judge) -> None:
    parts = [{"type": "text", "text": '{"score": '}, {"type": "text", "text": "3}"}]
    server.will({"choices": [{"message": {"content": parts}}]})
    assert ask(judge) == {"score": 3}


# --- the choice of a provider


@pytest.mark.parametrize(
    ("model", "provider", "meant"),
    [
        ("qwen/qwen3", None, ("openai", "qwen/qwen3")),
        ("anthropic/claude-x", None, ("anthropic", "claude-x")),
        ("openai/", None, ("openai", "openai/")),
        ("openai/gpt-oss-20b", "openai", ("openai", "openai/gpt-oss-20b")),
        ("anthropic/claude-x", "openai", ("openai", "anthropic/claude-x")),
    ],
)
def test_the_model_s_beginning_says_the_provider_unless_it_is_given(model: str, provider: str, meant: Any, judge_of: Any) -> None:
    judge = judge_of(model, provider=provider)
    assert (judge.provider, judge.model) == meant


@pytest.mark.parametrize(
    ("options", "said"), [({"provider": "openia"}, "^provider: .*openai.*openia"), ({"model": ""}, "^model: ")]
)
def test_a_choice_that_cannot_be_is_refused(options: dict[str, Any], said: str, judge_of: Any) -> None:
    with pytest.raises(ConfigError, match=said):
        judge_of(**options)


def test_another_model_shares_the_server_and_its_account(server: Server, judge: oa.Judge) -> None:
    server.reply({"score": 1}, {"score": 2})
    other = judge.with_model("m-2")
    assert ask(judge) == {"score": 1}
    assert ask(other) == {"score": 2}
    assert [request.body["model"] for request in server.requests] == ["m-1", "m-2"]
    assert [account.model for account in judge.accounts()] == ["m-1", "m-2"]
    with pytest.raises(ConfigError, match="provider openai"):
        judge.with_model("anthropic/claude-x")
