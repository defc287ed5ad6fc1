"""From configuration to metrics: the inline pack, and what was configured over and beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from .config import Config, MetricEntry, Selector
from .errors import ConfigError
from .registry import BoundMetric, default_pack, resolve
from .sampling import rule_of
from .score import Policy


def select_metrics(config: Config) -> list[BoundMetric]:
    """The metrics that a configuration asks for, ready to evaluate.

    First ``inline.metrics`` (``default`` is the default pack), then ``metrics`` in their order. A configured metric takes the
    place of the inline one of the same name; one metric may be configured several times with different parameters.

    Raises:
        ConfigError: an unknown metric (with the closest three names) or parameter, a value that is not allowed, or an
            entry that repeats another; with its path and, where it comes from a file, its line.
    """
    configured = _configured(config, ("metrics",), config.metric_entries())
    replaced = {bound.name for bound in configured}
    inline = {name: bound for name, bound in _inline(config) if name not in replaced}
    selected = [*inline.values(), *configured]
    _sample(config, ("metrics",), config.metric_entries(), configured, selected)
    return selected


def select_conversation_metrics(config: Config) -> list[BoundMetric]:
    """The metrics that are evaluated when a conversation ends.

    Raises:
        ConfigError: as :func:`select_metrics`.
    """
    path = ("conversation", "metrics")
    configured = _configured(config, path, config.conversation.metrics)
    _sample(config, path, config.conversation.metrics, configured, configured)
    return configured


def _sample(
    config: Config,
    path: tuple[str, ...],
    entries: Sequence[MetricEntry],
    configured: list[BoundMetric],
    evaluated: list[BoundMetric],
) -> None:
    """Give the judged metrics their rules of sampling, whose conditions may name the scores of those that are evaluated at once."""
    inline = [bound.name for bound in evaluated if bound.metric.kind == "code"]
    for i, (entry, bound) in enumerate(zip(entries, configured, strict=True)):
        if entry.sample is None:
            continue
        where = config.where((*path, i, "sample"))
        if bound.metric.kind == "code":
            raise ConfigError(f"{where}: {bound.name} is evaluated on every turn; only llm_ and embed_ metrics are sampled")
        bound.sample = rule_of(entry.sample, inline, where)


def _configured(config: Config, path: tuple[str, ...], entries: Sequence[MetricEntry]) -> list[BoundMetric]:
    bound = [_bind(config, (*path, i), entry.name, entry.params, entry.policy, entry.when) for i, entry in enumerate(entries)]
    _refuse_repeats(config, path, bound)
    return bound


def _inline(config: Config) -> Iterable[tuple[str, BoundMetric]]:
    wanted = config.inline.metrics
    if wanted == "default":
        return [(name, _bind(config, ("inline", "metrics"), name, {}, "trend")) for name in default_pack()]
    bound = [_bind(config, ("inline", "metrics", i), name, {}, "trend") for i, name in enumerate(wanted)]
    return [(metric.name, metric) for metric in bound]


def _bind(
    config: Config, path: tuple[str | int, ...], name: str, params: dict[str, Any], policy: Policy, when: Selector | None = None
) -> BoundMetric:
    try:
        metric, preset = resolve(name)
        bound = BoundMetric(metric, {**preset, **params}, policy)
    except ConfigError as error:
        message = str(error)
        # A parameter's fault already begins with ``metric.parameter``: only then does it belong to a deeper path.
        deeper = re.match(r"(\w+)\.(\w+)\S*:", message)
        if deeper is None:
            raise ConfigError(f"{config.where(path)}: {message}") from None
        place = config.where((*path, name, deeper[2])).removesuffix(f".{name}.{deeper[2]}")
        raise ConfigError(f"{place}.{message}") from None
    bound.when = when
    return bound


def _refuse_repeats(config: Config, path: tuple[str, ...], configured: list[BoundMetric]) -> None:
    """Two equal entries would be one result twice, under one id."""
    seen: dict[tuple[str, str], int] = {}
    for i, bound in enumerate(configured):
        first = seen.setdefault((bound.name, bound.signature_hash), i)
        if first != i:
            raise ConfigError(f"{config.where((*path, i))}: {bound.name} has the same parameters as {'.'.join(path)}[{first}]")
