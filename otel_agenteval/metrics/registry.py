"""Registry of metrics.
A decorated function is a metric, and its properties are derived from the function.

    @metric(unit="1", needs=("tool_calls",), threshold=0.7)
    def code_tool_success(turn: Turn, *, empty_value: float = 1.0) -> Result:
        'Share of tool calls that didn't end in an error.'

These are the name, kind (prefix), family (by default the module), parameters (keyword-only arguments, checked by their
annotations) and user documentation (docstring). An invalid function is refused at import, with its file and line. The
generated :mod:`.catalog_index` makes it possible to import a built-in metric's module on first use. A parameter without a
default is required: the name resolves without it, but each evaluation then has ``status="error"``.

A metric function returns a number, a bool, ``None`` (not applicable), or a :class:`Result`. It raises :class:`MetricError`
for a configuration that can't work. It never receives OpenTelemetry objects.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ..core.errors import ConfigError, nearest
from ..core.extras import extra_installed
from ..core.score import Direction, Kind, Score, ScoreType
from ..core.turn import Turn
from . import catalog_index, names
from .spellings import Spellings, translated

EPSILON = 1e-9
"""Tolerance of every threshold comparison, so that 0.1 + 0.2 reaches 0.3."""


class Asks(Protocol):
    """Judge that an ``llm_`` metric receives."""

    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Mapping[str, str | Sequence[str]] | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make one judge call and return the reply's JSON object (:class:`otel_agenteval.Judge`)."""


class Embeds(Protocol):
    """Embedder that an ``embed_`` metric receives."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, see :class:`otel_agenteval.Embedder`."""


class Result:
    """Result of a metric function that returns more than a number."""

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
    """Return the result of a metric that doesn't apply, with a reason such as ``too_long``."""
    return Result(None, skipped=reason, detail=detail)


def vacuous(value: float | bool, **detail: Any) -> Result:
    """Return a result with nothing to evaluate, which aggregations exclude."""
    return Result(value, detail={"vacuous": True, **detail})


Applies = Callable[[Turn, Mapping[str, Any]], "str | None"]
"""Function of a turn and a metric's parameters that returns the reason that the metric doesn't apply, or None.

The first line of its docstring completes "applies to …".
"""

FIELD_OF_NEED = {"duration": "duration_s", "cost": "cost_usd", "llm_calls": "llm_call_count"}


@dataclass(frozen=True, slots=True)
class MetricParameter:
    """Parameter of a metric."""

    name: str
    annotation: Any
    default: Any
    """Default, or ``inspect.Parameter.empty`` if the parameter is required."""

    @property
    def required(self) -> bool:
        """True if an evaluation without the parameter is an error."""
        return self.default is inspect.Parameter.empty


class Definition(NamedTuple):
    """Facts about a metric that only its module has."""

    fn: Callable[..., Any]
    parameters: Mapping[str, MetricParameter]
    applies: Applies | None
    """Function that excludes turns in addition to the metric's needs, or None."""
    aliases: Mapping[str, Mapping[str, Any]]
    """Other names, each with the parameters that it presets."""
    spellings: Mapping[str, str]
    """Other spellings of parameters, mapped to their names."""
    doc: str


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric function and the facts derived from it."""

    name: str
    source: Definition | str
    """Definition, or the module of a built-in metric that hasn't been used yet."""
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
    """Groups of :data:`GROUPS` that include the metric. ``default`` marks the default metrics."""
    live: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for an entry of the configuration that sets none."""
    extra: str | None = None
    """Optional extra that the metric requires."""
    heavy: bool = False
    """True if the metric is too slow for the agent's thread and only runs on the worker."""
    media: bool = False
    """True if the metric opens images, audio or video of the turn."""
    reads_all: bool = False
    """True if the judge must read the whole turn. Long input is judged in pieces, and the worst piece counts."""
    combines: bool = False
    """True if the metric is computed from other scores (:meth:`BoundMetric.combine`)."""
    one_fails: bool = False
    """True if a single score can fail the metric, even if other scores are missing."""
    selective: bool = False
    """True if the metric excludes turns with :attr:`Definition.applies`."""
    required: tuple[str, ...] = ()
    """Parameters without a default."""
    own_threshold: float | None = None
    """Default of the function's own parameter ``threshold``."""

    @property
    def kind(self) -> Kind:
        """Prefix of the name: ``code``, ``embed`` or ``llm``."""
        return cast("Kind", self.name.split("_", 1)[0])

    @property
    def reads(self) -> frozenset[str]:
        """Turn fields and references that the metric declares."""
        return frozenset((*(FIELD_OF_NEED.get(need, need) for need in self.needs), *self.uses, *self.references))

    @property
    def definition(self) -> Definition:
        """Definition of the metric, whose module is imported if necessary."""
        if isinstance(self.source, str):
            importlib.import_module(self.source)
            return _METRICS[self.name].definition
        return self.source

    @property
    def is_imported(self) -> bool:
        """True if the metric's module is imported."""
        return not isinstance(self.source, str)

    @property
    def is_ours(self) -> bool:
        """True if the metric is built in."""
        module = self.source if isinstance(self.source, str) else self.source.fn.__module__
        return module.startswith(f"{__package__}.")

    @property
    def fn(self) -> Callable[..., Any]:
        """Function of the metric."""
        return self.definition.fn

    @property
    def parameters(self) -> Mapping[str, MetricParameter]:
        """Parameters by name."""
        return self.definition.parameters

    @property
    def applies(self) -> Applies | None:
        """Function that excludes turns in addition to the metric's needs, or None."""
        return self.definition.applies if self.selective else None

    @property
    def aliases(self) -> Mapping[str, Mapping[str, Any]]:
        """Other names, each with the parameters that it presets."""
        return self.definition.aliases

    @property
    def spellings(self) -> Mapping[str, str]:
        """Other spellings of parameters, mapped to their names."""
        return self.definition.spellings

    @property
    def doc(self) -> str:
        """User documentation."""
        return self.definition.doc

    @property
    def inline(self) -> bool:
        """True if the metric is one of the default metrics."""
        return "default" in self.groups

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return self.doc.split("\n", 1)[0]

    @property
    def applies_to(self) -> str | None:
        """Description of the turns to which the metric applies, or None if its needs decide."""
        said = (inspect.getdoc(self.applies) or "").split("\n", 1)[0].rstrip(".") if self.selective else ""
        return said[:1].lower() + said[1:] or None

    def live_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters in effect for an entry of the configuration with these parameters."""
        given = translated(self, params)
        return given if given.keys() - {"threshold", "inverse"} else {**self.live, **given}


Function = TypeVar("Function", bound=Callable[..., Any])
_METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
_PATTERN_ALIASES: list[tuple[re.Pattern[str], str, str]] = []
_discovered = _extended = False


def metric(
    *,
    unit: str = "1",
    needs: Sequence[str] = (),
    uses: Sequence[str] = (),
    references: Sequence[str] = (),
    direction: Direction = "up",
    boolean: bool = False,
    threshold: float | None = None,
    bounded: bool = True,
    version: str = "1",
    aliases: Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    spellings: Mapping[str, str] | None = None,
    inline: bool = False,
    groups: Sequence[str] = (),
    applies: Applies | None = None,
    live: Mapping[str, Any] | None = None,
    extra: str | None = None,
    heavy: bool = False,
    media: bool = False,
    reads_all: bool = False,
    combines: bool = False,
    one_fails: bool = False,
    family: str | None = None,
) -> Callable[[Function], Function]:
    """Register a function as a metric, and return the function unchanged.

    Data that costs memory or work, such as a conversation's earlier turns, is only provided if a configured metric declares
    it in ``needs``, ``uses`` or ``references``. A score names the source of each declared reference.

    Args:
        unit: UCUM unit of the value: ``1`` (0..1), ``s``, ``{token}``, ``USD``, ``{item}``, ``{level}``.
        needs: Turn fields that must be known. Otherwise the score is ``skipped`` with the reason
            ``missing:<first absent>``.
        uses: Turn fields that the metric reads if they are known (``history``, ``session``, ``context``).
        references: Names of the turn's references that the metric reads (``expected_tools``).
        direction: ``up`` if higher is better, ``down`` if lower is better, ``neutral`` if neither is.
        boolean: True if the value is 1.0 or 0.0 with ``passed``. Adds the parameter ``inverse``. Numeric metrics have
            ``threshold``.
        threshold: Default threshold. Without one, the metric has no verdict.
        bounded: False for a numeric metric that decides on its own verdict and has no parameter ``threshold``.
        version: Version to change whenever the same turn would get another value.
        aliases: Names in other catalogs (``seed:name``), optionally with preset parameters. ``{k}`` in a name matches a
            number, which becomes the parameter of that name.
        spellings: Other spellings of parameters, ``{theirs: ours}``.
        inline: True for a default metric: reference-free, cheap, and meaningful for any answer.
        groups: More groups that include the metric: ``safety``, ``quality``, ``cost``.
        applies: Function that returns the reason that the metric doesn't apply to a turn (``missing:interactions``,
            ``not_applicable:one_step``), or None. It runs before a turn is evaluated or sampled, and such a turn is
            ``skipped`` with that reason. ``evaluate`` and ``combine`` don't call it. The first line of its docstring
            completes "applies to …".
        live: Parameters for an entry of the configuration that sets none except ``threshold`` and ``inverse``. They select
            our precise method if the catalog prescribes another one for the metric's name.
        extra: Optional extra that the metric needs (``[text]`` …).
        heavy: True if one evaluation can take milliseconds. The metric then never runs while an exporter waits for span
            events.
        media: True if the metric opens images, audio or video by the rules of the section ``media``. It is then also heavy.
        reads_all: True if the judge must read all of its input, because a finding can be anywhere (safety). Input longer
            than ``max_input_tokens`` is judged in overlapping pieces, of which the worst counts. The metric must call the
            judge in its own thread or task.
        combines: True if the metric takes a list of scores instead of a turn.
        one_fails: True if a single score can fail the metric, so that it doesn't wait for missing scores.
        family: Name of the family. The default is the module's name. Set it if a family has several modules.
    """

    def register(fn: Function) -> Function:
        code = fn.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        name = fn.__name__
        if name.split("_", 1)[0] not in ("code", "embed", "llm"):
            raise ConfigError(f"{where}: metric {name!r} must be named code_…, embed_… or llm_…")
        if not inspect.getdoc(fn):
            raise ConfigError(f"{where}: metric {name!r} needs a docstring, which is its user documentation")
        _refuse_second(name, fn, where)
        _refuse_unknown_facts(f"{where}: metric {name!r}", needs, uses, references)
        defined = Definition(
            fn, _parameters(fn, where, "inverse" if boolean else "threshold" if bounded else None), _described(applies, where),
            dict(aliases) if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}, dict(spellings or {}),
            inspect.getdoc(fn) or "",
        )  # fmt: skip
        _METRICS[name] = Metric(
            name=name, source=defined, family=family or fn.__module__.rsplit(".", 1)[-1], unit=unit,
            direction=direction, type="boolean" if boolean else "numeric", threshold=threshold, version=version, needs=tuple(needs),
            uses=tuple(uses), references=tuple(references), groups=_groups(where, name, inline, groups),
            live=dict(live or {}), extra=extra, heavy=heavy or (media and name.startswith("code_")), media=media,
            reads_all=reads_all, combines=combines, one_fails=one_fails,
            selective=applies is not None, required=tuple(p.name for p in defined.parameters.values() if p.required),
            own_threshold=(fn.__kwdefaults__ or {}).get("threshold"),
        )  # fmt: skip
        for alias, preset in defined.aliases.items():
            _add_alias(alias, name, preset)
        return fn

    return register


GROUPS = {
    "default": "metrics that run without configuration: cheap, reference-free, and meaningful for any answer",
    "safety": "leaks, injected instructions and blocked content",
    "quality": "quality of a turn, without a reference",
    "cost": "time, tokens, money and retries",
    "all": "every `code_` metric without required options and references",
}
"""Named groups of ``code_`` metrics, with their descriptions."""
_DECLARED = ("default", "safety", "quality", "cost")


def _groups(where: str, name: str, inline: bool, groups: Sequence[str]) -> tuple[str, ...]:
    unknown = [group for group in groups if group not in _DECLARED[1:]] if not isinstance(groups, str) else [groups]
    if unknown:
        raise ConfigError(f"{where}: metric {name!r}: groups must be a tuple of {', '.join(_DECLARED[1:])}, got {unknown[0]!r}")
    return (*(("default",) if inline else ()), *groups)


def _refuse_second(name: str, fn: Callable[..., Any], where: str) -> None:
    """Refuse a metric whose name is already in use."""
    home = catalog_index.METRICS.get(name, (fn.__module__,))[0]
    if home != fn.__module__:
        importlib.import_module(home)
    known = _METRICS.get(name)
    if known is not None and known.fn.__code__.co_filename != fn.__code__.co_filename:
        other = known.fn.__code__
        raise ConfigError(f"{where}: metric {name!r} is already defined at {other.co_filename}:{other.co_firstlineno}")


def _described(applies: Applies | None, where: str) -> Applies | None:
    if applies is not None and not inspect.getdoc(applies):
        raise ConfigError(f"{where}: the function in 'applies' needs a docstring, whose first line completes \"applies to …\"")
    return applies


def _refuse_unknown_facts(where: str, needs: Sequence[str], uses: Sequence[str], references: Sequence[str]) -> None:
    for option, given in (("needs", needs), ("uses", uses), ("references", references)):
        if isinstance(given, str):
            raise ConfigError(f"{where}: {option} must be a tuple of names, such as {(given,)}, got {given!r}")
    for option, given in (("needs", needs), ("uses", uses)):
        known = {*Turn.__annotations__, *FIELD_OF_NEED} if option == "needs" else {*Turn.__annotations__}
        unknown = next((fact for fact in given if fact not in known), None)
        if unknown is not None:
            raise ConfigError(
                f"{where}: {option} {unknown!r} is not a field of a turn. Did you mean {nearest(unknown, known, 1)[0]!r}?"
            )


def _parameters(fn: Callable[..., Any], where: str, generic: str | None) -> dict[str, MetricParameter]:
    signature = inspect.signature(fn)
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception as error:
        raise ConfigError(f"{where}: metric {fn.__name__!r}: cannot read an annotation: {error}") from None
    found: dict[str, MetricParameter] = {}
    positional = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.POSITIONAL_ONLY]
    wanted = 1 if fn.__name__.startswith("code_") else 2
    if len(positional) != wanted or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        second = ", embedder" if fn.__name__.startswith("embed_") else ", judge" if wanted == 2 else ""
        raise ConfigError(f"{where}: metric {fn.__name__!r} must take (turn{second}, *, parameters by keyword)")
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            if p.name not in hints:
                raise ConfigError(f"{where}: metric {fn.__name__!r}: parameter {p.name!r} needs an annotation")
            found[p.name] = MetricParameter(p.name, hints[p.name], p.default)
    if generic == "inverse":
        found.setdefault(generic, MetricParameter(generic, bool, False))
    elif generic == "threshold":
        found.setdefault(generic, MetricParameter(generic, float | None, None))
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
    """Import every family module once, and other packages' metrics by entry point."""
    global _discovered
    if _discovered:
        return
    for room in ("code", "llm", "embed"):
        package = importlib.import_module(f"{__package__}.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    _discovered = True
    _extend()


def _extend() -> None:
    """Import the metrics of other packages once."""
    global _extended
    if not _extended:
        _extended = True
        for entry in importlib.metadata.entry_points(group="otel_agenteval.metrics"):
            entry.load()


def catalog() -> Iterator[Metric]:
    """Yield all metrics, sorted by name."""
    discover()
    yield from (_METRICS[name] for name in sorted(_METRICS))


def _find(name: str) -> Metric | None:
    """Return the metric with a canonical name, without importing a built-in metric."""
    found = _METRICS.get(name) or indexed(name)
    if found is None:
        _extend()
        found = _METRICS.get(name)
    return found


def indexed(name: str) -> Metric | None:
    """Return a built-in metric from the index, or None."""
    row = catalog_index.METRICS.get(name)
    if row is None:
        return None
    facts = dict(row[1])
    facts["live"] = dict(facts.get("live", ()))
    return Metric(name=name, source=row[0], **{"family": row[0].rsplit(".", 1)[-1], **facts})


def _import_called(name: str) -> None:
    """Import the built-in metrics with this alias, or with a pattern alias."""
    for module, _, aliases in catalog_index.METRICS.values():
        if any("{" in alias or name in (alias, alias.split(":", 1)[-1]) for alias in aliases):
            importlib.import_module(module)


def group_of(name: str) -> list[str]:
    """Return the sorted names of a group's metrics whose optional package is installed.

    Raises:
        ConfigError: An unknown group.
    """
    if name not in GROUPS:
        raise ConfigError(f"{name}: unknown group of metrics. Allowed: {', '.join(GROUPS)}")
    _extend()
    others = [metric for metric in _METRICS.values() if metric.name not in catalog_index.METRICS and _belongs(metric, name)]
    members = [*filter(None, map(_find, catalog_index.GROUPS[name])), *others]
    return sorted(m.name for m in members if m.extra is None or extra_installed(m.extra))


def _belongs(metric: Metric, group: str) -> bool:
    if group != "all":
        return group in metric.groups
    return metric.kind == "code" and not (metric.combines or metric.references or metric.required)


def groups_of(metric: Metric) -> list[str]:
    """Return the groups that include a metric."""
    return [name for name in GROUPS if _belongs(metric, name)]


def default_pack() -> list[str]:
    """Return the names of the default metrics."""
    return group_of("default")


class ResolvedName(NamedTuple):
    """Metric and parameters behind a name."""

    metric: Metric
    preset: dict[str, Any]
    """Parameters that the name presets."""
    spellings: Spellings
    """Spellings of parameters under this name, in addition to the metric's own."""
    note: str = ""
    """Note for users of the tool that has this name."""


def resolve(name: str) -> tuple[Metric, dict[str, Any]]:
    """Return the metric and preset parameters of a name, also of a seed's or tool's name.

    Raises:
        ConfigError: An unknown name (with the closest three), an ambiguous one (with the candidates), or a name with
            another meaning in its tool (with an alternative).
    """
    found = meaning_of(name)
    return found.metric, found.preset


def meaning_of(name: str) -> ResolvedName:
    """Return the metric, presets and parameter spellings of a name."""
    canonical = _find(name)
    if canonical is not None:
        return ResolvedName(canonical, {}, {})
    _import_called(name)
    entries = _ALIASES.get(name, [])
    if len({entry[0] for entry in entries}) > 1:
        candidates = sorted(alias for alias in _ALIASES if alias.endswith(f":{name}"))
        raise ConfigError(f"{name}: ambiguous name. Use one of {', '.join(candidates)}")
    if entries:
        target, preset = entries[0]
        agree = all(entry[1] == preset for entry in entries)
        return _of_seed(name, target, preset if agree else {})
    for pattern, target, parameter in _PATTERN_ALIASES:
        found = pattern.fullmatch(name) or (":" not in name and re.fullmatch(pattern.pattern.split(":", 1)[-1], name))
        if found:
            return _of_seed(
                f"{pattern.pattern.split(':')[0]}:{name.rsplit(':', maxsplit=1)[-1]}", target, {parameter: int(found.group(1))}
            )
    negated = re.fullmatch(r"((?:trusys|promptfoo):)?not-(.+)", name)
    if negated:
        return _negated(name, meaning_of((negated[1] or "promptfoo:") + negated[2]))
    return _of_other_tool(name)


def _of_seed(name: str, target: str, preset: Mapping[str, Any]) -> ResolvedName:
    seed, _, alias = name.rpartition(":")
    owners = {seed} if seed else {other.split(":")[0] for other in _METRICS[target].aliases if other.endswith(f":{alias}")}
    spellings = names.seed_spellings(owners.pop(), alias, target, _METRICS[target].parameters) if len(owners) == 1 else {}
    return ResolvedName(_METRICS[target], dict(preset), spellings)


def _of_other_tool(name: str) -> ResolvedName:
    found = names.find(name)
    if found is None:
        discover()
        if name in _METRICS:  # added after the index was generated
            return ResolvedName(_METRICS[name], {}, {})
        close = nearest(name, [*_METRICS, *_ALIASES, *names.all_names()])
        alike = difflib.SequenceMatcher(None, name, close[0]).ratio() >= _ALIKE
        own = (
            ""
            if alike
            else " For a metric of your own, import its module, or declare it as an entry point (otel_agenteval.metrics)."
        )
        raise ConfigError(f"unknown metric {name!r}. Did you mean {', '.join(close)}?{own}")
    ours = _find(found.ours or "")
    assert ours is not None, found.ours
    return ResolvedName(ours, dict(found.preset), found.parameters, found.note)


_ALIKE = 0.75
"""The similarity from which an unknown name is a misspelled one."""


def _negated(name: str, positive: ResolvedName) -> ResolvedName:
    metric = positive.metric
    if "inverse" not in metric.parameters:
        raise ConfigError(
            f"{name}: {metric.name} is a number and has no negation. Use code_not with `metric: {{{metric.name}: {{...}}}}`"
        )
    inverse = not positive.preset.get("inverse", False)
    return positive._replace(preset={**positive.preset, "inverse": inverse})
