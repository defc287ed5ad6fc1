"""The whole configuration: one field per section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from ..core.errors import ConfigError
from .conversation import ConversationOptions
from .embedder import EmbedderOptions
from .feedback import FeedbackOptions
from .judge import JudgeOptions
from .keypath import KeyPath, placed
from .media import MediaOptions
from .messages import explained
from .metrics import FAULTY, GroupOptions, InlineOptions, MetricEntry
from .outlets import OutletOptions
from .privacy import PrivacyOptions
from .queue import QueueOptions
from .references import ReferenceOptions
from .section import NO_ENTRIES, Section, validator_of
from .serve import ServeOptions
from .statistics import StatisticsOptions
from .turn import TurnOptions
from .types import DurationOrZero, Kind


class Config(Section):
    """Everything that can be set. Once read, durations are in seconds and sizes in bytes."""

    turn: TurnOptions = TurnOptions()
    """When a turn closes, and how much may be held in memory until then."""
    exit_timeout: DurationOrZero = 5.0
    """Seconds that the process may wait for scores when it exits."""
    inline: InlineOptions = InlineOptions()
    """What is evaluated the moment a turn ends."""
    metrics: Annotated[tuple[MetricEntry, ...], Kind("list of metrics, see [below](#metrics)")] = ()
    """Metrics that need parameters or a policy; a metric of the inline pack is replaced by the one configured here."""
    groups: Annotated[dict[str, GroupOptions], Kind("groups by their names, see [below](#groups)")] = NO_ENTRIES
    """Groups of metrics that share policy, selector and sampling; evaluated besides ``metrics``, and selected by ``eval --metrics @NAME``."""
    references: ReferenceOptions = ReferenceOptions()
    """What turns are compared with."""
    conversation: ConversationOptions = ConversationOptions()
    """Metrics over whole conversations."""
    feedback: FeedbackOptions = FeedbackOptions()
    """What users say of turns."""
    statistics: StatisticsOptions = StatisticsOptions()
    """What is said of many turns."""
    judge: JudgeOptions = JudgeOptions()
    """The model that ``llm_`` metrics ask."""
    embedder: EmbedderOptions = EmbedderOptions()
    """The server or model that ``embed_`` metrics get vectors from."""
    media: MediaOptions = MediaOptions()
    """What is opened of the images, sounds and videos of a turn."""
    privacy: PrivacyOptions = PrivacyOptions()
    """What is taken out before content leaves."""
    outlets: OutletOptions = OutletOptions()
    """Where scores leave."""
    queue: QueueOptions = QueueOptions()
    """The queue between the agent's threads and our worker."""
    serve: ServeOptions = ServeOptions()
    """The sidecar: where it listens, and what it accepts from whom."""

    __slots__ = ("_sources",)
    _sources: dict[KeyPath, str]

    def __init__(self, /, **options: Any) -> None:
        """Every option by name, as a value, or in the form that a file has.

        Raises:
            ConfigError: unknown options, values that are not allowed: all of them, a line each.
        """
        self._validate(options, {})

    @classmethod
    def from_sources(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> Config:
        """A configuration read from files and variables, whose errors say which: ``sources`` has the place of each value.

        Raises:
            ConfigError: as above.
        """
        config = cls.__new__(cls)
        config._validate(data, sources)
        return config

    @classmethod
    def as_far_as_right(cls, data: Mapping[Any, Any], sources: dict[KeyPath, str]) -> tuple[Config, list[str]]:
        """A configuration of those options that are right, and what is wrong with the others, a line each."""
        from pydantic_core import ValidationError

        lines: dict[str, None] = {}
        for _ in range(_MOST_ROUNDS):
            config = cls.__new__(cls)
            try:
                validator_of(cls).validate_python(data, self_instance=config)
            except ValidationError as error:
                lines.update(dict.fromkeys(explained(error, cls, sources).splitlines()))
                for fault in error.errors(include_url=False):
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
        """Each configured metric with its path: those of ``metrics`` and all groups in order, or those of one group.

        Names and parameters of the metrics are checked when they are selected.
        """
        groups = self.groups if group is None else {group: self.groups[group]}
        own = self.metrics if group is None else ()
        found: list[tuple[KeyPath, MetricEntry]] = [(("metrics", i), entry) for i, entry in enumerate(own)]
        for name, one in groups.items():
            found += [(("groups", name, "metrics", i), entry) for i, entry in enumerate(one.entries())]
        return [(path, entry) for path, entry in found if entry.name != FAULTY]

    def where(self, path: KeyPath) -> str:
        """How an error about a value begins: with its file and line or its variable, and its path."""
        return placed(path, self._sources)


_MOST_ROUNDS = 20
"""One fault can hide another below it: so often is the rest looked at again."""


def _without(data: Any, path: KeyPath) -> Any:
    """Data without what stands at a path, or else without what stands around it. Entries of metrics keep their places."""
    if not path:
        return {}
    key, rest = path[0], path[1:]
    if isinstance(data, Mapping) and key in data:
        inner = _without(data[key], rest) if rest and isinstance(data[key], (Mapping, list)) else None
        return {name: inner if name == key else value for name, value in data.items() if name != key or inner}
    if isinstance(data, list) and isinstance(key, int) and key < len(data):
        return [FAULTY if place == key else value for place, value in enumerate(data)] if data[key] != FAULTY else {}
    return {}
