"""Sections ``inline``, ``metrics`` and ``groups``: the metrics to evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from .sampling import SampleOptions
from .section import NO_ENTRIES, Section, written
from .selector import Selector
from .types import After, Before, DurationOrZero, Kind, Switch

Group = Literal["default", "safety", "quality", "cost", "all"]
_GROUPS = get_args(Group)
Preset = Literal["agenteval", "pandaprobe", "trusys", "hpd", "agentunit"]


def _names(value: Any) -> Any:
    if (isinstance(value, str) and value in _GROUPS) or (
        isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
    ):
        return value
    raise ValueError(f"must be one of {', '.join(_GROUPS)}, or a list of groups and metric names")


class InlineOptions(Section):
    """Metrics that run on each turn as soon as it closes."""

    metrics: Annotated[Group | tuple[str, ...], Before(_names), Kind("group, or list of groups and names")] = "default"
    """A [group of metrics](metrics/README.md#groups) (``default``, ``safety``, ``quality``, ``cost``, ``all``), or a list of groups and metric names. ``-name`` removes an entry that an earlier group added."""
    budget: DurationOrZero = 0.005
    """Maximum seconds per turn on the agent's thread, for SDKs that need scores immediately. The remaining metrics run on the worker."""
    expected: Switch = True
    """Let `oa.expect(...)` turn on the `code_` metrics that use its reference data, see [reference data](../concepts/reference-data.md#metrics-that-expect-turns-on). Judged metrics are never turned on."""


def _series_name(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and value.isidentifier() and value.isascii() and len(value) <= 60):
        return value
    raise ValueError("must be a word of letters, digits and underscores")


FAULTY = "\0"
"""The name of an invalid entry, while all other entries are still checked."""


class MetricEntry(Section):
    """A metric with parameters: ``{code_max_duration: {max_seconds: 2}, policy: gate}``, or only its name."""

    metric: str
    """Name of the metric, or its name in another tool (``trusys:icontains``)."""
    params: dict[str, Any] = NO_ENTRIES
    """Parameters of the metric, listed in its documentation."""
    name: Annotated[str | None, Before(_series_name), Kind("word")] = None
    """Name of the metric's scores, to tell several configurations of one metric apart: with ``name: refund``, scores of ``code_contains`` are called ``code_contains.refund``."""
    policy: Literal["gate", "trend"] = "trend"
    """``gate`` if every turn must pass, ``trend`` to watch the mean."""
    when: Selector | None = None
    """Turns to evaluate (default: all)."""
    sample: SampleOptions | None = None
    """Sampling of these turns, for ``llm_`` and ``embed_`` metrics (default: all)."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"metric": value}
        if not isinstance(value, Mapping):
            raise ValueError("must be the name of a metric or {metric: {parameters}, name: …, policy: …, when: {…}, sample: {…}}")  # noqa: TRY004 - pydantic reads it
        names = [key for key in value if key not in BESIDE_A_METRIC]
        if len(names) != 1:
            chosen = ". Choose a metric's model in judge.choose" if "model" in names else ""
            found = ", ".join(map(str, names)) or "none"
            raise ValueError(
                f"an entry must name exactly one metric, besides name, policy, when and sample. Found {found}{chosen}"
            )
        params = value[names[0]]
        if params is not None and not isinstance(params, Mapping):
            raise ValueError(f"the parameters of {names[0]} must be a mapping. Example: {{{names[0]}: {{threshold: 0.8}}}}")
        rest = {key: value[key] for key in BESIDE_A_METRIC if key in value}
        return {"metric": str(names[0]), "params": dict(params or {}), **rest}

    def to_dict(self) -> dict[str, Any]:
        """Return ``{name: {parameters}}`` with policy, selector and sampling."""
        shown = self.policy != "trend" or "policy" in self.options_given
        named = {} if self.name is None else {"name": self.name}
        return {self.metric: self.params, **named, **({"policy": self.policy} if shown else {}), **_shared(self)}


def _shared(section: MetricEntry | GroupOptions) -> dict[str, Any]:
    return {name: written(value) for name in ("when", "sample") if (value := getattr(section, name)) is not None}


def _at_least_one(entries: tuple[MetricEntry, ...]) -> tuple[MetricEntry, ...]:
    if not entries:
        raise ValueError("must be a list of at least one metric")
    return entries


class GroupOptions(Section):
    """Metrics that share policy, selector and sampling: ``{policy: gate, when: {agent: travel}, metrics: [code_pii_leakage, code_secret_leak]}``."""

    metrics: Annotated[tuple[MetricEntry, ...], After(_at_least_one)]
    """Entries as under ``metrics``. The settings of an entry take precedence."""
    policy: Literal["gate", "trend"] = "trend"
    """Policy of entries without their own."""
    when: Selector | None = None
    """Turns to evaluate, for entries without ``when`` (default: all)."""
    sample: SampleOptions | None = None
    """Sampling for ``llm_`` and ``embed_`` entries without ``sample`` (default: all turns)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the shared settings and the metrics."""
        policy = {"policy": self.policy} if "policy" in self.options_given else {}
        return {**policy, **_shared(self), "metrics": written(self.metrics)}

    def entries(self) -> tuple[MetricEntry, ...]:
        """Return the metrics with the shared settings applied."""
        return tuple([self._filled(entry) for entry in self.metrics])

    def _filled(self, entry: MetricEntry) -> MetricEntry:
        judged = entry.metric.startswith(("llm_", "embed_"))
        shared: dict[str, Any] = {"when": self.when, **({"sample": self.sample} if judged else {})}
        if "policy" in self.options_given:
            shared["policy"] = self.policy
        return entry.replaced(**{key: value for key, value in shared.items() if key not in entry.options_given})


BESIDE_A_METRIC = ("name", "policy", "when", "sample")
