"""The whole configuration: one field per section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from ..core.errors import ConfigError
from .judge import EmbedderOptions, JudgeOptions
from .media import MediaOptions
from .messages import MOST_FAULTS, explained
from .metrics import FAULTY, GroupOptions, InlineOptions, MetricEntry, Preset
from .outlets import OutletOptions, PrivacyOptions
from .references import ReferenceOptions
from .section import NO_ENTRIES, Section, validator_of
from .serve import ServeOptions
from .statistics import StatisticsOptions
from .turn import ConversationOptions, FeedbackOptions, QueueOptions, TurnOptions
from .types import Before, DurationOrZero, KeyPath, Kind, Switch, location, valid


def _modules(value: Any) -> tuple[str, ...]:
    names = tuple(value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [""])
    if not all(isinstance(name, str) and all(map(str.isidentifier, name.strip().split("."))) for name in names):
        raise ValueError("must be a list of Python modules. Example: [my_app.metrics]")
    return tuple(name.strip() for name in names)


_scale = valid("must be 1 or 100", lambda value: int(value) if value in (1, 100, "1", "100") and value is not True else None)


class Config(Section):
    """The whole configuration. Durations are in seconds, sizes in bytes."""

    turn: TurnOptions = TurnOptions()
    """Closing of turns, and memory limits of open turns."""
    strict: Switch = False
    """Raise an error if an environment variable or the configuration file is invalid. By default, an instrumented program logs
    one line and runs without scoring."""
    exit_timeout: DurationOrZero = 5.0
    """Maximum seconds to finish scores when the process exits."""
    inline: InlineOptions = InlineOptions()
    """Metrics that run on each turn as soon as it closes."""
    preset: Preset | None = None
    """Another evaluation tool whose default metrics also run, with its thresholds. See
    [presets](metrics/other-tools.md#presets). Your own entry for a metric replaces the preset's entry."""
    scale: Annotated[Literal[1, 100], Before(_scale), Kind("1 or 100")] = 1
    """Scale of thresholds and reports. With 100, ``threshold: 70`` means 0.7, and reports show 0.82 as 82. Exported scores and
    JSON lines stay on the scale from 0 to 1."""
    metrics: Annotated[tuple[MetricEntry, ...], Kind("list of metrics, see [below](#metrics)")] = ()
    """Metrics with parameters, a policy, a selector or sampling. An entry replaces the default metric of the same name."""
    imports: Annotated[tuple[str, ...], Before(_modules), Kind("list of modules")] = ()
    """Python modules that define your own metrics. Commands also find modules in the current folder."""
    groups: Annotated[dict[str, GroupOptions], Kind("mapping of names to groups, see [below](#groups)")] = NO_ENTRIES
    """Groups of metrics that share policy, selector and sampling. They run in addition to ``metrics``. To run only one group, use
    ``eval --metrics @NAME``."""
    references: ReferenceOptions = ReferenceOptions()
    """Reference data for turns."""
    conversation: ConversationOptions = ConversationOptions()
    """Metrics over whole conversations."""
    feedback: FeedbackOptions = FeedbackOptions()
    """User feedback on turns."""
    statistics: StatisticsOptions = StatisticsOptions()
    """Fleet estimates and detected changes."""
    judge: JudgeOptions = JudgeOptions()
    """The model behind ``llm_`` metrics."""
    embedder: EmbedderOptions = EmbedderOptions()
    """The embedding model of ``embed_`` metrics."""
    media: MediaOptions = MediaOptions()
    """Access to the images, audio and videos of a turn."""
    privacy: PrivacyOptions = PrivacyOptions()
    """Redaction before content leaves the process."""
    outlets: OutletOptions = OutletOptions()
    """The destinations of scores."""
    queue: QueueOptions = QueueOptions()
    """The queue between your agent's threads and the worker thread."""
    serve: ServeOptions = ServeOptions()
    """The sidecar: addresses, access and limits."""

    __slots__ = ("_sources",)
    _sources: dict[KeyPath, str]

    def __init__(self, /, **options: Any) -> None:
        """Make a configuration from options by name, as values or in the form of a file.

        Raises:
            ConfigError: an option is unknown or a value invalid, one line for each.
        """
        self._validate(options, {})

    @classmethod
    def from_sources(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> Config:
        """Make a configuration from files and variables. Errors name the place of a value, from ``sources``.

        Raises:
            ConfigError: an option is unknown or a value invalid, one line for each.
        """
        config = cls.__new__(cls)
        config._validate(data, sources)
        return config

    @classmethod
    def from_valid_part(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> tuple[Config, list[str]]:
        """Make a configuration of the valid options, and return the errors of the others."""
        from pydantic_core import ValidationError

        lines: dict[str, None] = {}
        for _ in range(_MOST_ROUNDS):
            config = cls.__new__(cls)
            try:
                validator_of(cls).validate_python(data, self_instance=config)
            except ValidationError as error:
                lines.update(dict.fromkeys(explained(error, cls, sources).splitlines()))
                for fault in error.errors(include_url=False)[:MOST_FAULTS]:
                    data = _without(data, fault["loc"])
            else:
                object.__setattr__(config, "_sources", sources)
                return config, list(lines)
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
        """Return the configured metrics with their paths, from ``metrics`` and all groups, or from one group.

        Names and parameters aren't checked here.
        """
        groups = self.groups if group is None else {group: self.groups[group]}
        own = self.metrics if group is None else ()
        found: list[tuple[KeyPath, MetricEntry]] = [(("metrics", i), entry) for i, entry in enumerate(own)]
        for name, one in groups.items():
            found += [(("groups", name, "metrics", i), entry) for i, entry in enumerate(one.entries())]
        return [(path, entry) for path, entry in found if entry.metric != FAULTY]

    def where(self, path: KeyPath) -> str:
        """Return the beginning of an error about a value: its file and line or its variable, and its path."""
        return location(path, self._sources)


_MOST_ROUNDS = 20
"""Maximum number of validations, because one error can hide others."""


def _without(data: Any, path: KeyPath) -> Any:
    """Return the data without the value at a path. Entries of lists are replaced, so that the others keep their index."""
    if not path:
        return {}
    key, rest = path[0], path[1:]
    if isinstance(data, Mapping) and key in data:
        inner = _without(data[key], rest) if rest and isinstance(data[key], (Mapping, list)) else None
        return {name: inner if name == key else value for name, value in data.items() if name != key or inner}
    if isinstance(data, list) and isinstance(key, int) and key < len(data):
        return [FAULTY if place == key else value for place, value in enumerate(data)] if data[key] != FAULTY else {}
    return {}
