"""Metrics by name with parameters, and errors of invalid metrics."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import re
from types import SimpleNamespace

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import MetricError
from otel_agenteval.core.extras import entry_points, version_of
from otel_agenteval.evaluation.selection import select_metrics
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog, group_of
from tests.support.rig import Rig


@pytest.mark.parametrize(
    ("name", "canonical", "params"),
    [
        ("code_tool_success", "code_tool_success", {}),
        ("agentunit:tool_success", "code_tool_success", {"threshold": 0.7}),
        ("icontains", "code_icontains", {}),
        ("hpd:LatencyEvaluator", "code_latency", {}),
        ("agenteval:code_recall_at_5", "code_recall_at_k", {"k": 5}),
        ("agenteval:code_mrr_at_3", "code_mrr", {"max_rank": 3}),
        ("trusys:not-contains", "code_contains", {"inverse": True}),
    ],
)
def test_any_catalogue_s_name_resolves(name, canonical, params):
    found = oa.get_metric(name)
    assert (found.name, found.params) == (canonical, params)


def test_an_unknown_name_is_refused_with_the_closest_three():
    with pytest.raises(oa.ConfigError, match=r"'code_tool_sucess'.* code_tool_success, \S+, \S+\?"):
        oa.get_metric("code_tool_sucess")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("code_recall_at_k", {"k": 0}),
        ("code_latency", {"threshold": "fast"}),
        ("code_latency", {"treshold": 3}),
        ("code_max_tokens", {"max_tokens": None}),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name, params):
    (parameter,) = params
    with pytest.raises(oa.ConfigError, match=rf"^{name}\.{parameter}: "):
        oa.get_metric(name, **params)


def test_a_parameter_nested_too_deep_is_refused_as_configuration():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(oa.ConfigError):
        oa.get_metric("code_tool_selection", expected_tools=deep)


def test_a_missing_parameter_is_an_error_and_a_missing_fact_skips():
    score = oa.get_metric("code_contains").evaluate(oa.Turn(output="x"))
    assert (score.status, score.error_type, score.value, score.passed) == ("error", "missing_parameter", None, None)
    score = oa.get_metric("code_latency").evaluate(oa.Turn())
    assert (score.status, score.detail, score.value) == ("skipped", {"reason": "missing:duration"}, None)


def test_exception_of_a_metric_is_found_in_its_file(tmp_path, monkeypatch, caplog):
    """The place is the innermost line of the metric's own file. The log never has the text of the exception."""
    (tmp_path / "buggy.py").write_text(
        "import json\nimport otel_agenteval as oa\n\n\n@oa.metric()\ndef code_buggy(turn: oa.Turn) -> float:\n"
        '    """Has a bug."""\n    return helper(turn)\n\n\ndef helper(turn):\n    return json.loads(turn.output)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("buggy")
    score = oa.get_metric("code_buggy").evaluate(oa.Turn(output="secret content"))
    assert score.error_type == "JSONDecodeError"
    assert score.explanation.endswith("(buggy.py, line 12)")
    assert caplog.messages == []  # this may be an agent's thread
    with Rig({"inline": {"metrics": ["code_buggy"]}}) as rig:
        rig.run(says="secret content")
        rig.run(says="secret content")
        rig.scored()
    [line] = [line for line in caplog.messages if "code_buggy" in line]
    assert "JSONDecodeError" in line
    assert f'File "{tmp_path / "buggy.py"}", line 12, in helper' in line
    assert "secret" not in line


def test_async_metric_is_scored_live_and_offline(new_metric):
    fn = new_metric("return wait(turn, k)")

    async def wait(turn, k):
        await asyncio.sleep(0)
        return len(turn.output) * k

    async def code_later(turn: oa.Turn, *, k: int = 1) -> float:
        """Counts characters."""
        return await wait(turn, k)

    fn.__globals__["wait"] = wait
    oa.metric(needs=("output",))(code_later)
    for name in ("code_mine", "code_later"):
        assert oa.get_metric(name, k=2).evaluate(oa.Turn(output="abc")).value == 6.0
        assert asyncio.run(oa.get_metric(name).evaluate_async(oa.Turn(output="abc"))).value == 3.0
    assert oa.get_metric("code_later").heavy
    with Rig({"inline": {"metrics": ["code_mine", "code_later"]}}) as rig:
        rig.run(says="Paris.")
        assert {score.value for score in rig.scored()[0].scores} == {6.0}


@pytest.fixture
def new_metric():
    def make(body, *, doc="Says something.", **options):
        options = {"needs": (), **options}
        namespace = {"oa": oa}
        exec(f"def code_mine(turn, *, k: int = 1):\n    {body}", namespace)
        fn = namespace["code_mine"]
        fn.__doc__ = doc
        fn.__module__ = __name__
        return oa.metric(**options)(fn)

    return make


@pytest.mark.parametrize(
    ("body", "status", "value", "error_type"),
    [
        ("return True", "ok", 1.0, None),
        ("return None", "skipped", None, None),
        ("return oa.skip('too_long')", "skipped", None, None),
        ("return oa.vacuous(1.0)", "ok", 1.0, None),
        ("return oa.Result(None, label='billing')", "ok", None, None),
        ("return oa.Result(None)", "error", None, "invalid_value"),
        ("return float('nan')", "error", None, "invalid_value"),
        ("return 'high'", "error", None, "invalid_value"),
        ("raise ValueError('secret content')", "error", None, "ValueError"),
        ("return turn.no_such_field", "error", None, "AttributeError"),
    ],
)
def test_whatever_a_metric_does_becomes_a_score(new_metric, body, status, value, error_type):
    new_metric(body)
    score = oa.get_metric("code_mine").evaluate(oa.Turn(output="x"))
    assert (score.status, score.value, score.error_type) == (status, value, error_type)
    assert "secret content" not in (score.explanation or "")


@pytest.mark.parametrize(
    ("direction", "value", "passed"), [("up", 0.7, True), ("up", 0.69, False), ("down", 0.7, True), ("down", 0.71, False)]
)
def test_the_threshold_is_inclusive_in_the_metric_s_direction(new_metric, direction, value, passed):
    new_metric(f"return {value}", direction=direction, threshold=0.7)
    assert oa.get_metric("code_mine").evaluate(oa.Turn()).passed is passed
    configured = oa.get_metric("code_mine", threshold=value).evaluate(oa.Turn())
    assert (configured.passed, configured.threshold) == (True, value)


def test_inverse_turns_a_boolean_and_neither_errors_nor_skips():
    assert oa.get_metric("code_contains", value="a", inverse=True).evaluate(oa.Turn(output="abc")).passed is False
    assert oa.get_metric("code_contains", value="", inverse=True).evaluate(oa.Turn(output="abc")).status == "error"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def latency(turn): 'Doc.'", "must be named code_"),
        ("def code_x(turn): pass", "docstring"),
        ("def code_x(turn, other): 'Doc.'", "turn"),
        ("def code_x(turn, *, k=1): 'Doc.'", "'k'"),
        ("def llm_x(turn): 'Doc.'", "judge"),
        ("def code_latency(turn): 'Doc.'", "performance_cost.py:"),
    ],
)
def test_a_bad_metric_is_refused_with_file_and_line(source, message):
    namespace: dict[str, object] = {"__name__": "mine"}
    exec(compile(f"\n\n{source}", "mine.py", "exec"), namespace)
    fn = next(value for value in namespace.values() if inspect.isfunction(value))
    with pytest.raises(oa.ConfigError, match=rf"^mine\.py:3: metric .*{message}"):
        oa.metric()(fn)


def test_evaluate_async_and_combine_never_raise():
    bound = oa.get_metric("code_latency")
    assert asyncio.run(bound.evaluate_async(oa.Turn(duration_s=1.0))).value == 1.0
    assert bound.combine([]).error_type == "not_a_composite"


def test_evaluate_async_passes_the_judge_to_inner_metrics():
    bound = oa.get_metric("code_composite_mean", metrics=[{"llm_custom_judge": {"rubric": "The answer is polite."}}])
    judge = SimpleNamespace(ask=lambda *args, **options: {"reason": "polite", "score": 1})
    assert asyncio.run(bound.evaluate_async(oa.Turn(input="q", output="a"), judge=judge)).value == 1.0


def test_every_metric_is_documented_and_skips_or_scores_an_empty_turn():
    for metric in catalog():
        assert re.match(r"\S.*\.$", metric.summary), metric.name
        assert len(metric.doc) > 80, metric.name
        assert BoundMetric(metric, {}).evaluate(oa.Turn()).status in ("skipped", "error", "ok")


def test_metric_errors_carry_their_type():
    @oa.metric()
    def code_other(turn):
        """Fails on purpose."""
        raise MetricError("bad_schema", "the schema has no type")

    score = oa.get_metric("code_other").evaluate(oa.Turn())
    assert (score.error_type, score.explanation) == ("bad_schema", "the schema has no type")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"needs": ("outptu",)}, "needs 'outptu' .*'output'"),
        ({"uses": ("histroy",)}, "uses 'histroy' .*'history'"),
        ({"uses": "history"}, "uses .*'history'"),
        ({"references": "expected_tools"}, "references .*'expected_tools'"),
        ({"groups": ("best",)}, "groups .*'best'"),
    ],
)
def test_facts_and_groups_that_cannot_be_declared_are_refused(new_metric, options, message):
    with pytest.raises(oa.ConfigError, match=rf":\d+: metric 'code_mine': {message}"):
        new_metric("return 1.0", **options)


def test_an_entry_of_the_configuration_takes_the_precise_method_and_get_metric_the_catalogues(new_metric):
    @oa.metric(aliases=("seed:other",), groups=("safety",), live={"method": "precise"})
    def code_other(turn, *, method: str = "rough", size: int = 1):
        """Which method."""
        return float(method == "precise")

    def configured(entry):
        (bound,) = select_metrics(oa.Config(inline={"metrics": []}, metrics=[entry]))
        return bound.evaluate(oa.Turn()).value

    assert oa.get_metric("code_other").evaluate(oa.Turn()).value == 0.0
    assert configured("code_other") == configured({"code_other": {"threshold": 0.5}}) == 1.0
    assert configured({"code_other": {"size": 2}}) == configured("seed:other") == 0.0
    assert "code_other" in group_of("safety")


def test_entry_points_of_a_package_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "acme-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: acme\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[otel_agenteval.some]\nacme = acme.metrics\n")
    assert not list(entry_points("otel_agenteval.some"))
    monkeypatch.syspath_prepend(tmp_path)
    assert [entry.value for entry in entry_points("otel_agenteval.some")] == ["acme.metrics"]
    assert version_of("packaging") == importlib.metadata.version("packaging")
