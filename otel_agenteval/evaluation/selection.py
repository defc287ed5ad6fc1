"""Select the metrics that a configuration lists.

Inline metrics are selected first. Metrics from the configuration's other parts replace inline metrics, or are added.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from ..config.loader import load_config
from ..config.metrics import FAULTY, MetricEntry, SampleOptions, Selector
from ..config.root import Config
from ..config.types import KeyPath, dotted
from ..core.errors import ConfigError, Faults, likeness, meant, nearest
from ..core.score import Policy
from ..media.rules import Rules
from ..metrics.bound_metric import BoundMetric, live_metric
from ..metrics.names import presets
from ..metrics.registry import GROUPS, Metric, group_of, resolve, under
from .redaction import redacted_text

_log = logging.getLogger("otel_agenteval")


class Sampling(NamedTuple):
    options: SampleOptions
    path: KeyPath


Part = Literal["metrics", "conversation"]
Entries = Sequence[tuple[KeyPath, MetricEntry]]


def select_metrics(config: Config) -> list[BoundMetric]:
    """Return the metrics that a configuration selects, ready to evaluate.

    Metrics are in this order: ``inline.metrics`` (names, and groups such as ``default``), the preset, ``metrics``, ``groups``. The
    preset replaces inline metrics with the same name, and ``metrics`` and ``groups`` replace both. A metric can occur several times
    with different parameters. Metrics that conversation metrics need as signals come last.

    Raises:
        ConfigError: If a metric or parameter is unknown, a value is invalid, or an entry repeats another. The message contains the
            path and, if known, the line in a file and similar names.
    """
    import_own(config)
    entries = config.metric_entries()
    faults = Faults()
    configured: list[BoundMetric] = []
    inline: dict[str, BoundMetric] = {}
    with faults:
        configured = _configured(config, entries)
    with faults:
        inline = _inline(config)
    faults.check()
    preset = _of_preset(config, "metrics", configured)
    for bound in (*preset, *configured):
        inline.pop(bound.metric.name, None)
    for name, bound in inline.items():
        if bound.missing is not None:
            fix = f"Move this metric to metrics: [{{{name}: {{{bound.missing}: …}}}}]"
            raise ConfigError(f"{config.where(('inline', 'metrics'))}: {name} needs parameters. {fix}")
    selected = [*inline.values(), *preset, *configured]
    complete_policies(selected)
    _sample(config, entries, configured)
    with suppress(ConfigError):  # select_conversation_metrics raises it
        selected = with_signals(selected, select_conversation_metrics(config))
    return selected


def import_own(config: Config) -> None:
    """Import the user's modules, which define custom metrics. Raise ConfigError if an import fails."""
    for name in config.imports:
        try:
            importlib.import_module(name)
        except Exception as error:
            hint = ". The module must be on the Python path" if isinstance(error, ModuleNotFoundError) else ""
            problem = f"{name}: {type(error).__name__}: {error}{hint}"
            raise ConfigError(f"{config.where(('imports',))}: {problem}") from None


def select_group(config: Config, name: str, selected: Sequence[BoundMetric]) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Return (a group's turn metrics, its conversation metrics). Raise a ConfigError for an unknown group.

    If the configuration defines the group, the function returns the group's members that are in ``selected`` (the result of
    :func:`select_metrics`). Otherwise, it returns the members of the built-in group or preset with this name.
    """
    if name not in config.groups:
        if name in GROUPS:
            known = {bound.name: bound for bound in selected}
            return [known.get(member) or live_metric(member, {}) for member in group_of(name)], []
        if name in presets():
            config = load_config(config, overrides={"preset": name})
            return _members(config, "metrics", select_metrics(config)), _members(
                config, "conversation", select_conversation_metrics(config)
            )
        names = [*dict.fromkeys((*config.groups, *GROUPS, *presets()))]
        raise ConfigError(f"@{name}: unknown group{meant(name, names)} (groups: {', '.join(names)})")
    members = {bound.key for bound in _configured(config, config.metric_entries(name))}
    return [bound for bound in selected if bound.key in members], []


def _members(config: Config, part: Part, selected: Sequence[BoundMetric]) -> list[BoundMetric]:
    names = {bound.metric.name for bound in _of_preset(config, part, ())}
    return [bound for bound in selected if bound.metric.name in names]


def named(
    config: Config, names: Sequence[str], of_turns: Sequence[BoundMetric], whole: Sequence[BoundMetric]
) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Return (turn metrics, conversation metrics) with these names. Raise a ConfigError for unknown names.

    Configured metrics keep their configuration, and other metrics get default parameters. A metric that isn't configured counts
    as a turn metric, unless it reads signals.
    """
    chosen: list[BoundMetric] = []
    chosen_whole: list[BoundMetric] = []
    for name in (under(config.preset, given) for given in names):
        try:
            found = resolve(name)
        except ConfigError:
            for bound in (*of_turns, *whole):
                if bound.name.partition(".")[2] == name:
                    raise ConfigError(f"unknown metric {name!r}. Did you mean {bound.name!r}?") from None
            raise
        configured, of_whole = (
            [] if found.preset else [bound for bound in some if name in (bound.name, bound.metric.name)]
            for some in (of_turns, whole)
        )
        if not configured and not of_whole:
            bound = with_default_policy(config, live_metric(name, {}))
            allow_media(config, bound)
            (of_whole if reads_signals(found.metric) else configured).append(bound)
        chosen_whole += of_whole
        chosen += configured
    return chosen, chosen_whole


def select_conversation_metrics(config: Config) -> list[BoundMetric]:
    """Return the metrics to evaluate when a conversation ends. Raises a ConfigError as :func:`select_metrics` does.

    The result contains the preset's metrics, ``conversation.metrics``, and configured turn metrics that read signals.
    """
    import_own(config)
    metrics = config.conversation.metrics
    entries: Entries = [(("conversation", "metrics", i), entry) for i, entry in enumerate(metrics) if entry.metric != FAULTY]
    others = [(path, entry) for path, entry in config.metric_entries() if _session_metric(entry.metric)]
    own = {_session_metric(entry.metric) for _, entry in entries} if others else set()
    entries = [*entries, *((path, entry) for path, entry in others if _session_metric(entry.metric) not in own)]
    configured = _configured(config, entries)
    selected = [*_of_preset(config, "conversation", configured), *configured]
    complete_policies(selected)
    _sample(config, entries, configured)
    return selected


def _of_preset(config: Config, part: Part, configured: Sequence[BoundMetric]) -> list[BoundMetric]:
    """Return the metrics that the preset lists under the key ``part``, without the metrics in ``configured``."""
    if config.preset is None:
        return []
    entries = [MetricEntry.of(**MetricEntry._read(entry)) for entry in getattr(presets()[config.preset], part)]
    own = {bound.metric.name for bound in configured}
    return [
        bound
        for bound in _configured(config, [(("preset", i), entry) for i, entry in enumerate(entries)])
        if bound.metric.name not in own
    ]


def _session_metric(name: str) -> str | None:
    """Return a metric's canonical name if the metric reads signals. Return None for other metrics and unknown names."""
    try:
        found = resolve(name).metric
    except ConfigError:
        return None
    return found.name if reads_signals(found) else None


def complete_policies(selected: Sequence[BoundMetric]) -> None:
    """If a policy lacks inner metrics, set them to selected gates or, for a safety policy, to selected judged severity metrics."""
    for bound in selected:
        if bound.inner:
            continue
        if bound.metric.name == "code_policy_must_always_pass":
            bound.inner = [one for one in selected if one.policy == "gate" and one.name != bound.name]
        elif bound.metric.name == "code_safety_policy":
            levels = [one for one in selected if one.metric.unit == "{level}" and one.metric.kind == "llm"]
            bound.inner = [one for one in levels if one.metric.name != "llm_turn_risk"]  # it has a different scale


def _sample(config: Config, entries: Entries, configured: list[BoundMetric]) -> None:
    """Set judged metrics' sampling options. The judging package creates sampling rules from these options."""
    faults = Faults()
    for (path, entry), bound in zip(entries, configured, strict=True):
        if entry.sample is None:
            continue
        place = (*path, "sample")
        with faults:
            if not bound.asks:
                problem = f"{bound.name} is evaluated on every turn. Sample only llm_ and embed_ metrics and composites of them"
                raise ConfigError(f"{config.where(place)}: {problem}")
            if bound.inner and entry.sample.cascade is not None:
                problem = f"not allowed for {bound.name}, which waits for its inner metrics. Set cascade on one of them"
                raise ConfigError(f"{config.where((*place, 'cascade'))}: {problem}")
            bound.sample = Sampling(entry.sample, place)
    faults.check()


def _configured(config: Config, entries: Entries) -> list[BoundMetric]:
    bound: list[BoundMetric] = []
    faults = Faults()
    for path, entry in entries:
        with faults:
            one = _bind(config, path, entry.metric, entry.params, entry.policy, entry.when, entry.name)
            bound.append(one if "policy" in entry.options_given else with_default_policy(config, one))
    faults.check()
    seen: dict[tuple[str, str], KeyPath] = {}
    for (path, entry), one in zip(entries, bound, strict=True):
        # equal entries would produce the same result id twice, equal names the same series
        for key, same in (
            ((one.metric.name, one.signature_hash), "parameters"),
            ((one.name, "" if entry.name else one.signature_hash), "name"),
        ):
            first = seen.setdefault(key, path)
            if first != path:
                problem = f"{one.name} has the same {same} as {dotted(first)}. Remove or change one of them"
                raise ConfigError(f"{config.where(path)}: {problem}")
    return told_apart(bound)


def with_default_policy(config: Config, bound: BoundMetric) -> BoundMetric:
    """Set a metric's default policy to ``gate`` if the preset requires gates and the metric gives a verdict without a judge."""
    has_verdict = bound._facts.direction != "neutral" and (bound.metric.type == "boolean" or bound.threshold is not None)
    if config.preset is not None and presets()[config.preset].gates and has_verdict and not bound.asks:
        bound.set_policy("gate")
    return bound


_logged_names: set[tuple[str, ...]] = set()


def told_apart(bound: list[BoundMetric], *, log: bool = True) -> list[BoundMetric]:
    """If a metric is configured several times without names, rename its scores, so that all names differ."""
    by_name: dict[str, list[BoundMetric]] = {}
    for one in bound:
        by_name.setdefault(one.name, []).append(one)
    for name, several in by_name.items():
        if len(several) > 1:
            for one in several:
                one.call_series(f"v{one.signature_hash[:4]}")
            names = tuple(one.name for one in several)
            if log and names not in _logged_names:
                _logged_names.add(names)
                message = "%s is configured %d times. Its scores are named %s. Set a name for each entry"
                _log.warning(message, name, len(names), ", ".join(names))
    return bound


def _inline(config: Config) -> dict[str, BoundMetric]:
    wanted = config.inline.metrics
    if isinstance(wanted, str):
        return {name: _bind(config, ("inline", "metrics"), name, {}, "trend") for name in group_of(wanted)}
    found: dict[str, BoundMetric] = {}
    faults = Faults()
    for i, name in enumerate(wanted):
        path = ("inline", "metrics", i)
        with faults:
            if name.startswith("-"):
                _leave_out(config, path, name[1:], found)
            else:
                for member in group_of(name) if name in GROUPS else (name,):
                    bound = _bind(config, path, member, {}, "trend")
                    found[bound.name] = bound
    faults.check()
    return found


def _leave_out(config: Config, path: KeyPath, name: str, found: dict[str, BoundMetric]) -> None:
    try:
        names = group_of(name) if name in GROUPS else [resolve(under(config.preset, name))[0].name]
    except ConfigError as error:
        raise ConfigError(f"{config.where(path)}: {_or_group(name, error)}") from None
    if found.keys().isdisjoint(names):
        problem = f"no earlier entry of the list contains {name}, got -{name}. Remove the entry or move it to the end"
        raise ConfigError(f"{config.where(path)}: {problem}")
    for one in names:
        found.pop(one, None)


def _bind(
    config: Config, path: KeyPath, name: str, params: dict[str, Any], policy: Policy, when: Selector | None = None,
    series: str | None = None,
) -> BoundMetric:  # fmt: skip
    try:
        bound = live_metric(name, params, policy, config.scale, config.preset)
        if bound.inner and isinstance(weights := bound.params.get("weights"), list) and len(weights) != len(bound.inner):
            problem = f"must have one number per metric ({len(bound.inner)}), got {len(weights)}"
            raise ConfigError(f"{bound.metric.name}.weights: {problem}")
    except ConfigError as error:
        message = str(error)
        # Only the message of a wrong parameter begins with ``metric.parameter``. The path then includes the parameter.
        deeper = re.match(r"(\w+)\.(\w+)\S*:", message)
        if deeper is None:
            raise ConfigError(f"{config.where(path)}: {_or_group(name, error) if path[0] == 'inline' else message}") from None
        place = config.where((*path, name, deeper[2])).removesuffix(f".{name}.{deeper[2]}")
        raise ConfigError(f"{place}.{message}") from None
    bound.when = when
    if series is not None:
        bound.call_series(series)
    allow_media(config, bound)
    return bound


def media_rules(config: Config) -> Rules:
    """Return the rules for opening a turn's media. Raise ConfigError if the transcriber isn't fully configured."""
    try:
        rules = config.media.rules()
    except ValueError as error:
        raise ConfigError(f"{config.where(('media', 'transcriber'))}: {error}") from None
    kinds = config.privacy.redact
    return replace(rules, clean=partial(redacted_text, kinds=kinds)) if kinds else rules


def allow_media(config: Config, bound: BoundMetric) -> None:
    if bound.metric.media:
        bound.rules = media_rules(config)
    for inner in bound.inner:
        allow_media(config, inner)


def _or_group(name: str, error: ConfigError) -> str:
    """Return an error text for an unknown metric or group. If a group's name is similar, suggest it."""
    group = nearest(name, GROUPS, 1)[0]
    is_similar = likeness(name, group) >= 0.7
    return f"unknown metric or group {name!r}. Did you mean the group {group}?" if is_similar else str(error)


# --- signals of a conversation: scores of its turns, which session metrics read

SIGNALS: Mapping[str, str] = {
    "llm_confidence": "confidence", "embed_loop_detection": "loop_detection", "llm_tool_correctness": "tool_correctness",
    "embed_coherence": "coherence",
}  # fmt: skip
"""Maps a turn metric to the name of the signal that conversation metrics read. The signal is the turn metric's score."""


def reads_signals(metric: Metric) -> bool:
    return "session" in metric.reads and metric.kind == "code"


def with_signals(
    selected: list[BoundMetric], readers: Iterable[BoundMetric], known: Iterable[BoundMetric] = ()
) -> list[BoundMetric]:
    """Return the selected turn metrics, followed by the metrics that ``readers`` need as signals.

    A signal with weight 0 isn't needed. If ``known`` contains a needed metric, its first configuration in ``known`` is used.
    """
    wanted = [one for one in readers if reads_signals(one.metric)]
    present = {one.metric.name for one in selected}
    configured = {one.metric.name: one for one in reversed([*known])}
    added = []
    for name, signal in SIGNALS.items():
        using = [one for one in wanted if (one.params.get("signal_weights") or {}).get(signal, 1.0)]
        if using and name not in present:
            if (bound := configured.get(name)) is None:
                bound = live_metric(name, {})
                bound.when = using[0].when if all(one.when == using[0].when for one in using) else None
            added.append(bound)
    return [*selected, *added]
