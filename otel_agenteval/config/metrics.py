"""Sections ``inline``, ``metrics`` and ``groups``: what is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from .sampling import SampleOptions
from .section import NO_ENTRIES, Section, written
from .selector import Selector
from .types import After, Before, DurationOrZero, Kind, Switch

Group = Literal["default", "safety", "quality", "cost", "all"]
_GROUPS = get_args(Group)


def _names(value: Any) -> Any:
    if (isinstance(value, str) and value in _GROUPS) or (
        isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
    ):
        return value
    raise ValueError(f"it must be one of {', '.join(_GROUPS)}, or a list of groups and metric names")


class InlineOptions(Section):
    """What is evaluated the moment a turn ends."""

    metrics: Annotated[
        Group | tuple[str, ...],
        Before(_names),
        Kind("group, or list of groups and names"),
    ] = "default"
    """A [group of metrics](metrics/README.md#groups) (``default``, ``safety``, ``quality``, ``cost``, ``all``), or a list of groups and metric names; ``-name`` takes one out of those before it."""
    budget: DurationOrZero = 0.005
    """Seconds of the agent's thread that one turn may take, where an SDK needs its scores at once; the remaining metrics run on the worker."""
    expected: Switch = True
    """Whether `oa.expect(...)` turns on the `code_` metrics that can use what it gives, see [reference data](../concepts/reference-data.md#metrics-that-expect-turns-on). Never one that asks a model."""


FAULTY = "\0"
"""In place of the name of an entry that could not be read, where the rest is looked at nevertheless."""


class MetricEntry(Section):
    """A metric with parameters: ``{code_max_duration: {max_seconds: 2}, policy: gate}``, or only its name."""

    name: str
    """Canonical name, or a name from another catalogue (``trusys:icontains``)."""
    params: dict[str, Any] = NO_ENTRIES
    """The metric's parameters; its documentation names them."""
    policy: Literal["gate", "trend"] = "trend"
    """``gate`` (must always pass) or ``trend`` (watch it)."""
    when: Selector | None = None
    """The turns that it is evaluated on; all by default."""
    sample: SampleOptions | None = None
    """For ``llm_`` and ``embed_`` metrics: which of those turns are judged; all by default."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping):
            raise ValueError("it must be a metric's name, or {name: {parameters}, policy: gate | trend, when: {…}, sample: {…}}")  # noqa: TRY004 - pydantic reads it
        names = [key for key in value if key not in _BESIDE_A_METRIC]
        if len(names) != 1:
            raise ValueError(
                f"it must name exactly one metric beside policy, when and sample (here: {', '.join(map(str, names)) or 'none'})"
            )
        params = value[names[0]]
        if params is not None and not isinstance(params, Mapping):
            raise ValueError(f"the parameters of {names[0]} must be a mapping")
        rest = {key: value[key] for key in _BESIDE_A_METRIC if key in value}
        return {"name": str(names[0]), "params": dict(params or {}), **rest}

    def to_dict(self) -> dict[str, Any]:
        """``{name: {parameters}}``, with policy, selector and sampling beside it."""
        shown = self.policy != "trend" or "policy" in self.options_given
        return {self.name: self.params, **({"policy": self.policy} if shown else {}), **_shared(self)}


def _shared(section: MetricEntry | GroupOptions) -> dict[str, Any]:
    return {name: written(value) for name in ("when", "sample") if (value := getattr(section, name)) is not None}


def _at_least_one(entries: tuple[MetricEntry, ...]) -> tuple[MetricEntry, ...]:
    if not entries:
        raise ValueError("it must be a list of at least one metric")
    return entries


class GroupOptions(Section):
    """Metrics that share policy, selector and sampling: ``{policy: gate, when: {agent: travel}, metrics: [code_pii_leakage, code_secret_leak]}``."""

    metrics: Annotated[tuple[MetricEntry, ...], After(_at_least_one)]
    """As under ``metrics``; an entry's own settings take precedence."""
    policy: Literal["gate", "trend"] = "trend"
    """The policy of entries without one."""
    when: Selector | None = None
    """The turns that entries without a selector are evaluated on; all by default."""
    sample: SampleOptions | None = None
    """Which of those turns are judged by the ``llm_`` and ``embed_`` metrics without sampling of their own; all by default."""

    def to_dict(self) -> dict[str, Any]:
        """The shared settings, and the metrics."""
        return {"policy": self.policy, **_shared(self), "metrics": written(self.metrics)}

    def entries(self) -> tuple[MetricEntry, ...]:
        """Its metrics, with the shared settings filled in."""
        return tuple([self._filled(entry) for entry in self.metrics])

    def _filled(self, entry: MetricEntry) -> MetricEntry:
        judged = entry.name.startswith(("llm_", "embed_"))
        shared = {"policy": self.policy, "when": self.when, **({"sample": self.sample} if judged else {})}
        return entry.replaced(**{key: value for key, value in shared.items() if key not in entry.options_given})


_BESIDE_A_METRIC = ("policy", "when", "sample")
