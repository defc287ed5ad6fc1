"""Sections ``inline``, ``metrics``, and ``groups``: the metrics to run, and the turns that each metric scores (``when``, ``sample``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from ..core.errors import meant
from .section import NO_ENTRIES, Section, file_form, options_of
from .types import After, Before, DurationOrZero, Kind, Share, Switch, Text, matching, texts, valid, whole_number

_PATTERNS = "must be a string or a list of strings. A star matches any characters"
Patterns = Annotated[tuple[str, ...], Before(texts(_PATTERNS, least=1)), Kind("string or list of strings")]
PatternsOrNone = Annotated[tuple[str, ...], Before(texts(_PATTERNS)), Kind("string or list of strings")]
Steps = Annotated[tuple[Literal["tool", "llm", "retrieval", "sub_agent", "handoff"], ...], Before(texts(_PATTERNS, least=1))]


class Selector(Section):
    """A filter for turns. A turn must match all conditions. In names, IDs, and attribute values, ``*`` matches any characters."""

    agent: Patterns = ()
    """Name of the turn's agent."""
    service: Patterns = ()
    """``service.name`` of the root span's resource."""
    model: Patterns = ()
    """Model of at least one model call of the turn."""
    conversation: Patterns = ()
    """Conversation ID."""
    step: Steps = ()
    """Kinds of steps that the turn contains: ``tool``, ``llm``, ``retrieval``, ``sub_agent``, or ``handoff``."""
    attribute: dict[str, Patterns] = NO_ENTRIES
    """Attributes of the turn's root span."""

    def to_dict(self) -> dict[str, Any]:
        return {name: file_form(value) for name in options_of(type(self)) if (value := getattr(self, name))}


class _AsGiven(Section):
    """Section that is saved with only the options that the user set, so that unset options follow later changes to the defaults."""

    def to_dict(self) -> dict[str, Any]:
        return {name: file_form(getattr(self, name)) for name in options_of(type(self)) if name in self.options_given}


class SampleRate(_AsGiven):
    """Different sampling rate for some turns: ``{when: {agent: travel}, rate: 0.5}``."""

    when: Selector | None = None
    """Turns with this rate (default: all)."""
    rate: Share
    """Share of these turns to judge, from 0 to 1."""


class CascadeOptions(_AsGiven):
    """Rule to run a cheaper metric first: ``{after: embed_answer_relevance, judge_if: "score.embed_answer_relevance < 0.5"}``."""

    after: Text
    """Name of the cheaper metric, which must also be configured."""
    judge_if: Text
    """Condition on the cheaper metric's score. If the condition holds, the turn is judged. Otherwise, the sampling rate decides."""


_RULE_OF_QUOTA = "must be a positive whole number up to 1,000,000, or null"
Quota = Annotated[int, Before(lambda value: whole_number(value, 1, 10**6, _RULE_OF_QUOTA))]


class SampleOptions(_AsGiven):
    """Sampling rules of a judged metric: ``{rate: 0.05, always_if: "error or duration_s > 30"}``."""

    rate: Share
    """Share of turns to judge, from 0 to 1."""
    always_if: Text | None = None
    """Condition for turns that are always judged."""
    rates: tuple[SampleRate, ...] = ()
    """Different rates for some turns. The first entry whose ``when`` matches applies."""
    min_per_hour: Quota | None = None
    """Minimum number of turns to judge per agent and hour, if the agent has that many turns."""
    cascade: CascadeOptions | None = None
    """A cheaper judged metric that runs first."""


Group = Literal["default", "safety", "quality", "cost", "all"]
_GROUPS = get_args(Group)
Preset = Literal["agenteval", "pandaprobe", "trusys", "hpd", "agentunit"]


def _names(value: Any) -> Any:
    if (isinstance(value, str) and value in _GROUPS) or (
        isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
    ):
        return value
    raise ValueError(
        f"must be one of {', '.join(_GROUPS)}, or a list of groups and metric names. Example: [default, -code_refusal]"
    )


class InlineOptions(Section):
    metrics: Annotated[Group | tuple[str, ...], Before(_names), Kind("group, or list of groups and names")] = "default"
    """A [group of metrics](metrics/README.md#groups) (``default``, ``safety``, ``quality``, ``cost``, ``all``), or a list of
    groups and metric names. ``-NAME`` removes a metric that an earlier group added. List metrics with required options in
    ``metrics`` instead."""
    budget: DurationOrZero = 0.005
    """Maximum CPU seconds per turn if your SDK version makes the agent wait for span events. The worker thread runs the rest."""
    expected: Switch = True
    """Let `oa.expect(...)` enable `code_` metrics that use its reference data. See [Reference
    data](../concepts/reference-data.md#metrics-that-expect-enables). `expect` never enables judged metrics."""


_word = matching("must be a word of letters, digits, and underscores", r"[A-Za-z_]\w{0,59}")
FAULTY = "\0"
"""Placeholder for an invalid metric entry while other entries are checked."""


class MetricEntry(Section):
    """A metric with parameters: ``{code_max_duration: {max_seconds: 2}, policy: gate}``, or only its name."""

    metric: str
    """Name of the metric, or its name in another tool (``trusys:icontains``)."""
    params: dict[str, Any] = NO_ENTRIES
    """Parameters of the metric, listed in its documentation."""
    name: Annotated[str, Before(_word), Kind("word")] | None = None
    """Suffix for score names, to distinguish several configurations of one metric. With ``name: refund``, scores of ``code_contains`` are called ``code_contains.refund``."""
    policy: Literal["gate", "trend"] = "trend"
    """``gate`` if every turn must pass, ``trend`` if only the mean is monitored."""
    when: Selector | None = None
    """Turns to evaluate (default: all)."""
    sample: SampleOptions | None = None
    """Sampling of the turns that ``when`` selects, for ``llm_`` and ``embed_`` metrics (default: all selected turns)."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"metric": value}
        if not isinstance(value, Mapping):
            raise ValueError("must be the name of a metric or {metric: {parameters}, name: …, policy: …, when: {…}, sample: {…}}")  # noqa: TRY004 - pydantic reads it
        names = [key for key in value if key not in BESIDE_A_METRIC]
        if len(names) != 1:
            hints = [meant(str(name), BESIDE_A_METRIC) for name in names]
            hint = ". Choose a metric's model in judge.choose" if "model" in names else max(hints, default="")
            found = ", ".join(map(str, names)) or "none"
            raise ValueError(
                f"an entry must contain exactly one metric (name, policy, when, and sample are optional), got {found}{hint}"
            )
        params = value[names[0]]
        if params is not None and not isinstance(params, Mapping):
            raise ValueError(f"the parameters of {names[0]} must be a mapping. Example: {{{names[0]}: {{threshold: 0.8}}}}")
        rest = {key: value[key] for key in BESIDE_A_METRIC if key in value}
        return {"metric": str(names[0]), "params": dict(params or {}), **rest}

    def to_dict(self) -> dict[str, Any]:
        shown = self.policy != "trend" or "policy" in self.options_given
        named = {} if self.name is None else {"name": self.name}
        return {self.metric: self.params, **named, **({"policy": self.policy} if shown else {}), **_shared(self)}


def _shared(section: MetricEntry | GroupOptions) -> dict[str, Any]:
    return {name: file_form(value) for name in ("when", "sample") if (value := getattr(section, name)) is not None}


class GroupOptions(Section):
    """Metrics with the same policy, selector, and sampling: ``{policy: gate, when: {agent: travel}, metrics: [code_pii_leakage, code_secret_leak]}``."""

    metrics: Annotated[
        tuple[MetricEntry, ...], After(valid("must be a list of at least one metric", lambda entries: entries or None))
    ]
    """Entries in the format of ``metrics``. An entry's settings take precedence over the group's settings."""
    policy: Literal["gate", "trend"] = "trend"
    """Policy for entries without ``policy``."""
    when: Selector | None = None
    """Turns to evaluate, for entries without ``when`` (default: all)."""
    sample: SampleOptions | None = None
    """Sampling for ``llm_`` and ``embed_`` entries without ``sample`` (default: all turns)."""

    def to_dict(self) -> dict[str, Any]:
        policy = {"policy": self.policy} if "policy" in self.options_given else {}
        return {**policy, **_shared(self), "metrics": file_form(self.metrics)}

    def entries(self) -> tuple[MetricEntry, ...]:
        shared: dict[str, Any] = {"when": self.when}
        if "policy" in self.options_given:
            shared["policy"] = self.policy
        found = []
        for entry in self.metrics:
            judged = entry.metric.startswith(("llm_", "embed_"))
            settings = {**shared, "sample": self.sample} if judged else shared
            found.append(entry.replaced(**{key: value for key, value in settings.items() if key not in entry.options_given}))
        return tuple(found)


BESIDE_A_METRIC = ("name", "policy", "when", "sample")
