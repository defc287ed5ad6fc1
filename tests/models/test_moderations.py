"""``llm_moderation`` by a server's moderation endpoint in place of a question."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.judging.models import judge_from
from tests.models.wire import KEY, Server

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


def judge_of(server: Server, **more: Any) -> oa.Judge:
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
    with closing(judge_of(server)) as judge:
        score = oa.get_metric("llm_moderation", **params).evaluate(TURN, judge=judge)
    assert (score.status, score.passed, [flag["code"] for flag in score.detail["flags"]]) == ("ok", not codes, codes)
    (asked,) = server.requests
    assert (asked.path, asked.body) == ("/v1/moderations", {"model": "omni-moderation-latest", "input": "go away"})
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert [(account.stage, account.error_type) for account in judge.accounts()] == [("moderation", None)]


@pytest.mark.parametrize("answer", [{}, {"results": []}, {"results": [{"flagged": True}]}, {"results": "none"}])
def test_an_answer_of_another_form_is_an_error(server: Server, answer: Any) -> None:
    server.will(answer)
    with closing(judge_of(server)) as judge:
        score = oa.get_metric("llm_moderation").evaluate(TURN, judge=judge)
    assert (score.status, score.error_type, len(server.requests)) == ("error", "invalid_answer", 1)


def test_an_empty_response_needs_no_endpoint(server: Server) -> None:
    with closing(judge_of(server)) as judge:
        assert oa.get_metric("llm_moderation").evaluate(oa.Turn(output=""), judge=judge).passed is True
    assert server.requests == []


def test_all_other_questions_go_to_chat(server: Server) -> None:
    server.reply({"score": 1})
    with closing(judge_of(server)) as judge:
        assert oa.get_metric("llm_violence").evaluate(TURN, judge=judge).value == 1.0
    assert [asked.path for asked in server.requests] == ["/v1/chat/completions"]


def test_what_the_endpoint_said_is_kept_apart_from_what_a_model_said(server: Server) -> None:
    kept: dict[str, str] = {}
    moderation = oa.get_metric("llm_moderation")
    server.will(FLAGGED)
    with closing(judge_of(server, cache=kept)) as judge:
        assert [moderation.evaluate(TURN, judge=judge).passed for _ in range(2)] == [False, False]
    server.reply({"flags": []})
    with closing(oa.Judge(server.url, "omni-moderation-latest", KEY, cache=kept)) as judge:
        assert moderation.evaluate(TURN, judge=judge).passed is True
    assert [asked.path for asked in server.requests] == ["/v1/moderations", "/v1/chat/completions"]


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


def test_the_judge_itself_can_have_the_endpoint(server: Server) -> None:
    judge = judge_from(load_config({"judge": {"base_url": server.url, "model": "omni", "endpoint": "moderations"}}, {}))
    assert judge is not None
    server.will(FLAGGED)
    with closing(judge):
        assert oa.get_metric("llm_moderation").evaluate(TURN, judge=judge).passed is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "embeddings"}, "endpoint: must be chat or moderations, got 'embeddings'"),
        ({"endpoint": "moderations", "provider": "gemini"}, "endpoint: 'moderations' requires the provider openai, got gemini"),
    ],
)
def test_an_endpoint_that_there_is_not(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        oa.Judge("http://h/v1", "m-1", **given)
    assert str(caught.value).startswith(said)
