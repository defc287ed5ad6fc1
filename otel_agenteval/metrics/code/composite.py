"""Most of these metrics combine or check the scores of other metrics, called inner metrics.

A composite metric evaluates the turn with its inner metrics. To combine existing scores instead, call the method ``combine``. The
scores of inner metrics are exported only if you also configure these metrics separately. If an inner metric needs a judge, the
composite metric usually waits for the judge's reply. If an inner metric isn't evaluated, for example because no judge is
configured, the composite metric is skipped as ``missing:METRIC``. Exception: If another inner metric already
violates the policy, ``code_policy_must_always_pass`` and ``code_safety_policy`` fail.
"""

from __future__ import annotations

import math
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Predicate
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from ...core.errors import ConfigError, MetricError
from ...core.score import Score
from ...core.turn import Turn
from ..bound_metric import BoundMetric, get_metric
from ..registry import EPSILON, Result, metric, skip

Subject = Turn | Sequence[Score]
"""Input of a composite metric: a turn, or the scores of its inner metrics in order."""
Finite = Annotated[float, Predicate(math.isfinite)]


def _inner_metric(given: Any, info: ValidationInfo) -> BoundMetric:
    if isinstance(given, BoundMetric):
        return given
    named = {given: None} if isinstance(given, str) else given
    try:
        if isinstance(named, Mapping) and len(named) == 1:
            name, params = next(iter(named.items()))
            if isinstance(name, str) and (params is None or isinstance(params, Mapping)):
                params = {str(key): value for key, value in (params or {}).items()}
                return get_metric(name, **params) if info.context is None else info.context(name, params)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    raise ValueError("must be a metric name or {name: {parameters}}")


InnerMetric = Annotated[BoundMetric, BeforeValidator(_inner_metric)]


def _inner_scores(subject: Subject, metrics: Sequence[BoundMetric] | None, parameter: str = "metrics") -> list[Score]:
    if not isinstance(subject, Turn):
        return list(subject)
    if metrics is None:
        raise MetricError("missing_parameter", f"{parameter}: required to evaluate a turn")
    return [inner.evaluate(subject) for inner in metrics]


def _inner_score(subject: Subject, inner: BoundMetric | None) -> Score | None:
    scores = _inner_scores(subject, None if inner is None else [inner], "metric")
    return scores[0] if scores else None


def _has_value(score: Score) -> bool:
    return score.status == "ok" and score.value is not None


def _meets(value: float, threshold: float, direction: str) -> bool:
    return value <= threshold + EPSILON if direction == "down" else value >= threshold - EPSILON


def _mean_passed(value: float, threshold: float | None, used: Sequence[Score]) -> bool | None:
    if threshold is None:
        return None
    return _meets(value, threshold, "down" if all(score.direction == "down" for score in used) else "up")


def _vacuous(used: Sequence[Score]) -> dict[str, Any]:
    return {"vacuous": True} if all(score.vacuous for score in used) else {}


@metric(aliases=("agentunit:composite", "agentunit:CompositeMetric"))
def code_composite_mean(subject: Subject, *, metrics: list[InnerMetric] | None = None, threshold: Finite | None = None) -> Result:
    """Mean of several metrics' values.

    The mean excludes skipped scores and errors, because they don't have a value. If no score has a value, the metric is skipped as
    ``all_inner_null``. Combine only metrics with the same scale and direction. To reverse a metric's direction, use ``code_not``.

    Parameters:
        metrics: Metric names, or objects ``{name: {parameters}}``. Not needed if you only call ``combine``.
        threshold: Lowest passing value. If lower values are better for all inner metrics, the highest passing value.

    Detail: the ``detail`` of each inner score, by metric name. The score is vacuous if the values of all inner metrics are vacuous.

    Source: ``composite`` in AgentUnit, which returns 0 if no score has a value.
    """
    scores = _inner_scores(subject, metrics)
    if not (used := [score for score in scores if _has_value(score)]):
        return skip("all_inner_null")
    value = math.fsum(score.value or 0.0 for score in used) / len(used)
    details: dict[str, Any] = {}
    for score in scores:
        name, count = score.metric, 2
        while name in details:  # the second score with a name is name#2
            name, count = f"{score.metric}#{count}", count + 1
        details[name] = dict(score.detail)
    return Result(value, passed=_mean_passed(value, threshold, used), detail={**details, **_vacuous(used)})


class WeightedMetric(BaseModel):
    """A metric and its weight in ``code_weighted_score``."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    metric: InnerMetric
    weight: Finite


@metric(aliases=("hpd:WeightedScoreEvaluator",))
def code_weighted_score(
    subject: Subject,
    *,
    entries: list[WeightedMetric] | None = None,
    metrics: list[InnerMetric] | None = None,
    weights: list[Finite] | None = None,
    include_booleans: bool = False,
    threshold: Finite | None = None,
) -> Result:
    """Weighted mean of several metrics' values.

    The value is ``sum(value * weight) / sum(weights)``. The sums exclude skipped scores and errors. Unless ``include_booleans`` is
    true, they also exclude boolean scores. If the sum of the weights is 0 or negative, the divisor is 1. If no score is left, the
    metric is skipped as ``all_inner_null``.

    Parameters:
        entries: Objects ``{metric, weight}``. Each metric is a name or ``{name: {parameters}}``.
        metrics: Metric names, or objects ``{name: {parameters}}``. You can set ``metrics`` and ``weights`` instead of ``entries``.
            If you only call ``combine``, you can omit ``metrics``.
        weights: One weight for each inner metric, in the order of ``metrics``.
        include_booleans: If true, boolean scores count as 1 and 0.
        threshold: Lowest passing value. If lower values are better for all inner metrics, the highest passing value.

    Detail: ``used`` (metric names) and ``excluded`` (objects with ``name`` and ``reason``). The reason is ``boolean``, ``error``,
    ``null`` (a label without a value), or a skip reason. The score is vacuous if all used values are vacuous.

    Source: ``WeightedScoreEvaluator`` in HPD-Agent, which rounds the value to four decimals.
    """
    if entries is not None:
        if metrics is not None or weights is not None:
            raise MetricError("invalid_parameter", "entries: not allowed together with metrics or weights")
        metrics, weights = [entry.metric for entry in entries], [entry.weight for entry in entries]
    if not (scores := _inner_scores(subject, metrics, "entries")):
        return skip("all_inner_null", used=[], excluded=[])
    if weights is None:
        raise MetricError("missing_parameter", "entries: required, unless you set metrics and weights")
    if len(scores) != len(weights):
        raise MetricError("invalid_parameter", f"weights: must have one number per score ({len(scores)}), got {len(weights)}")
    reasons = [_why_excluded(score, include_booleans) for score in scores]
    used = [(score, weight) for score, weight, reason in zip(scores, weights, reasons, strict=True) if reason is None]
    excluded = [{"name": score.metric, "reason": reason} for score, reason in zip(scores, reasons, strict=True) if reason]
    if not used:
        return skip("all_inner_null", used=[], excluded=excluded)
    total = math.fsum(weight for _, weight in used)
    value = math.fsum((score.value or 0.0) * weight for score, weight in used) / (total if total > 0 else 1.0)
    counted = [score for score, _ in used]
    detail = {"used": [score.metric for score in counted], "excluded": excluded, **_vacuous(counted)}
    return Result(value, passed=_mean_passed(value, threshold, counted), detail=detail)


def _why_excluded(score: Score, include_booleans: bool) -> str | None:
    if score.status == "error":
        return "error"
    if not _has_value(score):
        return str(score.detail.get("reason") or "null")
    return "boolean" if score.type == "boolean" and not include_booleans else None


@metric(boolean=True, aliases=("hpd:ThresholdGate",))
def code_threshold_gate(
    subject: Subject, *, metric: InnerMetric | None = None, threshold: Finite, direction: Literal["auto", "up", "down"] = "auto"
) -> Result:
    """Check that another metric's value meets a threshold.

    Booleans count as 1 and 0. If the inner metric is skipped or returns an error, this metric is skipped as ``inner_null``.

    Parameters:
        metric: Metric name, or ``{name: {parameters}}``. Not needed if you only call ``combine``, which uses the first score.
        threshold: Threshold for the inner metric's value.
        direction: With ``up``, the value must be at least the threshold. With ``down``, the value must be at most the threshold.
            ``auto`` is ``down`` if lower inner values are better, otherwise ``up``.

    Detail: ``name`` (the condition, such as ``code_x >= 0.80``), ``inner_value``, and ``vacuous`` if the inner value is vacuous.

    Source: ``ThresholdGate`` in HPD-Agent, which always requires a value of at least the threshold.
    """
    inner = _inner_score(subject, metric)
    if inner is None or not _has_value(inner):
        return skip("inner_null")
    value = inner.value or 0.0
    towards = inner.direction if direction == "auto" else direction
    name = f"{inner.metric} {'<=' if towards == 'down' else '>='} {threshold:.2f}"
    return Result(_meets(value, threshold, towards), detail={"name": name, "inner_value": value, **_vacuous([inner])})


@metric(aliases=("hpd:NotEvaluator", "trusys:not-*"), version="2")
def code_not(subject: Subject, *, metric: InnerMetric | None = None, threshold: Finite | None = None) -> Result:
    """Opposite of another metric's value: a reversed boolean, or ``1 - value``.

    If the inner value isn't between 0 and 1, the score is an error. By default, the verdict is the opposite of the inner metric's
    verdict. If the inner metric is boolean, ``code_not`` always has a verdict. For example, ``code_not`` of ``code_refusal`` fails
    on refusals. If the inner metric is skipped, this metric is skipped as ``inner_null``. If the inner metric returns an error,
    this metric returns an error too. To reverse a boolean metric, you can also set that metric's option ``inverse``.

    Parameters:
        metric: Metric name, or ``{name: {parameters}}``. Not needed if you only call ``combine``, which uses the first score.
        threshold: If set, the metric passes if ``1 - value`` is at least this number. Ignored for a boolean inner metric.

    Detail: ``name`` (such as ``Not (code_x)``), ``inner_value``, and ``vacuous`` if the inner value is vacuous.
    """
    inner = _inner_score(subject, metric)
    if inner is not None and inner.status == "error":
        raise MetricError(inner.error_type or "inner_error", f"{inner.metric}: the inner metric returned an error")
    if inner is None or not _has_value(inner):
        return skip("inner_null")
    value = inner.value or 0.0
    detail = {"name": f"Not ({inner.metric})", "inner_value": value, **_vacuous([inner])}
    if inner.type == "boolean":
        return Result(float(not value), passed=not value, detail=detail)
    if not -EPSILON <= value <= 1 + EPSILON:
        raise MetricError("invalid_value", f"{inner.metric}: the value must be from 0 to 1, got {value:g}")
    value, verdict = min(max(1.0 - value, 0.0), 1.0), inner.verdict
    passed = None if verdict is None else not verdict
    return Result(value, passed=passed if threshold is None else _meets(value, threshold, "up"), detail=detail)


class Oracle:
    """A user's scoring function. Its ``repr`` is its name, because the ``repr`` of a plain function differs between processes."""

    __slots__ = ("_fn", "name")

    def __init__(self, fn: Callable[[Turn], Any], name: str) -> None:
        self._fn = fn
        self.name = name

    def __call__(self, turn: Turn) -> Any:
        return self._fn(turn)

    def __repr__(self) -> str:
        return self.name


_IMPORT_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def _oracle(given: Any) -> Oracle:
    if isinstance(given, Oracle):
        return given
    if isinstance(given, str):
        if not _IMPORT_PATH.fullmatch(given):  # source text is refused
            raise ValueError("must be an import path such as `package.module:function`")
        try:
            found = pkgutil.resolve_name(given)
        except Exception as error:
            raise ValueError(f"cannot be imported ({type(error).__name__})") from None
        if not callable(found):
            raise ValueError("must be a function")  # noqa: TRY004 - pydantic reads it
        return Oracle(found, given)
    if not callable(given):
        raise ValueError("must be a function that accepts a turn, or an import path such as `package.module:function`")  # noqa: TRY004 - pydantic reads it
    name = getattr(given, "__qualname__", type(given).__qualname__)
    return Oracle(given, f"{getattr(given, '__module__', '')}:{name}")


@metric(aliases=("hpd:TaskOracleEvaluator",))
def code_task_oracle(turn: Turn, *, oracle: Annotated[Oracle, BeforeValidator(_oracle)]) -> Result:
    """Score that your Python function returns for the turn.

    Your function receives a ``Turn`` object and must not change it. The object has the fields of the JSON schema ``turn.v1`` as
    attributes. The score depends on the function's result:

    | result | score |
    |---|---|
    | a ``bool`` | 1 or 0, with a verdict |
    | a finite ``int`` or ``float`` | this number |
    | a ``Score`` or ``Result`` | the same status, value, verdict, label, explanation, and detail |
    | None | skipped |
    | any other result, or an exception | an error |

    If the function is slow, don't use this metric for live scoring.

    Parameters:
        oracle: Your function. In a configuration file, set its import path, such as ``package.module:function``. Source code isn't accepted.
        threshold: Lowest passing value for a result without a verdict. If null, the score of such a result has no verdict.

    Detail: the ``detail`` of the returned ``Score`` or ``Result``.
    """
    try:
        found = oracle(turn)
    except SystemExit:
        raise MetricError("SystemExit", "oracle: the function tried to exit the process") from None
    if isinstance(found, Score):
        if found.status == "error":
            raise MetricError(found.error_type or "oracle_error", found.explanation or "oracle: returned an error")
        detail = dict(found.detail)
        if found.status == "skipped" or (found.value is None and found.label is None):
            return Result(None, skipped=str(detail.get("reason") or "not_applicable"), detail=detail)
        return Result(
            found.value, passed=found.passed, label=found.label, explanation=found.explanation, detail=detail, also=found.also
        )
    if isinstance(found, Result):
        return found
    if found is None:
        return skip("not_applicable")
    if isinstance(found, bool):
        return Result(float(found), passed=found)
    if not isinstance(found, (int, float)):
        problem = f"oracle: must return a bool, number, Score, Result, or None, got {type(found).__name__}"
        raise MetricError("invalid_value", problem)
    try:
        return Result(float(found))
    except OverflowError:
        raise MetricError("invalid_value", "oracle: returned a number that is too large") from None


@metric(
    unit="{item}",
    direction="down",
    threshold=0.0,
    aliases=("hpd:MustAlwaysPass", "hpd:EvalPolicy.MustAlwaysPass"),
    traits=("one_fails",),
)
def code_policy_must_always_pass(subject: Subject, *, metrics: list[InnerMetric] | None = None) -> Result:
    """Number of mandatory metrics that failed or returned an error.

    A metric violates the policy if it fails or returns an error. Skipped scores and scores without a verdict aren't violations.

    Parameters:
        metrics: Metric names, or objects ``{name: {parameters}}``. In a configuration file, the default is all metrics with
            ``policy: gate``. Not needed if you only call ``combine``.

    Detail: ``violations`` (names of the metrics that failed or returned an error). The score is vacuous if all inner scores were
    skipped, or if there are no inner scores.

    Source: ``MustAlwaysPass`` in HPD-Agent, which counts a skipped score as a violation.
    """
    scores = _inner_scores(subject, metrics)
    violations = [score.metric for score in scores if score.status == "error" or score.verdict is False]
    vacuous = all(score.status == "skipped" for score in scores)
    return Result(len(violations), detail={"violations": violations, **({"vacuous": True} if vacuous else {})})


@metric(unit="{item}", direction="down", aliases=("hpd:TrackTrend", "hpd:EvalPolicy.TrackTrend"))
def code_policy_track_trend(subject: Subject, *, metrics: list[InnerMetric] | None = None) -> Result:
    """Policy for metrics that you only track. The value is always 0.

    Parameters:
        metrics: Metric names, or objects ``{name: {parameters}}``. The policy doesn't evaluate these metrics, so you can omit this option.

    Detail: ``violations``, which is always empty.
    """
    return Result(0.0, detail={"violations": []})
