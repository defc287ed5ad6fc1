from __future__ import annotations

import datetime
import importlib.metadata
from typing import Any

import genai_prices
import pytest

import otel_agenteval as oa
from otel_agenteval.core import price_table, prices


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def test_latency_is_in_seconds_with_milliseconds_beside_it() -> None:
    score = evaluate("code_latency", {"duration_s": 1.25})
    assert (score.value, score.unit, score.direction, score.passed) == (1.25, "s", "down", None)
    assert score.detail == {"latency_ms": 1250}
    assert evaluate("code_latency", {"duration_s": 2}, threshold=2).passed is True
    assert evaluate("code_latency", {"duration_s": 2.1}, threshold=2).passed is False
    assert evaluate("code_latency_score", {"duration_s": 10}, threshold=0.5).passed is True


BOTH_SIDES = {"input_tokens": 7, "output_tokens": 11}


@pytest.mark.parametrize(
    ("metric", "turn", "limit", "passed"),
    [
        pytest.param("code_max_duration", {"duration_s": 0}, {"max_seconds": 0}, True, id="a duration of 0 is known"),
        pytest.param("code_max_duration", {"duration_s": 0.1 + 0.2}, {"max_seconds": 0.3}, True, id="0.1 + 0.2 is within 0.3"),
        pytest.param(
            "code_max_iterations", {"llm_calls": [{}, {"error": True}]}, {"max_iterations": 1}, False, id="a failed call"
        ),
        pytest.param("code_max_iterations", {"llm_calls": 0}, {"max_iterations": 0}, True, id="a count of 0 is known"),
        pytest.param(
            "code_max_input_tokens", {"usage": BOTH_SIDES}, {"max_tokens": 7}, True, id="only input tokens count as input"
        ),
        pytest.param(
            "code_max_output_tokens", {"usage": BOTH_SIDES}, {"max_tokens": 10}, False, id="only output tokens as output"
        ),
        pytest.param("code_max_tokens", {"usage": {"total_tokens": 0}}, {"max_tokens": 0}, True, id="no tokens is a number"),
    ],
)
def test_limits_are_inclusive(metric: str, turn: dict[str, Any], limit: dict[str, Any], passed: bool) -> None:
    score = evaluate(metric, turn, **limit)
    assert (score.passed, score.value, score.type) == (passed, float(passed), "boolean")
    assert score.detail["limit"] == next(iter(limit.values()))
    assert evaluate(metric, turn, inverse=True, **limit).passed is not passed


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        pytest.param({"input_tokens": 7, "output_tokens": 5, "total_tokens": 20}, 20, id="the total as reported wins"),
        pytest.param({"input_tokens": 7, "output_tokens": 5, "total_tokens": 0}, 12, id="a total of 0 is no total"),
        pytest.param({"output_tokens": 5}, 5, id="one side is enough"),
    ],
)
def test_token_usage_scores(usage: dict[str, int], tokens: int) -> None:
    score = evaluate("code_token_usage", {"usage": usage})
    assert (score.value, score.unit, score.passed) == (tokens, "{token}", None)
    sides = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    assert score.detail == {**sides, "total_tokens": tokens}
    assert evaluate("code_max_tokens", {"usage": usage}, max_tokens=1).detail == {"observed": tokens, "limit": 1}


TOOLS = [{"name": "a", "cost_usd": 0.5}, {"name": "b"}]


@pytest.mark.parametrize(
    ("turn", "params", "costs"),
    [
        pytest.param({"cost_usd": 1}, {}, (1, 0), id="unknown tool calls add nothing"),
        pytest.param({"cost_usd": 1, "tool_calls": TOOLS}, {}, (1, 0.5), id="tool costs add up"),
        pytest.param(
            {"cost_usd": 1, "tool_calls": TOOLS}, {"include_tool_costs": False}, (1, 0), id="tool costs can be left out"
        ),
        pytest.param({"tool_calls": TOOLS}, {}, (0, 0.5), id="tool costs alone are a cost"),
        pytest.param({"metadata": {"cost": 3, "turn_cost_usd": 2}}, {}, (2, 0), id="metadata in its order"),
        pytest.param({"cost_usd": 1, "cost_estimated": True}, {}, (1, 0), id="an estimate says so"),
    ],
)
def test_cost_scores(turn: dict[str, Any], params: dict[str, Any], costs: tuple[float, float]) -> None:
    score = evaluate("code_cost", turn, **params)
    assert (score.value, score.unit, score.direction) == (sum(costs), "USD", "down")
    estimated = {"estimated": True} if "cost_estimated" in turn else {}
    assert score.detail == {"cost": sum(costs), "model_cost": costs[0], "tool_cost": costs[1], **estimated}


LATENCY = [
    pytest.param(2.0, 2000, 1.0, id="at the threshold"),
    pytest.param(4.0, 2000, 0.5, id="twice the threshold"),
    pytest.param(1.0, 0, 0.0, id="a threshold of 0"),
    pytest.param(-1.0, 2000, 1.0, id="clocks that ran backwards"),
]


@pytest.mark.parametrize(("seconds", "threshold_ms", "value"), LATENCY)
def test_latency_score_decays_past_its_threshold(seconds: float, threshold_ms: float, value: float) -> None:
    score = evaluate("code_latency_score", {"duration_s": seconds}, threshold_ms=threshold_ms)
    assert (score.value, score.passed) == (pytest.approx(value), value == 1.0)
    under = value == 1.0
    assert score.detail == {"latency_ms": seconds * 1000, "threshold_ms": threshold_ms, "under_threshold": under}
    gate = evaluate("code_latency_threshold", {"duration_s": seconds}, threshold_ms=threshold_ms)
    assert (gate.passed, gate.detail) == (under, {"latency_ms": seconds * 1000})


MAX_COST = [
    pytest.param({"cost_usd": 0.01}, "cost_usd", id="the turn's cost"),
    pytest.param({"metadata": {"turn_cost_usd": 0.01, "cost": 9}}, "turn_cost_usd", id="metadata in its order"),
    pytest.param({"llm_calls": [{"cost_usd": 0.004}, {"cost_usd": 0.006}]}, "llm_calls", id="what the calls say"),
    pytest.param({"cost_usd": 0.01, "tool_calls": TOOLS}, "cost_usd", id="tools are left out"),
]


@pytest.mark.parametrize(("turn", "key"), MAX_COST)
def test_max_cost_finds_the_cost(turn: dict[str, Any], key: str) -> None:
    score = evaluate("code_max_cost", turn, max_cost_usd=0.01)
    assert score.passed is True
    assert score.detail == {"cost_usd": pytest.approx(0.01), "source_key": key, "limit": 0.01}
    assert evaluate("code_max_cost", turn, max_cost_usd=0.0099).passed is False


# --- estimates

START = "2026-06-01T12:00:00Z"
TABLE = price_table.source()[0]
same_prices = pytest.mark.skipif(
    f"genai-prices {importlib.metadata.version('genai-prices')}" != TABLE, reason="the oracle is another version of genai-prices"
)
OWN = {"mine": {"input": 2.0, "output": 10.0}, "acme/mine": {"input": 1.0, "output": 1.0, "cached_input": 0.5}}


def llm(model: str | None = "mine", given: int | None = 1000, answered: int | None = 100, **known: Any) -> dict[str, Any]:
    return {"model": model, "input_tokens": given, "output_tokens": answered, **known}


ESTIMATES = [
    pytest.param([llm()], (2000 + 1000) / 1e6, id="tokens times the price"),
    pytest.param([llm(cached_tokens=400)], (2000 + 1000) / 1e6, id="cached input costs what input does"),
    pytest.param([llm(provider="acme", cached_tokens=400)], (600 + 200 + 100) / 1e6, id="unless it has a price"),
    pytest.param([llm(provider="acme", cached_tokens=4000)], (1000 + 2000 + 100) / 1e6, id="cached beside the input"),
    pytest.param([llm(), llm("unknown", cost_usd=1.0)], 1.003, id="a call that says its cost needs no price"),
    pytest.param([llm(), llm("unknown", None, None, error=True)], 0.003, id="a call that failed uncounted cost nothing"),
]


@pytest.mark.parametrize(("calls", "usd"), ESTIMATES)
def test_a_cost_that_nobody_reported_is_estimated_with_the_configured_prices(calls: list[Any], usd: float) -> None:
    turn = {"llm_calls": calls, "tool_calls": TOOLS}
    score = evaluate("code_cost", turn, prices=OWN)
    assert score.value == pytest.approx(usd + 0.5)
    estimated = {"estimated": True, "price_source": "prices"}
    assert score.detail == {"cost": score.value, "model_cost": pytest.approx(usd), "tool_cost": 0.5, **estimated}
    gate = evaluate("code_max_cost", turn, prices=OWN, max_cost_usd=usd)
    assert (gate.passed, gate.detail["source_key"], gate.detail["price_source"]) == (True, "tokens", "prices")


@same_prices
def test_the_table_prices_what_is_not_configured_at_the_time_of_the_turn() -> None:
    calls = [llm("gpt-4o", 5000, 300, provider="openai", cached_tokens=1000), llm()]
    usage = genai_prices.Usage(input_tokens=5000, output_tokens=300, cache_read_tokens=1000)
    moment = datetime.datetime(2026, 6, 1, 12, tzinfo=datetime.timezone.utc)
    oracle = genai_prices.calc_price(usage, "gpt-4o", provider_id="openai", genai_request_timestamp=moment).total_price
    score = evaluate("code_cost", {"start": START, "llm_calls": calls}, prices=OWN)
    assert score.value == pytest.approx(float(oracle) + 0.003)
    assert score.detail["price_source"] == f"{TABLE} + prices"
    assert evaluate("code_cost", {"start": START, "llm_calls": calls[:1]}).detail["price_source"] == TABLE


def test_prices_follow_the_time_of_the_turn_and_are_the_newest_where_that_is_unknown() -> None:
    calls = [llm("o3", 1_000_000, 0, provider="openai")]
    first, later, unknown = (
        evaluate("code_cost", {"llm_calls": calls, "start": start}).value for start in ("2025-05-01T00:00:00Z", START, None)
    )
    assert first > later == unknown


@pytest.mark.parametrize("provider", ["gcp.gen_ai", "gcp.gemini", "gcp.vertex_ai", None])
def test_providers_have_the_names_of_the_conventions(provider: str | None) -> None:
    assert evaluate("code_cost", {"llm_calls": [llm("gemini-2.5-pro", provider=provider)]}).value > 0


UNCOUNTED = llm(given=None, answered=None)
UNKNOWN = [
    pytest.param({"llm_calls": [llm(), llm("theirs"), llm("theirs")]}, ["theirs"], id="a model has no price"),
    pytest.param({"llm_calls": [llm(None)]}, ["?"], id="the model is unknown"),
    pytest.param({"llm_calls": [llm("x" * 999)]}, ["x" * 200], id="a name that is none"),
    pytest.param({"llm_calls": [llm("m", provider="x")]}, ["m (unknown provider x)"], id="nobody knows the provider"),
    pytest.param(
        {"llm_calls": [UNCOUNTED, llm("theirs", None, None)], "usage": {"input_tokens": 5}}, None, id="counts of two models"
    ),
    pytest.param({"llm_calls": [llm(given=None, answered=None, error=True)]}, None, id="all there is failed"),
    pytest.param({"llm_calls": 3, "usage": {"input_tokens": 5, "output_tokens": 5}}, None, id="only the count is known"),
    pytest.param({"llm_calls": [llm()] * 1001}, None, id="more calls than are priced"),
]


@pytest.mark.parametrize(("turn", "unpriced"), UNKNOWN)
def test_a_cost_that_cannot_be_estimated_is_not_invented(turn: dict[str, Any], unpriced: list[str] | None) -> None:
    detail = {"reason": "missing:cost", **({} if unpriced is None else {"unpriced": unpriced})}
    for metric, params in (("code_cost", {}), ("code_max_cost", {"max_cost_usd": 1})):
        score = evaluate(metric, turn, prices=OWN, **params)
        assert (score.status, score.detail) == ("skipped", detail)


def test_a_cost_that_is_known_in_part() -> None:
    of_tools = evaluate("code_cost", {"llm_calls": [llm("theirs")], "tool_calls": TOOLS})
    assert of_tools.detail == {"cost": 0.5, "model_cost": 0, "tool_cost": 0.5, "unpriced": ["theirs"]}
    counted_together = {"llm_calls": [UNCOUNTED] * 2, "usage": {"input_tokens": 1000, "output_tokens": 100}}
    assert evaluate("code_cost", counted_together, prices=OWN).value == pytest.approx(0.003)
    for metric, params in (("code_cost", {}), ("code_max_cost", {"max_cost_usd": 1})):
        score = evaluate(metric, {"llm_calls": [llm()]}, prices=OWN, estimate=False, **params)
        assert score.detail == {"reason": "missing:cost"}


@pytest.fixture
def newer_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the installed genai-prices is newer than the packaged table."""
    monkeypatch.setattr(prices, "newer_package", lambda: genai_prices)
    prices._model.cache_clear()
    prices.table_name.cache_clear()
    yield
    prices._model.cache_clear()
    prices.table_name.cache_clear()


def test_a_newer_package_is_asked_in_place_of_our_table(monkeypatch: pytest.MonkeyPatch) -> None:
    prices.newer_package.cache_clear()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(price_table, "source", lambda: ("genai-prices 0.0.1", (0, 0, 1)))
            assert prices.newer_package() is genai_prices
        prices.newer_package.cache_clear()
        newest = ("genai-prices 999.0", (999, 0))
        monkeypatch.setattr(price_table, "source", lambda: newest)
        assert prices.newer_package() is None
    finally:
        prices.newer_package.cache_clear()


COUNTS = [
    (0, 0), (1, 0), (0, 1), (12_345, 678), (12_345, 678, 9_000), (300_000, 5_000, 300_000), (200_000, 7), (200_001, 7, 9), (100, 5, 300),
]  # fmt: skip
TOKENS = [price_table.Tokens(*counts) for counts in COUNTS]


def _asked(model: str, tokens: price_table.Tokens, at: datetime.datetime, **where: Any) -> float | None:
    """Return the cost by genai-prices."""
    usage = genai_prices.Usage(input_tokens=tokens.input, output_tokens=tokens.output, cache_read_tokens=tokens.cached or None)
    try:
        return float(genai_prices.calc_price(usage, model, genai_request_timestamp=at, **where).total_price)
    except (LookupError, ValueError, ArithmeticError):
        return None


NIGHT = datetime.datetime(2025, 3, 1, 17, tzinfo=datetime.timezone.utc)
NOON = datetime.datetime(2026, 6, 1, 12, tzinfo=datetime.timezone.utc)


def _differences(every: int) -> list[Any]:
    """Return the differences for all models, including models with price tiers, times of day, no output, or a price per call."""
    return [
        (provider.id, model.id, tokens)
        for provider in genai_prices.data_snapshot.get_snapshot().providers
        for model in provider.models[::every]
        for at in (NIGHT, NOON)
        for tokens in TOKENS
        if prices.table_cost(model.id, tokens, at, provider=provider.id) != _asked(model.id, tokens, at, provider_id=provider.id)
    ]


@pytest.mark.slow
@same_prices
def test_our_table_says_what_the_package_says_of_every_model() -> None:
    assert _differences(every=10) == []


@pytest.mark.usefixtures("newer_package")
def test_what_is_reckoned_from_a_newer_package_is_what_it_says() -> None:
    assert _differences(every=15) == []


REFERENCES = [
    ("gpt-4o-2024-08-06", {}),
    ("gpt-5.2-20251211", {}),
    ("gpt-5.2-20259999", {}),
    ("claude-sonnet-4-20250514", {"provider": "google-vertex"}),
    ("anthropic.claude-3-5-sonnet-20240620-v1:0", {"provider": "aws_bedrock"}),
    ("nobody/gpt-4o", {"provider": "litellm"}),
    ("gpt-4o", {"provider": "litellm"}),
    ("gpt-4o", {"provider": "Azure.AI.OpenAI"}),
    ("gpt-4o", {"provider": "unheard-of"}),
    ("gpt-4o", {"base_url": "https://api.openai.com/v1"}),
    ("gpt-4o", {"base_url": "http://127.0.0.1:11434/v1"}),
    ("llama-3.3-70b-versatile", {"base_url": "https://api.groq.com/openai/v1"}),
    ("deepseek-chat", {"provider": "deepseek"}),
    ("", {}),
]


@same_prices
@pytest.mark.parametrize(("model", "where"), REFERENCES)
def test_models_and_providers_are_found_by_the_package_s_rules(model: str, where: dict[str, str]) -> None:
    names = {"provider": "provider_id", "base_url": "provider_api_url"}
    for at in (NIGHT, NOON):
        asked = _asked(model, TOKENS[4], at, **{names[name]: text for name, text in where.items()})
        assert prices.table_cost(model, TOKENS[4], at, **where) == asked
