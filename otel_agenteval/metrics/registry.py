"""Registry of metrics. A decorated function is a metric, and the metric's properties are derived from the function.

    @metric(unit="1", needs=("tool_calls",), threshold=0.7)
    def code_tool_success(turn: Turn, *, empty_value: float = 1.0) -> Result:
        'Share of tool calls that didn't end in an error.'

The properties are the name, kind (the name's prefix), family (by default the module), parameters (keyword-only arguments, checked
by their annotations), and user documentation (docstring). An invalid function raises ConfigError at import, with its file and line.
The generated ``catalog_index.json`` lists the built-in metrics, so their modules are imported only on first use. A parameter
without a default is required. If a required parameter isn't set, the metric can be created, but evaluations are errors.

A metric function returns a number, a bool, ``None`` (not applicable), or a :class:`Result`. The function raises
:class:`MetricError` for a configuration that can't work.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar, cast

from ..core import jsonio
from ..core.errors import ConfigError, likeness, meant, nearest
from ..core.extras import entry_points, extra_installed
from ..core.forms import snake_case
from ..core.score import Direction, Kind, Score, ScoreType
from ..core.turn import Turn
from ..core.wellformed import written
from . import names
from .question import Answers
from .spellings import Converted, Spelling, Spellings, Unsupported

EPSILON = 1e-9
"""Tolerance of every threshold comparison, so that 0.1 + 0.2 isn't above a limit of 0.3."""

Asks = Answers


class Embeds(Protocol):
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, as described in :class:`otel_agenteval.Embedder`."""


@dataclass(slots=True, eq=False, repr=False)
class Result:
    """Result of a metric function that returns more than a number."""

    value: float | bool | None
    _: KW_ONLY
    passed: bool | None = None
    label: str | None = None
    explanation: str | None = None
    detail: dict[str, Any] | None = None
    also: dict[str, Score] | None = None
    skipped: str | None = None


def skip(reason: str, **detail: Any) -> Result:
    """Return the result of a metric that doesn't apply to a turn, with a reason such as ``too_long``."""
    return Result(None, skipped=reason, detail=detail)


def vacuous(value: float | bool, **detail: Any) -> Result:
    """Return the result for a turn with nothing to evaluate. Aggregations exclude such results."""
    return Result(value, detail={"vacuous": True, **detail})


Applies = Callable[[Turn, Mapping[str, Any]], "str | None"]
"""Function that returns the reason why a metric doesn't apply to a turn, or None. It receives the turn and the metric's parameters.

The first line of the function's docstring completes "applies to …".
"""

Trait = Literal["heavy", "media", "reads_all", "one_fails", "own_verdict", "companion"]
TRAITS: Sequence[Trait] = typing.get_args(Trait)
"""Rare properties of metrics, as described in :func:`metric`."""

FIELD_OF_NEED = {"duration": "duration_s", "cost": "cost_usd", "llm_calls": "llm_call_count"}


class Param:
    """Annotation that adds alternative names to a parameter: ``value: Annotated[str, Param("expected_output")]``."""

    def __init__(self, *names: str) -> None:
        self.names = names


_GROUND_TRUTH = Annotated[Any, Param("value", "expected_output", "expcted_output")]


@dataclass(frozen=True, slots=True)
class MetricParameter:
    name: str
    annotation: Any
    default: Any
    """Default, or ``inspect.Parameter.empty`` if the parameter is required."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


class Definition(NamedTuple):
    """Properties of a metric that are unknown until its module is imported."""

    fn: Callable[..., Any]
    parameters: Mapping[str, MetricParameter]
    applies: Applies | None
    aliases: Mapping[str, Mapping[str, Any]]
    doc: str


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    source: Definition | str
    """Definition, or the module's name if a built-in metric hasn't been imported yet."""
    family: str
    unit: str = "1"
    direction: Direction = "up"
    type: ScoreType = "numeric"
    threshold: float | None = None
    version: str = "1"
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Names of the :data:`GROUPS` that include the metric. ``default`` means that it is a default metric."""
    live: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for configuration entries with the metric's own name and no parameters except ``threshold`` and ``inverse``."""
    extra: str | None = None
    traits: tuple[Trait, ...] = ()
    combines: bool = False
    """True if the metric is computed from other scores (:meth:`BoundMetric.combine`)."""
    selective: bool = False
    """True if :attr:`Definition.applies` excludes some turns."""
    required: tuple[str, ...] = ()
    own_threshold: float | None = None
    """Default of the function's own parameter ``threshold``."""

    @property
    def kind(self) -> Kind:
        return cast("Kind", self.name.split("_", 1)[0])

    @property
    def reads(self) -> frozenset[str]:
        return frozenset((*(FIELD_OF_NEED.get(need, need) for need in self.needs), *self.uses, *self.references))

    @property
    def definition(self) -> Definition:
        """Definition of the metric. Imports the metric's module if necessary."""
        if isinstance(self.source, str):
            importlib.import_module(self.source)
            return _METRICS[self.name].definition
        return self.source

    @property
    def is_imported(self) -> bool:
        return not isinstance(self.source, str)

    @property
    def is_ours(self) -> bool:
        module = self.source if isinstance(self.source, str) else self.source.fn.__module__
        return module.startswith(f"{__package__}.")

    @property
    def fn(self) -> Callable[..., Any]:
        return self.definition.fn

    @property
    def parameters(self) -> Mapping[str, MetricParameter]:
        return self.definition.parameters

    @property
    def applies(self) -> Applies | None:
        return self.definition.applies if self.selective else None

    @property
    def aliases(self) -> Mapping[str, Mapping[str, Any]]:
        return self.definition.aliases

    @property
    def spellings(self) -> Mapping[str, str]:
        notes = ((p.name, note) for p in self.parameters.values() for note in getattr(p.annotation, "__metadata__", ()))
        return {name: ours for ours, note in notes if isinstance(note, Param) for name in note.names}

    @property
    def doc(self) -> str:
        return self.definition.doc

    @property
    def summary(self) -> str:
        return self.doc.split("\n", 1)[0]

    @property
    def inline(self) -> bool:
        """True if the metric is one of the default metrics."""
        return "default" in self.groups

    @property
    def heavy(self) -> bool:
        return "heavy" in self.traits

    @property
    def media(self) -> bool:
        return "media" in self.traits

    @property
    def applies_to(self) -> str | None:
        """Description of the turns to which the metric applies, or None if it applies to all turns with the needed fields."""
        line = (inspect.getdoc(self.applies) or "").split("\n", 1)[0].rstrip(".") if self.selective else ""
        return line[:1].lower() + line[1:] or None


Function = TypeVar("Function", bound=Callable[..., Any])
_METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
_PATTERN_ALIASES: list[tuple[re.Pattern[str], str, str, str]] = []
_extended = False


def metric(
    *_misplaced: Any,
    needs: Sequence[str] = (),
    uses: Sequence[str] = (),
    references: Sequence[str] = (),
    unit: str = "1",
    direction: Direction = "up",
    boolean: bool = False,
    threshold: float | None = None,
    applies: Applies | None = None,
    groups: Sequence[str] = (),
    version: str = "1",
    aliases: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    live: Mapping[str, Any] | None = None,
    extra: str | None = None,
    traits: Sequence[Trait] = (),
) -> Callable[[Function], Function]:
    """Register a function as a metric, and return the function unchanged.

    Other properties are derived from the function. The function's name starts with the metric's kind. Its keyword-only arguments
    are the metric's parameters, and their annotations validate the values (:class:`Param` adds alternative names). If the first
    argument's type includes scores, the metric is a composite. A coroutine function gets the trait ``heavy``. The family is the
    module's name or its constant ``FAMILY``.

    Turns contain expensive data, such as earlier turns for judged metrics, only if a configured metric declares this data in
    ``needs``, ``uses``, or ``references``. Scores record the sources of declared references.

    Args:
        needs: Turn fields that must be known. If a field is missing, the score is ``skipped`` with the reason ``missing:<field>``.
            ``ground_truth`` adds a parameter of this name, which overrides the turn's value.
        uses: Turn fields that the metric reads if they are known, such as ``history``, ``session``, or ``context``.
        references: Names of the turn's references that the metric reads, such as ``expected_tools``.
        unit: UCUM unit of the value: ``1`` (0..1), ``s``, ``{token}``, ``USD``, ``{level}``, or ``{item}`` for other numbers.
        direction: ``up`` if higher is better, ``down`` if lower is better, ``neutral`` if neither is.
        boolean: True if the value is always 1.0 or 0.0. The metric then has the parameter ``inverse`` instead of ``threshold``.
        threshold: Default threshold. If None, a numeric value alone has no verdict by default.
        applies: Function that returns None if the metric applies to a turn. Otherwise, the function returns a reason, such as
            ``not_applicable:one_step``, and the score is ``skipped`` with this reason. The function runs before a turn is evaluated
            or sampled. ``evaluate`` and ``combine`` don't call the function. Its docstring's first line completes "applies to …".
        groups: Groups that include the metric: ``safety``, ``quality``, ``cost``, or ``default`` for a default metric
            (reference-free, cheap, and meaningful for any answer).
        version: Version of the metric. Change the version if the same turn gets a different value.
        aliases: Names in other catalogs (``seed:name``), optionally with preset parameters. ``{k}`` in a name matches a
            number, which becomes a parameter's value.
        live: Parameters for configuration entries with the metric's own name and no parameters except ``threshold`` and
            ``inverse``. They can select a more precise method than the default.
        extra: Optional extra that the metric requires, such as ``text``.
        traits: Rare properties:

            - ``heavy``: one evaluation can take milliseconds, so the metric never runs while a span's export waits for scores.
            - ``media``: the metric opens images, audio, or video, as configured in the section ``media``. A ``code_`` metric is
              then also heavy.
            - ``reads_all``: the judge must read all of its input, because a finding can be anywhere (safety). Input longer
              than ``max_input_tokens`` is judged in overlapping pieces, and the worst result is used. The metric must call
              the judge in the thread or task that evaluates it.
            - ``one_fails``: a single score can fail the composite, so the composite doesn't wait for missing scores.
            - ``own_verdict``: the numeric metric sets its verdict itself, and has no parameter ``threshold``.
            - ``companion``: the metric is named ``X_passed``. The metric ``X`` is evaluated instead, and its result's ``also``
              contains the score of ``X_passed``.
    """
    if _misplaced:
        _refuse_class(_misplaced[0])
        raise ConfigError("metric: write @oa.metric() with parentheses, and with only keyword arguments")

    def register(fn: Function) -> Function:
        _refuse_class(fn)
        name = fn.__name__
        place = f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}: metric {name!r}"
        _check_function(fn, applies, place)
        _check_declarations(place, needs, uses, references, groups, traits)
        try:
            hints = typing.get_type_hints(fn, include_extras=True)
        except Exception as error:
            raise ConfigError(f"{place}: cannot read an annotation: {error}") from None
        subject = hints.get(fn.__code__.co_varnames[0])
        added = ("inverse", bool, False) if boolean else ("threshold", float | None, None)
        parameters = _parameters(fn, hints, place)
        if "own_verdict" not in traits:
            parameters.setdefault(added[0], MetricParameter(*added))
        if "ground_truth" in needs:
            parameters.setdefault("ground_truth", MetricParameter("ground_truth", _GROUND_TRUTH, None))
        defined = Definition(
            fn, parameters, applies,
            dict(aliases) if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}, inspect.getdoc(fn) or "",
        )  # fmt: skip
        is_slow = ("media" in traits and name.startswith("code_")) or inspect.iscoroutinefunction(fn)
        also_heavy: tuple[Trait, ...] = ("heavy",) if is_slow else ()
        _METRICS[name] = Metric(
            name=name, source=defined, family=fn.__globals__.get("FAMILY") or fn.__module__.rsplit(".", 1)[-1], unit=unit,
            direction=direction, type="boolean" if boolean else "numeric", threshold=threshold, version=version,
            needs=tuple(needs), uses=tuple(uses), references=tuple(references), groups=tuple(groups), live=dict(live or {}),
            extra=extra, traits=tuple(dict.fromkeys((*traits, *also_heavy))),
            combines=any(Score in typing.get_args(choice) for choice in (subject, *typing.get_args(subject))),
            selective=applies is not None, required=tuple(p.name for p in parameters.values() if p.required),
            own_threshold=(fn.__kwdefaults__ or {}).get("threshold"),
        )  # fmt: skip
        for alias, preset in defined.aliases.items():
            _add_alias(alias, name, preset)
        return fn

    return register


def metric_of(fn: Callable[..., Any]) -> Metric:
    """Return the metric for a function that accepts a turn. If the function isn't a metric yet, register it.

    A function ``f`` without the decorator becomes ``code_f``. If it returns True or False, the score passes or fails.

    Raises:
        ConfigError: If the function has no name or a decorated metric's name, or is a class.
    """
    _refuse_class(fn)
    name = getattr(fn, "__name__", "")
    if (known := _METRICS.get(name)) is not None and known.fn is fn:
        return known
    if not name.isidentifier():
        raise ConfigError(f"metrics: a function must have a name, got {fn!r}. Define it with def")

    def found(turn: Turn) -> Any:
        given = fn(turn)
        if inspect.iscoroutine(given):
            from ..core.futures import result_of  # imports asyncio

            given = result_of(given)
        result = given if isinstance(given, Result) else Result(given)
        (value,) = written((result.value,), finite=False)  # numpy has truth values of its own
        if isinstance(value, bool) and result.passed is None:
            return replace(result, value=float(value), passed=value)
        return given if given is result else value

    found.__name__ = name if name.startswith("code_") else f"code_{name}"
    found.__doc__ = inspect.getdoc(fn) or f"Return the result of the function {name} for a turn."
    metric()(found)
    return _METRICS[found.__name__]


GROUPS = {
    "default": "cheap metrics that run without configuration, need no reference, and are meaningful for any answer",
    "safety": "leaks, injected instructions, and blocked content",
    "quality": "quality of a turn, evaluated without a reference",
    "cost": "time, tokens, money, and retries",
    "all": "all `code_` metrics, except composite metrics and metrics with required options or `references`",
}
"""Named groups of metrics, with their descriptions."""
_DECLARED = ("safety", "quality", "cost", "default")


def _refuse_class(given: Any) -> None:
    if inspect.isclass(given):
        how = "Write a function that accepts a turn. To register a class with evaluate(case, trace, outcome), call otel_agenteval.metrics.agentunit.register_metric"
        raise ConfigError(f"metric: must be a function, got the class {given.__name__}. {how}")


def _check_function(fn: Callable[..., Any], applies: Applies | None, place: str) -> None:
    name = fn.__name__
    if name.split("_", 1)[0] not in ("code", "embed", "llm"):
        raise ConfigError(f"{place} must be named code_…, embed_…, or llm_…")
    if not inspect.getdoc(fn):
        raise ConfigError(f"{place} needs a docstring, which is its user documentation")
    if applies is not None and not inspect.getdoc(applies):
        where = place.removesuffix(f": metric {name!r}")
        raise ConfigError(f"{where}: the function in 'applies' needs a docstring, whose first line completes \"applies to …\"")
    ours = indexed(name)
    if ours is not None and ours.source != fn.__module__:
        importlib.import_module(str(ours.source))
    known = _METRICS.get(name)
    if known is not None and known.fn.__code__.co_filename != fn.__code__.co_filename:
        other = known.fn.__code__
        raise ConfigError(f"{place} is already defined at {other.co_filename}:{other.co_firstlineno}")


def _check_declarations(
    place: str, needs: Sequence[str], uses: Sequence[str], references: Sequence[str], groups: Sequence[str], traits: Sequence[str]
) -> None:
    facts = {*Turn.__annotations__}
    for option, given, fields in (
        ("needs", needs, facts.union(FIELD_OF_NEED)),
        ("uses", uses, facts),
        ("references", references, None),
    ):
        if isinstance(given, str):
            raise ConfigError(f"{place}: {option} must be a tuple or list of names, such as {(given,)}, got {given!r}")
        if missing := [fact for fact in given if fields is not None and fact not in fields]:
            raise ConfigError(f"{place}: {option} {missing[0]!r} is not a field of a turn{meant(missing[0], fields or ())}")
    for option, given, known in (("groups", groups, _DECLARED), ("traits", traits, TRAITS)):
        unknown = [given] if isinstance(given, str) else [word for word in given if word not in known]
        if unknown:
            raise ConfigError(f"{place}: {option} must be a tuple or list of {', '.join(known)}, got {unknown[0]!r}")


def _parameters(fn: Callable[..., Any], hints: Mapping[str, Any], place: str) -> dict[str, MetricParameter]:
    arguments = inspect.signature(fn).parameters.values()
    kinds = [p.kind.name for p in arguments if p.kind is not p.KEYWORD_ONLY]
    second = {"llm": ", judge", "embed": ", embedder"}.get(fn.__name__.split("_", 1)[0], "")
    if len(kinds) != (2 if second else 1) or {"VAR_POSITIONAL", "VAR_KEYWORD"} & set(kinds):
        raise ConfigError(f"{place} must have the signature (turn{second}, *, keyword-only parameters)")
    found: dict[str, MetricParameter] = {}
    for p in arguments:
        if p.kind is p.KEYWORD_ONLY:
            if p.name not in hints:
                raise ConfigError(f"{place}: parameter {p.name!r} needs an annotation")
            found[p.name] = MetricParameter(p.name, hints[p.name], p.default)
    return found


def _add_alias(alias: str, name: str, preset: Mapping[str, Any]) -> None:
    seed, _, rest = alias.rpartition(":")
    if placeholder := re.search(r"\{(\w+)\}", rest):
        before, after = map(re.escape, (rest[: placeholder.start()], rest[placeholder.end() :]))
        pattern = re.compile(rf"(?:{re.escape(seed)}:)?{before}(\d+){after}")
        _PATTERN_ALIASES.append((pattern, seed, name, next(iter(preset), placeholder[1])))
        return
    for spelled in {alias, rest}:
        entries = _ALIASES.setdefault(spelled, [])
        if (name, preset) not in entries:
            entries.append((name, preset))


def call_metric(name: str, alias: str) -> None:
    """Make ``alias``, both with and without its prefix, refer only to the metric ``name``."""
    for spelled in (alias, alias.rpartition(":")[2]):
        _import_metrics_called(spelled)
        _ALIASES[spelled] = [(name, {})]


@functools.cache
def discover() -> None:
    """Import all metric modules, and the metrics that other packages declare as entry points."""
    import pkgutil

    for room in ("code", "llm", "embed"):
        package = importlib.import_module(f"{__package__}.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _import_entry_points()


def _import_entry_points() -> None:
    global _extended
    if not _extended:
        _extended = True
        for entry in entry_points("otel_agenteval.metrics"):
            entry.load()


def catalog() -> Iterator[Metric]:
    discover()
    yield from (_METRICS[name] for name in sorted(_METRICS))


@functools.cache
def builtin() -> dict[str, dict[str, Any]]:
    """Return the index of the built-in metrics, which ``scripts/gen_docs.py`` generates from the decorators.

    Each row contains the metric's module within this package, its aliases, and the declarations that differ from the defaults.
    """
    found: dict[str, dict[str, Any]] = jsonio.loads(Path(__file__).with_name("catalog_index.json").read_bytes())
    for row in found.values():
        for key, value in row.items():
            if isinstance(value, list):
                row[key] = tuple(value)  # the garbage collector visits neither tuples of strings nor dictionaries of such tuples
    return found


def _find(name: str) -> Metric | None:
    """Return the metric with this canonical name, or None. Doesn't import built-in metrics."""
    if (found := _METRICS.get(name) or indexed(name)) is None:
        _import_entry_points()
        found = _METRICS.get(name)
    return found


def indexed(name: str) -> Metric | None:
    if (row := builtin().get(name)) is None:
        return None
    facts = dict(row)
    module = f"{__package__}.{facts.pop('module')}"
    del facts["aliases"]
    return Metric(name, module, **{"family": module.rsplit(".", 1)[-1], **facts})


def _import_metrics_called(name: str) -> None:
    for row in builtin().values():
        if any("{" in alias or name in (alias, alias.split(":", 1)[-1]) for alias in row["aliases"]):
            importlib.import_module(f"{__package__}.{row['module']}")


def group_of(name: str, *, is_installed: bool = True) -> list[str]:
    """Return the sorted names of a group's metrics whose extra, if any, is installed. If not ``is_installed``, return the others.

    Raises:
        ConfigError: If the group is unknown.
    """
    if name not in GROUPS:
        raise ConfigError(f"{name}: unknown group of metrics. Allowed: {', '.join(GROUPS)}")
    _import_entry_points()
    indexed_members = [member for member, row in builtin().items() if name == "all" or name in row.get("groups", ())]
    known = {**_METRICS, **{member: metric for member in indexed_members if (metric := _find(member)) is not None}}
    return sorted(
        m.name for m in known.values() if _is_in_group(m, name) and (m.extra is None or extra_installed(m.extra)) is is_installed
    )


def _is_in_group(metric: Metric, group: str) -> bool:
    if group != "all":
        return group in metric.groups
    return metric.kind == "code" and not (metric.combines or metric.references or metric.required)


def groups_of(metric: Metric) -> list[str]:
    return [name for name in GROUPS if _is_in_group(metric, name)]


def default_pack() -> list[str]:
    return group_of("default")


def under(system: str | None, name: str) -> str:
    """Prefix a metric name from the seed catalog ``system`` with ``system:``. Canonical names and prefixed names stay unchanged."""
    if system is None or ":" in name or _find(name.partition(".")[0]):
        return name
    known = (f"{system}:{name.removeprefix('not-') if system == 'trusys' else name}", f"{system}:{name}Evaluator")
    return f"{system}:{name}" if any(one in known for row in builtin().values() for one in row["aliases"]) else name


_PASS_MARKS = ("pass_threshold", "passing_threshold")
"""Alternative names of the parameter ``threshold``, for all metrics that have this parameter."""


class ResolvedName(NamedTuple):
    metric: Metric
    preset: dict[str, Any]
    spellings: Spellings
    """Parameter names that are accepted with this metric name, in addition to the metric's own parameter names."""
    note: str = ""
    view: names.SeedView | None = None
    """Changes to scores if the name comes from a seed catalog, or None."""
    live: Mapping[str, Any] = {}
    """:attr:`Metric.live` if the name is the metric's canonical name, otherwise empty."""

    def parameters(self, given: Mapping[str, Any], scale: int = 1, *, configured: bool = False) -> dict[str, Any]:
        """Return the preset and given parameters with otel-agenteval's names and units. Unknown names stay unchanged.

        Args:
            given: Parameters under the caller's names.
            scale: 100 if given thresholds for values from 0 to 1 are percentages, otherwise 1.
            configured: True for a configuration entry, to which :attr:`live` applies.

        Raises:
            ConfigError: If a parameter is set twice, has no equivalent in otel-agenteval, or has an invalid value.
        """
        metric, found, given_as = self.metric, dict(self.preset), dict[str, str]()
        spellings = self._all_spellings(scale) if given else {}  # without parameters, the metric's module isn't needed
        for key, value in given.items():
            spelling = next((spellings[name] for name in (key, snake_case(key)) if name in spellings), key)
            if isinstance(spelling, Unsupported):
                raise ConfigError(f"{metric.name}.{key}: not supported. {spelling.how[:1].upper()}{spelling.how[1:]}")
            try:
                converted = spelling.convert(value) if isinstance(spelling, Converted) else {spelling: value}
            except (TypeError, ValueError) as error:
                problem, separator, fix = str(error).partition(". ")
                raise ConfigError(f"{metric.name}.{key}: {problem}, got {value!r}{separator}{fix}") from None
            for ours in converted:
                if ours in given_as:
                    raise ConfigError(f"{metric.name}.{key}: {ours!r} is set twice, as {given_as[ours]!r} and as {key!r}")
                given_as[ours] = key
            found.update(converted)
        return {**self.live, **found} if configured and found.keys() <= {"threshold", "inverse"} else found

    def _all_spellings(self, scale: int) -> Spellings:
        """Return all accepted parameter names. ``self.spellings`` takes precedence, and the metric's own names come last."""
        found: dict[str, Spelling] = {
            **{name: name for name in self.metric.parameters},
            **self.metric.spellings,
            **self.spellings,
        }
        if scale != 1 and self.metric.unit == "1" and "threshold" in self.metric.parameters:
            from .names.conversions import percent

            found["threshold"] = percent("threshold")
        marks = dict.fromkeys(_PASS_MARKS, found["threshold"]) if "threshold" in self.metric.parameters else {}
        return {**marks, **found}


def resolve(name: str) -> ResolvedName:
    """Return the metric and parameters that a name refers to. The name can also come from a seed catalog or another tool.

    Raises:
        ConfigError: If the name is unknown (lists similar names), ambiguous (lists the candidates), or has no equivalent
            in otel-agenteval (suggests an alternative).
    """
    if canonical := _find(name) or _find(name.partition(".")[0]):  # an entry's name follows the dot
        return ResolvedName(canonical, {}, {}, live=canonical.live if name == canonical.name else {})
    _import_metrics_called(name)
    entries = _ALIASES.get(name, [])
    if len({entry[0] for entry in entries}) > 1:
        candidates = sorted(alias for alias in _ALIASES if alias.endswith(f":{name}"))
        raise ConfigError(f"{name}: ambiguous name. Use one of {', '.join(candidates)}")
    if entries:
        target, preset = entries[0]
        return _resolve_seed_name(name, target, preset if all(entry[1] == preset for entry in entries) else {})
    for pattern, seed, target, parameter in _PATTERN_ALIASES:
        if found := pattern.fullmatch(name):
            return _resolve_seed_name(f"{seed}:{name.rpartition(':')[2]}", target, {parameter: int(found[1])})
    if negated := re.fullmatch(r"((?:trusys|promptfoo):)?not-(.+)", name):
        positive = resolve((negated[1] or "promptfoo:") + negated[2])
        found_metric = positive.metric.name
        if "inverse" not in positive.metric.parameters:
            how = f"Use code_not with `metric: {{{found_metric}: {{...}}}}`"
            raise ConfigError(f"{name}: {found_metric} returns a number, so the option `inverse` doesn't exist. {how}")
        return positive._replace(preset={**positive.preset, "inverse": not positive.preset.get("inverse", False)})
    return _resolve_tool_name(name)


def _resolve_seed_name(name: str, target: str, preset: Mapping[str, Any]) -> ResolvedName:
    metric = _METRICS[target]
    seed, _, alias = name.rpartition(":")
    seeds = {seed} if seed else {other.split(":")[0] for other in metric.aliases if other.endswith(f":{alias}")}
    if len(seeds) != 1:
        return ResolvedName(metric, dict(preset), {})
    spellings = names.seed_spellings(one := seeds.pop(), alias, target, metric.parameters)
    return ResolvedName(metric, dict(preset), spellings, view=names.view_of(one, target))


def name_under(seed: str, name: str) -> str:
    """Return a metric's first name in a seed catalog (such as ``agentunit``), or ``name`` if the catalog lacks the metric."""
    plain, sign, number = name.partition("#")
    aliases = () if (found := _find(plain)) is None else found.aliases
    return next((alias.partition(":")[2] for alias in aliases if alias.startswith(f"{seed}:")), plain) + sign + number


def _resolve_tool_name(name: str) -> ResolvedName:
    if (found := names.find(name)) is not None:
        ours = _find(found.ours or "")
        assert ours is not None, found.ours
        return ResolvedName(ours, dict(found.preset), found.parameters, found.note)
    if any(f"hpd:{name.removeprefix('hpd:')}Evaluator" in row["aliases"] for row in builtin().values()):  # HPD's short name
        return resolve(f"hpd:{name.removeprefix('hpd:')}Evaluator")
    discover()
    if name in _METRICS:  # added after the index was generated
        return ResolvedName(_METRICS[name], {}, {}, live=_METRICS[name].live)
    known = nearest(name, [*_METRICS, *_ALIASES, *names.all_names()])
    close = [one for one in known if name in one.rpartition(":")[2] or likeness(name, one) >= 0.6]
    message = f"unknown metric {name!r}." + (f" Did you mean {', '.join(close)}?" if close else "")
    if not close or likeness(name, close[0]) < 0.75:  # not a misspelled name
        message += " For your own metric, set imports: [MODULE], use --import MODULE, or declare an entry point (otel_agenteval.metrics)."
    raise ConfigError(message)
