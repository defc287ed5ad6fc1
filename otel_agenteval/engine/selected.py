"""Group the configured metrics by scope (turn or conversation), and by whether a metric requires a judge or embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..config.root import Config
from ..core.errors import ConfigError, Faults, meant
from ..evaluation.selection import select_conversation_metrics, select_metrics
from ..metrics.bound_metric import BoundMetric, asked_in
from ..metrics.registry import resolve
from ..turns.conversations import looks_back


class Selected(NamedTuple):
    of_turns: Sequence[BoundMetric]
    of_conversations: Sequence[BoundMetric]
    computed: Sequence[BoundMetric]
    """Turn metrics that don't need a judge or embedder, not even for the metrics that they combine (inner metrics)."""
    judged: Sequence[BoundMetric]
    whole: Sequence[BoundMetric]
    """Conversation metrics that don't need a judge or embedder."""
    judged_whole: Sequence[BoundMetric]

    @property
    def any_judged(self) -> bool:
        return bool(self.judged or self.judged_whole)

    @property
    def history(self) -> bool:
        """True if a judged turn metric reads earlier turns of the conversation. Conversations are then kept in memory."""
        return looks_back(self.judged)

    @property
    def conversations(self) -> bool:
        return bool(self.whole or self.judged_whole or self.history)


def selected(config: Config) -> Selected:
    """Return the configured metrics in groups. Raises a ConfigError that lists errors in metric settings."""
    faults = Faults()
    of_turns: list[BoundMetric] = []
    of_conversations: list[BoundMetric] = []
    with faults:
        of_turns = select_metrics(config)
    with faults:
        of_conversations = select_conversation_metrics(config)
    faults.check()
    _check_judge_options(config, (*of_turns, *of_conversations))
    return Selected(of_turns, of_conversations, *_split(of_turns), *_split(of_conversations))


def _check_judge_options(config: Config, metrics: Sequence[BoundMetric]) -> None:
    judged = {one.name for one in asked_in(metrics)}
    for name in config.judge.budget.metrics if judged else ():
        if name not in judged:
            path = config.where(("judge", "budget", "metrics", name))
            raise ConfigError(f"{path}: must be a judged metric of this configuration{meant(name, judged)}")
    for number, choice in enumerate(config.judge.choose):
        for name in choice.metric:
            if "*" not in name and name not in ("simulated_user", *(one.name for one in metrics)):
                try:
                    resolve(name)
                except ConfigError as error:
                    raise ConfigError(f"{config.where(('judge', 'choose', number, 'metric'))}: {error}") from None


def _split(metrics: Sequence[BoundMetric]) -> tuple[list[BoundMetric], list[BoundMetric]]:
    return [metric for metric in metrics if not metric.asks], [metric for metric in metrics if metric.asks]
