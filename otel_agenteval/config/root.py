"""The whole configuration: one field per section."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr

from .conversation import ConversationOptions
from .embedder import EmbedderOptions
from .judge import JudgeOptions
from .keypath import KeyPath, _where
from .metrics import GroupOptions, InlineOptions, MetricEntry
from .outlets import OutletOptions
from .privacy import PrivacyOptions
from .queue import QueueOptions
from .references import ReferenceOptions
from .section import _Section, _section_of
from .serve import ServeOptions
from .turn import TurnOptions
from .types import seconds
from .writing import _written


class Config(_Section):
    """Everything that can be set. Durations are seconds and sizes bytes once read."""

    turn: TurnOptions = TurnOptions()
    """When a turn closes, and how much may be held until then."""
    exit_timeout: Annotated[float, BeforeValidator(seconds)] = 5.0
    """Seconds that the process may wait for scores at its exit."""
    inline: InlineOptions = InlineOptions()
    """What is evaluated the moment a turn ends."""
    metrics: tuple[MetricEntry, ...] = ()
    """Metrics that need parameters or a policy; one of the inline pack's names takes its place there."""
    groups: dict[str, GroupOptions] = Field(default_factory=dict)
    """Metrics by groups that share policy, selector and sampling; evaluated beside ``metrics``, and chosen by ``eval --metrics @NAME``."""
    references: ReferenceOptions = ReferenceOptions()
    """What turns are compared with."""
    conversation: ConversationOptions = ConversationOptions()
    """Metrics over whole conversations."""
    judge: JudgeOptions = JudgeOptions()
    """The model that ``llm_`` metrics ask."""
    embedder: EmbedderOptions = EmbedderOptions()
    """The server that ``embed_`` metrics ask for vectors."""
    privacy: PrivacyOptions = PrivacyOptions()
    """What is taken out before content leaves."""
    outlets: OutletOptions = OutletOptions()
    """Where scores leave."""
    queue: QueueOptions = QueueOptions()
    """The queue between the agent's threads and our worker."""
    serve: ServeOptions = ServeOptions()
    """The sidecar: where it listens, and what it takes from whom."""

    _sources: dict[KeyPath, str] = PrivateAttr(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Whether the options are equal, wherever they came from."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # parameters are mappings

    def metric_entries(self, group: str | None = None) -> list[tuple[KeyPath, MetricEntry]]:
        """Where each configured metric stands, and what it is: of ``metrics`` and all groups in order, or of one group.

        Names and parameters of the metrics are checked when they are selected.
        """
        groups = self.groups if group is None else {group: self.groups[group]}
        own = self.metrics if group is None else ()
        found: list[tuple[KeyPath, MetricEntry]] = [(("metrics", i), entry) for i, entry in enumerate(own)]
        for name, one in groups.items():
            found += [(("groups", name, "metrics", i), entry) for i, entry in enumerate(one.entries())]
        return found

    def where(self, path: KeyPath) -> str:
        """What an error about a value begins with: its file and line or variable, and its path."""
        return _where(path, self._sources)

    def to_dict(self) -> dict[str, Any]:
        """The configuration in the form that is read, defaults included and secrets as they are."""
        return cast("dict[str, Any]", _written(self))


def option_paths(section: type[BaseModel] = Config) -> list[tuple[str, ...]]:
    """The path of every option and section, in the order of their declaration."""
    found: list[tuple[str, ...]] = []
    for name, field in section.model_fields.items():
        found.append((name,))
        inner = _section_of(field.annotation)
        if inner is not None:
            found.extend((name, *path) for path in option_paths(inner))
    return found
