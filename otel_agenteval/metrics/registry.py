"""The one registry of metrics: a decorated function is a metric, and everything else is derived from it.

    @metric(unit="1", needs=("tool_calls",), threshold=0.7)
    def code_tool_success(turn: Turn, *, empty_value: float = 1.0) -> Result:
        \"\"\"Share of tool calls that did not end in an error.\"\"\"

Name, kind (prefix), family (module, unless given), parameters (keyword-only arguments, checked by their annotations) and user
documentation (docstring) are read from the function. A function that does not fit is refused at import with its file
and line. A parameter without a default is required: the name resolves without it, and evaluating is a score with
``status="error"``.

A metric function returns a number, a bool, ``None`` (not applicable), or a :class:`Result`; it raises
:class:`MetricError` for a configuration that cannot work. It never sees OpenTelemetry.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import math
import operator
import pkgutil
import re
import reprlib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ..core import jsonio
from ..core.errors import ConfigError, JudgeError, MetricError, NotAsked, nearest
from ..core.extras import extra_installed
from ..core.score import Direction, Facts, Kind, Policy, Score, ScoreType
from ..core.threads import is_meant_for_host
from ..core.turn import Turn
from .evaluation_context import evaluating

EPSILON = 1e-9
"""Slack of every threshold comparison, so that 0.1 + 0.2 meets 0.3."""


class Asks(Protocol):
    """What an ``llm_`` metric gets as its judge."""

    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One question, see :class:`otel_agenteval.Judge`; the JSON object that came back."""


class Embeds(Protocol):
    """What an ``embed_`` metric gets as its embedder."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, see :class:`otel_agenteval.Embedder`."""


class _Absent:
    """Stands where no judge or embedder was given: only a metric that has to ask notices."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def ask(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        raise NotAsked(self._reason)

    def embed(self, *args: Any, **kwargs: Any) -> list[list[float]]:
        raise NotAsked(self._reason)


_NO_JUDGE, _NO_EMBEDDER = _Absent("no_judge"), _Absent("no_embedder")


class Result:
    """What a metric function found, when a bare number does not say it all."""

    __slots__ = ("also", "detail", "explanation", "label", "passed", "skipped", "value")

    def __init__(
        self,
        value: float | bool | None,
        *,
        passed: bool | None = None,
        label: str | None = None,
        explanation: str | None = None,
        detail: dict[str, Any] | None = None,
        also: dict[str, Score] | None = None,
        skipped: str | None = None,
    ) -> None:
        self.value = value
        self.passed = passed
        self.label = label
        self.explanation = explanation
        self.detail = detail
        self.also = also
        self.skipped = skipped


def skip(reason: str, **detail: Any) -> Result:
    """Not applicable, and why (``missing:…``, ``empty_output``, ``too_long``, …)."""
    return Result(None, skipped=reason, detail=detail)


def vacuous(value: float | bool, **detail: Any) -> Result:
    """A value that only means that there was nothing to evaluate; aggregations leave it out."""
    return Result(value, detail={"vacuous": True, **detail})


_FIELD_OF_NEED = {"duration": "duration_s", "cost": "cost_usd", "llm_calls": "llm_call_count"}
_PRESENT_WHEN_EMPTY = frozenset(("output", "duration", "cost", "usage", "tool_calls", "retrieved_ids", "llm_calls"))
"""Needs that only ``None`` leaves open; of all others ``""`` and ``[]`` are as good as nothing (the model's empty facts)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a metric."""

    name: str
    annotation: Any
    default: Any
    """``inspect.Parameter.empty`` when the parameter is required."""

    @property
    def required(self) -> bool:
        """Whether evaluating without it is an error."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Metric:
    """A registered metric: the function and what was derived from it."""

    name: str
    fn: Callable[..., Any]
    kind: Kind
    family: str
    unit: str
    direction: Direction
    type: ScoreType
    threshold: float | None
    version: str
    needs: tuple[str, ...]
    aliases: Mapping[str, Mapping[str, Any]]
    """Other names, each with the parameters it presets."""
    spellings: Mapping[str, str]
    """Other spellings of parameters → ours."""
    inline: bool
    """Whether the default inline pack has it."""
    extra: str | None
    """The optional extra that it needs."""
    heavy: bool
    """Whether it is left out where somebody waits, and runs on the worker."""
    reads_all: bool
    """Whether its judge must have read all of the turn: a question that is too long is asked in pieces, and the worst one counts."""
    combines: bool
    """Whether it is computed over other scores (:meth:`BoundMetric.combine`)."""
    parameters: Mapping[str, Parameter]
    doc: str

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return self.doc.split("\n", 1)[0]

    def bind(self, **params: Any) -> BoundMetric:
        """This metric with parameters; they are checked now.

        Raises:
            ConfigError: an unknown parameter or a value that its type does not allow.
        """
        return BoundMetric(self, params)


_METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
_PATTERN_ALIASES: list[tuple[re.Pattern[str], str, str]] = []
_discovered = False


def metric(
    *,
    unit: str = "1",
    needs: Sequence[str] = (),
    direction: Direction = "up",
    boolean: bool = False,
    threshold: float | None = None,
    bounded: bool = True,
    version: str = "1",
    aliases: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    spellings: Mapping[str, str] | None = None,
    inline: bool = False,
    extra: str | None = None,
    heavy: bool = False,
    reads_all: bool = False,
    combines: bool = False,
    family: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a metric. The function stays callable as it is.

    Args:
        unit: UCUM unit of the value: ``1`` (0..1), ``s``, ``{token}``, ``USD``, ``{item}``, ``{level}``.
        needs: Turn fields that must be known, else the score is ``skipped`` with reason ``missing:<first absent>``.
        direction: whether more is better (``up``), less (``down``) or neither (``neutral``).
        boolean: whether the value is 1.0/0.0 with ``passed``; adds the parameter ``inverse``. Numeric metrics take ``threshold``.
        threshold: default bound of ``passed``; None means that the metric only trends.
        bounded: False for a numeric metric that says itself what passes: it has no parameter ``threshold``.
        version: change it when the same turn would get another value.
        aliases: names in other catalogues (``seed:name``), optionally with preset parameters; ``{k}`` in a name stands for
            a number that becomes the parameter of that name.
        spellings: other spellings of parameters, ``{theirs: ours}``.
        inline: whether the default inline pack has it (reference-free, cheap, and meaningful on any answer).
        extra: the optional extra that it needs (``[text]`` …).
        heavy: whether one evaluation can take milliseconds or more: then it never runs while an exporter waits for span events.
        reads_all: whether its judge must have read all that it is given, because what it looks for can stand anywhere (safety): a question
            that is longer than ``max_input_tokens`` is then asked in overlapping pieces, of which the worst counts, and is never cut. It has
            to ask in the thread or task that it is called in.
        combines: whether it takes a list of scores instead of a turn.
        family: the family's name; default the module's, which is right unless a family is spread over several modules.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        code = fn.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        name = fn.__name__
        kind = name.split("_", 1)[0]
        if kind not in ("code", "embed", "llm"):
            raise ConfigError(f"{where}: metric {name!r} must be named code_…, embed_… or llm_…")
        if not inspect.getdoc(fn):
            raise ConfigError(f"{where}: metric {name!r} has no docstring; it is the metric's user documentation")
        known = _METRICS.get(name)
        if known is not None and known.fn.__code__.co_filename != code.co_filename:
            other = known.fn.__code__
            raise ConfigError(f"{where}: metric {name!r} is already defined at {other.co_filename}:{other.co_firstlineno}")
        for need in needs:
            if need not in _FIELD_OF_NEED and need not in Turn.__annotations__:
                raise ConfigError(f"{where}: metric {name!r} needs {need!r}, which is no field of a turn")
        built = Metric(
            name=name, fn=fn, kind=cast("Kind", kind), family=family or fn.__module__.rsplit(".", 1)[-1], unit=unit,
            direction=direction, type="boolean" if boolean else "numeric", threshold=threshold, version=version, needs=tuple(needs),
            aliases=dict(aliases) if isinstance(aliases, Mapping) else {alias: {} for alias in aliases},
            spellings=dict(spellings or {}), inline=inline, extra=extra, heavy=heavy, reads_all=reads_all, combines=combines,
            parameters=_parameters(fn, where, "inverse" if boolean else "threshold" if bounded else None), doc=inspect.getdoc(fn) or "",
        )  # fmt: skip
        _METRICS[name] = built
        for alias, preset in built.aliases.items():
            _add_alias(alias, name, preset)
        return fn

    return register


def _parameters(fn: Callable[..., Any], where: str, generic: str | None) -> dict[str, Parameter]:
    signature = inspect.signature(fn)
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception as error:
        raise ConfigError(f"{where}: metric {fn.__name__!r}: an annotation cannot be read: {error}") from None
    found: dict[str, Parameter] = {}
    positional = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.POSITIONAL_ONLY]
    wanted = 1 if fn.__name__.startswith("code_") else 2
    if len(positional) != wanted or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        second = ", embedder" if fn.__name__.startswith("embed_") else ", judge" if wanted == 2 else ""
        raise ConfigError(f"{where}: metric {fn.__name__!r} takes (turn{second}, *, parameters by keyword)")
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            if p.name not in hints:
                raise ConfigError(f"{where}: metric {fn.__name__!r}: parameter {p.name!r} has no annotation")
            found[p.name] = Parameter(p.name, hints[p.name], p.default)
    if generic == "inverse":
        found.setdefault(generic, Parameter(generic, bool, False))
    elif generic == "threshold":
        found.setdefault(generic, Parameter(generic, float | None, None))
    return found


def _add_alias(alias: str, name: str, preset: Mapping[str, Any]) -> None:
    found = re.search(r"\{(\w+)\}", alias)
    if found:
        pattern = re.escape(alias[: found.start()]) + r"(\d+)" + re.escape(alias[found.end() :])
        parameter = next(iter(preset), found.group(1))
        _PATTERN_ALIASES.append((re.compile(pattern), name, str(parameter)))
        return
    for spelled in {alias, alias.split(":", 1)[-1]}:
        entries = _ALIASES.setdefault(spelled, [])
        if (name, preset) not in entries:
            entries.append((name, preset))


def discover() -> None:
    """Import every family module once, and metrics of other packages (entry point group ``otel_agenteval.metrics``)."""
    global _discovered
    if _discovered:
        return
    for room in ("code", "llm", "embed"):
        package = importlib.import_module(f"{__package__}.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _discovered = True
    for entry in importlib.metadata.entry_points(group="otel_agenteval.metrics"):
        entry.load()


def catalog() -> Iterator[Metric]:
    """All registered metrics, by name."""
    discover()
    yield from (_METRICS[name] for name in sorted(_METRICS))


def default_pack() -> list[str]:
    """Names of the default inline pack: reference-free metrics whose optional package, if any, is installed."""
    return [m.name for m in catalog() if m.inline and (m.extra is None or extra_installed(m.extra))]


def resolve(name: str) -> tuple[Metric, dict[str, Any]]:
    """The metric behind a canonical or seed name, and the parameters that the name presets.

    Raises:
        ConfigError: unknown (with the closest three names) or ambiguous (with the candidates).
    """
    discover()
    if name in _METRICS:
        return _METRICS[name], {}
    entries = _ALIASES.get(name, [])
    if len({entry[0] for entry in entries}) > 1:
        candidates = sorted(alias for alias in _ALIASES if alias.endswith(f":{name}"))
        raise ConfigError(f"metric {name!r} is ambiguous; one of {', '.join(candidates)}")
    if entries:
        target, preset = entries[0]
        return _METRICS[target], dict(preset)
    for pattern, target, parameter in _PATTERN_ALIASES:
        found = pattern.fullmatch(name) or (":" not in name and re.fullmatch(pattern.pattern.split(":", 1)[-1], name))
        if found:
            return _METRICS[target], {parameter: int(found.group(1))}
    if name.startswith("trusys:not-"):
        positive, preset = resolve(f"trusys:{name.removeprefix('trusys:not-')}")
        if "inverse" in positive.parameters:
            return positive, {**preset, "inverse": True}
    close = nearest(name, [*_METRICS, *_ALIASES])
    raise ConfigError(f"unknown metric {name!r}; did you mean {', '.join(close)}?")


def get_metric(name: str, /, **params: Any) -> BoundMetric:
    """A metric by name, with parameters, ready to evaluate.

    Any seed name resolves too: ``agentunit:tool_success``, ``trusys:icontains``, ``agenteval:code_recall_at_5``.

    Raises:
        ConfigError: unknown name or parameter, or a value that is not allowed.
    """
    found, preset = resolve(name)
    return found.bind(**{**preset, **params})


class BoundMetric:
    """A metric with its parameters: ``evaluate(turn)`` gives a Score, whatever the metric raises."""

    __slots__ = (
        "_call",
        "_facts",
        "_fn",
        "_inverse",
        "_missing",
        "_needs",
        "_service",
        "_when_true",
        "metric",
        "name",
        "params",
        "policy",
        "sample",
        "signature_hash",
        "threshold",
        "when",
    )

    def __init__(self, metric: Metric, params: Mapping[str, Any], policy: Policy = "trend") -> None:
        self.metric = metric
        self._fn = metric.fn
        self._service = metric.kind if metric.kind != "code" else None
        self.when: Any = None
        """Selector of the turns that it is for, where the configuration has one (:func:`~otel_agenteval.evaluation.references.applies`)."""
        self.sample: Any = None
        """Of a judged metric: which of those turns it is evaluated on (:class:`~otel_agenteval.judging.sampling.Rule`); None is all."""
        self.name = metric.name
        self.policy = policy
        given = {metric.spellings.get(key, key): value for key, value in params.items()}
        self.params = {key: _checked(metric, key, value) for key, value in given.items()}
        self._missing = next((p.name for p in metric.parameters.values() if p.required and p.name not in self.params), None)
        own = metric.fn.__kwdefaults__ or {}
        call = dict(self.params)
        accepts = inspect.signature(metric.fn).parameters
        self._inverse = bool(call.get("inverse")) and "inverse" not in accepts
        threshold = call.get("threshold", own.get("threshold"))
        self.threshold: float | None = metric.threshold if threshold is None else threshold
        for generic in ("threshold", "inverse"):
            if generic not in accepts:
                call.pop(generic, None)
        self._call = call
        try:
            text = jsonio.dumps({key: repr(value) for key, value in sorted(self.params.items())})
        except RecursionError:
            raise ConfigError(f"{metric.name}: a parameter is nested too deep") from None
        self.signature_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._facts = Facts(
            metric.name, metric.kind, metric.unit, metric.direction, self.threshold, metric.type, metric.version, policy,
            f"\n{metric.name}\n{self.signature_hash}\n{metric.version}\n".encode(),
        )  # fmt: skip
        self._when_true: tuple[Any, ...] | None = None
        if metric.type == "boolean":  # most boolean metrics find nothing wrong: all that is to be said then is said here
            ordinary = self._from(Result(True))
            self._when_true = (self._facts, ordinary.value, ordinary.passed, "ok", ordinary.label, None, None, None, None)
        self._needs = tuple(
            (need, operator.attrgetter(_FIELD_OF_NEED.get(need, need)), need in _PRESENT_WHEN_EMPTY) for need in metric.needs
        )

    @property
    def missing(self) -> str | None:
        """A required parameter without a value: every score is an error then."""
        return self._missing

    def evaluate(self, turn: Turn, *, judge: Any = None, embedder: Any = None) -> Score:
        """Score one turn. A metric that fails is a score with ``status="error"``, one that does not apply ``skipped``.

        Nothing that the metric raises gets out, also no ``SystemExit``. What interrupts the caller's thread does: ``KeyboardInterrupt``,
        the cancellation of a task or a greenlet, a signal handler that exits.

        ``judge`` may also be somebody who decides who judges, with a method ``evaluated(metric, turn)``.
        """
        try:
            if judge is not None and self._service == "llm":
                decided = getattr(judge, "evaluated", None)
                if decided is not None:
                    return cast("Score", decided(self, turn))
            if self._missing is not None:
                raise MetricError("missing_parameter", f"{self.name}: parameter {self._missing!r} is required")
            for need, read, present_when_empty in self._needs:
                known = read(turn)
                if known is None or not (known or present_when_empty or isinstance(known, (int, float))):  # 0 is a ground truth
                    return self._skipped({"reason": f"missing:{need}"})
            if self._service is not None:
                return self._asked(turn, judge, embedder)
            found = self._fn(turn, **self._call)
            return Score.of(*self._when_true) if found is True and self._when_true is not None else self._from(found)
        except NotAsked as absent:
            return self._skipped({"reason": absent.reason})
        except BaseException as error:  # a metric's fault must never reach the agent
            if is_meant_for_host(error):
                raise
            return self._failed(error)

    def _asked(self, turn: Turn, judge: Any, embedder: Any) -> Score:
        given, absent = (judge, _NO_JUDGE) if self._service == "llm" else (embedder, _NO_EMBEDDER)
        asked = absent if given is None else given
        with evaluating(f"{self.metric.version} {self.signature_hash}", self.metric.reads_all) as evaluation:
            found = self._fn(turn, asked, **self._call)
            while evaluation.next_piece():
                found = max(found, self._fn(turn, asked, **self._call), key=self._badness)
        score = self._from(found)
        evaluation.accept()
        if evaluation.truncated:
            score.detail["input_truncated"] = True
        if evaluation.pieces > 1:
            score.detail["pieces"] = evaluation.pieces
        return score

    def _badness(self, found: Any) -> tuple[bool, float]:
        """What the worst of several pieces is found by: one that fails, then one with a bad value; one that is none is an error."""
        failed, value = (found.passed is False, found.value) if found.__class__ is Result else (False, found)
        if value is None:
            return failed, -math.inf
        if not math.isfinite(value):
            return True, math.inf
        return failed, value if self.metric.direction == "down" else -value

    async def evaluate_async(self, turn: Turn, *, judge: Any = None, embedder: Any = None) -> Score:
        """As :meth:`evaluate`, for callers that have an event loop: a metric that asks somebody does so on a thread."""
        if self._service is None:
            return self.evaluate(turn)
        import asyncio  # imported by now, wherever a coroutine runs

        return await asyncio.to_thread(self.evaluate, turn, judge=judge, embedder=embedder)

    def combine(self, scores: Sequence[Score]) -> Score:
        """Score other scores: composites and policies."""
        try:
            if not self.metric.combines:
                raise MetricError("not_a_composite", f"{self.name} evaluates turns, not scores")
            if self._missing is not None:
                raise MetricError("missing_parameter", f"{self.name}: parameter {self._missing!r} is required")
            return self._from(self.metric.fn(scores, **self._call))
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            return self._failed(error)

    def _from(self, found: Any) -> Score:
        passed = label = explanation = detail = also = None
        if found.__class__ is Result:
            if found.skipped is not None:
                return self._skipped({"reason": found.skipped, **(found.detail or {})})
            value, passed, label = found.value, found.passed, found.label
            explanation, detail, also = found.explanation, found.detail, found.also
        elif found is None:
            return self._skipped({"reason": "not_applicable"})
        else:
            value = found
        if value is None and label is not None:  # a classification, and nothing to compare it with
            return Score.of(self._facts, None, None, "ok", label, explanation, detail, also, None)
        if value is None or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise MetricError("invalid_value", f"{self.name} gave {value!r}, which is no finite number")
        facts = self._facts
        if facts.type == "boolean":
            passed = bool(value) != self._inverse
            value = 1.0 if passed else 0.0
        else:
            value = float(value)
            bound = facts.threshold
            if passed is None and bound is not None:
                passed = value <= bound + EPSILON if facts.direction == "down" else value >= bound - EPSILON
        if label is None and passed is not None:
            # A detector finds something or not; neither is a failure.
            words = ("yes", "no") if facts.direction == "neutral" else ("pass", "fail")
            label = words[0] if passed else words[1]
        return Score.of(facts, value, passed, "ok", label, explanation, detail, also, None)

    def left_out(self, reason: str, by: str | None = None) -> Score:
        """The score of a turn on which it is not evaluated, whatever the turn holds: ``skipped`` with this reason."""
        return self._skipped({"reason": reason} if by is None else {"reason": reason, "by": by})

    def _skipped(self, detail: dict[str, Any]) -> Score:
        return Score.of(self._facts, None, None, "skipped", None, None, detail, None, None)

    def _failed(self, error: BaseException) -> Score:
        error_type = error.error_type if isinstance(error, (MetricError, JudgeError)) else type(error).__name__
        # The message of a foreign exception can quote content: only our own texts go into the explanation.
        explanation = (
            str(error) if isinstance(error, (MetricError, ConfigError, JudgeError)) else f"{self.name} raised {error_type}"
        )
        return Score.of(self._facts, None, None, "error", None, explanation, None, None, error_type)

    def __repr__(self) -> str:
        return f"get_metric({', '.join([repr(self.name), *(f'{k}={v!r}' for k, v in self.params.items())])})"


def _checked(metric: Metric, name: str, value: Any) -> Any:
    parameter = metric.parameters.get(name)
    if parameter is None:
        close = nearest(name, metric.parameters, 1) if metric.parameters else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"{metric.name}.{name}: unknown parameter{hint} (it takes {', '.join(metric.parameters) or 'none'})")
    import pydantic

    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(parameter.annotation, config={"arbitrary_types_allowed": True})
    except pydantic.PydanticUserError:  # the annotation is a model, which has a config of its own
        adapter = pydantic.TypeAdapter(parameter.annotation)
    try:
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in (metric.name, name, *first["loc"]))
        raise ConfigError(f"{path}: {reprlib.repr(value)} is not allowed: {first['msg']}") from None
