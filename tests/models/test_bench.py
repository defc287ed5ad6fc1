"""Several judges: other models for some metrics, a second opinion, a panel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.judging.models import JudgeGroup, judge_from
from tests.models.wire import Request, Response, Server, said
from tests.support.rig import Rig

TURN = oa.Turn(input="q", output="a", agent="travel")


class Models:
    """Scores by model, told by whichever server is asked; one of two servers speaks Anthropic's format."""

    def __init__(self, server: Server, other: Server) -> None:
        self.scores: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []
        server.answering = self._answering("openai")
        other.answering = self._answering("anthropic")

    def _answering(self, provider: str) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            model = request.body["model"]
            self.asked.append((provider, model))
            score = self.scores[model]
            if score is None:
                return Response({"error": {"message": "no"}}, 401)
            return Response(said(provider, json.dumps({"score": score, "reasoning": f"so says {model}"})))

        return answer


@pytest.fixture
def other() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def models(server: Server, other: Server) -> Models:
    return Models(server, other)


@pytest.fixture
def configured(server: Server, other: Server, models: Models) -> Callable[..., dict[str, Any]]:
    def options(scores: dict[str, Any], **judge: Any) -> dict[str, Any]:
        models.scores = scores
        servers = {"anthropic": {"base_url": other.url, "api_key": "k-2"}}
        return {"judge": {"base_url": server.url, "model": "small", "servers": servers, **judge}}

    return options


def score_of(options: dict[str, Any], metric: str = "llm_relevance", turn: oa.Turn = TURN) -> oa.Score:
    judge = judge_from(load_config(options, {}))
    assert judge is not None
    try:
        return oa.get_metric(metric).evaluate(turn, judge=judge)
    finally:
        judge.close()


def test_without_any_of_it_there_is_one_judge(configured: Any) -> None:
    judge = judge_from(load_config(configured({}), {}))
    assert isinstance(judge, oa.Judge)


# --- other models


def test_a_metric_and_an_agent_can_have_a_model_of_their_own_at_another_server(configured: Any, models: Models) -> None:
    options = configured(
        {"small": 90, "large": 70, "claude-x": 50},
        choose=[{"metric": "llm_fluen*", "model": "large"}, {"agent": ["travel", "hotel"], "model": "anthropic/claude-x"}],
    )
    assert score_of(options).value == 0.5
    assert score_of(options, turn=oa.Turn(input="q", output="a", agent="bank")).value == 0.9
    assert score_of(options, "llm_fluency").value == 0.7
    assert models.asked == [("anthropic", "claude-x"), ("openai", "small"), ("openai", "large")]


def test_a_model_of_a_provider_without_a_server_is_refused_with_its_path(configured: Any) -> None:
    for options, path in (
        ({"choose": [{"model": "gemini/x"}]}, r"judge\.choose\[0\]\.model"),
        ({"second": {"model": "gemini/x"}}, r"judge\.second\.model"),
        ({"panel": {"models": ["small", "gemini/x"]}}, r"judge\.panel\.models\[1\]"),
    ):
        with pytest.raises(ConfigError, match=f"{path}.*judge.servers.gemini"):
            judge_from(load_config(configured({}, **options), {}))


# --- a second opinion


@pytest.mark.parametrize(
    ("first", "second", "value", "asked", "decided"),
    [
        (95, 10, 0.95, 1, None),  # no doubt
        (72, 75, 0.72, 2, "first"),  # in doubt; they agree
        (72, 65, 0.65, 2, "second"),  # one passes it, one does not
        (72, 99, 0.99, 2, "second"),  # both pass it, but far apart
        (68, None, 0.68, 2, "first"),  # no other judge has an opinion
    ],
)
def test_a_second_judge_is_asked_in_doubt_and_stands_where_they_disagree(
    configured: Any, models: Models, first: int, second: int | None, value: float, asked: int, decided: str | None
) -> None:
    options = configured({"small": first, "claude-x": second}, second={"model": "anthropic/claude-x"})
    score = score_of(options)
    assert (score.value, len(models.asked), score.detail.get("judged_by")) == (value, asked, decided)
    if decided is not None:
        assert [told["model"] for told in score.detail["judges"]] == ["small", "claude-x"]
        assert score.detail["reasoning"] == f"so says {'small' if decided == 'first' else 'claude-x'}"


# --- a panel


@pytest.mark.parametrize(
    ("scores", "combine", "value", "passed"),
    [
        ((90, 80, 10), "median", 0.8, True),
        ((90, 60, 10), "median", 0.6, False),
        ((90, 80, 10), "majority", 0.8, True),
        ((100, 10, 65), "majority", 0.1, False),
        ((90, None, 10), "median", 0.1, False),  # of two in the middle the worse one
        ((90, None, 10), "majority", 0.1, False),  # of equally many those who do not pass
    ],
)
def test_a_panel_s_score_is_its_median_judge_s_or_that_of_its_majority(
    configured: Any, models: Models, scores: tuple[Any, ...], combine: str, value: float, passed: bool
) -> None:
    three = {"models": ["small", "large", "anthropic/claude-x"], "combine": combine}
    options = configured(dict(zip(("small", "large", "claude-x"), scores, strict=True)), panel=three)
    score = score_of(options)
    assert (score.value, score.passed, score.detail["judged_by"]) == (value, passed, combine)
    assert len(models.asked) == len(score.detail["judges"]) == 3
    assert [told.get("error") for told in score.detail["judges"]] == [None if s is not None else "http_401" for s in scores]


def test_a_panel_of_which_half_is_silent_has_no_score(configured: Any) -> None:
    options = configured({"small": 90, "large": None}, panel={"models": ["small", "large"]})
    score = score_of(options)
    assert (score.status, score.error_type) == ("error", "http_401")


def test_the_sum_is_over_all_servers_each_once(configured: Any) -> None:
    options = configured({"small": 90, "large": 80, "claude-x": 70}, panel={"models": ["small", "large", "anthropic/claude-x"]})
    bench = judge_from(load_config(options, {}))
    assert isinstance(bench, JudgeGroup)
    oa.get_metric("llm_relevance").evaluate(TURN, judge=bench)
    assert (bench.total().requests, bench.total().input_tokens) == (3, 300)
    assert [account.model for account in bench.accounts()] == ["small", "large", "claude-x"]
    bench.close()


def test_live_each_judge_of_a_panel_is_held_to_the_budget_and_counted(configured: Any, models: Models) -> None:
    options = configured(
        {"small": 90, "large": 80, "claude-x": 70}, panel={"models": ["small", "large", "anthropic/claude-x"]}, max_concurrency=1
    )
    with Rig({**options, "metrics": ["llm_relevance"], "inline": {"metrics": []}}) as rig:
        rig.run()
        assert rig.engine.drain(20, judges=True)
        [event] = rig.log_events()
        assert event.attributes[semconv.SCORE_VALUE] == 0.8
        assert rig.count("agenteval.judge.requests") == {("ok",): 3}
    assert [model for _, model in models.asked] == ["small", "large", "claude-x"]
