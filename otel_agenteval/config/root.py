"""Complete configuration, with one field per section, and configuration error messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..core.errors import ConfigError, meant, refusal
from .judge import EmbedderOptions, JudgeOptions
from .masking import MASK, masked
from .media import MediaOptions
from .metrics import BESIDE_A_METRIC, FAULTY, GroupOptions, InlineOptions, MetricEntry, Preset
from .outlets import OutletOptions, PrivacyOptions
from .references import ReferenceOptions
from .section import NO_ENTRIES, Section, entry_of, kind_of, options_of, section_of, validator_of
from .serve import ServeOptions
from .turn import ConversationOptions, FeedbackOptions, QueueOptions, StatisticsOptions, TurnOptions
from .types import URL, Before, DurationOrZero, KeyPath, Kind, Switch, location, valid

if TYPE_CHECKING:
    from pydantic_core import ValidationError

_MOST_FAULTS = 100
_CONSTANTS = {None: "null", True: "true", False: "false"}


def _modules(value: Any) -> tuple[str, ...]:
    names = tuple(value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [""])
    if not all(isinstance(name, str) and all(map(str.isidentifier, name.strip().split("."))) for name in names):
        raise ValueError("must be a list of Python modules. Example: [my_app.metrics]")
    return tuple(name.strip() for name in names)


_scale = valid("must be 1 or 100", lambda value: int(value) if value in (1, 100, "1", "100") and value is not True else None)


class Config(Section):
    """Complete configuration. Durations are in seconds, and sizes are in bytes."""

    turn: TurnOptions = TurnOptions()
    """Rules for closing turns, and memory limits for open turns."""
    strict: Switch = False
    """Raise an error if an environment variable or the file in ``OTEL_AGENTEVAL_CONFIG_FILE`` is invalid. By default, an
    instrumented program logs one line and computes no scores. Set this option in an environment variable or in your code."""
    exit_timeout: DurationOrZero = 5.0
    """Maximum seconds to finish scores when the process exits. ``serve`` and ``worker`` use ``serve.drain_timeout`` instead."""
    inline: InlineOptions = InlineOptions()
    """Metrics that run on each turn as soon as it closes."""
    preset: Preset | None = None
    """Evaluation tool. Its default metrics and thresholds are used in addition to yours. See
    [presets](metrics/other-tools.md#presets). Your own entry for a metric replaces the preset's entry."""
    scale: Annotated[Literal[1, 100], Before(_scale), Kind("1 or 100")] = 1
    """Scale of thresholds and reports. With 100, ``threshold: 70`` means 0.7, and reports show 0.82 as 82. Exported scores and
    JSON lines always use the scale from 0 to 1."""
    metrics: Annotated[tuple[MetricEntry, ...], Kind("[list of metrics](#metrics)")] = ()
    """Metrics with parameters, a policy, a selector, or sampling. An entry replaces the default metric of the same name."""
    imports: Annotated[tuple[str, ...], Before(_modules), Kind("list of modules")] = ()
    """Python modules that define your own metrics. Commands also find modules in the current folder."""
    groups: Annotated[dict[str, GroupOptions], Kind("mapping of names to [groups](#groups)")] = NO_ENTRIES
    """Groups of metrics with the same policy, selector, and sampling. These metrics run in addition to ``metrics``."""
    references: ReferenceOptions = ReferenceOptions()
    """Reference data for turns."""
    conversation: ConversationOptions = ConversationOptions()
    """Metrics over whole conversations."""
    feedback: FeedbackOptions = FeedbackOptions()
    """User feedback on turns."""
    statistics: StatisticsOptions = StatisticsOptions()
    """Fleet estimates and detected changes."""
    judge: JudgeOptions = JudgeOptions()
    """The judge model, which scores ``llm_`` metrics."""
    embedder: EmbedderOptions = EmbedderOptions()
    """The embedding model for ``embed_`` metrics."""
    media: MediaOptions = MediaOptions()
    """Access to a turn's images, audio, and videos."""
    privacy: PrivacyOptions = PrivacyOptions()
    """Redaction of content before it leaves the process."""
    outlets: OutletOptions = OutletOptions()
    """Destinations to which scores are exported."""
    queue: QueueOptions = QueueOptions()
    """The queue between your agent's threads and the worker thread."""
    serve: ServeOptions = ServeOptions()
    """The sidecar: addresses, access, and limits."""

    __slots__ = ("_sources",)
    _sources: dict[KeyPath, str]

    def __init__(self, /, **options: Any) -> None:
        """Create a configuration from keyword options. Invalid options raise a ConfigError with one line per option."""
        self._validate(options, {})

    @classmethod
    def from_sources(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> Config:
        """Create a configuration from merged data. A ConfigError names each invalid value's line or variable (``sources``)."""
        config = cls.__new__(cls)
        config._validate(data, sources)
        return config

    @classmethod
    def from_valid_part(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> tuple[Config, list[str]]:
        """Return a configuration with only the valid options, and the invalid options' errors. One error can hide other errors, so
        the data is validated again without the invalid values. After 20 rounds, all options get their defaults.
        """
        from pydantic_core import ValidationError

        lines: dict[str, None] = {}
        removed: set[str] = set()
        for _ in range(20):
            config = cls.__new__(cls)
            try:
                validator_of(cls).validate_python(data, self_instance=config)
            except ValidationError as error:
                lines.update(dict.fromkeys(explained(error, cls, sources).splitlines()))
                for fault in error.errors(include_url=False)[:_MOST_FAULTS]:
                    data = _without(data, fault["loc"])
                    if fault["type"] != "missing":
                        removed.add(f"{location(fault['loc'], sources)}: required")
            else:
                object.__setattr__(config, "_sources", sources)
                return config, [line for line in lines if line not in removed]
        return cls(), list(lines)

    def _validate(self, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> None:
        if data:
            from pydantic_core import ValidationError

            try:
                validator_of(type(self)).validate_python(data, self_instance=self)
            except ValidationError as error:
                raise ConfigError(explained(error, type(self), sources)) from None
        else:
            self._fill({})
        object.__setattr__(self, "_sources", sources)

    __hash__ = None  # type: ignore[assignment]  # parameters are mappings

    def metric_entries(self, group: str | None = None) -> list[tuple[KeyPath, MetricEntry]]:
        """Return (path, entry) of each metric in ``group`` (default: ``metrics`` and all groups), without checking the entries."""
        groups = self.groups if group is None else {group: self.groups[group]}
        own = self.metrics if group is None else ()
        found: list[tuple[KeyPath, MetricEntry]] = [(("metrics", i), entry) for i, entry in enumerate(own)]
        for name, one in groups.items():
            found += [(("groups", name, "metrics", i), entry) for i, entry in enumerate(one.entries())]
        return [(path, entry) for path, entry in found if entry.metric != FAULTY]

    def where(self, path: KeyPath) -> str:
        """Return a value's location for an error message: ``FILE:LINE: PATH``, ``VARIABLE: PATH``, or only ``PATH``."""
        return location(path, self._sources)


_NOTHING: Mapping[Any, Any] = {}


def _without(data: Any, path: KeyPath) -> Any:
    """Return ``data`` without the value at ``path``, or ``_NOTHING`` if nothing is left. A list entry becomes ``FAULTY`` instead of
    being removed, so other entries keep their index.
    """
    if not path:
        return _NOTHING
    key, rest = path[0], path[1:]
    if isinstance(data, Mapping):
        if key not in data:  # removed with an earlier error, or required and missing
            return data if rest else _NOTHING
        inner = _without(data[key], rest) if isinstance(data[key], (Mapping, list)) else _NOTHING
        return {**data, key: inner} if inner else {name: value for name, value in data.items() if name != key}
    is_valid_yet = isinstance(data, list) and isinstance(key, int) and key < len(data) and data[key] != FAULTY
    return [FAULTY if place == key else value for place, value in enumerate(data)] if is_valid_yet else _NOTHING


def explained(error: ValidationError, root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    """Describe a configuration's first :data:`_MOST_FAULTS` errors, one per line, and the number of further errors."""
    faults = [fault for fault in error.errors(include_url=False) if fault["input"] != FAULTY]
    lines = [_line(dict(fault), root, sources) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, *([f"and {more:,} more errors"] if more else [])])


def entry_from(value: Any) -> MetricEntry:
    """Parse a metric that isn't part of a configuration. Paths in error messages are relative to the metric."""
    from pydantic_core import ValidationError

    try:
        return validator_of(MetricEntry).validate_python(value)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise ConfigError(explained(error, MetricEntry, {}).removeprefix(": ")) from None


def mapping_of(section: type[Section]) -> str:
    """Return an error text with the section's options: ``must be a mapping of …``."""
    return f"must be a mapping of {', '.join(options_of(section))}"


def value_text(value: Any, secret: bool = False) -> str:
    """Return a shortened value for an error message. If the value can contain a secret, return only its type or a mask."""
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if secret and value:
        if isinstance(value, str):
            return MASK
        return "a list" if isinstance(value, (list, tuple)) else "a mapping" if isinstance(value, Mapping) else "a number"
    text = repr(masked(value))
    return text if len(text) <= 80 else f"{text[:79]}…"


def _line(fault: dict[str, Any], root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    path: KeyPath = tuple(fault["loc"])
    section = _section_at(path[:-1], root) if path else None
    if fault["type"] in ("extra_forbidden", "invalid_key") and section is not None:
        key, known = str(path[-1]), list(options_of(section))
        place = location((*path[:-1], key), sources)
        if key in BESIDE_A_METRIC and key != "name":
            return f"{place}: unknown key. Move {key} into an entry of metrics, next to the metric's name"
        return f"{place}: unknown key{meant(key, known)} (allowed: {', '.join(known)})"
    if fault["type"] == "missing":
        return f"{location(path, sources)}: required"
    rule = _rule(fault, _section_at(path, root))
    if rule.startswith("must "):
        return refusal(location(path, sources), value_text(fault["input"], _may_hold_secret(path, root, fault["input"])), rule)
    return f"{location(path, sources)}: {rule}"


def _may_hold_secret(path: KeyPath, root: type[Section], value: Any) -> bool:
    """Return True for an option with a secret value, and for a section or its list or mapping, which can contain secrets."""
    parent = _section_at(path[:-1], root) if path else None
    option = None if parent is None else options_of(parent).get(str(path[-1]))
    if option is None:  # the root, an entry of a list or mapping, or an unknown option
        return _section_at(path, root) is not None
    if section_of(option.annotation) is not None or entry_of(option.annotation) is not None:
        return True
    kind = kind_of(option.metadata, option.annotation)
    if kind is not None and kind.described == URL and isinstance(value, str):
        return re.search(r"[@?#\s]", value) is not None
    return kind is not None and kind.secret


def _rule(fault: dict[str, Any], section: type[Section] | None) -> str:
    """Return the violated rule, such as ``must be a list``. The ValueErrors from :mod:`.types` contain the rule."""
    if fault["type"] in ("model_type", "dict_type"):
        return "must be a mapping of names" if section is None else mapping_of(section)
    if fault["type"] == "literal_error":
        return "must be " + re.sub("(, .*) or ", r"\1, or ", fault["ctx"]["expected"].replace("'", ""))
    if fault["type"] in ("tuple_type", "list_type"):
        return (
            "must be a list of metrics. Example: [code_latency, llm_relevance]"
            if fault["loc"][-1:] == ("metrics",)
            else "must be a list"
        )
    return str(fault.get("ctx", {}).get("error", fault["msg"]))


def _section_at(path: KeyPath, root: type[Section]) -> type[Section] | None:
    if not path:
        return root
    if (option := options_of(root).get(str(path[0]))) is None:
        return None
    section, entry = section_of(option.annotation), entry_of(option.annotation)
    if section is not None:
        return _section_at(path[1:], section)
    return None if entry is None or len(path) < 2 else _section_at(path[2:], entry)  # path[1] is the index or name of the entry
