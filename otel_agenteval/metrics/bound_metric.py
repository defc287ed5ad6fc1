"""Metrics with their parameters, ready to evaluate turns."""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import math
import operator
import re
import reprlib
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core import jsonio
from ..core.errors import ConfigError, JudgeError, MetricError, NoModel, nearest, refusal
from ..core.extras import late_imports
from ..core.score import GATED, SHED, Facts, Policy, Score
from ..core.threads import is_meant_for_host
from ..core.turn import ToolCall, Turn
from ..core.wellformed import written
from ..media.rules import Rules, current_rules, opening
from .names import SeedView
from .question import EvaluationState, evaluating
from .registry import EPSILON, FIELD_OF_NEED, Applies, Metric, Result, builtin, name_under, resolve, under

_PRESENT_WHEN_EMPTY = frozenset(("output", "duration", "cost", "usage", "tool_calls", "retrieved_ids", "llm_calls"))
"""Turn fields that can be evaluated if they are empty. If any other field that a metric needs is empty, the metric is skipped."""

NOT_EVALUATED = frozenset((
    GATED, SHED, "no_judge", "no_embedder", "incomplete_turn", "sampled_out", "dropped", "error_of_ours",
))  # fmt: skip
"""Skip reasons of metrics that didn't run. Composite metrics count scores with these reasons as missing."""


class _Absent:
    """Placeholder for a missing judge or embedder. A metric that calls it, or scores blank output (unless vacuous), is skipped."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def ask(self, *args: Any, **kwargs: Any) -> Any:
        raise NoModel(self.reason)

    embed = ask


_NO_JUDGE, _NO_EMBEDDER = _Absent("no_judge"), _Absent("no_embedder")


def get_metric(name: str, /, **params: Any) -> BoundMetric:
    """Return a metric by name, with parameters, ready to evaluate.

    The name can also come from another catalog (``agentunit:tool_success``, ``trusys:icontains``), or from a tool that has an
    equivalent metric (``deepeval:FaithfulnessMetric``, see ``docs/reference/metrics/other-tools.md``). Parameters then use the
    units of that catalog or tool, and can also use its parameter names. Parameter names in camel case are also accepted.

    Raises:
        ConfigError: If the name is unknown or ambiguous, a parameter is unknown, unsupported, invalid, or set twice, or a tool's
            metric has no equivalent in otel-agenteval.
    """
    found = resolve(name)
    return BoundMetric(found.metric, found.parameters(params), view=found.view)


def live_metric(
    name: str, params: Mapping[str, Any], policy: Policy = "trend", scale: int = 1, system: str | None = None
) -> BoundMetric:
    """Return the metric for a configuration entry.

    Names from the seed catalog ``system`` (such as ``agentunit``) don't need a prefix. Thresholds of ratios are from 0 to ``scale``
    (1 or 100). The parameters in :attr:`Metric.live` are added if ``name`` is the metric's own name (not an alias), and ``params``
    is empty or contains only ``threshold`` and ``inverse``. Raises ConfigError for an unknown name or an invalid parameter.
    """
    found = resolve(under(system, name))
    inner = functools.partial(live_metric, scale=scale, system=system)
    return BoundMetric(found.metric, found.parameters(params, scale, configured=True), policy, found.view, inner)


InnerMetricOf = Callable[[str, Mapping[str, Any]], "BoundMetric"]
"""Function that returns the inner metric for a name and parameters. The default is :func:`get_metric`."""


class ChoosesJudges(ABC):
    """Judge that selects one or more judges for each turn and combines their scores."""

    @abstractmethod
    def evaluated(self, metric: BoundMetric, turn: Turn) -> Score: ...


class BoundMetric:
    """Metric with its parameters. ``evaluate(turn)`` returns a Score even if the metric raises an exception."""

    def __init__(
        self, metric: Metric, params: Mapping[str, Any], policy: Policy = "trend", view: SeedView | None = None,
        inner_metric: InnerMetricOf | None = None,
    ) -> None:  # fmt: skip
        self.metric = metric
        self.view = view
        self._inner_metric = inner_metric
        self.judge_model: str | None = None
        """Model that replaces the judge's model. PandaProbe's metrics set it with the parameter ``model``."""
        self._fn: Callable[..., Any] = metric.fn if metric.is_imported else self._load_and_call
        self.applies: Applies | None = None
        """Function that checks if the metric applies to a turn. None means that the metric applies to all turns."""
        if metric.selective:
            self.applies = metric.applies if metric.is_imported else self._load_and_apply
        self._service = metric.kind if metric.kind != "code" else None
        self.when: Any = None
        """Configured condition that turns must meet, or None (:func:`~otel_agenteval.evaluation.references.applies`)."""
        self.sample: Any = None
        """Sampling rule of a judged metric (:class:`~otel_agenteval.judging.sampling.SamplingRule`). None evaluates all turns."""
        self.rules: Rules | None = None
        """Media that the metric may open. None leaves the decision to the caller (:func:`~otel_agenteval.media.rules.opening`)."""
        self.name = metric.name
        self.policy = policy
        self._inverse = False
        self._truth: Any = None
        """Ground truth that replaces the turn's ground truth, or None."""
        self.params: Mapping[str, Any] = dict(params)
        self.series_params: Mapping[str, Any] | None = None
        """Parameters that identify the metric in reports, even if a dataset case uses other ``params``. None means ``params``."""
        self._call: Mapping[str, Any] = self.params
        self.threshold = metric.threshold if metric.own_threshold is None else metric.own_threshold
        if params and params != metric.live:  # the metric's live parameters are valid, so its module is imported later
            self._set_parameters(metric, params)
        self.missing = next((name for name in metric.required if name not in self.params), None)
        """Name of a required parameter that has no value, or None. If a value is missing, evaluations return errors."""
        self.signature_hash = _signature_hash(metric.name, self.params, view)
        # setting `inverse` to true or false turns a detector into an assertion
        direction = "up" if metric.direction == "neutral" and "inverse" in self.params else metric.direction
        self._facts = Facts(
            metric.name, metric.kind, metric.unit, direction, self.threshold, metric.type, metric.version, policy,
            f"\n{metric.name}\n{self.signature_hash}\n{metric.version}\n".encode(),
        )  # fmt: skip
        self._when_true: tuple[Any, ...] | None = None
        if metric.type == "boolean":  # most boolean scores are a plain pass, whose fields are computed once
            ordinary = self._score_of(Result(True))
            self._when_true = (self._facts, ordinary.value, ordinary.passed, "ok", ordinary.label, None, None, None, None)
        self.inner: Sequence[BoundMetric] = tuple(_inner_metrics(metric, self.params))
        self._is_plain = not (self._service or metric.media or self.missing or self.inner or view) and self._truth is None
        self._needs = tuple(
            (need, operator.attrgetter(FIELD_OF_NEED.get(need, need)), need in _PRESENT_WHEN_EMPTY)
            for need in metric.needs
            if need != "input" or view is None or view.input is None
        )

    def _set_parameters(self, metric: Metric, params: Mapping[str, Any]) -> None:
        given = dict(params)
        if self.view is not None and self.view.seed == "pandaprobe" and metric.kind == "llm" and "model" in given:
            if not isinstance(model := given.pop("model"), str) or not model:
                raise ConfigError(f"{metric.name}.model: must be the name of a model, got {model!r}")
            self.judge_model = model
        self.params = {
            key: _checked_parameter(metric, key, written(value, finite=not isinstance(value, (float, dict))), self._inner_metric)
            for key, value in given.items()
        }
        call = dict(self.params)
        if self.judge_model is not None:
            self.params = {**self.params, "model": self.judge_model}
        accepts = inspect.signature(metric.fn).parameters
        self._inverse = bool(call.get("inverse")) and "inverse" not in accepts
        threshold = call.get("threshold", metric.own_threshold)
        self.threshold = metric.threshold if threshold is None else threshold
        is_ratio = metric.unit == "1" and metric.family != "composite" and call.get("metric") not in ("dot", "euclidean")
        if is_ratio and metric.name in builtin() and threshold is not None and abs(threshold) > 1:
            raise ConfigError(f"{metric.name}.threshold: must be from -1 to 1, got {threshold:g}. Example: for 90 %, set 0.9")
        self._truth = call.get("ground_truth") if "ground_truth" not in accepts else None
        for generic in ("threshold", "inverse", "ground_truth"):
            if generic not in accepts:
                call.pop(generic, None)
        self._call = call

    def call_series(self, name: str) -> None:
        """Append ``.name`` to the name of the scores (``code_contains.refund``), to distinguish several entries for one metric."""
        self.name = f"{self.metric.name}.{name}"
        self._change_facts(metric=self.name)

    def set_policy(self, policy: Policy) -> None:
        """Set the policy of the metric's scores: ``gate`` (must pass) or ``trend`` (only tracked)."""
        self.policy = policy
        self._change_facts(policy=policy)

    def _change_facts(self, **changed: Any) -> None:
        self._facts = self._facts._replace(**changed)
        if self._when_true is not None:
            self._when_true = (self._facts, *self._when_true[1:])

    def but(self, params: Mapping[str, Any]) -> BoundMetric:
        """Return a copy of the metric with other parameters. In reports, both metrics' scores belong to the same series."""
        found = BoundMetric(self.metric, params, self.policy, self.view, self._inner_metric)
        if self.name != self.metric.name:
            found.call_series(self.name.removeprefix(f"{self.metric.name}."))
        found.when, found.sample, found.rules = self.when, self.sample, self.rules
        found.series_params = self.params if self.series_params is None else self.series_params
        return found

    def load(self) -> None:
        """Import the metric's module now, instead of when the first turn is evaluated."""
        with late_imports():
            definition = self.metric.definition
        self._fn, self.applies = definition.fn, definition.applies

    def _load_and_call(self, *args: Any, **params: Any) -> Any:
        with late_imports():
            self.load()
            return self._fn(*args, **params)

    def _load_and_apply(self, turn: Turn, params: Mapping[str, Any]) -> str | None:
        self.load()
        return self.applies(turn, params) if self.applies is not None else None

    @property
    def heavy(self) -> bool:
        """True if the metric or an inner metric is too slow for the agent's thread."""
        return self.metric.heavy or any(one.heavy for one in self.inner)

    @property
    def opens_media(self) -> bool:
        """True if the metric or an inner metric opens images, audio, or video."""
        return self.metric.media or any(one.opens_media for one in self.inner)

    @property
    def asks(self) -> bool:
        """True if the metric or an inner metric calls a model."""
        return self._service is not None or any(one.asks for one in self.inner)

    @property
    def key(self) -> tuple[str, str]:
        """Key shared by metrics that compute the same scores, even under different names."""
        return self.metric.name, self.signature_hash

    def evaluate(self, turn: Turn, *, judge: Any = None, embedder: Any = None) -> Score:
        """Score one turn.

        If the metric raises an exception, the score has ``status="error"``. If a needed turn field is missing, or the metric
        returns None or a skip reason, the score has ``status="skipped"``.

        This method catches the metric's exceptions, including ``SystemExit``. It raises only exceptions that are meant for the
        caller, such as ``KeyboardInterrupt``, the cancellation of a task or greenlet, or ``SystemExit`` from a signal handler.
        ``judge`` can also be a :class:`ChoosesJudges`.
        """
        try:
            if not self._is_plain:
                score = self._evaluate_fully(turn, judge, embedder)
                return score if self.view is None else self._with_seed_details(score, turn, self.view)
            if self._needs and (absent := self._first_absent(turn)) is not None:
                return self._skipped(f"missing:{absent}")
            found = self._fn(turn, **self._call) if self._call else self._fn(turn)
            return Score.of(*self._when_true) if found is True and self._when_true is not None else self._score_of(found)
        except NoModel as error:
            return self._skipped(error.reason)
        except BaseException as error:  # a metric's error must never reach the agent
            if is_meant_for_host(error):
                raise
            return self.failed(error)

    def _evaluate_fully(self, turn: Turn, judge: Any, embedder: Any) -> Score:
        """Evaluate a metric that needs more than the turn, such as a model, media, or inner metrics."""
        turn = self._with_truth(turn)
        if self._service == "llm" and isinstance(judge, ChoosesJudges):
            return judge.evaluated(self, turn)
        if self.missing is not None:
            raise MetricError("missing_parameter", f"{self.name}: parameter {self.missing!r} is required")
        if self.inner:
            return self.over([one.evaluate(turn, judge=judge, embedder=embedder) for one in self.inner])
        if (absent := self._first_absent(turn)) is not None:
            return self._skipped(f"missing:{absent}")
        model = judge if self._service == "llm" else embedder
        rules = None
        if self.metric.media:
            rules = self.rules or current_rules()
            if self._service is not None and model is None:
                rules = replace(rules, absent="no_judge" if self._service == "llm" else "no_embedder")  # opens nothing
        with opening(rules) if rules is not None else nullcontext():
            if self._service is None:
                return self._score_of(self._fn(turn, **self._call))
            if model is None:
                model = _NO_JUDGE if self._service == "llm" else _NO_EMBEDDER
            identity = f"{self.metric.version} {self.signature_hash}"
            with evaluating(self.name, identity, "reads_all" in self.metric.traits, self.judge_model) as evaluation:
                if self._service == "llm" and "media" not in self.metric.traits:
                    evaluation.media_not_shown = _media_in(turn)
                found = self._fn(turn, model, **self._call)
                while evaluation.next_piece():  # once for each piece of a turn that is too long
                    found = max(found, self._fn(turn, model, **self._call), key=self._badness)
            score = self._score_of(found)
            if isinstance(model, _Absent) and score.status == "ok" and not (score.vacuous or (turn.output or "").strip()):
                return self._skipped(model.reason)
            return self._accepted(score, evaluation)

    def _accepted(self, score: Score, evaluation: EvaluationState) -> Score:
        evaluation.accept()
        if evaluation.truncated:
            score.detail["input_truncated"] = True
        if evaluation.media_not_shown:
            score.detail["media_not_shown"] = evaluation.media_not_shown
        if evaluation.pieces > 1:
            score.detail["pieces"] = evaluation.pieces
        return score

    def _badness(self, found: Any) -> tuple[bool, float]:
        """Return a sort key that is highest for the worst result. Failed results and values that aren't finite are the worst."""
        failed, value = (found.passed is False, found.value) if found.__class__ is Result else (False, found)
        if value is None:
            return failed, -math.inf
        if not math.isfinite(value):
            return True, math.inf
        return failed, value if self.metric.direction == "down" else -value

    def _with_truth(self, turn: Turn) -> Turn:
        """Return the turn with the configured ground truth and, if the input is unknown, any substitute from the seed catalog."""
        changed = {} if self._truth is None else {"ground_truth": self._truth}
        if self.view is not None and self.view.input is not None and not turn.input:
            changed["input"] = self.view.input.replace("{output}", turn.output or "")
        return turn.but(changed) if changed else turn

    def _with_seed_details(self, score: Score, turn: Turn, view: SeedView) -> Score:
        for key, field in view.details.items() if score.status == "ok" else ():
            of_score, _, name = field.rpartition(".")
            holder = score if of_score else self._with_truth(turn)
            score.detail.setdefault(key, _plain_detail(score.detail.get(name) if of_score == "detail" else getattr(holder, name)))
        return score

    def _first_absent(self, turn: Turn) -> str | None:
        for need, read, present_when_empty in self._needs:
            known = read(turn)
            if known is None or not (known or present_when_empty or isinstance(known, (int, float))):  # 0 is a valid ground truth
                return need
        return None

    def not_applicable(self, turn: Turn) -> Score | None:
        """Return a ``skipped`` score if the metric doesn't apply to a turn. Return None if it applies or lacks a parameter.

        The skip reason names a missing turn field, or comes from ``applies``. If ``applies`` raises an exception, return an error
        score. Call this method before you evaluate or sample a turn, because :meth:`evaluate` doesn't call ``applies``.
        """
        if self.missing is not None:
            return None
        turn = self._with_truth(turn)
        try:
            if (absent := self._first_absent(turn)) is not None:
                return self._skipped(f"missing:{absent}")
            reason = None if self.applies is None else self.applies(turn, self.params)
            return None if reason is None else self._skipped(reason)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            return self.failed(error)

    async def evaluate_async(self, turn: Turn, *, judge: Any = None, embedder: Any = None) -> Score:
        """Run :meth:`evaluate` from an event loop. A metric that calls a model, even through an inner metric, runs in a thread."""
        if not self.asks:
            return self.evaluate(turn)
        import asyncio  # already imported if a coroutine runs

        return await asyncio.to_thread(self.evaluate, turn, judge=judge, embedder=embedder)

    def combine(self, scores: Sequence[Score]) -> Score:
        """Compute the score of a composite or policy metric from other scores."""
        try:
            if not self.metric.combines:
                raise MetricError("not_a_composite", f"{self.name}: must be a composite metric to combine scores")
            if self.missing is not None:
                raise MetricError("missing_parameter", f"{self.name}: parameter {self.missing!r} is required")
            found = self._score_of(self._fn(scores, **self._call))
            if self.view is not None:
                for key in list(found.detail):
                    found.detail[name_under(self.view.seed, key)] = found.detail.pop(key)
            return found
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            return self.failed(error)

    def over(self, scores: Sequence[Score]) -> Score:
        """Compute a composite's score from the scores of its inner metrics.

        If an inner metric wasn't evaluated (:data:`NOT_EVALUATED`), the composite is skipped as ``missing:METRIC``. Exception: if
        the composite has the trait ``one_fails``, and one of the known scores makes the composite fail, the composite fails.
        """
        if "companion" in self.metric.traits:
            (score,) = scores
            if score.status != "ok":
                detail, error_type = score.detail, score.error_type
                return Score.of(self._facts, None, None, score.status, None, score.explanation, detail, None, error_type)
            label = score.also[self.metric.name].label if self.metric.name in score.also else None
            return self._score_of(Result(score.passed is True, label=label, explanation=score.explanation, detail=score.detail))
        missing = {score.metric: why for score in scores if (why := why_missing(score)) is not None}
        if not missing:
            return self.combine(scores)
        if "one_fails" in self.metric.traits:
            found = self.combine(scores)
            if found.passed is False:
                found.detail["missing"] = missing
                return found
        return self._skipped(f"missing:{','.join(missing)}", {"missing": missing})

    def _score_of(self, found: Any) -> Score:
        if found is None:
            return self._skipped("not_applicable")
        result = found if found.__class__ is Result else Result(found)
        if result.skipped is not None:
            return self._skipped(result.skipped, result.detail)
        value, passed, label, facts = result.value, result.passed, result.label, self._facts
        if value is None and label is not None:  # a label without a value
            return Score.of(facts, None, None, "ok", label, result.explanation, result.detail, result.also, None)
        if inspect.iscoroutine(value):
            from ..core.futures import result_of  # imports asyncio

            return self._score_of(result_of(value))
        if not isinstance(value, (int, float)):
            (value,) = written((value,), finite=False)
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise MetricError("invalid_value", f"{self.name}: must return a finite number, got {value!r}")
        value = float(value)
        if facts.type == "boolean":
            if value not in (0.0, 1.0):
                raise MetricError("invalid_value", f"{self.name}: must return a bool, 0, or 1, got {value:g}")
            passed = bool(value) != self._inverse
            value = 1.0 if passed else 0.0
        elif passed is None and (threshold := facts.threshold) is not None:
            passed = value <= threshold + EPSILON if facts.direction == "down" else value >= threshold - EPSILON
        if label is None and passed is not None:
            # A detector's scores are "yes" or "no", and neither is a failure.
            words = ("no", "yes") if facts.direction == "neutral" else ("fail", "pass")
            label = words[passed]
        return Score.of(facts, value, passed, "ok", label, result.explanation, result.detail, result.also, None)

    def left_out(self, reason: str, by: str | None = None) -> Score:
        """Return a ``skipped`` score with a reason, for a turn that isn't evaluated."""
        return self._skipped(reason, None if by is None else {"by": by})

    def scored(self, value: float, detail: dict[str, Any], passed: bool | None = None) -> Score:
        """Return a score with a known value, without evaluating the turn. A verdict on the value replaces ``passed``."""
        return self._score_of(Result(value, passed=passed if self._facts.threshold is None else None, detail=detail))

    def _skipped(self, reason: str, detail: Mapping[str, Any] | None = None) -> Score:
        return Score.of(self._facts, None, None, "skipped", None, None, {"reason": reason, **(detail or {})}, None, None)

    def failed(self, error: BaseException) -> Score:
        """Return the score of an evaluation that ended with an exception."""
        error_type = error.error_type if isinstance(error, (MetricError, JudgeError)) else type(error).__name__
        # Messages of other exceptions can quote content, so only our own messages are used.
        is_ours = isinstance(error, (MetricError, ConfigError, JudgeError))
        explanation = str(error) if is_ours else f"{self.name} raised {error_type}{self._noted(error)}"
        return Score.of(self._facts, None, None, "error", None, explanation, None, None, error_type)

    def _noted(self, error: BaseException) -> str:
        """Keep a custom metric's first exception for :func:`log_exceptions`. Return the metric's last executed line, as text."""
        if self.metric.is_ours:
            return ""
        file = inspect.unwrap(self.metric.fn).__code__.co_filename
        codes = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        frames = [(code.co_filename, line, code.co_name, None) for code, line in codes]
        own = [place for place, (name, *_) in enumerate(frames) if name == file]
        message = f": {error}" if _log.isEnabledFor(logging.DEBUG) else ""
        _raised.setdefault(self.name, (f"{type(error).__name__}{message}", frames[min(own, default=0) :]))
        return f" ({Path(file).name}, line {frames[own[-1]][1]})" if own else ""

    def __repr__(self) -> str:
        return f"get_metric({', '.join([repr(self.name), *(f'{k}={v!r}' for k, v in self.params.items())])})"


_log = logging.getLogger("otel_agenteval")
_raised: dict[str, tuple[str, list[Any]]] = {}
"""Type and stack frames of each custom metric's first exception, by the metric's name. After logging, the frames are removed."""


def log_exceptions() -> None:
    """Log the traceback of each custom metric's first exception. Must not run on an agent's thread, because it reads files."""
    for name, (what, frames) in list(_raised.items()):
        if frames:
            _raised[name] = what, []
            lines = "".join(traceback.StackSummary.from_list(frames).format())
            _log.warning("metric %s raised %s (further exceptions are only counted):\n%s", name, what, lines.rstrip())


def _signature_hash(name: str, params: Mapping[str, Any], view: SeedView | None) -> str:
    try:
        text = jsonio.dumps({key: repr(value) for key, value in sorted(params.items())})
    except RecursionError:
        raise ConfigError(f"{name}: parameters are nested too deeply") from None
    return hashlib.sha256((text + ("" if view is None else repr(view))).encode()).hexdigest()[:16]


def _plain_detail(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_detail(item) for item in value[:100]]
    if isinstance(value, ToolCall):
        from .code.tool_trace import failure_of_call

        return {"name": value.name, "status": "error" if failure_of_call(value) else "success"}
    return value[:2_000] if isinstance(value, str) else value


def _media_in(turn: Turn) -> str:
    if not turn.attachments and not any(message.attachments for message in turn.messages):
        return ""
    from .lib.media import attachments_of, modalities_of

    found = Counter(kind for one in {str(one): one for one in attachments_of(turn)}.values() for kind in modalities_of(one))
    return ", ".join(f"{kind} × {number}" for kind, number in sorted(found.items()))


def why_missing(score: Score) -> str | None:
    """Return the reason why an inner metric didn't run, such as ``no_judge``, or None if it ran or doesn't apply."""
    if score.status != "skipped":
        return None
    reason, by = str(score.detail.get("reason", "")), score.detail.get("by")
    a_composite = reason.startswith("missing:") and isinstance(score.detail.get("missing"), dict)
    if reason not in NOT_EVALUATED and not a_composite:
        return None
    return str(by) if by else reason


def asked_in(metrics: Sequence[BoundMetric]) -> Iterator[BoundMetric]:
    for one in metrics:
        if one.inner:
            yield from asked_in(one.inner)
        elif one.metric.kind != "code":
            yield one


def asks_one(metrics: Sequence[BoundMetric], judge: object | None, embedder: object | None) -> bool:
    models = {"llm": judge, "embed": embedder}
    return any(models[metric.metric.kind] is not None for metric in asked_in(metrics))


def _inner_metrics(metric: Metric, params: Mapping[str, Any]) -> Iterator[BoundMetric]:
    if "companion" in metric.traits:
        severity = resolve(metric.name.removesuffix("_passed")).metric
        yield BoundMetric(severity, {name: value for name, value in params.items() if name in severity.parameters})
    if not metric.combines or metric.name == "code_policy_track_trend":  # its score doesn't depend on them
        return
    for entry in params.get("entries") or ():
        yield entry.metric
    yield from params.get("metrics") or ()
    if params.get("metric") is not None:
        yield params["metric"]


def _checked_parameter(metric: Metric, name: str, value: Any, inner_metric: InnerMetricOf | None) -> Any:
    if (parameter := metric.parameters.get(name)) is None:
        if name in _BESIDE_A_METRIC:
            raise ConfigError(
                f"{metric.name}.{name}: isn't a parameter of the metric. Move {name} one level up, next to {metric.name}"
            )
        if name == "model" and metric.kind == "llm":
            choice = f"{{metric: {metric.name}, model: {value}}}"
            raise ConfigError(
                f"{metric.name}.model: isn't a parameter of the metric. Choose the metric's model in judge.choose: [{choice}]"
            )
        close = nearest(name, metric.parameters, 1) if metric.parameters else []
        hint = f". Did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"{metric.name}.{name}: unknown parameter{hint} (parameters: {', '.join(metric.parameters) or 'none'})")
    import pydantic

    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(parameter.annotation, config={"arbitrary_types_allowed": True})
    except pydantic.PydanticUserError:  # the annotation is a model with its own config
        adapter = pydantic.TypeAdapter(parameter.annotation)
    try:
        return adapter.validate_python(value, context=inner_metric)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in (metric.name, name, *first["loc"]))
        rule = first["msg"].removeprefix("Value error, ").replace("Input should", "must", 1).partition(", unable to")[0]
        if first["type"] == "predicate_failed":
            rule = f"must be an allowed value. For the parameter's description, run `otel-agenteval explain {metric.name}`"
        duration = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
        if duration is not None:
            rule += f". Write {duration[1]} without a unit"
        raise ConfigError(refusal(path, reprlib.repr(value), rule)) from None


_BESIDE_A_METRIC = ("name", "policy", "when", "sample")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?s(?:ec(?:onds?)?)?")
