"""The registry of metrics: a decorated function is a metric, and everything else is derived from it.

    @metric(unit="1", needs=("tool_calls",), threshold=0.7)
    def code_tool_success(turn: Turn, *, empty_value: float = 1.0) -> Result:
        \"\"\"Share of tool calls that did not end in an error.\"\"\"

Name, kind (prefix), family (module, unless given), parameters (keyword-only arguments, checked by their annotations) and user
documentation (docstring) are read from the function. A function that does not fit is refused at import with its file
and line. What :mod:`.catalog_index` says of a metric of ours, which is generated, spares importing its module before it is used. A parameter without a default is required: the name resolves without it, and each evaluation is then a score with
``status="error"``.

A metric function returns a number, a bool, ``None`` (not applicable), or a :class:`Result`; it raises
:class:`MetricError` for a configuration that cannot work. It never sees OpenTelemetry.
"""

from __future__ import annotations

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
from . import catalog_index, seeds
from .spellings import Spellings, translated

EPSILON = 1e-9
"""Slack of every threshold comparison, so that 0.1 + 0.2 meets 0.3."""


class Asks(Protocol):
    """The judge that an ``llm_`` metric receives."""

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
        """Ask one question and return the JSON object of the reply, see :class:`otel_agenteval.Judge`."""


class Embeds(Protocol):
    """The embedder that an ``embed_`` metric receives."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, see :class:`otel_agenteval.Embedder`."""


class Result:
    """The result of a metric function, where a number alone is not enough."""

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
    """The result of a metric that does not apply, with the reason (``missing:…``, ``empty_output``, ``too_long``, …)."""
    return Result(None, skipped=reason, detail=detail)


def vacuous(value: float | bool, **detail: Any) -> Result:
    """A value that only means that there was nothing to evaluate. Aggregations leave it out."""
    return Result(value, detail={"vacuous": True, **detail})


Applies = Callable[[Turn, Mapping[str, Any]], "str | None"]
"""From a turn and a metric's parameters: why the metric says nothing about the turn, None where it does.

The first line of its docstring completes "applies to …".
"""

FIELD_OF_NEED = {"duration": "duration_s", "cost": "cost_usd", "llm_calls": "llm_call_count"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a metric."""

    name: str
    annotation: Any
    default: Any
    """``inspect.Parameter.empty`` when the parameter is required."""

    @property
    def required(self) -> bool:
        """Whether an evaluation without it is an error."""
        return self.default is inspect.Parameter.empty


class Definition(NamedTuple):
    """What only the module of a metric says of it."""

    fn: Callable[..., Any]
    parameters: Mapping[str, Parameter]
    applies: Applies | None
    """Which turns the metric says something about, where its needs alone do not tell; None for all."""
    aliases: Mapping[str, Mapping[str, Any]]
    """Other names, each with the parameters that it presets."""
    spellings: Mapping[str, str]
    """Other spellings of parameters → ours."""
    doc: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: the function and everything that is derived from it."""

    name: str
    source: Definition | str
    """Its definition, or the module that has it: of a metric of ours that nobody has used yet."""
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
    """The groups of :data:`GROUPS` that it belongs to; ``default`` is the default inline pack."""
    live: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that an entry of the configuration has where it states none."""
    extra: str | None = None
    """The optional extra that it requires."""
    heavy: bool = False
    """Whether it is too slow for the agent's thread, so that it only runs on the worker."""
    media: bool = False
    """Whether it opens images, sounds or videos of the turn."""
    reads_all: bool = False
    """Whether its judge must read all of the turn: a question that is too long is asked in pieces, of which the worst counts."""
    combines: bool = False
    """Whether it is computed from other scores (:meth:`BoundMetric.combine`)."""
    one_fails: bool = False
    """Whether a single score can fail it, whatever the others are: then it fails even where some are missing."""
    selective: bool = False
    """Whether it says itself which turns it has something to say about (:attr:`Definition.applies`)."""
    required: tuple[str, ...] = ()
    """Parameters without a default."""
    own_threshold: float | None = None
    """The default of the function's own parameter ``threshold``."""

    @property
    def kind(self) -> Kind:
        """How it is computed: ``code``, ``embed`` or ``llm``, the prefix of its name."""
        return cast("Kind", self.name.split("_", 1)[0])

    @property
    def reads(self) -> frozenset[str]:
        """All facts that it declares: its needs, what it uses and its references."""
        return frozenset((*(FIELD_OF_NEED.get(need, need) for need in self.needs), *self.uses, *self.references))

    @property
    def definition(self) -> Definition:
        """What its module says of it, which is imported for this."""
        if isinstance(self.source, str):
            importlib.import_module(self.source)
            return _METRICS[self.name].definition
        return self.source

    @property
    def is_imported(self) -> bool:
        """Whether its module is imported."""
        return not isinstance(self.source, str)

    @property
    def is_ours(self) -> bool:
        """Whether it is built in."""
        module = self.source if isinstance(self.source, str) else self.source.fn.__module__
        return module.startswith(f"{__package__}.")

    @property
    def fn(self) -> Callable[..., Any]:
        """The function."""
        return self.definition.fn

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its parameters, by name."""
        return self.definition.parameters

    @property
    def applies(self) -> Applies | None:
        """Which turns it says something about, where its needs alone do not tell; None for all."""
        return self.definition.applies if self.selective else None

    @property
    def aliases(self) -> Mapping[str, Mapping[str, Any]]:
        """Other names, each with the parameters that it presets."""
        return self.definition.aliases

    @property
    def spellings(self) -> Mapping[str, str]:
        """Other spellings of parameters → ours."""
        return self.definition.spellings

    @property
    def doc(self) -> str:
        """The documentation for users."""
        return self.definition.doc

    @property
    def inline(self) -> bool:
        """Whether it belongs to the default inline pack."""
        return "default" in self.groups

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return self.doc.split("\n", 1)[0]

    @property
    def applies_to(self) -> str | None:
        """The turns that it is evaluated on wherever turns are scored, in words; None for all that have its needs."""
        said = (inspect.getdoc(self.applies) or "").split("\n", 1)[0].rstrip(".") if self.selective else ""
        return said[:1].lower() + said[1:] or None

    def live_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What an entry of the configuration with these parameters evaluates with."""
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
    """Register a function as a metric. The function stays callable as it is.

    ``needs``, ``uses`` and ``references`` are declarations: what costs memory or work to provide, such as the earlier turns of a
    conversation, is provided only where a configured metric declares it, and a score says where each declared reference came from.

    Args:
        unit: UCUM unit of the value: ``1`` (0..1), ``s``, ``{token}``, ``USD``, ``{item}``, ``{level}``.
        needs: Turn fields that must be known, else the score is ``skipped`` with reason ``missing:<first absent>``.
        uses: Turn fields that are read where they are known, but that the metric can do without (``history``, ``session``, ``context``).
        references: names of the turn's references that are read (``expected_tools``).
        direction: whether more is better (``up``), less (``down``) or neither (``neutral``).
        boolean: whether the value is 1.0/0.0 with ``passed``; adds the parameter ``inverse``. Numeric metrics take ``threshold``.
        threshold: default bound of ``passed``; None means that the metric only trends.
        bounded: False for a numeric metric that says itself what passes: it has no parameter ``threshold``.
        version: to be changed whenever the same turn would get another value.
        aliases: names in other catalogues (``seed:name``), optionally with preset parameters; ``{k}`` in a name stands for
            a number that becomes the parameter of that name.
        spellings: other spellings of parameters, ``{theirs: ours}``.
        inline: whether the default inline pack has it (reference-free, cheap, and with a meaning on any answer that is worth a look).
        groups: further groups that it belongs to: ``safety``, ``quality``, ``cost``.
        applies: says of a turn why the metric has nothing to say about it (``missing:interactions``, ``not_applicable:one_step``), None where it has.
            Asked wherever turns are scored, before the metric is evaluated or sampled; such a turn is ``skipped`` with that reason. ``evaluate`` and
            ``combine`` do not ask. The first line of its docstring completes "applies to …".
        live: parameters that an entry of the configuration, or of the default pack, has where it states none of its own (``threshold`` and
            ``inverse`` aside): our precise method, where the catalogue fixes another one for the metric by itself.
        extra: the optional extra that it needs (``[text]`` …).
        heavy: whether one evaluation can take milliseconds or more: then it never runs while an exporter waits for span events.
        media: whether it opens images, sounds or videos, by the rules of the section ``media`` of the configuration. Then it is heavy.
        reads_all: whether its judge must have read all that it is given, because what it looks for can be anywhere (safety). A question
            that is longer than ``max_input_tokens`` is then asked in overlapping pieces, of which the worst counts, and is never cut. Such a metric
            must ask in the thread or task that it is called in.
        combines: whether it takes a list of scores instead of a turn.
        one_fails: whether a single one of these can fail it, so that it need not wait for those that are missing.
        family: the family's name; default the module's name, which is right unless a family has several modules.
    """

    def register(fn: Function) -> Function:
        code = fn.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        name = fn.__name__
        if name.split("_", 1)[0] not in ("code", "embed", "llm"):
            raise ConfigError(f"{where}: metric {name!r} must be named code_…, embed_… or llm_…")
        if not inspect.getdoc(fn):
            raise ConfigError(f"{where}: metric {name!r} has no docstring; it is the metric's user documentation")
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
            _add_alias(alias, name, preset or seeds.PRESETS.get(alias, {}))
        return fn

    return register


GROUPS = {
    "default": "metrics that run without configuration: cheap, reference-free, and meaningful for any answer",
    "safety": "leaks, injected instructions and blocked content",
    "quality": "quality of a turn, without a reference",
    "cost": "time, tokens, money and retries",
    "all": "every `code_` metric without required options and references",
}
"""The groups of ``code_`` metrics that go by a name, and what is in them."""
_DECLARED = ("default", "safety", "quality", "cost")


def _groups(where: str, name: str, inline: bool, groups: Sequence[str]) -> tuple[str, ...]:
    unknown = [group for group in groups if group not in _DECLARED[1:]] if not isinstance(groups, str) else [groups]
    if unknown:
        raise ConfigError(
            f"{where}: metric {name!r}: groups {unknown[0]!r} is not allowed; it must be a tuple of {', '.join(_DECLARED[1:])}"
        )
    return (*(("default",) if inline else ()), *groups)


def _refuse_second(name: str, fn: Callable[..., Any], where: str) -> None:
    """Refuse a metric of a name that another one has."""
    home = catalog_index.METRICS.get(name, (fn.__module__,))[0]
    if home != fn.__module__:
        importlib.import_module(home)
    known = _METRICS.get(name)
    if known is not None and known.fn.__code__.co_filename != fn.__code__.co_filename:
        other = known.fn.__code__
        raise ConfigError(f"{where}: metric {name!r} is already defined at {other.co_filename}:{other.co_firstlineno}")


def _described(applies: Applies | None, where: str) -> Applies | None:
    if applies is not None and not inspect.getdoc(applies):
        raise ConfigError(f"{where}: what 'applies' names has no docstring; its first line completes \"applies to …\"")
    return applies


def _refuse_unknown_facts(where: str, needs: Sequence[str], uses: Sequence[str], references: Sequence[str]) -> None:
    for option, given in (("needs", needs), ("uses", uses), ("references", references)):
        if isinstance(given, str):
            raise ConfigError(f"{where}: {option} is the text {given!r}; a tuple of names is required, such as {(given,)}")
    for option, given in (("needs", needs), ("uses", uses)):
        known = {*Turn.__annotations__, *FIELD_OF_NEED} if option == "needs" else {*Turn.__annotations__}
        unknown = next((fact for fact in given if fact not in known), None)
        if unknown is not None:
            raise ConfigError(
                f"{where}: {option} {unknown!r}, which is not a field of a turn; did you mean {nearest(unknown, known, 1)[0]!r}?"
            )


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
        raise ConfigError(f"{where}: metric {fn.__name__!r} must take (turn{second}, *, parameters by keyword)")
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
    _extend()


def _extend() -> None:
    """Import the metrics of other packages, once."""
    global _extended
    if not _extended:
        _extended = True
        for entry in importlib.metadata.entry_points(group="otel_agenteval.metrics"):
            entry.load()


def catalog() -> Iterator[Metric]:
    """All metrics, by name."""
    discover()
    yield from (_METRICS[name] for name in sorted(_METRICS))


def _find(name: str) -> Metric | None:
    """The metric of a canonical name; one of ours is not imported for this."""
    found = _METRICS.get(name) or indexed(name)
    if found is None:
        _extend()
        found = _METRICS.get(name)
    return found


def indexed(name: str) -> Metric | None:
    """What the index says of a metric of ours."""
    row = catalog_index.METRICS.get(name)
    if row is None:
        return None
    facts = dict(row[1])
    facts["live"] = dict(facts.get("live", ()))
    return Metric(name=name, source=row[0], **{"family": row[0].rsplit(".", 1)[-1], **facts})


def _import_called(name: str) -> None:
    """Import the metrics of ours that have an alias: this one, or one with a number in it."""
    for module, _, aliases in catalog_index.METRICS.values():
        if any("{" in alias or name in (alias, alias.split(":", 1)[-1]) for alias in aliases):
            importlib.import_module(module)


def group_of(name: str) -> list[str]:
    """Names of the metrics of one of :data:`GROUPS` whose optional package, if any, is installed.

    Raises:
        ConfigError: there is no such group.
    """
    if name not in GROUPS:
        raise ConfigError(f"{name!r} is no group of metrics; allowed are {', '.join(GROUPS)}")
    _extend()
    others = [metric for metric in _METRICS.values() if metric.name not in catalog_index.METRICS and _belongs(metric, name)]
    members = [*filter(None, map(_find, catalog_index.GROUPS[name])), *others]
    return sorted(m.name for m in members if m.extra is None or extra_installed(m.extra))


def _belongs(metric: Metric, group: str) -> bool:
    if group != "all":
        return group in metric.groups
    return metric.kind == "code" and not (metric.combines or metric.references or metric.required)


def groups_of(metric: Metric) -> list[str]:
    """The groups of :data:`GROUPS` that a metric belongs to."""
    return [name for name in GROUPS if _belongs(metric, name)]


def default_pack() -> list[str]:
    """Names of the default inline pack."""
    return group_of("default")


class Meaning(NamedTuple):
    """What a name stands for."""

    metric: Metric
    preset: dict[str, Any]
    """Parameters that the name presets."""
    spellings: Spellings
    """How parameters are spelled under this name, besides the metric's own spellings."""
    note: str = ""
    """What a user of the tool that has this name should know."""


def resolve(name: str) -> tuple[Metric, dict[str, Any]]:
    """The metric behind a canonical name, a seed's or another tool's, and the parameters that the name presets.

    Raises:
        ConfigError: unknown (with the closest three names), ambiguous (with the candidates), or a name that means something else
            in the tool that it comes from (with how, and what to use).
    """
    found = meaning_of(name)
    return found.metric, found.preset


def meaning_of(name: str) -> Meaning:
    """As :func:`resolve`, and how the parameters are spelled under this name."""
    canonical = _find(name)
    if canonical is not None:
        return Meaning(canonical, {}, {})
    _import_called(name)
    entries = _ALIASES.get(name, [])
    if len({entry[0] for entry in entries}) > 1:
        candidates = sorted(alias for alias in _ALIASES if alias.endswith(f":{name}"))
        raise ConfigError(f"metric {name!r} is ambiguous; name one of {', '.join(candidates)}")
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


def _of_seed(name: str, target: str, preset: Mapping[str, Any]) -> Meaning:
    seed, _, alias = name.rpartition(":")
    owners = {seed} if seed else {other.split(":")[0] for other in _METRICS[target].aliases if other.endswith(f":{alias}")}
    spellings = seeds.spellings_under(owners.pop(), alias, target, _METRICS[target].parameters) if len(owners) == 1 else {}
    return Meaning(_METRICS[target], dict(preset), spellings)


def _of_other_tool(name: str) -> Meaning:
    from . import other_tools  # read on first use: most configurations name no metric of another tool

    found = other_tools.find(name)
    if found is None:
        discover()
        if name in _METRICS:  # written since the index was
            return Meaning(_METRICS[name], {}, {})
        close = nearest(name, [*_METRICS, *_ALIASES, *other_tools.names()])
        raise ConfigError(f"unknown metric {name!r}; did you mean {', '.join(close)}?")
    ours = _find(found.ours)
    assert ours is not None, found.ours
    return Meaning(ours, dict(found.preset), found.parameters, found.note)


def _negated(name: str, positive: Meaning) -> Meaning:
    metric = positive.metric
    if "inverse" not in metric.parameters:
        raise ConfigError(
            f"{name}: {metric.name} is a number, and 1 minus it is code_not with `metric: {{{metric.name}: {{...}}}}`"
        )
    inverse = not positive.preset.get("inverse", False)
    return positive._replace(preset={**positive.preset, "inverse": inverse})
