"""From configuration to judge and embedder, and to what `otel-agenteval eval` does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.judging.models import embedder_from, judge_from
from tests.models.wire import KEY, Server
from tests.support.recordings import unpack

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


def configured(tmp_path: Path, text: str) -> str:
    file = tmp_path / "agenteval.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_eval_asks_the_configured_judge(
    recording: str, server: Server, tmp_path: Path, capsys: Capture, monkeypatch: Any
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    server.reply({"score": 80, "reasoning": "fits"})
    judge = f"{{base_url: '{server.url}', model: m-1, api_key: '${{env:JUDGE_KEY}}'}}"
    file = configured(tmp_path, f"judge: {judge}\nmetrics: [{{llm_relevance: {{}}, policy: gate}}]\n")
    assert main(["eval", recording, "--config", file, "--metrics", "llm_relevance", "--gate"]) == 0
    out, err = capsys.readouterr()
    (score,) = map(json.loads, out.splitlines())
    assert (score["metric"], score["value"], score["status"]) == ("llm_relevance", 0.8, "ok")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "m-1: 1 requests, 0 without an answer, 120 tokens, cost unknown" in err


def test_eval_says_what_it_cost(recording: str, server: Server, tmp_path: Path, capsys: Capture) -> None:
    server.reply({"score": 80})
    prices = "{m-1: {input: 1000, output: 5000, cached_input: 1000}}"
    file = configured(tmp_path, f"judge: {{base_url: '{server.url}', model: m-1, prices: {prices}}}\n")
    main(["eval", recording, "--config", file, "--metrics", "llm_relevance"])
    assert "0.2 USD" in capsys.readouterr().err


def test_without_a_judge_its_metrics_are_skipped_and_that_is_said(recording: str, capsys: Capture) -> None:
    assert main(["eval", recording, "--metrics", "llm_relevance,code_latency"]) == 0
    out, err = capsys.readouterr()
    scores = {score["metric"]: score for score in map(json.loads, out.splitlines())}
    assert scores["llm_relevance"]["status"] == "skipped"
    assert scores["llm_relevance"]["detail"] == {"reason": "no_judge"}
    assert "no judge is configured, so these metrics are skipped: llm_relevance" in err


def test_a_judge_that_fails_is_an_error_and_never_a_score(
    recording: str, server: Server, tmp_path: Path, capsys: Capture
) -> None:
    server.will(401)
    file = configured(tmp_path, f"judge: {{base_url: '{server.url}', model: m-1}}\n")
    main(["eval", recording, "--config", file, "--metrics", "llm_relevance"])
    (score,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (score["status"], score["error_type"], score.get("value")) == ("error", "http_401", None)


def test_check_config_names_what_a_judge_lacks(tmp_path: Path, capsys: Capture) -> None:
    file = configured(tmp_path, "judge:\n  model: m-1\n")
    assert main(["check-config", file]) == 2
    assert "judge.base_url: required" in capsys.readouterr().err
