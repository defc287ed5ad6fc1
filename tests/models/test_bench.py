"""Several judges: different models for some metrics, a second opinion, and a panel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.judging.models import JudgeGroup, embedder_from, judge_from
from tests.models.wire import KEY, Request, Response, Server, said
from tests.support.recordings import unpack
from tests.support.rig import Rig

TURN = oa.Turn(input="q", output="a", agent="travel")


class Models:
    """Scores by model, from two servers, one of which has Anthropic's API."""

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
        with pytest.raises(ConfigError, match=path):
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
        assert [told["model"] for told in score.detail["judges"]] == ["small", "anthropic/claude-x"]
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


def test_a_panel_names_each_judge_s_server_if_models_have_the_same_name(server: Server, configured: Any) -> None:
    servers = {name: {"base_url": server.url} for name in ("b", "c")}
    panel = {"models": ["small", "b/small", "b/large", "c/small"]}
    score = score_of(configured({"small": 90, "large": 90}, servers=servers, panel=panel))
    assert [told["model"] for told in score.detail["judges"]] == panel["models"]


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
        assert rig.engine.drain(60, judges=True)
        [event] = rig.log_events()
        assert event.attributes[semconv.SCORE_VALUE] == 0.8
        assert rig.count("agenteval.judge.requests") == {("ok",): 3}
    assert [model for _, model in models.asked] == ["small", "large", "claude-x"]


# --- from the configuration to a judge and an embedder, and to ``eval``


Capture = pytest.CaptureFixture[str]


def test_without_an_address_there_is_no_model() -> None:
    config = load_config(env={})
    assert judge_from(config) is None
    assert embedder_from(config) is None


def test_all_options_arrive(server: Server) -> None:
    given = {
        "base_url": server.url, "model": "m-1", "api_key": KEY, "timeout": "5s", "deadline": "20s", "max_concurrency": 3,
        "requests_per_minute": 60, "tokens_per_minute": 1000, "prices": {"m-1": {"input": 1, "output": 2}},
    }  # fmt: skip
    config = load_config({"judge": {**given, "provider": "anthropic"}, "embedder": given}, {})
    judge, embedder = judge_from(config), embedder_from(config)
    assert judge is not None
    assert embedder is not None
    assert (judge.provider, judge.model, embedder.model) == ("anthropic", "m-1", "m-1")
    for service in (judge.server, embedder._server):
        assert (service._deadline, service.transport._timeout) == (20.0, 5.0)
        assert service._prices == {"m-1": {"input": 1.0, "output": 2.0}}


@pytest.mark.parametrize("section", ["judge", "embedder"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "m-1"}, "base_url: required, because"),
        ({"base_url": "http://h/v1"}, "model: required, because"),
        (
            {"base_url": "http://h/v1", "model": "m-1", "api_key": "ключ"},
            "api_key: must contain only printable ASCII",
        ),
    ],
)
def test_half_a_configuration_is_an_error(section: str, given: dict[str, Any], said: str) -> None:
    make = judge_from if section == "judge" else embedder_from
    with pytest.raises(ConfigError) as caught:
        make(load_config({section: given}, {}))
    assert str(caught.value).startswith(f"{section}.{said}")
    assert "ключ" not in str(caught.value)


@pytest.fixture
def recording(tmp_path: Path) -> str:
    from tests.test_cli import GOOD

    return str(unpack(GOOD, tmp_path))


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "agenteval.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_eval_asks_the_configured_judge(
    recording: str, server: Server, tmp_path: Path, capsys: Capture, monkeypatch: Any
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    server.reply({"score": 80, "reasoning": "fits"})
    judge = f"{{base_url: '{server.url}', model: m-1, api_key: '${{env:JUDGE_KEY}}'}}"
    file = written(tmp_path, f"judge: {judge}\nmetrics: [{{llm_relevance: {{}}, policy: gate}}]\n")
    assert main(["eval", recording, "--config", file, "--metrics", "llm_relevance", "--gate"]) == 0
    out, err = capsys.readouterr()
    (score,) = map(json.loads, out.splitlines())
    assert (score["metric"], score["value"], score["status"]) == ("llm_relevance", 0.8, "ok")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "m-1: 1 request, 0 without an answer, 120 tokens, cost unknown" in err


def test_eval_says_what_it_cost(recording: str, server: Server, tmp_path: Path, capsys: Capture) -> None:
    server.reply({"score": 80})
    prices = "{m-1: {input: 1000, output: 5000, cached_input: 1000}}"
    file = written(tmp_path, f"judge: {{base_url: '{server.url}', model: m-1, prices: {prices}}}\n")
    main(["eval", recording, "--config", file, "--metrics", "llm_relevance"])
    assert "0.2 USD" in capsys.readouterr().err
